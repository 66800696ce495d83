"""Rows of agents: what is in force, the versions before it, and drafts. Values are JSON texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from sqlite3 import Connection

_LARGEST: Final = 2**63 - 1
"""SQLite knows no larger number."""
MOST_VERSIONS: Final = 100
"""How many versions of one agent are kept."""


class Outline(NamedTuple):
    """What a list tells of an agent; it is stored beside the value, so that no value need be read."""

    connector: str = ""
    model: str = ""
    tools: int = 0
    description: str = ""


class AgentRow(NamedTuple):
    """An agent without its value. Points in time are in nanoseconds since 1970."""

    name: str
    hash: str
    version: int
    source: str
    """The file that declares it; empty for an agent that lives in the store only."""
    source_hash: str
    """Of the value that was last taken from there."""
    updated_at: int
    updated_by: str
    connector: str
    model: str
    tools: int
    description: str


class VersionRow(NamedTuple):
    """A version without its value."""

    version: int
    hash: str
    created_at: int
    created_by: str
    origin: str
    note: str


class DraftRow(NamedTuple):
    """A draft."""

    name: str
    user: str
    base_version: int | None
    """The version that it was begun from; None for an agent that is not deployed."""
    value: str
    hash: str
    updated_at: int


class Written(NamedTuple):
    """A version to be stored."""

    value: str
    hash: str
    outline: Outline
    at: int
    by: str
    origin: str
    note: str = ""


_AGENT: Final = ", ".join(AgentRow._fields)
_VERSION: Final = ", ".join(VersionRow._fields)
_DRAFT: Final = ", ".join(DraftRow._fields)


# ---------------------------------------------------------------- what is in force


def agents(db: Connection) -> list[AgentRow]:
    """All agents by their names; no value is read."""
    return [AgentRow(*row) for row in db.execute(f"SELECT {_AGENT} FROM agent ORDER BY name")]


def names(db: Connection) -> list[str]:
    """The names of all agents."""
    return [name for (name,) in db.execute("SELECT name FROM agent ORDER BY name")]


def agent(db: Connection, name: str) -> AgentRow | None:
    """One agent."""
    found = db.execute(f"SELECT {_AGENT} FROM agent WHERE name = ?", (name,)).fetchone()
    return AgentRow(*found) if found else None


def current(db: Connection, name: str) -> tuple[str, int, str] | None:
    """The value in force, its version and its hash."""
    row: tuple[str, int, str] | None = db.execute(
        "SELECT value, version, hash FROM agent WHERE name = ?", (name,)
    ).fetchone()
    return row


def write(db: Connection, name: str, written: Written) -> int:
    """Append a version, put it in force, and trim the oldest; its number."""
    version = next_version(db, name)
    _count_from(db, name, version + 1)
    db.execute(
        """
        INSERT INTO agent (name, value, hash, version, updated_at, updated_by, connector, model, tools, description)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (name) DO UPDATE
        SET value = excluded.value, hash = excluded.hash, version = excluded.version,
            updated_at = excluded.updated_at, updated_by = excluded.updated_by, connector = excluded.connector,
            model = excluded.model, tools = excluded.tools, description = excluded.description
        """,
        (name, written.value, written.hash, version, written.at, written.by, *written.outline),
    )
    db.execute(
        """
        INSERT INTO agent_version (name, version, value, hash, created_at, created_by, origin, note)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (name, version, written.value, written.hash, written.at, written.by, written.origin, written.note),
    )
    _trim(db, name)
    return version


def set_source(db: Connection, name: str, source: str, source_hash: str) -> None:
    """Note which file declares an agent, and what was taken from there."""
    db.execute("UPDATE agent SET source = ?, source_hash = ? WHERE name = ?", (source, source_hash, name))


def next_version(db: Connection, name: str) -> int:
    """The number of the next version under a name. No number comes twice, whatever became of earlier agents."""
    found = db.execute("SELECT next_version FROM agent_counter WHERE name = ?", (name,)).fetchone()
    number: int = found[0] if found else 1
    return number


def _count_from(db: Connection, name: str, number: int) -> None:
    db.execute(
        """
        INSERT INTO agent_counter (name, next_version) VALUES (?, ?)
        ON CONFLICT (name) DO UPDATE SET next_version = max(next_version, excluded.next_version)
        """,
        (name, number),
    )


def _trim(db: Connection, name: str) -> None:
    db.execute(
        """
        DELETE FROM agent_version WHERE name = ? AND version <= (
            SELECT version FROM agent_version WHERE name = ? ORDER BY version DESC LIMIT 1 OFFSET ?
        )
        """,
        (name, name, MOST_VERSIONS),
    )


# ---------------------------------------------------------------- versions


