"""One execution of a flow: running chains, evaluating expressions, recovering, telling observers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from octo import cel
from octo.block import Block, Chain
from octo.errors import BlockError, ExpressionError, OctoError
from octo.message import Dropped, Message
from octo.observe import BlockEntered, BlockLeft, Event, FlowEnded, FlowStarted, LogLine, Outcome
from octo.values import Json, kind_of, render

if TYPE_CHECKING:
    from octo.config.model import Flow
    from octo.fields import Expression
    from octo.runtime import Runtime
    from octo.services.base import Services

T = TypeVar("T")

DEPTH_LIMIT: Final = 64
"""How deep flows may call each other."""


BREATH: Final = 0.02
"""Seconds after which blocks that never wait let others have a turn: signals, time limits, other messages."""


class RunError(OctoError):
    """Something that a block asked of the run failed."""


class ChainFailed(RunError):
    """A chain failed that another part of the flow ran, which says so in its own words."""

    def __init__(self, what: str, error: OctoError) -> None:
        super().__init__(f"{what}: {error.message}", hint=error.hint, location=error.location)
        self.address: str = getattr(error, "address", "")
        self.detail = error.detail


class Run:
    """One message on its way through a flow, and through the flows that it calls."""

    __slots__ = (
        "_entered",
        "_left",
        "_stage",
        "environment",
        "flow",
        "in_pool",
        "memory_id",
        "runtime",
        "session",
        "trail",
    )

    def __init__(
        self,
        runtime: Runtime,
        flow: str,
        *,
        session: dict[object, Any] | None = None,
        trail: tuple[str, ...] = (),
        in_pool: bool = False,
        memory_id: str = "",
    ) -> None:
        self.runtime = runtime
        self.flow = flow
        """Name of the flow that runs."""
        self.session: dict[object, Any] = {} if session is None else session
        """What lives as long as the one invocation from outside, called flows included; each owner has its key."""
        self.trail = (*trail, flow)
        """The flows that called each other to get here, this one last."""
        self.in_pool = in_pool
        """Whether this is a piece of work of a flow's pool."""
        self.memory_id = memory_id.strip()
        """Which memory this invocation is part of, called flows included; empty for none."""
        self.environment: Mapping[str, str] = runtime.config.environment.values
        self._entered = runtime.listeners(BlockEntered)
        self._left = runtime.listeners(BlockLeft)
        self._stage = runtime.stage

    # ------------------------------------------------------------ chains and flows

    async def chain(self, blocks: Chain, message: Message) -> Message:
        """Run blocks one after another on a message.

        Returns the same message, or one that stopped. Raises Dropped when a block filtered it out and BlockError
        when one failed; the message then is as the failed block left it.
        """
        watched = self._entered or self._left or self._stage
        runtime = self.runtime
        for block in blocks:
            if message.stopped:
                break
            try:
                result = await (self._watch(block, message) if watched else block.execute(message, self))
            except (OctoError, RecursionError) as error:
                raise BlockError(
                    block.place.label,
                    error if isinstance(error, OctoError) else RunError("nested too deeply"),
                    address=block.place.address,
                    location=runtime.config.origin.locate(block.place.path),
                ) from error
            except _cancelled() as stop:
                stop.add_note(block.place.address)  # a call that runs out of time tells what was at work
                raise
            if result is not message:
                message.adopt(result)
            if perf_counter() - runtime.breathed > BREATH:
                await runtime.breathe()
        return message

    async def _watch(self, block: Block, message: Message) -> Message:
        """Run one block, let doubles see it, and tell the observers."""
        address = block.place.address
        self.emit(BlockEntered(address, message.event_id, block.type, message))
        started = perf_counter()
        outcome: Outcome = "failed"
        after, failure = None, None
        try:
            stage = self._stage
            after = await (stage.execute(block, message, self) if stage else block.execute(message, self))
            outcome = "completed"
        except Dropped:
            outcome = "dropped"
            raise
        except OctoError as error:
            failure = error
            raise
        finally:
            seconds = perf_counter() - started
            self.emit(BlockLeft(address, message.event_id, block.type, outcome, seconds, after, failure))
        return after

    async def through(self, flow: Flow, message: Message, *, handed_on: bool = False) -> Message:
        """Run a flow on a message, and its `error` chain if it fails. Raises Dropped and OctoError."""
        if self.listens(FlowStarted):
            self.emit(FlowStarted(flow.title, message.event_id, message, handed_on))
        started = perf_counter()
        outcome: Outcome = "failed"
        failure: OctoError | None = None
        try:
            result = await self._recovering(flow, message)
            outcome = "completed"
            return result
        except Dropped:
            outcome = "dropped"
            raise
        except OctoError as error:
            failure = error
            raise
        finally:
            if self.listens(FlowEnded):
                seconds = perf_counter() - started
                self.emit(FlowEnded(flow.title, message.event_id, outcome, seconds, message, failure))

    async def _recovering(self, flow: Flow, message: Message) -> Message:
        try:
            return await self.chain(flow.process, message)
        except OctoError as error:
            if not flow.error:
                raise
            message.vars["error"] = failure_of(error, flow.title)
            try:
                return await self.chain(flow.error, message)
            except OctoError as second:
                raise ChainFailed("error path", second) from second

    async def call(self, name: str, message: Message) -> Message:
        """Run another flow on a message of its own, as part of this invocation."""
        flow = self.runtime.callee(name)
        if flow is None:
            raise RunError(f'flow "{name}" is not registered')
        if len(self.trail) >= DEPTH_LIMIT:
            names = [*self.trail, name]
            start = names.index(name)
            cycle = " → ".join(names[start : names.index(name, start + 1) + 1])
            raise RunError(f"call depth {DEPTH_LIMIT} exceeded: {cycle} → …")
        run = Run(
            self.runtime,
            name,
            session=self.session,
            trail=self.trail,
            in_pool=self.in_pool,
            memory_id=self.memory_id,
        )
        return await run.through(flow, message)

    async def call_on(self, name: str, message: Message) -> None:
        """Call another flow with a copy of a message, which then has the body and the variables that come back."""
        if self.runtime.callee(name) is None:
            raise RunError(f'flow "{name}" is not registered')
        result = await self.call(name, message.clone(event_id=self.runtime.new_id()))
        raw = result.raw
        message.body = result.body
        message.raw = raw
        message.vars.update(result.vars)
        if result.stopped:
            message.stop()

    # ------------------------------------------------------------ work beside this

    async def together(self, works: Sequence[Callable[[Run], Coroutine[Any, Any, None]]]) -> None:
        """Do pieces of work at once, on the flow's pool, and wait for all of them.

        The first failure cancels the others and is raised.
        """
        inside = self._in_pool()
        await self.runtime.pool(self.flow).together([partial(work, inside) for work in works], inside=self.in_pool)

    async def hand_on(self, message: Message, flow: Flow) -> None:
        """Send a message through a flow as an invocation of its own, whose failure is logged and nothing else.

        It runs on the flow's pool; when that is full, right here.
        """
        work = partial(self._in_pool()._alone, message, flow)
        if self.runtime.pool(self.flow).offer(work, self.runtime.spawn) is None:
            await work()

    async def _alone(self, message: Message, flow: Flow) -> None:
        try:
            await self.through(flow, message, handed_on=True)
        except Dropped:
            pass
        except OctoError as error:
            self.log("error", error.message, flow=flow.title, event_id=message.event_id, **error.fields())

    def _in_pool(self) -> Run:
        """This run, as its pieces of work see it."""
        return Run(
            self.runtime,
            self.flow,
            session=self.session,
            trail=self.trail[:-1],
            in_pool=True,
            memory_id=self.memory_id,
        )

    # ------------------------------------------------------------ expressions

    def evaluate(self, expression: Expression[T], message: Message, what: str = "", **more: object) -> T:
        """The value of an expression on a message; `what` names the setting in error texts.

        A boolean expression must yield a boolean and a list expression a list; one of text renders any other
        value as compact JSON. Further names may be brought into scope. Raises OctoError.
        """
        program = expression.program
        activation = self._scope(message)
        if "now" in program.names:
            activation["now"] = cel.Timestamp(self.runtime.clock())
        if more:
            activation.update(more)
        try:
            value = program(activation)
        except ExpressionError as error:
            prefix = f"{what}: " if what else ""
            raise RunError(f"{prefix}evaluate expression: {error.message}", hint=error.hint) from error
        result: T = _of_kind(value, expression.kind, what or "expression")
        return result

    def render(self, template: str, message: Message) -> str:
        """The text of a template, by alias or resource id, with the message in scope. Raises OctoError."""
        scope = self._scope(message)
        scope["now"] = cel.Timestamp(self.runtime.clock())
        return self.runtime.config.templates.render(template, scope)

    def _scope(self, message: Message) -> dict[str, object]:
        """What an expression on a message sees, but for the time."""
        return {
            "body": message.body,
            "vars": message.vars,
            "eventID": message.event_id,
            "correlationID": message.correlation_id,
            "env": self.environment,
            cel.SURROUNDINGS: self.runtime.surroundings,
        }

    # ------------------------------------------------------------ surroundings

    @property
    def services(self) -> Services:
        """Entries and whatever else the surroundings of the runtime provide."""
        return self.runtime.services

    def connector(self, name: str, kind: type[T]) -> T:
        """The live thing that a connector instance has open."""
        return self.runtime.live(name, kind)

    def listens(self, kind: type[Event]) -> bool:
        """Whether anyone wants events of this kind; one that nobody wants need not be built."""
        return bool(self.runtime.listeners(kind))

    def emit(self, event: Event) -> None:
        """Tell the observers of an event."""
        self.runtime.emit(event)

    def log(self, level: str, text: str, **fields: Json) -> None:
        """Write a line to the process log."""
        self.emit(LogLine("", "", level, text, fields))


def _cancelled() -> type[BaseException]:
    """What a block that is given up raises; the checks of a config load this file, and need no event loop."""
    from asyncio import CancelledError

    return CancelledError


def failure_of(error: OctoError, flow: str) -> dict[str, Json]:
    """What a recovery chain reads as `vars.error`: the text, the flow, and the failed block of the chain itself."""
    label = error.label if isinstance(error, BlockError) else ""
    failure = {"message": error.message, "flow": flow, "block": label}
    return failure | {"detail": error.detail} if error.detail else failure


def _of_kind(value: Json, kind: object, what: str) -> Any:
    if kind is object or kind is Any:
        return value
    if kind is str:
        return render(value)
    if kind is bool:
        if type(value) is bool:
            return value
        raise RunError(f"{what} must evaluate to a bool, got {kind_of(value)}")
    if kind is list:
        if type(value) is list:
            return value
        raise RunError(f"{what} must evaluate to an array, got {kind_of(value)}")
    if kind is dict:
        if type(value) is dict:
            return value
        raise RunError(f"{what} must evaluate to a mapping, got {kind_of(value)}")
    return value
