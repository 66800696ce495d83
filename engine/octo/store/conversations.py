"""Conversations of agents that have an id: what they work with, and every question and answer for good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from sqlite3 import Connection


class Place(NamedTuple):
    """Which conversation it is."""

    agent: str
    thread: str


class Working(NamedTuple):
    """What the agent goes on with."""

    memory: str
    """JSON."""
    version: int
    """1 for the first; each write adds 1."""


class Turn(NamedTuple):
    """A question, or the answer to one."""

    role: Literal["user", "assistant"]
    text: str
    at: int
    """In nanoseconds since 1970, as all points in time."""
    iterations: int = 0
    unanswered: bool = False
    stop_reason: str = ""
    """Why there was no answer."""
    position: int = 0
    """1 for the first turn of the conversation."""


class Row(NamedTuple):
    """A conversation, without what was said."""

    place: Place
    title: str
    user: str
    """The person that it is with; empty for nobody that is known."""
    began: int
    updated: int
    turns: int
    size: int
    """Bytes of the working memory and of the turns."""


def working(db: Connection, place: Place) -> Working | None:
    """What the agent goes on with; None when it has kept nothing yet."""
    row = db.execute("SELECT memory, version FROM threads WHERE agent = ? AND thread = ?", place).fetchone()
    return Working(*row) if row and row[1] else None


def save_working(db: Connection, place: Place, memory: str, *, expected: int | None, user: str, now: int) -> int | None:
    """Write it over the version that is expected, 0 for none; its version now, None when it is another one.

    Without an expected version whatever is there is written over.
    """
    number = _number(db, place, user=user, now=now)
    row = db.execute(
        """
        UPDATE threads SET memory = ?1, version = version + 1 WHERE number = ?2 AND version = ifnull(?3, version)
        RETURNING version
        """,
        (memory, number, expected),
    ).fetchone()
    return int(row[0]) if row else None


def append(db: Connection, place: Place, turns: Sequence[Turn], *, user: str, now: int) -> int:
    """Add turns to a conversation; how many it has now."""
    number = _number(db, place, user=user, now=now)
    last: int = db.execute("SELECT ifnull(max(position), 0) FROM turns WHERE thread = ?", (number,)).fetchone()[0]
    db.executemany(
        """
        INSERT INTO turns (thread, position, role, text, at, iterations, unanswered, stop_reason)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """,
        [(number, last + nth, *turn[:6]) for nth, turn in enumerate(turns, 1)],
    )
    return last + len(turns)


def set_title(db: Connection, place: Place, title: str) -> None:
    """Name a conversation."""
    db.execute("UPDATE threads SET title = ? WHERE agent = ? AND thread = ?", (title, *place))


def last(db: Connection, place: Place, count: int) -> list[Turn]:
    """The last turns of a conversation, in order."""
    rows = db.execute(
        """
        SELECT role, text, at, iterations, unanswered, stop_reason, position FROM turns
        WHERE thread = (SELECT number FROM threads WHERE agent = ? AND thread = ?)
        ORDER BY position DESC LIMIT ?
        """,
        (*place, count),
    ).fetchall()
    return [_turn(*row) for row in reversed(rows)]


def rows(db: Connection, *, agent: str = "", thread: str = "", user: str = "") -> list[Row]:
    """The conversations of an agent, of that id and of a person, whatever is given; the latest first."""
    found = db.execute(
        """
        SELECT agent, thread, title, user, began, updated,
            (SELECT count(*) FROM turns WHERE turns.thread = threads.number),
            length(CAST(memory AS BLOB))
                + (SELECT ifnull(sum(length(CAST(text AS BLOB))), 0) FROM turns WHERE turns.thread = threads.number)
        FROM threads
        WHERE (?1 = '' OR agent = ?1) AND (?2 = '' OR thread = ?2) AND (?3 = '' OR user = ?3)
        ORDER BY updated DESC, agent, thread
        """,
        (agent, thread, user),
    )
    return [Row(Place(*row[:2]), *row[2:]) for row in found]


def delete(db: Connection, place: Place) -> bool:
    """Remove a conversation with all its turns; whether there was one."""
    from octo.store import search

    row = db.execute("SELECT number FROM threads WHERE agent = ? AND thread = ?", place).fetchone()
    if row is None:
        return False
    search.forget(db, row[0])
    db.execute("DELETE FROM turns WHERE thread = ?", row)
    db.execute("DELETE FROM threads WHERE number = ?", row)
    return True


def _turn(role: Literal["user", "assistant"], text: str, at: int, iterations: int, unanswered: int, *rest: str) -> Turn:
    return Turn(role, text, at, iterations, bool(unanswered), rest[0], int(rest[1]))


def _number(db: Connection, place: Place, *, user: str, now: int) -> int:
    """The row of a conversation, made when there is none. It belongs to the first person that is named."""
    row = db.execute(
        """
        INSERT INTO threads (agent, thread, user, began, updated) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (agent, thread) DO UPDATE
        SET updated = excluded.updated, user = CASE user WHEN '' THEN excluded.user ELSE user END
        RETURNING number
        """,
        (*place, user, now, now),
    ).fetchone()
    return int(row[0])
