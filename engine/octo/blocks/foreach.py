"""Run a chain once for each element of a list."""

from typing import Annotated, Literal

from octo.block import Block, SubFlow
from octo.fields import Expression, Name, one_of
from octo.message import Dropped, Message
from octo.run import Run
from octo.values import Json

_UNSET = object()


class Foreach(Block, type="foreach", group="control"):
    """Run a chain once for each element of a list, one after another."""

    items: Expression[list[Json]]
    """The list; evaluated once, before the loop."""

    as_: Name = "item"
    """Variable that holds the element."""

    mode: Annotated[Literal["iterate", "map"], one_of("iterate", "map")] = "iterate"
    """`iterate` threads one message through all rounds; `map` collects the body that each round leaves."""

    body: SubFlow
    """Runs for each element. In `map` mode it starts from the whole incoming body each time."""

    async def execute(self, message: Message, run: Run) -> Message:
        items = run.evaluate(self.items, message, "foreach items")
        if self.mode == "map":
            return await self._map(items, message, run)
        return await self._iterate(items, message, run)

    async def _iterate(self, items: list[Json], message: Message, run: Run) -> Message:
        """A failure or a stop leaves the loop variable set; it is what the round was about."""
        before = message.vars.get(self.as_, _UNSET)
        for item in items:
            message.vars[self.as_] = item
            await run.chain(self.body.process, message)
            if message.stopped:
                return message
        if before is _UNSET:
            message.vars.pop(self.as_, None)
        else:
            message.vars[self.as_] = before
        return message

    async def _map(self, items: list[Json], message: Message, run: Run) -> Message:
        results: list[Json] = []
        for item in items:
            scope = message.scope()
            scope.vars[self.as_] = item
            try:
                await run.chain(self.body.process, scope)
            except Dropped:
                results.append(None)
                continue
            results.append(scope.body)
            if scope.stopped:
                message.stop()
                break
        message.body = results
        return message
