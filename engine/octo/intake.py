"""How a flow takes messages from its source: a channel of bounded depth, and workers that run what is in it."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final, Self

from octo.errors import OctoError
from octo.invocation import Outcome
from octo.message import Dropped, Message
from octo.run import Run

if TYPE_CHECKING:
    from octo.config.model import Flow
    from octo.runtime import Runtime

WORKERS: Final = 8
"""The least number of workers that a flow has when it does not say how many."""
DEPTH: Final = 64
"""The least depth of a channel whose flow does not say how deep it is."""


class Intake:
    """A flow that takes messages from its source as long as the context lasts, and then finishes those in its channel.

    It is what the source delivers to: whoever delivers waits while the channel is full. Workers are made when a message
    finds none that is idle.
    """

    listening: asyncio.Task[None]
    """The source at work."""

    def __init__(self, runtime: Runtime, flow: Flow) -> None:
        self.flow = flow.title
        self._runtime = runtime
        self._flow = flow
        self._count = flow.workers if flow.workers > 0 else max(WORKERS, 4 * _cpus())
        depth = flow.buffer if flow.buffer > 0 else max(DEPTH, self._count)
        self._channel: asyncio.Queue[tuple[Message, asyncio.Future[Outcome]]] = asyncio.Queue(depth)
        self._workers: list[asyncio.Task[None]] = []
        self._idle = 0
        """Workers that take the next message."""

    async def __aenter__(self) -> Self:
        source = self._flow.source
        assert source is not None
        live = self._runtime.live(source.instance, object)
        self.listening = asyncio.create_task(source.listen(live, self))
        self._runtime.log("info", "flow started", flow=self.flow, source=source.type, workers=self._count)
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            self.listening.cancel()
            await asyncio.wait([self.listening])
            await self._channel.join()
        finally:
            for task in (self.listening, *self._workers):
                task.cancel()
            await asyncio.gather(self.listening, *self._workers, return_exceptions=True)

    async def __call__(self, message: Message) -> Outcome:
        return await (await self.accept(message))

    async def accept(self, message: Message) -> asyncio.Future[Outcome]:
        done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        await self._channel.put((message, done))
        if self._idle < self._channel.qsize() and len(self._workers) < self._count:
            self._idle += 1
            self._workers.append(asyncio.create_task(self._work()))
        return done

    async def _work(self) -> None:
        while True:
            message, done = await self._channel.get()
            self._idle -= 1
            try:
                outcome = await self._outcome(message)
                if not done.done():  # whoever waited may have given up
                    done.set_result(outcome)
            finally:
                done.cancel()
                self._channel.task_done()
                self._idle += 1

    async def _outcome(self, message: Message) -> Outcome:
        try:
            with self._runtime.budgeted():
                return Outcome(await Run(self._runtime, self.flow).through(self._flow, message))
        except Dropped:
            return Outcome()
        except OctoError as error:
            failure = error
        except Exception as error:  # whatever fails with a message, the worker goes on with the next one
            failure = OctoError(f"internal error: {error!r}")
            failure.__cause__ = error
        # A sender that waited for the flow of another intake fails with what that one has logged.
        level = "debug" if _is_logged(failure) else "error"
        failure.is_logged = True
        self._runtime.log(level, failure.message, flow=self.flow, event_id=message.event_id, **failure.fields())
        return Outcome(error=failure)


def _is_logged(error: BaseException | None) -> bool:
    """Whether the error, or one that it comes from, stands in the log."""
    return error is not None and (getattr(error, "is_logged", False) or _is_logged(error.__cause__))


def _cpus() -> int:
    """How many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
