"""The connections to one database, and the threads that wait for it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from octo.sql.connection import Connection, DatabaseError, Result, Scalar, Wanted

T = TypeVar("T")

_FRESH_SECONDS = 1.0
"""A connection that was used this recently is taken to stand still."""
_CLOSING_SECONDS = 10.0
"""How long a pool that closes waits for queries that it has interrupted."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many connections a pool holds, and how long."""

    open: int
    idle: int
    lifetime: float | None = None
    """Seconds after which a connection is replaced."""
    patience: float | None = None
    """Seconds that a query waits for a free connection."""


@dataclass(slots=True)
class _Held:
    connection: Connection
    opened: float
    used: float


class _Job:
    """One query, from the moment it has a place in the pool."""

    __slots__ = ("cancelled", "connection", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection: Connection | None = None
        self.cancelled = False

    def take(self, connection: Connection) -> None:
        with self.lock:
            if self.cancelled:
                raise DatabaseError("the query was cancelled before it began")
            self.connection = connection

    def leave(self) -> None:
        """The connection is no longer this job's; waits for an interruption that is on its way."""
        with self.lock:
            self.connection = None

    def interrupt(self) -> None:
        with self.lock:
            self.cancelled = True
            if self.connection is not None:
                self.connection.interrupt()


class Pool:
    """Runs queries in threads, at most `limits.open` at once; the others wait in the order they came."""

    def __init__(self, connect: Callable[[], Connection], limits: Limits) -> None:
        self._connect = connect
        self.limits = limits
        self._places = asyncio.Semaphore(limits.open)
        self._threads = ThreadPoolExecutor(limits.open, thread_name_prefix="octo-sql")
        self._idle: list[_Held] = []
        self._lock = threading.Lock()
        """Guards the idle connections, which the threads share."""
        self._jobs: dict[asyncio.Future[Any], _Job] = {}
        self._interrupts: set[asyncio.Future[None]] = set()
        self._closed = False

    async def check(self) -> None:
        """Open the first connection. Raises DatabaseError."""
        await self._run(lambda connection: None)

    async def execute(self, query: str, args: Sequence[Scalar] = (), wanted: Wanted = "all") -> Result:
        """Run a query on a free connection. Raises DatabaseError.

        When the caller is cancelled the query is interrupted, and its connection comes back when it has ended.
        """
        return await self._run(lambda connection: connection.execute(query, args, wanted))

    async def close(self) -> None:
        """Interrupt what still runs and close all connections."""
        self._closed = True
        deadline = time.monotonic() + _CLOSING_SECONDS
        while self._jobs and time.monotonic() < deadline:
            for job in self._jobs.values():
                self._interrupt(job)
            await asyncio.wait(self._jobs, timeout=0.5)
        await asyncio.gather(*self._interrupts, return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(None, self._close_idle)
        self._threads.shutdown(wait=False)

    async def _run(self, work: Callable[[Connection], T]) -> T:
        await self._place()
        job = _Job()
        running = asyncio.get_running_loop().run_in_executor(self._threads, self._work, job, work)
        self._jobs[running] = job
        running.add_done_callback(self._done)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self._interrupt(job)
            raise

    async def _place(self) -> None:
        patience = self.limits.patience
        try:
            async with asyncio.timeout(patience):
                await self._places.acquire()
        except TimeoutError:
            in_use = f"all {self.limits.open} are" if self.limits.open > 1 else "the only one is"
            raise DatabaseError(
                f"no connection became free within {patience:g} s: {in_use} in use",
                hint="raise `maxOpenConns` or `acquireTimeout` of the connector",
            ) from None

    def _done(self, running: asyncio.Future[Any]) -> None:
        del self._jobs[running]
        self._places.release()
        if not running.cancelled():
            running.exception()

    def _interrupt(self, job: _Job) -> None:
        interruption = asyncio.get_running_loop().run_in_executor(None, job.interrupt)
        self._interrupts.add(interruption)
        interruption.add_done_callback(self._interrupts.discard)

    # ------------------------------------------------------------ in the threads

    def _work(self, job: _Job, work: Callable[[Connection], T]) -> T:
        held = self._take()
        try:
            job.take(held.connection)
            return work(held.connection)
        finally:
            job.leave()
            self._give_back(held)

    def _take(self) -> _Held:
        """An idle connection that still stands, else a new one."""
        while True:
            with self._lock:
                held = self._idle.pop() if self._idle else None
            now = time.monotonic()
            if held is None:
                return _Held(self._connect(), now, now)
            if not self._expired(held) and (now - held.used < _FRESH_SECONDS or held.connection.alive()):
                return held
            held.connection.close()

    def _give_back(self, held: _Held) -> None:
        held.used = time.monotonic()
        lost = held.connection.lost
        if lost:
            self._close_idle()
        with self._lock:
            keep = not (lost or self._closed or self._expired(held) or len(self._idle) >= self.limits.idle)
            if keep:
                self._idle.append(held)
        if not keep:
            held.connection.close()

    def _expired(self, held: _Held) -> bool:
        lifetime = self.limits.lifetime
        return lifetime is not None and time.monotonic() - held.opened >= lifetime

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for held in idle:
            held.connection.close()
