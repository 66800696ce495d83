"""Write a line to a log."""

from typing import Annotated, Literal

from octo.block import Block
from octo.connectors.logger import OpenLog
from octo.fields import Bool, ConnectorName, Expression, one_of
from octo.message import HIDDEN_PREFIX, Message
from octo.run import Run
from octo.values import Json, dumps

LEVELS = ("debug", "info", "warn", "error")


class LoggerName(ConnectorName):
    """The name of a configured `logger`."""

    __slots__ = ()
    type = "logger"


class Log(Block, type="log", group="integration"):
    """Write a line to the process log, or to a `logger`; the message passes unchanged."""

    message: Expression[str] | None = None
    """The line; by default the body and the variables as JSON."""

    level: Annotated[Literal["debug", "info", "warn", "error"], one_of(*LEVELS)] = "info"
    """Level of the line; a `logger` has a lowest level of its own, the process log that of `LOG_LEVEL`."""

    logger: LoggerName | None = None
    """A `logger` connector; without it the line goes to the process log on standard error."""

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
        if self.logger is None:
            run.log(self.level, text, **fields)
            return message
        log = run.connector(self.logger, OpenLog)
        if log.add_source:
            fields["source"] = str(run.runtime.config.origin.locate(self.place.path))
        log.write(self.level, text, fields)
        return message
