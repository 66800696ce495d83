"""Key/value entries with versions. One that has expired counts as missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sqlite3 import Connection


class Row(NamedTuple):
    """One entry as it is stored."""

    value: str
    """JSON."""
    version: int
    """1 for a new entry; each write adds 1."""


def get(db: Connection, namespace: str, key: str, *, now: int) -> Row | None:
    """The entry, unless it is missing or has expired. `now` is in nanoseconds since 1970."""
    found = db.execute(
        """
        SELECT value, version FROM entries
        WHERE namespace = ? AND key = ? AND (expires IS NULL OR expires > ?)
        """,
        (namespace, key, now),
    ).fetchone()
    return Row(*found) if found else None


def version(db: Connection, namespace: str, key: str, *, now: int) -> int:
    """The version of the entry; 0 when it is missing or has expired."""
    found = db.execute(
        "SELECT version FROM entries WHERE namespace = ? AND key = ? AND (expires IS NULL OR expires > ?)",
        (namespace, key, now),
    ).fetchone()
    return int(found[0]) if found else 0


def put(
    db: Connection, namespace: str, key: str, value: str, version: int, *, now: int, expires: int | None = None
) -> None:
    """Store an entry in the place of what is there."""
    db.execute(
        """
        INSERT INTO entries (namespace, key, version, value, expires, updated) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (namespace, key) DO UPDATE
        SET version = excluded.version, value = excluded.value, expires = excluded.expires, updated = excluded.updated
        """,
        (namespace, key, version, value, expires, now),
    )


def delete(db: Connection, namespace: str, key: str) -> None:
    """Remove an entry; a missing one is fine."""
    db.execute("DELETE FROM entries WHERE namespace = ? AND key = ?", (namespace, key))


def delete_expired(db: Connection, *, now: int) -> int:
    """Remove what has expired; how many entries that were."""
    return db.execute("DELETE FROM entries WHERE expires <= ?", (now,)).rowcount
