"""Set a variable of the message."""

from octo.block import Block
from octo.fields import Expression, Name
from octo.message import Message
from octo.run import Run


class SetVariable(Block, type="set-variable", group="data"):
    """Set a variable of the message to the value of an expression."""

    name: Name
    """The variable; a plain name, so `a.b` is the variable called `a.b`. Stands under `settings:`."""

    value: Expression
    """What the variable becomes; null is a value too."""

    async def execute(self, message: Message, run: Run) -> Message:
        message.vars[self.name] = run.evaluate(self.value, message, f'set-variable "{self.name}" value')
        return message
