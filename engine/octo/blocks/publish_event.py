"""Publish the message to everybody who listens."""

from octo.block import Block
from octo.errors import OctoError
from octo.fields import Expression
from octo.message import Message
from octo.run import Run, RunError


class PublishEvent(Block, type="publish-event", group="integration"):
    """Give every flow with an `events` source of a subject a copy of the message, which itself goes on unchanged.

    When nobody listens the copy is lost, and nothing has failed.
    """

    subject: Expression[str]
    """The subject to publish under."""

    value: Expression | None = None
    """The body of the copies; by default that of the message."""

    async def execute(self, message: Message, run: Run) -> Message:
        subject = run.evaluate(self.subject, message, "publish-event subject").strip()
        if not subject:
            raise RunError("publish-event subject is empty")
        copy = message.scope()
        if self.value is not None:
            copy.body = run.evaluate(self.value, message, "publish-event value")
        try:
            await run.services.topics.publish(subject, copy)
        except OctoError as error:
            raise RunError(f'publish-event "{subject}": {error.message}', hint=error.hint) from error
        return message
