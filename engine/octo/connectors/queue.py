"""Messages that go to one of those who take them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from octo.connector import Connector, Deliver, Source
from octo.errors import OctoError
from octo.fields import Duration, Int, Name
from octo.refusals import Refusals
from octo.services.base import Delivery

if TYPE_CHECKING:
    from octo.runtime import Runtime


class QueueSource(Source):
    """Take messages that `queue-dispatch` sends to a subject. Each goes to one flow of all that name the subject.

    The flow's message is the reply, for a sender that waits for one.
    """

    type = "queue"

    subject: Name
    """The subject, exactly as it is sent to."""

    listeners: Int = 8
    """How many messages are handled at the same time."""

    timeout: Duration = Duration("30s")
    """How long the flow may take for a message. After that the sender is told that it failed, and the flow goes on."""

    @model_validator(mode="after")
    def _is_sensible(self) -> Self:
        refusals = Refusals()
        if self.listeners < 1:
            refusals.add("`listeners` must be greater than 0", "listeners")
        if self.timeout.ns <= 0:
            refusals.add("`timeout` must be greater than 0", "timeout")
        refusals.raise_if_any()
        return self

    async def listen(self, live: Runtime, deliver: Deliver) -> None:
        free = asyncio.Semaphore(self.listeners)
        handling: set[asyncio.Task[None]] = set()

        def over(task: asyncio.Task[None]) -> None:
            handling.discard(task)
            free.release()

        try:
            async with live.services.queues.subscribed(self.subject) as subscription:
                while True:
                    await free.acquire()
                    task = asyncio.create_task(self._handle(await subscription.take(), live, deliver))
                    handling.add(task)
                    task.add_done_callback(over)
        finally:
            await asyncio.gather(*handling)

    async def _handle(self, delivery: Delivery, live: Runtime, deliver: Deliver) -> None:
        message, received = delivery.message, delivery.message.scope()
        message.event_id = live.new_id()
        try:
            async with asyncio.timeout(self.timeout.seconds):
                outcome = await deliver(message)
        except TimeoutError:
            error = OctoError(f"the flow did not finish within {self.timeout.text}")
            if delivery.reply is None:
                live.log("error", error.message, flow=deliver.flow, event_id=message.event_id)
            delivery.fail(error)
            return
        if outcome.error is not None:
            delivery.fail(outcome.error)
        else:
            delivery.answer(outcome.message or received)


class Queue(Connector, type="queue"):
    """Queues within octo. Their only use is as a source, which needs no entry under `connectors`."""

    sources = (QueueSource,)

    @asynccontextmanager
    async def open(self, runtime: Runtime) -> AsyncIterator[Runtime]:
        yield runtime
