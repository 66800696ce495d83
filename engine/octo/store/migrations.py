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


def _runs(db: Connection) -> None:
    db.execute(
        """
        CREATE TABLE runs (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            flow TEXT NOT NULL,
            config TEXT NOT NULL,
            began INTEGER NOT NULL,   -- nanoseconds since 1970, as all points in time
            host TEXT NOT NULL,
            pid INTEGER NOT NULL,
            seen INTEGER NOT NULL,
            ended INTEGER,            -- null: goes on, or broke off
            outcome TEXT NOT NULL DEFAULT '',
            error TEXT NOT NULL DEFAULT '',
            turns INTEGER NOT NULL DEFAULT 0,
            tool_calls INTEGER NOT NULL DEFAULT 0,
            tokens_read INTEGER,      -- null: unknown, as the two that follow
            tokens_written INTEGER,
            cost REAL,
            records INTEGER NOT NULL DEFAULT 0,
            log_size INTEGER NOT NULL DEFAULT 0
        )
        """
    )
    db.execute(
        """
        CREATE TABLE run_agents (
            run INTEGER NOT NULL,
            position INTEGER NOT NULL,
            address TEXT NOT NULL,
            name TEXT NOT NULL,
            source TEXT NOT NULL,
            version INTEGER,
            hash TEXT NOT NULL,
            connector TEXT NOT NULL,
            turns INTEGER NOT NULL,
            tool_calls INTEGER NOT NULL,
            tokens_read INTEGER,
            tokens_written INTEGER,
            cost REAL,
            seconds REAL,             -- null: still works, or broke off
            reason TEXT NOT NULL,
            error TEXT NOT NULL,
            PRIMARY KEY (run, position)
        ) WITHOUT ROWID
        """
    )
    db.execute("CREATE TABLE run_logs (part INTEGER PRIMARY KEY, run INTEGER NOT NULL, lines TEXT NOT NULL)")
    db.execute("CREATE INDEX run_logs_run ON run_logs (run, part)")


def _memories(db: Connection) -> None:
    db.execute(
        """
        CREATE TABLE memories (
            workspace TEXT NOT NULL,
            key TEXT NOT NULL,
            block TEXT NOT NULL,
            messages TEXT NOT NULL,  -- JSON
            count INTEGER NOT NULL,
            size INTEGER NOT NULL,
            updated INTEGER NOT NULL,
            PRIMARY KEY (workspace, key, block)
        )
        """
    )
    db.execute("CREATE INDEX memories_key ON memories (key)")


def _transcripts(db: Connection) -> None:
    db.execute(
        """
        CREATE TABLE transcripts (
            id TEXT PRIMARY KEY,
            flow TEXT NOT NULL,
            title TEXT NOT NULL,
            began INTEGER NOT NULL,
            updated INTEGER NOT NULL
        )
        """
    )
    db.execute(
        """
        CREATE TABLE transcript_rows (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            conversation TEXT NOT NULL,
            role TEXT NOT NULL,
            text TEXT NOT NULL,
            at INTEGER NOT NULL,
            ok INTEGER NOT NULL,
            run TEXT NOT NULL,
            block TEXT NOT NULL,
            thinking TEXT NOT NULL,
            arguments TEXT NOT NULL,
            result TEXT NOT NULL
        )
        """
    )
    db.execute("CREATE INDEX transcript_rows_conversation ON transcript_rows (conversation, number)")


