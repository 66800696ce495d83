"""Run the first chain whose guard is true."""

from pydantic import Field

from octo.block import Block, Chain, SubFlow
from octo.fields import Expression, Model, Text
from octo.message import Message
from octo.run import Run


class Case(Model):
    """One branch of a `switch`."""

    when: Expression[bool]
    """The guard; must be true or false."""

    name: Text | None = None
    """Name of the branch, for addresses."""

    process: Chain = ()
    """Runs when the guard is the first that is true."""


class Switch(Block, type="switch", group="control"):
    """Run the first chain whose guard is true; later guards are not evaluated."""

    cases: tuple[Case, ...] = Field(min_length=1)
    """The guarded branches, in order."""

    default: SubFlow | None = None
    """Runs when no guard is true; without it the message passes unchanged."""

    async def execute(self, message: Message, run: Run) -> Message:
        for index, case in enumerate(self.cases):
            if run.evaluate(case.when, message, f"switch case {index}"):
                return await run.chain(case.process, message)
        return await run.chain(self.default.process, message) if self.default else message
