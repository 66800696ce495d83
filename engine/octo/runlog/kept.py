"""Finds runs again that are kept in the store, reads their logs, and removes them."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from octo.errors import UsageError, near
from octo.runlog.keeper import STALE
from octo.runlog.record import Record
from octo.runlog.tree import filled
from octo.store import runs
from octo.store.runs import AgentRow, RunRow

if TYPE_CHECKING:
    from sqlite3 import Connection

    from octo.store.store import Store

State: TypeAlias = Literal["running", "completed", "dropped", "failed", "interrupted"]

LAST: Final = "latest"
_BAD: Final = ("failed", "interrupted")
_FROM_THE_END: Final = re.compile(r"-[1-9]\d{0,5}")
_KNOWN: Final = 1000
"""How many ids are looked through for one that is nearly the same."""
_SHOWN: Final = 5
"""How many runs an error names."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A run of the store as it is at a moment."""

    row: RunRow
    state: State
    agents: tuple[AgentRow, ...]

    def seconds(self, now: int) -> float | None:
        """How long it took, or has taken so far; None when nobody knows."""
        end = now if self.state == "running" else self.row.ended
        return None if end is None else max(0, end - self.row.began) / 10**9


async def newest(
    store: Store, *, limit: int, now: int, flow: str | None = None, since: int = 0, failed: bool = False
) -> list[Kept]:
    """The newest runs first: those of a flow, since a point in time, that failed."""

    def work(db: Connection) -> list[Kept]:
        rows = runs.newest(db, flow=flow, since=since)
        found = (row for row in rows if not failed or _state(row, now) in _BAD)
        return [_kept(db, row, now) for row in islice(found, limit)]

    return await store.read(work, [])


async def find(store: Store, name: str, *, now: int) -> Kept:
    """The run of an id, or of its first characters; `latest` or `-1` is the last one, `-2` the one before it.

    Raises UsageError that says what exists instead.
    """
    none: list[Kept] = []
    found = await store.read(lambda db: [_kept(db, row, now) for row in _named(db, name)], none)
    if not found:
        raise UsageError(f"there is no run `{name}` in `{store}`", hint=await _what_else(store, name))
    exact = [run for run in found if run.row.id == name]
    if len(found) > 1 and not exact:
        names = ", ".join(f"`{run.row.id[: len(name) + 8]}`" for run in found[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise UsageError(f"{len(found)} runs begin with `{name}`: {names}{more}", hint="give more characters of the id")
    return (exact or found)[0]


async def records(store: Store, run: Kept) -> list[Record]:
    """The log of a run, as far as it is written."""
    none: list[str] = []
    lines = await store.read(lambda db: runs.log(db, run.row.number), none)
    return filled([Record.parse(line) for line in lines])


async def prune(store: Store, *, now: int, older_than: int | None = None, keep: int | None = None) -> list[int]:
    """The numbers of the runs that began so many nanoseconds ago or earlier and are not among the `keep` newest.

    None of them goes on.
    """

    def work(db: Connection) -> list[int]:
        before = now if older_than is None else now - older_than
        rest = islice(runs.newest(db), keep or 0, None)
        return [row.number for row in rest if row.began <= before and _state(row, now) != "running"]

    return await store.read(work, [])


async def remove(store: Store, numbers: Sequence[int]) -> None:
    """Remove runs with their logs."""
    if numbers:
        await store.write(lambda db: runs.delete(db, numbers))


def _named(db: Connection, name: str) -> list[RunRow]:
    if name == LAST or _FROM_THE_END.fullmatch(name):
        back = 1 if name == LAST else -int(name)
        return list(islice(runs.newest(db), back - 1, back))
    return runs.beginning_with(db, name) if name else []


async def _what_else(store: Store, name: str) -> str:
    none: list[str] = []
    known = await store.read(lambda db: runs.ids(db, limit=_KNOWN), none)
    if not known:
        return "runs in which an agent worked are recorded; there is none yet"
    shortened = {LAST: LAST} | {id[: len(name)]: id for id in reversed(known)}
    match = near(name, shortened) if name else None
    return f"did you mean `{shortened[match]}`?" if match else "`octo runs list` shows the runs that there are"


def _kept(db: Connection, row: RunRow, now: int) -> Kept:
    return Kept(row, _state(row, now), tuple(runs.agents(db, row.number)))


def _state(row: RunRow, now: int) -> State:
    if row.ended is not None:
        return row.outcome  # type: ignore[return-value]  # written by the keeper, which knows these words only
    is_there = now - row.seen < STALE and (row.host != socket.gethostname() or _is_alive(row.pid))
    return "running" if is_there else "interrupted"


def _is_alive(pid: int) -> bool:
    """Whether a process of this machine is there, as far as the system tells."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
