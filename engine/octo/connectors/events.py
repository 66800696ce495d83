"""Messages that go to everybody who listens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from octo.connector import Connector, Deliver, Source
from octo.fields import Int, Name
from octo.refusals import Refusals
from octo.services.base import Inbox

if TYPE_CHECKING:
    from octo.runtime import Runtime


class EventsSource(Source):
    """Take a copy of every message that `publish-event` publishes under a subject from now on.

    Nobody waits for the flow: its failure does not reach the publisher, and when 1024 messages wait, further ones are
    lost.
    """

    type = "events"

    subject: Name
    """The subject, exactly as it is published."""

    listeners: Int = 8
    """How many messages may wait at once for room in the flow's `buffer`."""

    @model_validator(mode="after")
    def _can_be_listened_to(self) -> Self:
        refusals = Refusals()
        if self.subject.startswith("system:"):
            hint = "subjects of the platform can be published to, but not listened to"
            refusals.add("events: a subject that starts with `system:` cannot be a source", "subject", hint=hint)
        if self.listeners < 1:
            refusals.add("`listeners` must be greater than 0", "listeners")
        refusals.raise_if_any()
        return self

    async def listen(self, live: Runtime, deliver: Deliver) -> None:
        async with live.services.topics.subscribed(self.subject) as inbox, asyncio.TaskGroup() as listeners:
            for _ in range(self.listeners):
                listeners.create_task(self._hand_over(inbox, live, deliver))

    async def _hand_over(self, inbox: Inbox, live: Runtime, deliver: Deliver) -> None:
        while True:
            message, lost = await inbox.take()
            if lost:
                live.log("warn", "events were lost, for the flow cannot keep up", flow=deliver.flow, lost=lost)
            message.event_id = live.new_id()
            await deliver.accept(message)


class Events(Connector, type="events"):
    """Topics within octo. Their only use is as a source, which needs no entry under `connectors`."""

    sources = (EventsSource,)

    @asynccontextmanager
    async def open(self, runtime: Runtime) -> AsyncIterator[Runtime]:
        yield runtime
