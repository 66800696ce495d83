"""Messages at certain times."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Self

from pydantic import Field, model_validator

from octo.connector import Connector, Deliver, Payload, Source
from octo.errors import OctoError
from octo.fields import Name, Text
from octo.message import Message
from octo.observe import SourceEmitted
from octo.refusals import Refusals
from octo.schedule import Schedule

if TYPE_CHECKING:
    from octo.runtime import Runtime

_SECOND: Final = 10**9
_NAP: Final = 30.0
"""Seconds after which the clock is looked at again: it may be set, and machines sleep."""
_LATE: Final = 60 * _SECOND
"""A time that is over since then was missed, and is left out."""


class CronSource(Source):
    """Send a message at certain times. Times that pass while nothing runs are not made up for.

    Ticks do not wait for each other: as many messages run at once as the flow has `workers`.
    """

    type = "cron"

    schedule: Name
    """`second minute hour day-of-month month day-of-week`, each `*`, a number, `a-b`, `*/n`, `a-b/n` or a list; months
    and days also as `JAN` and `SUN`. Or `@yearly`, `@monthly`, `@weekly`, `@daily`, `@hourly`, `@every 30s`.

    When both days are given, either will do. Times are those of the local time zone; `CRON_TZ=Europe/Oslo ` in front
    chooses another one.
    """

    payload: Payload | None = None
    """The body; sees `now` and `settings`. Without it the body is null."""

    correlation_id: Text | None = Field(default=None, alias="correlationID")
    """Correlation id of every message."""

    @model_validator(mode="after")
    def _understand(self) -> Self:
        refusals = Refusals()
        try:
            Schedule(self.schedule)
        except ValueError as error:
            refusals.add(f"cron schedule: {error}", "schedule", hint="for example `0 30 7 * * MON-FRI` or `@every 5m`")
        refusals.raise_if_any()
        return self

    async def listen(self, live: Runtime, deliver: Deliver) -> None:
        schedule = Schedule(self.schedule)
        last = live.clock()
        async with asyncio.TaskGroup() as ticks:
            while (due := schedule.following(last / _SECOND)) is not None:
                last = round(due * _SECOND)
                while (left := last - live.clock()) > 0:
                    await live.sleep(min(left / _SECOND, _NAP))
                if left < -_LATE:
                    last = live.clock()
                else:
                    ticks.create_task(self._tick(last, live, deliver))

    async def _tick(self, at: int, live: Runtime, deliver: Deliver) -> None:
        try:
            body = None if self.payload is None else self.evaluate(self.payload, live, now=at)
        except OctoError as error:
            live.log("error", f"cron payload: {error.message}", flow=deliver.flow)
            return
        message = Message(body, event_id=live.new_id(), correlation_id=self.correlation_id or "")
        live.emit(SourceEmitted(deliver.flow, message.event_id, self.type, message))
        await deliver.accept(message)


class Cron(Connector, type="cron"):
    """A clock. Its only use is as a source, which needs no entry under `connectors`."""

    sources = (CronSource,)

    @asynccontextmanager
    async def open(self, runtime: Runtime) -> AsyncIterator[Runtime]:
        yield runtime
