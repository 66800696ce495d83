"""What agents know about people: a value under a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sqlite3 import Connection


class Person(NamedTuple):
    """A person, as one agent knows them."""

    agent: str
    user: str


class Fact(NamedTuple):
    """One thing that an agent knows about a person."""

    person: Person
    name: str
    value: str
    updated: int
    """In nanoseconds since 1970."""


def save(db: Connection, person: Person, name: str, value: str, *, now: int) -> None:
    """Keep a fact, in the place of one of the same name."""
    db.execute(
        """
        INSERT INTO facts (agent, user, name, value, updated) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (agent, user, name) DO UPDATE SET value = excluded.value, updated = excluded.updated
        """,
        (*person, name, value, now),
    )


def rows(db: Connection, *, agent: str = "", user: str = "") -> list[Fact]:
    """The facts of an agent and of a person, whatever is given, in the order of their names."""
    found = db.execute(
        """
        SELECT agent, user, name, value, updated FROM facts
        WHERE (?1 = '' OR agent = ?1) AND (?2 = '' OR user = ?2)
        ORDER BY agent, user, name
        """,
        (agent, user),
    )
    return [Fact(Person(*row[:2]), *row[2:]) for row in found]


def delete(db: Connection, person: Person, name: str = "") -> int:
    """Remove one fact about a person, or all of them; how many there were."""
    return db.execute(
        "DELETE FROM facts WHERE agent = ?1 AND user = ?2 AND (?3 = '' OR name = ?3)", (*person, name)
    ).rowcount
