"""Call another flow of the config."""

from collections.abc import Iterator

from octo.block import Block, Finding
from octo.config.model import Config
from octo.errors import OctoError, did_you_mean
from octo.fields import Bool, FlowName
from octo.message import Dropped, Message
from octo.run import ChainFailed, Run, RunError


class FlowRef(Block, type="flow-ref", group="integration"):
    """Call another flow with a copy of the message; its body and variables come back."""

    flow: FlowName
    """The flow to call."""

    one_way: Bool = False
    """Go on at once: what the called flow gives, drops or fails with is ignored."""

    async def execute(self, message: Message, run: Run) -> Message:
        if run.runtime.callee(self.flow) is None:
            raise RunError(f'flow "{self.flow}" is not registered')
        if self.one_way:
            self._hand_over(message.clone(event_id=run.runtime.new_id()), run)
            return message
        try:
            await run.call_on(self.flow, message)
        except Dropped:
            pass
        except OctoError as error:
            raise ChainFailed(f'flow-ref "{self.flow}"', error) from error
        return message

    def _hand_over(self, copy: Message, run: Run) -> None:
        async def work() -> None:
            try:
                await run.call(self.flow, copy)
            except Dropped:
                pass
            except OctoError as error:
                run.log("error", f'flow-ref "{self.flow}": {error.message}', event_id=copy.event_id)

        run.runtime.spawn(work())

    def check(self, config: Config) -> Iterator[Finding]:
        called = config.flow(self.flow)
        if called is None:
            names = [flow.name for flow in config.flows if flow.name]
            hint = did_you_mean(self.flow, names)
            yield Finding(f'flow "{self.flow}" is not registered', ("flow",), hint, warning=True)
            return
        if called.source is not None:
            message = f"`octo run` does not let flow `{self.flow}` be called, for it has a source"
            hint = "move its blocks into a flow without a source, and call that one from both"
            yield Finding(message, ("flow",), hint, warning=True)
        cycle = self._cycle(config)
        if cycle:
            yield Finding(
                f"flow `{cycle[0]}` calls itself without end: {' → '.join(cycle)}",
                ("flow",),
                "let a condition end the calls",
            )

    def _cycle(self, config: Config) -> list[str] | None:
        """The calls from this block that lead back to its flow, when every message makes them."""
        owner = _owner(self, config)
        if owner is None:
            return None
        names = [owner, self.flow]
        while names[-1] != owner:
            following = next(_certain_calls(names[-1], config), None)
            if following is None or following in names[1:]:
                return None
            names.append(following)
        return names


def _owner(block: FlowRef, config: Config) -> str | None:
    """The flow in whose main chain the block stands directly, so that every message reaches it."""
    for flow in config.flows:
        if (
            flow.name
            and any(other is block for other in flow.process)
            and block.flow in _certain_calls(flow.name, config)
        ):
            return flow.name
    return None


def _certain_calls(name: str, config: Config) -> Iterator[str]:
    """The flows that every message of a flow calls, unless a block before them fails."""
    flow = config.flow(name)
    for block in flow.process if flow else ():
        if isinstance(block, FlowRef):
            if not block.one_way:
                yield block.flow
        elif next(block.branches(), None) is not None:
            return