def versions(db: Connection, name: str) -> list[VersionRow]:
    """The versions that are kept, newest first; no value is read."""
    rows = db.execute(f"SELECT {_VERSION} FROM agent_version WHERE name = ? ORDER BY version DESC", (name,))
    return [VersionRow(*row) for row in rows]


def version(db: Connection, name: str, number: int) -> tuple[str, str] | None:
    """The value and the hash of a version."""
    if number > _LARGEST:
        return None
    row: tuple[str, str] | None = db.execute(
        "SELECT value, hash FROM agent_version WHERE name = ? AND version = ?", (name, number)
    ).fetchone()
    return row


def kept(db: Connection, name: str) -> tuple[int, int] | None:
    """The oldest and the newest version that is kept."""
    low, high = db.execute("SELECT min(version), max(version) FROM agent_version WHERE name = ?", (name,)).fetchone()
    return None if low is None else (low, high)


def previous(db: Connection, name: str, number: int) -> int | None:
    """The version before one, as far as it is kept."""
    found = db.execute(
        "SELECT max(version) FROM agent_version WHERE name = ? AND version < ?", (name, number)
    ).fetchone()
    before: int | None = found[0]
    return before


def delete_old_versions(db: Connection, name: str) -> int:
    """Delete every version that is not in force; how many that were."""
    return db.execute(
        "DELETE FROM agent_version WHERE name = ? AND version <> (SELECT version FROM agent WHERE agent.name = ?)",
        (name, name),
    ).rowcount


# ---------------------------------------------------------------- drafts


def drafts(db: Connection, user: str) -> Iterator[tuple[str, int | None]]:
    """The names of all drafts of a user, each with its base."""
    yield from db.execute("SELECT name, base_version FROM agent_draft WHERE user = ? ORDER BY name", (user,))


def draft(db: Connection, name: str, user: str) -> DraftRow | None:
    """The draft of a user."""
    found = db.execute(f"SELECT {_DRAFT} FROM agent_draft WHERE name = ? AND user = ?", (name, user)).fetchone()
    return DraftRow(*found) if found else None


def put_draft(db: Connection, row: DraftRow) -> None:
    """Store a draft in the place of the one that is there."""
    db.execute(f"INSERT OR REPLACE INTO agent_draft ({_DRAFT}) VALUES (?, ?, ?, ?, ?, ?)", row)


def delete_draft(db: Connection, name: str, user: str) -> bool:
    """Delete a draft; whether there was one."""
    return db.execute("DELETE FROM agent_draft WHERE name = ? AND user = ?", (name, user)).rowcount > 0


def count_drafts(db: Connection, name: str) -> int:
    """How many people have a draft of an agent."""
    count: int = db.execute("SELECT count(*) FROM agent_draft WHERE name = ?", (name,)).fetchone()[0]
    return count


# ---------------------------------------------------------------- whole agents


def is_taken(db: Connection, name: str) -> bool:
    """Whether there is an agent of that name, or a draft of one."""
    found = db.execute(
        "SELECT EXISTS (SELECT 1 FROM agent WHERE name = ?) OR EXISTS (SELECT 1 FROM agent_draft WHERE name = ?)",
        (name, name),
    )
    return bool(found.fetchone()[0])


def rename(db: Connection, old: str, new: str) -> None:
    """Give an agent another name, with its versions and drafts. No file declares it under that name.

    Both names go on counting from where it is, so that pins to the old one never mean another agent.
    """
    _count_from(db, new, next_version(db, old))
    set_source(db, old, "", "")
    for table in ("agent", "agent_version", "agent_draft"):
        db.execute(f"UPDATE {table} SET name = ? WHERE name = ?", (new, old))


def delete(db: Connection, name: str) -> tuple[int, int]:
    """Delete an agent; how many versions and drafts went with it. Its numbers are not given again."""
    db.execute("DELETE FROM agent WHERE name = ?", (name,))
    gone = db.execute("DELETE FROM agent_version WHERE name = ?", (name,)).rowcount
    return gone, db.execute("DELETE FROM agent_draft WHERE name = ?", (name,)).rowcount


def values_with(db: Connection, text: str) -> Iterator[tuple[str, str]]:
    """The agents in whose value, or in a draft of it, a text stands: each with that value."""
    yield from db.execute(
        """
        SELECT name, value FROM agent WHERE instr(value, :text)
        UNION ALL SELECT name, value FROM agent_draft WHERE instr(value, :text)
        """,
        {"text": text},
    )


def configs_that_ran(db: Connection, name: str) -> list[str]:
    """The configs in whose recorded runs an agent worked."""
    rows = db.execute(
        """
        SELECT DISTINCT config FROM runs JOIN run_agents ON run_agents.run = runs.number
        WHERE run_agents.name = ? ORDER BY config
        """,
        (name,),
    )
    return [config for (config,) in rows]
