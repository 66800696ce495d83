"""Serves a config in process, as `octo run` does, on a clock of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from acting import Action, acting
from octo.message import Message
from octo.observe import Event, FlowEnded, LogLine
from octo.runtime import Runtime
from octo.testing.harness import config


class Clock:
    """A time that passes when somebody waits for it; after `naps` of them it stands still."""

    def __init__(self, start: str, naps: int) -> None:
        self.now = int(datetime.fromisoformat(start).timestamp() * 10**9)
        self.naps = naps

    def __call__(self) -> int:
        return self.now

    async def sleep(self, seconds: float) -> None:
        if self.naps == 0:
            await asyncio.Event().wait()
        self.naps -= 1
        self.now += round(seconds * 10**9)
        await asyncio.sleep(0)


class Watcher:
    """Observer that keeps what flows gave and what was logged."""

    def __init__(self, *more: type[Event]) -> None:
        self.kinds: Sequence[type[Event]] = (FlowEnded, LogLine, *more)
        self.ended: list[tuple[str, str, Any]] = []
        """Flow, outcome and body."""
        self.messages: list[Message] = []
        self.lines: list[tuple[str, str]] = []
        """Level and text."""
        self.others: list[Event] = []

    def notify(self, event: Event) -> None:
        match event:
            case FlowEnded(message=Message() as message):
                self.ended.append((event.address, event.outcome, message.body))
                self.messages.append(message)
            case LogLine():
                self.lines.append((event.level, event.text))
            case _:
                self.others.append(event)


@dataclass
class Served:
    """A runtime that serves."""

    runtime: Runtime
    work: asyncio.Task[None]

    async def stop(self) -> None:
        """End it in good order."""
        self.work.cancel()
        await asyncio.wait([self.work])


@asynccontextmanager
async def served(
    text: str,
    *,
    actions: dict[str, Action] | None = None,
    files: Mapping[str, str] | None = None,
    observers: Sequence[Any] = (),
    **options: Any,
) -> AsyncIterator[Served]:
    """A config that serves as long as the context lasts."""
    loaded = acting(config(text, files=files), actions or {})
    ready = asyncio.Event()
    async with Runtime(loaded, serving=True, observers=observers, **options) as runtime:
        served = Served(runtime, asyncio.create_task(runtime.serve(ready=ready.set)))
        try:
            await asyncio.wait([served.work, asyncio.create_task(ready.wait())], return_when=asyncio.FIRST_COMPLETED)
            yield served
        finally:
            await served.stop()
            if not served.work.cancelled():
                served.work.result()


async def until(condition: Callable[[], Any], seconds: float = 5.0) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  (whatever it is that changes)
            await asyncio.sleep(0.001)
