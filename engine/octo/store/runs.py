"""Rows of runs in which an agent worked, of those agents, and of what happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from sqlite3 import Connection

MOST: Final = 10_000
"""How many runs are kept."""
ROOM: Final = 256_000_000
"""How many bytes the logs of all of them may have."""


@dataclass(slots=True)
class Spent:
    """What was done and spent so far. None is unknown."""

    turns: int = 0
    tool_calls: int = 0
    tokens_read: int | None = None
    tokens_written: int | None = None
    cost: float | None = None
    """In USD."""


@dataclass(slots=True)
class AgentRow:
    """One time that an agent worked."""

    address: str
    """Of the block that ran it."""
    name: str
    """Empty for an agent that is written in its block."""
    source: str
    version: int | None
    hash: str
    """Of the agent's value."""
    connector: str
    seconds: float | None = None
    """None as long as it works."""
    reason: str = ""
    """Why it gave up, if it did."""
    error: str = ""
    spent: Spent = field(default_factory=Spent)
    value: str = ""
    """Of a draft: its value, as JSON."""


@dataclass(slots=True)
class RunRow:
    """One run. Points in time are in nanoseconds since 1970."""

    id: str
    flow: str
    config: str
    """Path of the config."""
    began: int
    host: str
    pid: int
    """The process, and the machine that it ran on."""
    seen: int
    """When that process last said that it is there."""
    ended: int | None = None
    """None as long as it goes on, or when it broke off."""
    outcome: str = ""
    error: str = ""
    records: int = 0
    log_size: int = 0
    """Bytes of the log that are stored."""
    number: int = 0
    """Counts the runs of the store in the order in which their first agent began; never used again."""
    spent: Spent = field(default_factory=Spent)


Row = TypeVar("Row", RunRow, AgentRow)


def begin(db: Connection, run: RunRow, spare_id: str) -> None:
    """Store a new run and give it its number; when its id is taken, it gets the spare one."""
    if not _insert(db, run):
        run.id = spare_id
        _insert(db, run)


def _insert(db: Connection, run: RunRow) -> bool:
    """Whether the id was free."""
    cursor = db.execute(
        """
        INSERT INTO runs (
            id, flow, config, began, host, pid,
            ended, outcome, error, seen, turns, tool_calls, tokens_read, tokens_written, cost, records, log_size
        ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (id) DO NOTHING
        """,
        (run.id, run.flow, run.config, run.began, run.host, run.pid, *_progress(run)),
    )
    if not cursor.rowcount:
        return False
    run.number = cursor.lastrowid or 0
    return True


def update(db: Connection, run: RunRow) -> None:
    """Store how far a run is."""
    db.execute(
        """
        UPDATE runs
        SET ended = ?, outcome = ?, error = ?, seen = ?, turns = ?, tool_calls = ?, tokens_read = ?,
            tokens_written = ?, cost = ?, records = ?, log_size = ?
        WHERE number = ?
        """,
        (*_progress(run), run.number),
    )


def _progress(run: RunRow) -> tuple[object, ...]:
    """What changes while a run goes on."""
    spent = run.spent
    return (
        *(run.ended, run.outcome, run.error, run.seen, spent.turns, spent.tool_calls, spent.tokens_read),
        *(spent.tokens_written, spent.cost, run.records, run.log_size),
    )


def update_agents(db: Connection, run: int, agents: Iterable[tuple[int, AgentRow]]) -> None:
    """Store how far agents of a run are, each with its position in the run."""
    db.executemany(
        """
        INSERT OR REPLACE INTO run_agents (
            run, position, address, name, source, version, hash, connector,
            turns, tool_calls, tokens_read, tokens_written, cost, seconds, reason, error, value
        ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        [
            (
                *(run, position, agent.address, agent.name, agent.source, agent.version, agent.hash),
                *(agent.connector, agent.spent.turns, agent.spent.tool_calls, agent.spent.tokens_read),
                *(agent.spent.tokens_written, agent.spent.cost, agent.seconds, agent.reason, agent.error, agent.value),
            )
            for position, agent in agents
        ],
    )


def append_log(db: Connection, run: int, lines: str) -> None:
    """Store more lines of the log of a run."""
    db.execute("INSERT INTO run_logs (run, lines) VALUES (?, ?)", (run, lines))


# ---------------------------------------------------------------- reading


def newest(db: Connection, *, flow: str | None = None, since: int = 0) -> Iterator[RunRow]:
    """Runs of a flow, or of all, that began at a point in time or later; newest first."""
    yield from _runs(db, "(? IS NULL OR flow = ?) AND began >= ? ORDER BY number DESC", (flow, flow, since))


def beginning_with(db: Connection, prefix: str) -> list[RunRow]:
    """The runs whose ids begin with a text, newest first."""
    return list(_runs(db, "substr(id, 1, length(?)) = ? ORDER BY number DESC", (prefix, prefix)))


def ids(db: Connection, *, limit: int) -> list[str]:
    """The ids of the newest runs."""
    return [id for (id,) in db.execute("SELECT id FROM runs ORDER BY number DESC LIMIT ?", (limit,))]


def agents(db: Connection, run: int) -> list[AgentRow]:
    """The agents that worked in a run, in the order in which they began."""
    found = db.execute(
        """
        SELECT address, name, source, version, hash, connector, seconds, reason, error,
            turns, tool_calls, tokens_read, tokens_written, cost, value
        FROM run_agents WHERE run = ? ORDER BY position
        """,
        (run,),
    )
    return [_with_value(_with_spent(AgentRow(*row[:9]), row[9:14]), row[14]) for row in found]


def log(db: Connection, run: int) -> list[str]:
    """The lines of the log of a run."""
    parts = db.execute("SELECT lines FROM run_logs WHERE run = ? ORDER BY part", (run,))
    return [line for (lines,) in parts for line in lines.split("\n")]


def _runs(db: Connection, condition: str, values: tuple[object, ...]) -> Iterator[RunRow]:
    found = db.execute(
        f"""
        SELECT id, flow, config, began, host, pid, seen, ended, outcome, error, records, log_size, number,
            turns, tool_calls, tokens_read, tokens_written, cost
        FROM runs WHERE {condition}
        """,
        values,
    )
    for row in found:
        yield _with_spent(RunRow(*row[:13]), row[13:])


def _with_spent(row: Row, spent: Sequence[Any]) -> Row:
    row.spent = Spent(*spent)
    return row


def _with_value(row: AgentRow, value: str) -> AgentRow:
    row.value = value
    return row


# ---------------------------------------------------------------- removing


def delete(db: Connection, numbers: Iterable[int]) -> None:
    """Remove runs with all that belongs to them."""
    wanted = [(number,) for number in numbers]
    for table, column in (("run_logs", "run"), ("run_agents", "run"), ("runs", "number")):
        db.executemany(f"DELETE FROM {table} WHERE {column} = ?", wanted)


def trim(db: Connection, *, seen: int, most: int = MOST, room: int = ROOM) -> int:
    """Remove the oldest runs, as far as there are too many or their logs too large; how many.

    One stays that is not over, if its process was there after `seen`.
    """
    found = db.execute(
        """
        SELECT number FROM (
            SELECT number, ended, seen, row_number() OVER newest AS place, sum(log_size) OVER newest AS size
            FROM runs WINDOW newest AS (ORDER BY number DESC)
        ) WHERE (place > ? OR size > ?) AND (ended IS NOT NULL OR seen <= ?)
        """,
        (most, room, seen),
    ).fetchall()
    numbers = [number for (number,) in found]
    delete(db, numbers)
    return len(numbers)
