"""Remove a variable of the message."""

from octo.block import Block
from octo.fields import Name
from octo.message import Message
from octo.run import Run


class DeleteVariable(Block, type="delete-variable", group="data"):
    """Remove a variable of the message; one that is not set is fine."""

    name: Name
    """The variable to remove. Stands under `settings:`."""

    async def execute(self, message: Message, run: Run) -> Message:
        message.vars.pop(self.name, None)
        return message