def _conversations(db: Connection) -> None:
    db.execute(
        """
        CREATE TABLE threads (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            agent TEXT NOT NULL,
            thread TEXT NOT NULL,
            title TEXT NOT NULL DEFAULT '',
            user TEXT NOT NULL DEFAULT '',        -- empty: nobody that is known
            began INTEGER NOT NULL,               -- nanoseconds since 1970, as all points in time
            updated INTEGER NOT NULL,
            version INTEGER NOT NULL DEFAULT 0,   -- of the working memory; 0: there is none
            memory TEXT NOT NULL DEFAULT '',      -- JSON
            UNIQUE (agent, thread)
        )
        """
    )
    db.execute(
        """
        CREATE TABLE turns (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            thread INTEGER NOT NULL,
            position INTEGER NOT NULL,            -- 1 for the first turn of the thread
            role TEXT NOT NULL,
            text TEXT NOT NULL,
            at INTEGER NOT NULL,
            iterations INTEGER NOT NULL,
            unanswered INTEGER NOT NULL,
            stop_reason TEXT NOT NULL,
            UNIQUE (thread, position)
        )
        """
    )
    db.execute(
        """
        CREATE TABLE facts (
            agent TEXT NOT NULL,
            user TEXT NOT NULL,
            name TEXT NOT NULL,
            value TEXT NOT NULL,
            updated INTEGER NOT NULL,
            PRIMARY KEY (agent, user, name)
        ) WITHOUT ROWID
        """
    )


def _agents(db: Connection) -> None:
    db.execute(
        """
        CREATE TABLE agent (
            name TEXT PRIMARY KEY,
            hash TEXT NOT NULL,
            version INTEGER NOT NULL,
            next_version INTEGER NOT NULL,         -- never counted from what is left
            source TEXT NOT NULL DEFAULT '',       -- the file that declares it
            source_hash TEXT NOT NULL DEFAULT '',  -- of the value last taken from there
            updated_at INTEGER NOT NULL,           -- nanoseconds since 1970, as all points in time
            updated_by TEXT NOT NULL,
            connector TEXT NOT NULL,               -- out of the value, as the three that follow
            model TEXT NOT NULL,
            tools INTEGER NOT NULL,
            description TEXT NOT NULL,
            value TEXT NOT NULL                    -- JSON; last, so that it is not read when it is not asked for
        )
        """
    )
    db.execute(
        """
        CREATE TABLE agent_version (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL,
            version INTEGER NOT NULL,
            hash TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            created_by TEXT NOT NULL,
            origin TEXT NOT NULL,
            note TEXT NOT NULL,
            value TEXT NOT NULL,                   -- JSON
            UNIQUE (name, version)
        )
        """
    )
    db.execute(
        """
        CREATE TABLE agent_draft (
            name TEXT NOT NULL,
            user TEXT NOT NULL,
            base_version INTEGER,                  -- null: the agent was not deployed
            hash TEXT NOT NULL,
            updated_at INTEGER NOT NULL,
            value TEXT NOT NULL,                   -- JSON
            PRIMARY KEY (name, user)
        )
        """
    )
    db.execute("CREATE INDEX agent_draft_user ON agent_draft (user, name)")


def _values_of_drafts(db: Connection) -> None:
    db.execute("ALTER TABLE run_agents ADD COLUMN value TEXT NOT NULL DEFAULT ''")


def _times_of_entries(db: Connection) -> None:
    """Entries tell when they were written; the search index, which names threads anew, is made with the next search."""
    db.execute("ALTER TABLE entries ADD COLUMN updated INTEGER")  # null: written before there was this column
    for trigger in db.execute("SELECT name FROM sqlite_master WHERE name GLOB 'kept_*_gone'").fetchall():
        db.execute(f"DROP TRIGGER {trigger[0]}")
    for table in ("kept_index", "kept_texts", "kept_sources"):
        db.execute(f"DROP TABLE IF EXISTS {table}")


def _counters_of_versions(db: Connection) -> None:
    """Versions are counted beside the agents, so that the count outlives them."""
    db.execute("CREATE TABLE agent_counter (name TEXT PRIMARY KEY, next_version INTEGER NOT NULL) WITHOUT ROWID")
    db.execute("INSERT INTO agent_counter SELECT name, next_version FROM agent")
    db.execute("ALTER TABLE agent DROP COLUMN next_version")


STEPS: Final[tuple[Callable[[Connection], None], ...]] = (
    _entries,
    _runs,
    _memories,
    _transcripts,
    _conversations,
    _agents,
    _values_of_drafts,
    _times_of_entries,
    _counters_of_versions,
)
LATEST: Final = len(STEPS)
