"""Replace the message body."""

from collections.abc import Iterator

from pydantic import model_validator

from octo.block import Block, Finding
from octo.config.model import Config
from octo.errors import OctoError
from octo.fields import Bool, Expression, Text
from octo.message import Message
from octo.refusals import Refusals
from octo.run import Run
from octo.values import kind_of


class SetPayload(Block, type="set-payload", group="data"):
    """Replace the message body with the value of an expression."""

    value: Expression
    """What the body becomes."""

    raw_body: Bool = False
    """Store the value, which must be text, as raw content that an HTTP response writes verbatim."""

    content_type: Text | None = None
    """MIME type of the raw content."""

    @model_validator(mode="after")
    def _raw_needs_a_type(self) -> "SetPayload":
        refusals = Refusals()
        if self.raw_body and not self.content_type:
            refusals.add("set-payload requires `contentType` with `rawBody`", "rawBody", hint="add `contentType:`")
        refusals.raise_if_any()
        return self

    def check(self, config: Config) -> Iterator[Finding]:
        if self.content_type and not self.raw_body:
            yield Finding(
                "`contentType` has no effect without `rawBody`", ("contentType",), "add `rawBody: true`", warning=True
            )

    async def execute(self, message: Message, run: Run) -> Message:
        value = run.evaluate(self.value, message, "set-payload value")
        if not self.raw_body:
            message.body = value
        elif isinstance(value, str):
            message.set_raw(self.content_type or "", value)
        else:
            raise OctoError(f"set-payload value must be a string when rawBody is set, got {kind_of(value)}")
        return message
