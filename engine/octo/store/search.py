"""Search in what was said and in what is known: full text, by an index that is built when it is first used.

Where SQLite has no full-text index, the texts themselves are looked through.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from sqlite3 import Connection

INDEX: Final = "turns_index"

_WITHOUT_SPACES: Final = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Letters of scripts that put no space between words: Thai, Lao, Tibetan, Burmese, Khmer, Japanese, Chinese."""


class Hit(NamedTuple):
    """A text in which all words of the query were found."""

    kind: Literal["turn", "fact"]
    agent: str
    user: str
    name: str
    """The thread of a turn, the name of a fact."""
    role: str
    """Of a turn; empty for a fact."""
    text: str
    at: int
    """In nanoseconds since 1970."""


def words(query: str) -> list[str]:
    """What is looked for: letters and digits that stand together, and each sign that is a picture."""
    return "".join(char if char.isalnum() else f" {char} " if _is_picture(char) else " " for char in query).split()


def split(wanted: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words that the index finds by their beginning, and those that are looked for in the texts themselves.

    To the index, all that is written between two spaces is one word, and pictures are nothing.
    """
    others = [word for word in wanted if _WITHOUT_SPACES.search(word) or _is_picture(word[0])]
    return [word for word in wanted if word not in others], others


def expression(wanted: Sequence[str]) -> str:
    """What the index is asked for."""
    return " ".join(f'"{word}"*' for word in wanted)


def pattern(word: str) -> str:
    """What a text is like that holds a word."""
    return f"%{word}%"


def search(
    db: Connection, query: str, *, agent: str = "", user: str | None = None, most: int = 50, full_text: bool = True
) -> list[Hit]:
    """Facts, then turns that hold all words of the query; the latest first, in each. Neither crowds the other out.

    Only those of an agent, if one is named, and of a person. Needs a connection that may write.
    """
    wanted = words(query)
    if not wanted:
        return []
    facts = _facts(db, wanted, agent, user, most)
    turns = _turns(db, wanted, agent, user, most, full_text=full_text)
    facts = facts[: max(most // 2, most - len(turns))]
    return [*facts, *turns[: most - len(facts)]]


def forget(db: Connection, thread: int) -> None:
    """Take the turns of a thread out of the index, before they are deleted."""
    try:
        if _has_index(db):
            db.execute(f"DELETE FROM {INDEX} WHERE rowid IN (SELECT number FROM turns WHERE thread = ?)", (thread,))
    except sqlite3.OperationalError as error:
        if not _lacks_full_text(error):
            raise


def _facts(db: Connection, wanted: list[str], agent: str, user: str | None, most: int) -> list[Hit]:
    found = db.execute(
        f"""
        SELECT 'fact', agent, user, name, '', value, updated FROM facts
        WHERE (?1 = '' OR agent = ?1) AND (?2 IS NULL OR user = ?2) AND {_all_in("name || ' ' || value", wanted)}
        ORDER BY updated DESC, name LIMIT ?3
        """,
        (agent, user, most, *map(pattern, wanted)),
    )
    return [Hit(*row) for row in found]


def _turns(db: Connection, wanted: list[str], agent: str, user: str | None, most: int, *, full_text: bool) -> list[Hit]:
    indexed, others = split(wanted) if full_text and _is_indexed(db) else ([], wanted)
    conditions = [_all_in("turns.text", others)] if others else []
    if indexed:
        number = 4 + len(others)
        conditions.append(f"turns.number IN (SELECT rowid FROM {INDEX} WHERE {INDEX} MATCH ?{number})")
    rows = db.execute(
        f"""
        SELECT 'turn', agent, user, threads.thread, role, text, at
        FROM turns JOIN threads ON threads.number = turns.thread
        WHERE (?1 = '' OR agent = ?1) AND (?2 IS NULL OR user = ?2) AND {" AND ".join(conditions)}
        ORDER BY turns.number DESC LIMIT ?3
        """,
        (agent, user, most, *map(pattern, others), *([expression(indexed)] if indexed else [])),
    )
    return [Hit(*row) for row in rows]


def _is_indexed(db: Connection) -> bool:
    """Bring the index up to date; false where SQLite has none."""
    try:
        if not _has_index(db):
            db.execute(f"CREATE VIRTUAL TABLE {INDEX} USING fts5(text, tokenize = 'unicode61')")
        db.execute(
            f"""
            INSERT INTO {INDEX} (rowid, text)
            SELECT number, text FROM turns
            WHERE number > ifnull((SELECT rowid FROM {INDEX} ORDER BY rowid DESC LIMIT 1), 0)
            """
        )
    except sqlite3.OperationalError as error:
        if _lacks_full_text(error):
            return False
        raise
    return True


def _lacks_full_text(error: sqlite3.OperationalError) -> bool:
    return "no such module" in str(error)


def _has_index(db: Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (INDEX,)).fetchone() is not None


def _is_picture(char: str) -> bool:
    return unicodedata.category(char) == "So"


def _all_in(text: str, wanted: Sequence[str]) -> str:
    return " AND ".join(f"{text} LIKE ?{number}" for number in range(4, 4 + len(wanted)))
