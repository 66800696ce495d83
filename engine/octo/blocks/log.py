"""Write a line to a log."""

from typing import Annotated, Literal

from octo.block import Block
from octo.fields import Bool, Expression, one_of
from octo.message import HIDDEN_PREFIX, Message
from octo.run import Run
from octo.values import Json, dumps

LEVELS = ("debug", "info", "warn", "error")


class Log(Block, type="log", group="integration"):
    """Write a line to the process log; the message passes unchanged."""

    message: Expression[str] | None = None
    """The line; by default the body and the variables as JSON."""

    level: Annotated[Literal["debug", "info", "warn", "error"], one_of(*LEVELS)] = "info"
    """Level of the line; the environment variable `LOG_LEVEL` decides which levels are shown."""

    full: Bool = False
    """Add the correlation id, the variables and the body as fields of their own."""

    async def execute(self, message: Message, run: Run) -> Message:
        variables = {name: value for name, value in message.vars.items() if not name.startswith(HIDDEN_PREFIX)}
        fields: dict[str, Json] = {"event_id": message.event_id}
        if self.full:
            fields |= {"correlation_id": message.correlation_id, "variables": variables, "body": message.body}
            if message.body_schema is not None:
                fields["body_schema"] = message.body_schema
        if self.message is not None:
            text = run.evaluate(self.message, message, "log message")
        else:
            text = "message" if self.full else dumps({"body": message.body, "vars": variables})
        run.log(self.level, text, **fields)
        return message
