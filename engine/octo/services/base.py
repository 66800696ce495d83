"""What a runtime asks of its surroundings, whoever provides it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from octo.errors import StoreError
from octo.values import Json


class Entry(NamedTuple):
    """A stored value."""

    value: Json
    version: int
    """1 for a new entry; each write adds 1."""


class Conflict(StoreError):
    """Someone else has written the entry in the meantime."""

    def __init__(self) -> None:
        super().__init__("kv: object version conflict")


class Entries(Protocol):
    """Versioned key/value entries in namespaces, each a key space of its own. All methods raise StoreError.

    A namespace whose name ends in `_volatile` or `_secrets` lives in memory and may vanish at any time; all others
    survive a restart.
    """

    async def get(self, namespace: str, key: str) -> Entry | None:
        """The entry, or None when there is none or it has expired."""

    async def put(
        self, namespace: str, key: str, value: Json, *, expected: int | None = None, ttl: int | None = None
    ) -> int:
        """Store a value; the version it has now.

        `expected` is the version that must be there, 0 for none; without it whatever is there is replaced. Raises
        Conflict. `ttl` is how many nanoseconds the entry lives, by default for ever.
        """

    async def delete(self, namespace: str, key: str, *, expected: int | None = None) -> None:
        """Remove an entry; a missing one is fine. Raises Conflict when it is not of the version `expected`."""


@dataclass(frozen=True, slots=True)
class Services:
    """All services of a runtime."""

    entries: Entries
