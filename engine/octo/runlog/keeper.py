"""Keeps a record of every run in which an agent works, while it goes on, in the store."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

from octo.errors import OctoError
from octo.observe import (
    AgentEnded,
    AgentStarted,
    Event,
    FlowEnded,
    FlowStarted,
    ModelDelta,
    TextsEmbedded,
    ToolReturned,
    TurnEnded,
)
from octo.runlog.live import Live
from octo.runlog.record import Record
from octo.runlog.recorder import Recorder
from octo.store import runs
from octo.store.runs import AgentRow, RunRow
from octo.values import clean_text

if TYPE_CHECKING:
    from sqlite3 import Connection

    from octo.store.store import Store

SECOND: Final = 10**9
BEAT: Final = 10.0
"""Seconds after which a process says again that its runs go on."""
STALE: Final = 60 * SECOND
"""Nanoseconds after which one is not believed any more."""
LONGEST: Final = 10_000_000
"""Characters of the log of one run; what comes later is left out, but for its end."""
_TIDY: Final = 100
"""With every so many runs, old ones are removed."""


class Keeper:
    """Observer that keeps runs, as long as it is open. A run is what one message causes, called flows included.

    `flows` are those whose runs are watched: the ones that may come to an agent. Nothing is written before one works.
    A store that fails costs the records and a warning, never the run. `mask` hides secrets, `clock` gives nanoseconds
    since 1970, `new_id` an id for a run whose message has the id of another one. `longest` is how many characters a log
    may have. With `values`, those of drafts that agents worked as are kept too.
    """

    kinds: Sequence[type[Event]] = (
        *(kind for kind in Recorder.kinds if kind is not ModelDelta),  # wanting it would make models stream
        AgentStarted,
        AgentEnded,
    )

    def __init__(
        self,
        store: Store,
        flows: frozenset[str],
        config: str,
        *,
        mask: Callable[[str], str],
        warn: Callable[[str], object],
        new_id: Callable[[], str],
        clock: Callable[[], int] = time.time_ns,
        longest: int = LONGEST,
        values: bool = True,
    ) -> None:
        self._store = store
        self._flows = flows
        self._config = config
        self._mask = mask
        self._warn = warn
        self._new_id = new_id
        self._clock = clock
        self._longest = longest
        self._values = values
        self._host, self._pid = socket.gethostname(), os.getpid()
        self._recorder = Recorder([self._take], mask=mask, clock=clock)
        self._here: ContextVar[Live | None] = ContextVar("octo.runlog.run", default=None)
        self._live: set[Live] = set()
        """Runs in which an agent works or worked, as long as they are not stored to their end."""
        self._news = asyncio.Event()
        self._closing = False
        self._broken = False
        self._writing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing = True
        self._news.set()
        if self._writing is None:
            return
        try:
            await asyncio.wait([self._writing])
        except asyncio.CancelledError:
            await asyncio.wait([self._writing])
            raise

    # ------------------------------------------------------------ what happens

    def notify(self, event: Event) -> None:
        run = self._here.get()
        if isinstance(event, FlowStarted) and (run is None or run.is_over or event.handed_on):
            run = self._begin(event, run) or run
        if run is None or run.is_over or self._broken:
            return
        self._recorder.notify(event)
        match event:
            case FlowStarted():
                run.flows += 1
            case FlowEnded():
                self._flow_ended(run, event)
            case AgentStarted():
                self._agent_started(run, event)
            case AgentEnded():
                self._agent_ended(run, event)
            case TurnEnded() | ToolReturned() | TextsEmbedded():
                run.spend(event)
        if run in self._live:
            self._news.set()

    def _begin(self, event: FlowStarted, outer: Live | None) -> Live | None:
        if event.address not in self._flows:
            return None
        now = self._clock()
        flow = self._mask(event.address)
        run = Live(RunRow(event.event_id, flow, self._config, now, self._host, self._pid, now), event, outer)
        self._here.set(run)
        return run

    def _flow_ended(self, run: Live, event: FlowEnded) -> None:
        row = run.row
        if (event.address, event.event_id) == (run.first.address, run.first.event_id):
            row.outcome, row.error = event.outcome, self._text(event.error)
            if event.outcome == "failed" and event.error is None:
                row.outcome = "interrupted"
        run.flows -= 1
        if not run.flows:
            row.ended = self._clock()
            run.close()
            self._here.set(run.outer)

    def _text(self, error: OctoError | None) -> str:
        return self._mask(clean_text(error.message)) if error else ""

    def _take(self, record: Record) -> None:
        run = self._here.get()
        if run is not None:
            run.add(record, self._longest)

    def _agent_started(self, run: Live, event: AgentStarted) -> None:
        stamp = event.stamp
        address = self._mask(event.address)
        agent = AgentRow(address, stamp.name, stamp.source, stamp.version, stamp.hash, event.connector)
        if self._values:
            agent.value = self._mask(stamp.value)
        run.begin(agent, event)
        self._live.add(run)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())

    def _agent_ended(self, run: Live, event: AgentEnded) -> None:
        agent = run.working(event)
        if agent is not None:
            agent.seconds, agent.reason, agent.error = event.seconds, event.reason or "", self._text(event.error)

    # ------------------------------------------------------------ writing it down

    async def _write(self) -> None:
        """Store what is new, as it comes, and say from time to time that runs go on."""
        while not self._broken:
            await self._wait()
            self._news.clear()
            try:
                await self._store_news()
            except OctoError as error:
                self._give_up(error.message)
            except Exception as error:  # whatever it is, a record is not worth the run
                self._give_up(f"internal error: {error!r}")
            if self._closing and not self._news.is_set():
                return

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(BEAT if self._live else None):
                await self._news.wait()
        except TimeoutError:
            pass

    async def _store_news(self) -> None:
        """Store how far all runs are. Raises StoreError."""
        news = [News(run, len(run.waiting), frozenset(run.changed), run.is_over) for run in self._live]
        if not news:
            return
        now = self._clock()
        for one, row in zip(news, await self._store.write(lambda db: self._store_all(db, news, now)), strict=True):
            run = one.run
            run.row.id, run.row.number, run.row.log_size = row.id, row.number, row.log_size
            del run.waiting[: one.lines]
            run.changed -= one.agents
            if one.is_last:
                self._live.discard(run)

    def _store_all(self, db: Connection, news: Sequence[News], now: int) -> list[RunRow]:
        return [self._store_run(db, one, now) for one in news]

    def _store_run(self, db: Connection, news: News, now: int) -> RunRow:
        """Store what is new of a run; its row as it is then. It may be done again, so nothing else is changed."""
        run = news.run
        row = replace(run.row, seen=now)
        lines = "\n".join(run.waiting[: news.lines])
        row.log_size += len(lines.encode())
        if row.number:
            runs.update(db, row)
        else:
            runs.begin(db, row, self._new_id())
            if row.number % _TIDY == 0:
                runs.trim(db, seen=now - STALE)
        if lines:
            runs.append_log(db, row.number, lines)
        runs.update_agents(db, row.number, [(position, run.agents[position]) for position in news.agents])
        return row

    def _give_up(self, reason: str) -> None:
        self._broken = True
        self._live.clear()
        self._warn(f"runs are no longer recorded: {reason}")


@dataclass(frozen=True, slots=True)
class News:
    """What there is to store of a run at one moment."""

    run: Live
    lines: int
    """How many lines of its log."""
    agents: frozenset[int]
    is_last: bool
