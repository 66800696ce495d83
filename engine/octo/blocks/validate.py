"""Turn away messages that break a rule."""

from collections.abc import Iterator

from pydantic import Field

from octo.block import Block, SubFlow
from octo.errors import OctoError
from octo.fields import Expression, Int, Model, Text
from octo.message import Message
from octo.run import Run, RunError

REJECTED = 422


class Rule(Model):
    """One rule of a `validate`."""

    expr: Expression[bool]
    """Must be true for the message to pass; an error in it fails the block, so guard with `has()`."""

    message: Text | None = None
    """What the answer says when the rule is broken."""


class Validate(Block, type="validate", group="control"):
    """Let a message pass when every rule is true; otherwise complete the flow with an answer that says why not."""

    rules: tuple[Rule, ...] = Field(min_length=1)
    """The rules; all are evaluated, in order."""

    reject_status: Int = REJECTED
    """HTTP status of the built-in answer; 0 means 422."""

    on_reject: SubFlow | None = None
    """Makes the answer instead of the built-in one; reads `vars.validationErrors`."""

    async def execute(self, message: Message, run: Run) -> Message:
        broken = list(self._broken(message, run))
        if not broken:
            return message
        message.vars["validationErrors"] = broken
        if self.on_reject is not None and self.on_reject.process:
            await run.chain(self.on_reject.process, message)
        else:
            message.body = {"error": "validation_failed", "messages": broken}
            message.vars["httpStatus"] = float(self.reject_status or REJECTED)
        message.stop()
        return message

    def _broken(self, message: Message, run: Run) -> Iterator[str]:
        """The texts of the rules that are not true."""
        for index, rule in enumerate(self.rules):
            try:
                passed = run.evaluate(rule.expr, message)
            except OctoError as error:
                raise RunError(f"validate rule {index}: {error.message}", hint=error.hint) from error
            if not passed:
                yield rule.message or ""
