"""Run one of two chains, by a condition."""

from octo.block import Block, SubFlow
from octo.fields import Expression
from octo.message import Message
from octo.run import Run


class If(Block, type="if", group="control"):
    """Run one of two chains, by a condition."""

    condition: Expression[bool]
    """Must be true or false; nothing else counts as either."""

    then: SubFlow
    """Runs when the condition is true."""

    else_: SubFlow | None = None
    """Runs when the condition is false; without it the message passes unchanged."""

    async def execute(self, message: Message, run: Run) -> Message:
        branch = self.then if run.evaluate(self.condition, message, "condition") else self.else_
        return await run.chain(branch.process, message) if branch else message
