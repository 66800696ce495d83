"""The tables of the store, as numbered steps: appended to, never edited."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sqlite3 import Connection

APPLICATION_ID: Final = 0x6F63746F
"""Stands in the head of the file and says that it is octo's."""


def migrate(db: Connection) -> None:
    """Take every step that the file has not seen, all of them in one transaction."""
    db.execute("BEGIN IMMEDIATE")
    try:
        seen: int = db.execute("PRAGMA user_version").fetchone()[0]
        for step in STEPS[seen:]:
            step(db)
        if seen < LATEST:  # else another process was faster, and perhaps newer
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {LATEST}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _entries(db: Connection) -> None:
    db.execute(
        """
        CREATE TABLE entries (
            namespace TEXT NOT NULL,
            key TEXT NOT NULL,
            version INTEGER NOT NULL,
            value TEXT NOT NULL,   -- JSON
            expires INTEGER,       -- nanoseconds since 1970; null: never
            PRIMARY KEY (namespace, key)
        )
        """
    )
    db.execute("CREATE INDEX entries_expires ON entries (expires) WHERE expires IS NOT NULL")


STEPS: Final[tuple[Callable[[Connection], None], ...]] = (_entries,)
LATEST: Final = len(STEPS)
