"""Threads without an agent's id, as `octo memory` lists them: entries under one prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from sqlite3 import Connection

NAMESPACE: Final = "user"
PREFIX: Final = "agent-memory/"


class Row(NamedTuple):
    """A thread, without what was said in it."""

    thread: str
    version: int
    """How often it was written."""
    size: int
    """In bytes."""


def rows(db: Connection) -> list[Row]:
    """All threads, in the order of their ids."""
    found = db.execute(
        """
        SELECT substr(key, ?3), version, length(CAST(value AS BLOB)) FROM entries
        WHERE namespace = ?1 AND key >= ?2 AND key < ?4 ORDER BY key
        """,
        (NAMESPACE, PREFIX, len(PREFIX) + 1, PREFIX[:-1] + "0"),  # the character after `/`
    )
    return [Row(*row) for row in found]


def load(db: Connection, thread: str) -> str | None:
    """What is stored of a thread, as JSON."""
    found = db.execute(
        "SELECT value FROM entries WHERE namespace = ? AND key = ?", (NAMESPACE, PREFIX + thread)
    ).fetchone()
    return found[0] if found else None


def delete(db: Connection, thread: str) -> bool:
    """Remove a thread; whether there was one."""
    found = db.execute("DELETE FROM entries WHERE namespace = ? AND key = ?", (NAMESPACE, PREFIX + thread))
    return bool(found.rowcount)
