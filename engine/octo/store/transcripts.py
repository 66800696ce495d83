"""Conversations as people read them: what was said, and which tools were used. Agents do not remember by these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from sqlite3 import Connection

Role: TypeAlias = Literal["user", "assistant", "tool", "system"]


class Row(NamedTuple):
    """One row of a conversation."""

    role: Role
    text: str
    at: int
    """In nanoseconds since 1970."""
    ok: bool = True
    run: str = ""
    block: str = ""
    """Name of the block that wrote it; empty for what a person wrote."""
    thinking: str = ""
    arguments: str = ""
    """Of a tool."""
    result: str = ""
    """Of a tool."""


class Conversation(NamedTuple):
    """A conversation, without its rows."""

    id: str
    """A UUID, which is the memory id of its runs."""
    flow: str
    title: str
    began: int
    updated: int
    rows: int
    size: int
    """Bytes of its rows."""


_COLUMNS = "role, text, at, ok, run, block, thinking, arguments, result"


def begin(db: Connection, id: str, *, flow: str, title: str, now: int) -> None:
    """Begin a conversation; one that is there stays as it is."""
    db.execute(
        "INSERT INTO transcripts (id, flow, title, began, updated) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (id, flow, title, now, now),
    )


def exists(db: Connection, id: str) -> bool:
    return db.execute("SELECT 1 FROM transcripts WHERE id = ?", (id,)).fetchone() is not None


def append(db: Connection, id: str, rows: Iterable[Row]) -> None:
    """Add rows to a conversation. One that is not there, or not any more, takes none."""
    if not exists(db, id):
        return
    last = 0
    for row in rows:
        db.execute(
            f"INSERT INTO transcript_rows (conversation, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (id, *row)
        )
        last = max(last, row.at)
    db.execute("UPDATE transcripts SET updated = max(updated, ?) WHERE id = ?", (last, id))


def rows(db: Connection, id: str, *, last: int = -1) -> list[Row]:
    """The rows of a conversation in order; with `last` so many of the latest."""
    found = db.execute(
        f"SELECT {_COLUMNS} FROM transcript_rows WHERE conversation = ? ORDER BY number DESC LIMIT ?", (id, last)
    ).fetchall()
    return [Row(role, text, at, bool(ok), *rest) for role, text, at, ok, *rest in reversed(found)]


def conversations(db: Connection, *, id: str = "", flow: str = "") -> list[Conversation]:
    """All conversations, or that of an id, or those of a flow; the latest first."""
    found = db.execute(
        """
        SELECT id, flow, title, began, updated, count(number),
               coalesce(sum(length(CAST(text || thinking || arguments || result AS BLOB))), 0)
        FROM transcripts LEFT JOIN transcript_rows ON conversation = id
        WHERE (?1 = '' OR id = ?1) AND (?2 = '' OR flow = ?2)
        GROUP BY id ORDER BY updated DESC, id
        """,
        (id, flow),
    )
    return [Conversation(*row) for row in found]


def delete(db: Connection, id: str) -> int:
    """Remove a conversation with its rows; how many conversations that were."""
    db.execute("DELETE FROM transcript_rows WHERE conversation = ?", (id,))
    return db.execute("DELETE FROM transcripts WHERE id = ?", (id,)).rowcount
