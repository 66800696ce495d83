"""What agents remember under a key: one row for each block of a workspace that writes to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sqlite3 import Connection


class Place(NamedTuple):
    """Which row it is."""

    workspace: str
    key: str
    """A UUID."""
    block: str
    """Address of the block."""


class Row(NamedTuple):
    """One row, without what it remembers."""

    place: Place
    messages: int
    """How many messages it holds."""
    size: int
    """In bytes."""
    updated: int
    """In nanoseconds since 1970."""


def load(db: Connection, place: Place) -> str | None:
    """The messages of a row, as JSON."""
    found = db.execute("SELECT messages FROM memories WHERE workspace = ? AND key = ? AND block = ?", place).fetchone()
    return found[0] if found else None


def save(db: Connection, place: Place, messages: str, count: int, *, now: int) -> None:
    """Write a row in the place of what is there."""
    db.execute(
        """
        INSERT INTO memories (workspace, key, block, messages, count, size, updated) VALUES (?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (workspace, key, block) DO UPDATE
        SET messages = excluded.messages, count = excluded.count, size = excluded.size, updated = excluded.updated
        """,
        (*place, messages, count, len(messages.encode()), now),
    )


def rows(db: Connection, *, key: str = "", block: str = "", flow: str = "") -> list[Row]:
    """The rows of a key, of a block and of the blocks of a flow, whatever of it is given; the latest first."""
    found = db.execute(
        """
        SELECT workspace, key, block, count, size, updated FROM memories
        WHERE (?1 = '' OR key = ?1) AND (?2 = '' OR block = ?2)
          AND (?3 = '' OR substr(block, 1, length(?3) + 1) IN (?3 || '.', ?3 || '['))
        ORDER BY updated DESC, workspace, key, block
        """,
        (key, block, flow),
    )
    return [Row(Place(*row[:3]), *row[3:]) for row in found]


def delete(db: Connection, key: str, block: str = "", *, workspace: str | None = None) -> int:
    """Remove the rows of a key, or that of one block, in all workspaces or in one; how many there were."""
    return db.execute(
        "DELETE FROM memories WHERE key = ?1 AND (?2 = '' OR block = ?2) AND (?3 IS NULL OR workspace = ?3)",
        (key, block, workspace),
    ).rowcount
