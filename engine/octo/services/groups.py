"""The open groups of one `aggregate`, kept as entries.

An index entry says which groups are open. Each group has an entry of its own, under a number that is never given
again, so that whoever writes with an old view of things runs into a conflict. Collected bodies stand in the entry of
their group until there are enough for one of their own: adding one costs the same however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

from octo.services.base import Conflict, Entries
from octo.values import Json

NAMESPACE: Final = "system"

TAIL: Final = 32
"""How many collected bodies the entry of a group itself holds."""

MEMORY: Final = 60 * 10**9
"""Nanoseconds for which it is remembered that a group is closed, for those who still have it before their eyes."""

PLACES: Final = 100_000
"""Only below this number is a body placed by its index."""


@dataclass(frozen=True, slots=True)
class Group:
    """What messages with one key have brought together so far."""

    number: int
    """0 while nobody else knows of it."""
    key: str
    first_at: str
    """When its first message came, in RFC 3339."""
    last_at: str
    correlation_id: str
    """That of its first message."""
    count: int = 0
    size: int = -1
    """How many messages are expected; -1 while that is unknown."""
    value: Json = None
    """What an expression has made of the messages."""
    tail: Sequence[Any] = ()
    """The last of the collected bodies, each behind the index that it came with; -1 for none."""
    chunks: int = 0
    """How many entries hold the earlier ones."""
    closed: bool = False
    version: int = 0
    """Of its entry; 0 while there is none."""


class Groups:
    """The groups under one store key. All methods raise StoreError; those that write a group raise Conflict."""

    def __init__(self, entries: Entries, store_key: str) -> None:
        self._entries = entries
        self._key = f"aggregate {store_key}"

    # ------------------------------------------------------------ which groups are open

    async def open(self) -> list[int]:
        """The numbers of the open groups, the oldest first."""
        return sorted((await self._index())[0].values())

    async def find(self, key: str) -> int | None:
        """The number of the open group of a key."""
        return (await self._index())[0].get(_name(key))

    async def _begin(self, key: str, limit: int) -> int | None:
        """Give a group its number; None when as many as allowed are open. Raises Conflict when the key has one."""
        numbers, last, version = await self._index()
        name = _name(key)
        if name in numbers:
            raise Conflict
        if len(numbers) >= limit:
            return None
        await self._write_index(numbers | {name: last + 1}, last + 1, version)
        return last + 1

    async def forget(self, number: int) -> None:
        """Take a closed group out of the index."""
        while True:
            numbers, last, version = await self._index()
            if number not in numbers.values():
                return
            try:
                await self._write_index(
                    {name: other for name, other in numbers.items() if other != number}, last, version
                )
            except Conflict:
                continue

    async def _index(self) -> tuple[dict[str, int], int, int]:
        """The numbers of the open groups by name, the last number that was given, and the version of the entry."""
        entry = await self._entries.get(NAMESPACE, self._key)
        if entry is None:
            return {}, 0, 0
        numbers = {name: int(number) for name, number in entry.value["open"].items()}
        return numbers, int(entry.value["last"]), entry.version

    async def _write_index(self, numbers: dict[str, int], last: int, version: int) -> None:
        await self._entries.put(NAMESPACE, self._key, {"open": numbers, "last": last}, expected=version)

    # ------------------------------------------------------------ one group

    async def read(self, number: int) -> Group | None:
        """A group; None while it is open and still without a message."""
        entry = await self._entries.get(NAMESPACE, f"{self._key} {number}")
        if entry is None:
            return None
        state = entry.value
        whole = {name: int(state[name]) for name in ("count", "size", "chunks")}
        return Group(**state | whole, number=number, version=entry.version)

    async def add(self, group: Group, index: int, body: Json) -> Group:
        """The group with one more collected body, to be saved."""
        if len(group.tail) >= TAIL:
            # Everyone who gets here with this group writes the same, so that it does not matter who is first.
            await self._entries.put(NAMESPACE, self._chunk(group.number, group.chunks), list(group.tail))
            group = replace(group, tail=(), chunks=group.chunks + 1)
        return replace(group, tail=(*group.tail, [index, body]))

    async def save(self, group: Group, limit: int) -> bool:
        """Write a group in the place of the one that it was made from; false for a new one beyond the limit."""
        if not group.number:
            number = await self._begin(group.key, limit)
            if number is None:
                return False
            group = replace(group, number=number)
        await self._put(group)
        return True

    async def close(self, group: Group) -> None:
        """End a group: of all who try, one succeeds. From now on its key begins a new one."""
        if group.number:
            await self._put(replace(group, value=None, tail=(), closed=True), ttl=MEMORY)
            await self.forget(group.number)

    async def collected(self, group: Group) -> list[Json]:
        """The collected bodies: those with an index in their places, with null in the gaps, then the others."""
        arrivals: list[Any] = []
        for chunk in range(group.chunks):
            entry = await self._entries.get(NAMESPACE, self._chunk(group.number, chunk))
            arrivals.extend(entry.value if entry else ())
        arrivals.extend(group.tail)
        places = min(group.size, PLACES)
        placed = {int(index): body for index, body in arrivals if 0 <= index < places}
        others = [body for index, body in arrivals if not 0 <= index < places]
        return [placed.get(index) for index in range(max(placed, default=-1) + 1)] + others

    async def discard(self, group: Group) -> None:
        """Delete the collected bodies of a closed group."""
        for chunk in range(group.chunks):
            await self._entries.delete(NAMESPACE, self._chunk(group.number, chunk))

    async def _put(self, group: Group, ttl: int | None = None) -> None:
        state = {
            "key": group.key,
            "first_at": group.first_at,
            "last_at": group.last_at,
            "correlation_id": group.correlation_id,
            "count": group.count,
            "size": group.size,
            "value": group.value,
            "tail": list(group.tail),
            "chunks": group.chunks,
            "closed": group.closed,
        }
        key = f"{self._key} {group.number}"
        await self._entries.put(NAMESPACE, key, state, expected=group.version, ttl=ttl)

    def _chunk(self, number: int, chunk: int) -> str:
        return f"{self._key} {number} {chunk}"


def _name(key: str) -> str:
    """What the index calls a key. It has no digits, so that no secret number can happen to be masked in it."""
    return sha256(key.encode("utf-8", "replace")).hexdigest().translate(str.maketrans("0123456789", "ghijklmnop"))
