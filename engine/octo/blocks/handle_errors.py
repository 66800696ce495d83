"""Recover from a failure inside a flow."""

from pydantic import Field

from octo.block import Block, Chain
from octo.errors import OctoError
from octo.message import Message
from octo.run import ChainFailed, Run, failure_of


class HandleErrors(Block, type="handle-errors", group="control"):
    """Run a chain, and another one if it fails."""

    process: Chain = Field(min_length=1)
    """The protected chain."""

    error: Chain = Field(min_length=1)
    """Runs on the message as the failed chain left it, and reads `vars.error` (`message`, `flow`, `block`)."""

    async def execute(self, message: Message, run: Run) -> Message:
        try:
            return await run.chain(self.process, message)
        except OctoError as error:
            message.vars["error"] = failure_of(error, self.place.name)
            try:
                return await run.chain(self.error, message)
            except OctoError as second:
                raise ChainFailed("scope alternative", second) from second
