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
    updated: int | None
    """In nanoseconds since 1970; None for one that an octo wrote which did not tell."""


def rows(db: Connection) -> list[Row]:
    """All threads, in the order of their ids."""
    found = db.execute(
        """
        SELECT key, version, length(CAST(value AS BLOB)), updated FROM entries
        WHERE namespace = ? AND key >= ? AND key < ? ORDER BY key
        """,
        (NAMESPACE, PREFIX, PREFIX[:-1] + "0"),  # the character after `/`
    )
    return [Row(key.removeprefix(PREFIX), *rest) for key, *rest in found]


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
