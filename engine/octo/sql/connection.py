"""What a driver gives: a connection that runs one query at a time and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from octo.errors import OctoError
from octo.values import Json

Scalar: TypeAlias = str | int | float | bool | None
"""What an argument can be."""

Wanted: TypeAlias = Literal["all", "first", "none"]
"""Which rows of the result a caller wants."""


class DatabaseError(OctoError):
    """The database refused a query, or cannot be reached."""


class Result(NamedTuple):
    """What a query gave."""

    rows: list[dict[str, Json]]
    affected: int
    """How many rows it changed; 0 when the driver cannot tell."""


class Connection(Protocol):
    """One connection to a database. All of it but `interrupt` is called from one thread at a time."""

    def execute(self, query: str, args: Sequence[Scalar], wanted: Wanted) -> Result:
        """Run a query with its arguments bound; it happens as a whole or, when it fails, not at all.

        No transaction is open afterwards. Raises DatabaseError.
        """

    @property
    def lost(self) -> bool:
        """Whether the connection can no longer be used."""

    def alive(self) -> bool:
        """Ask the server whether a connection that has been idle still stands."""

    def interrupt(self) -> None:
        """Make the query that is running in another thread fail."""

    def close(self) -> None: ...


def left_open() -> DatabaseError:
    """The error of a query that begins a transaction and does not end it."""
    return DatabaseError(
        "the query leaves a transaction open; it was rolled back",
        hint="begin and commit in one query: every `sql` block stands for itself",
    )


def one_line(text: str) -> str:
    """The text of a driver's error on one line."""
    return " ".join(text.split())
