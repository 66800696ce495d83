"""Send the message to a queue."""

import asyncio
from typing import Self

from pydantic import model_validator

from octo.block import Block
from octo.errors import OctoError
from octo.fields import Bool, Duration, Expression
from octo.message import Message
from octo.refusals import Refusals
from octo.run import Run, RunError


class QueueDispatch(Block, type="queue-dispatch", group="integration"):
    """Send a copy of the message to a queue, from which a flow with a `queue` source takes it.

    The message goes on unchanged. With `awaitReply` it takes over the body and the variables of the reply; when the
    flow at the other end fails, so does this block.
    """

    subject: Expression[str]
    """The subject to send to."""

    await_reply: Bool = False
    """Wait for the reply, which is the message that the flow at the other end completes with."""

    timeout: Duration = Duration("30s")
    """How long to wait for the reply."""

    @model_validator(mode="after")
    def _waits_for_some_time(self) -> Self:
        refusals = Refusals()
        if self.timeout.ns <= 0:
            refusals.add("`timeout` must be greater than 0", "timeout")
        refusals.raise_if_any()
        return self

    async def execute(self, message: Message, run: Run) -> Message:
        subject = run.evaluate(self.subject, message, "queue-dispatch subject").strip()
        if not subject:
            raise RunError("queue-dispatch subject is empty")
        queues = run.services.queues
        try:
            if not self.await_reply:
                await queues.send(subject, message)
                return message
            async with asyncio.timeout(self.timeout.seconds):
                reply = await queues.request(subject, message)
        except TimeoutError:
            raise RunError(f'queue-dispatch "{subject}": no reply within {self.timeout.text}') from None
        except OctoError as error:
            raise RunError(f'queue-dispatch "{subject}": {error.message}', hint=error.hint) from error
        raw = reply.raw
        message.body = reply.body
        message.raw = raw
        message.vars.update(reply.vars)
        return message
