"""Take chosen parts of what a chain finds out."""

from typing import Annotated

from pydantic import Field

from octo.block import Block, SubFlow
from octo.fields import BLANK_IS_ABSENT, Expression, Name
from octo.message import Message
from octo.run import Run


class Enrich(Block, type="enrich", group="control"):
    """Run a chain beside the message and take from its result what `setBody` and `setVars` name, nothing else."""

    body: SubFlow
    """Runs once, on a copy of the message."""

    set_body: Annotated[Expression | None, BLANK_IS_ABSENT] = None
    """What the body becomes, read from the result of the chain; without it the body stays."""

    set_vars: dict[Name, Expression] = Field(default_factory=dict)
    """Variables to set, each with an expression that is read from the result of the chain."""

    async def execute(self, message: Message, run: Run) -> Message:
        result = await run.chain(self.body.process, message.scope())
        variables = {
            name: run.evaluate(expression, result, f'enrich setVars["{name}"]')
            for name, expression in self.set_vars.items()
        }
        if self.set_body is not None:
            message.body = run.evaluate(self.set_body, result, "enrich setBody")
        message.vars.update(variables)
        if result.stopped:
            message.stop()
        return message
