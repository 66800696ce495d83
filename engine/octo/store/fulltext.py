"""Search in conversations that are kept as they are: their texts are indexed when they are first searched.

What is deleted leaves the index with it; what is new or has changed comes in with the next search. Where SQLite has no
full-text index, the texts themselves are looked through.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from octo.store.search import expression, pattern, split, words
from octo.store.threads import NAMESPACE, PREFIX

if TYPE_CHECKING:
    from sqlite3 import Connection


class Source(NamedTuple):
    """A conversation."""

    kind: str
    """`managed`, `thread`, `working` (what an agent with an id goes on with) or `transcript`."""
    parts: tuple[str, ...]
    """The columns that identify it."""


class Said(NamedTuple):
    """A text of a conversation, and whose it is."""

    role: str
    text: str


class Hit(NamedTuple):
    """A text in which all words of the query were found."""

    source: Source
    said: Said


def _id(*columns: str) -> str:
    """SQL for what identifies a conversation in the index: its columns, in which any character may stand."""
    return " || ' ' || ".join(f"hex({column})" for column in columns)


def _source(kind: str, id: str) -> Source:
    return Source(kind, tuple(bytes.fromhex(part).decode(errors="replace") for part in id.split(" ")))


_THREAD: Final = f"substr(CAST({{}} AS BLOB), {len(PREFIX) + 1})"
"""The id of a thread, out of a key; as text, it would end before the first NUL."""
_STAMPS: Final = f"""
    SELECT 'managed', {_id("workspace", "key", "block")}, updated FROM memories
    UNION ALL
    SELECT 'thread', {_id(_THREAD.format("key"))}, version FROM entries
    WHERE namespace = '{NAMESPACE}' AND key >= '{PREFIX}' AND key < '{PREFIX[:-1]}0'
    UNION ALL
    SELECT 'working', {_id("agent", "thread")}, version FROM threads
    WHERE version > 0 AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.thread = threads.number)
    UNION ALL
    SELECT 'transcript', {_id("id")}, updated FROM transcripts
"""
"""All conversations, each with what changes when it does."""

_OLD: Final = {
    "memories": ("managed", _id("old.workspace", "old.key", "old.block")),
    "entries": ("thread", f"CASE old.namespace WHEN '{NAMESPACE}' THEN {_id(_THREAD.format('old.key'))} END"),
    "threads": ("working", _id("old.agent", "old.thread")),
    "transcripts": ("transcript", _id("old.id")),
}
"""The tables that hold them, each with the kind and the id of a row that is deleted."""


_AT_ONCE: Final = 500
"""So many conversations are taken in by one transaction, for others wait for it."""


def refresh(db: Connection, read: Callable[[Connection, Source], Iterable[Said]], *, full_text: bool = True) -> bool:
    """Take in what is new or has changed since the last search, a part of it at a time; whether there is more.

    `read` gives the texts of a conversation. Needs a connection that may write.
    """
    _prepare(db)
    if full_text:
        _make_index(db)
    known = {(kind, id): stamp for kind, id, stamp in db.execute("SELECT kind, id, stamp FROM kept_sources")}
    there = {(kind, id): stamp for kind, id, stamp in db.execute(_STAMPS)}
    stale = [source for source, stamp in known.items() if there.get(source) != stamp]
    db.executemany("DELETE FROM kept_sources WHERE kind = ? AND id = ?", stale)
    new = [source for source, stamp in there.items() if known.get(source) != stamp]
    for source in new[:_AT_ONCE]:
        db.execute("INSERT INTO kept_sources VALUES (?, ?, ?)", (*source, there[source]))
        db.executemany(
            "INSERT INTO kept_texts (kind, id, role, text) VALUES (?, ?, ?, ?)",
            [(*source, *said) for said in read(db, _source(*source)) if said.text.strip()],
        )
    return len(new) > _AT_ONCE


def search(db: Connection, query: str, *, kinds: Collection[str], most: int) -> list[Hit]:
    """The texts that hold all words of the query, the latest first, among those that were taken in."""
    wanted = words(query)
    if not wanted or not kinds:
        return []
    indexed, others = split(wanted) if _has(db, "kept_index") else ([], wanted)
    conditions = ["number IN (SELECT rowid FROM kept_index WHERE kept_index MATCH ?)"] if indexed else []
    conditions += ["text LIKE ?"] * len(others)
    rows = db.execute(
        f"""
        SELECT kind, id, role, text FROM kept_texts
        WHERE {" AND ".join(conditions)} AND kind IN ({", ".join("?" * len(kinds))})
        ORDER BY number DESC LIMIT ?
        """,
        (*([expression(indexed)] if indexed else []), *map(pattern, others), *kinds, most),
    )
    return [Hit(_source(kind, id), Said(role, text)) for kind, id, role, text in rows]


def _prepare(db: Connection) -> None:
    """Make the tables that the index needs, unless they are there."""
    if _has(db, "kept_sources"):
        return
    db.execute(
        "CREATE TABLE kept_sources (kind TEXT NOT NULL, id TEXT NOT NULL, stamp INTEGER, PRIMARY KEY (kind, id))"
    )
    db.execute(
        """
        CREATE TABLE kept_texts (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            kind TEXT NOT NULL,
            id TEXT NOT NULL,
            role TEXT NOT NULL,
            text TEXT NOT NULL
        )
        """
    )
    db.execute("CREATE INDEX kept_texts_source ON kept_texts (kind, id)")
    db.execute(
        """
        CREATE TRIGGER kept_source_gone AFTER DELETE ON kept_sources
        BEGIN DELETE FROM kept_texts WHERE kind = old.kind AND id = old.id; END
        """
    )
    for table, (kind, id) in _OLD.items():
        db.execute(
            f"""
            CREATE TRIGGER kept_{table}_gone AFTER DELETE ON {table}
            BEGIN DELETE FROM kept_sources WHERE kind = '{kind}' AND id = {id}; END
            """
        )


def _make_index(db: Connection) -> None:
    """Make the full-text index, unless it is there or SQLite has none."""
    if _has(db, "kept_index"):
        return
    try:
        db.execute(
            """
            CREATE VIRTUAL TABLE kept_index
            USING fts5(text, content = 'kept_texts', content_rowid = 'number', tokenize = 'unicode61')
            """
        )
    except sqlite3.OperationalError as error:
        if "no such module" in str(error):
            return
        raise
    db.execute("INSERT INTO kept_index (kept_index) VALUES ('rebuild')")
    db.execute(
        """
        CREATE TRIGGER kept_text_new AFTER INSERT ON kept_texts
        BEGIN INSERT INTO kept_index (rowid, text) VALUES (new.number, new.text); END
        """
    )
    db.execute(
        """
        CREATE TRIGGER kept_text_gone AFTER DELETE ON kept_texts
        BEGIN INSERT INTO kept_index (kept_index, rowid, text) VALUES ('delete', old.number, old.text); END
        """
    )


def _has(db: Connection, table: str) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone() is not None
