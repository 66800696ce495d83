"""All services within one process: entries in its store, volatile ones in its memory, as queues and topics are."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

from octo.errors import OctoError
from octo.services.base import Conflict, Entries, Entry, Services
from octo.services.local import LocalQueues, LocalTopics
from octo.store import entries
from octo.store.store import Store
from octo.values import Json, clean_text, dumps, masked, parse

if TYPE_CHECKING:
    from sqlite3 import Connection

_LAST: Final = 2**63 - 1
"""The end of time, in nanoseconds since 1970."""


def standalone(store: Store, *, clock: Callable[[], int], mask: Callable[[str], str] = str) -> Services:
    """The services of a process that keeps things in a store; `mask` hides secrets from what is written to it."""
    return Services(
        entries=TieredEntries(StoredEntries(store, clock, mask), VolatileEntries(clock)),
        queues=LocalQueues(),
        topics=LocalTopics(),
    )


class TieredEntries:
    """Entries of which the name of the namespace says where they live."""

    def __init__(self, persistent: Entries, volatile: Entries) -> None:
        self._persistent = persistent
        self._volatile = volatile

    def _tier(self, namespace: str) -> Entries:
        return self._volatile if namespace.endswith(("_volatile", "_secrets")) else self._persistent

    async def get(self, namespace: str, key: str) -> Entry | None:
        return await self._tier(namespace).get(namespace, key)

    async def put(
        self, namespace: str, key: str, value: Json, *, expected: int | None = None, ttl: int | None = None
    ) -> int:
        return await self._tier(namespace).put(namespace, key, value, expected=expected, ttl=ttl)

    async def delete(self, namespace: str, key: str, *, expected: int | None = None) -> None:
        await self._tier(namespace).delete(namespace, key, expected=expected)


class StoredEntries:
    """Entries in the store. Secrets in their values are masked: the file holds none."""

    def __init__(self, store: Store, clock: Callable[[], int], mask: Callable[[str], str]) -> None:
        self._store = store
        self._clock = clock
        self._mask = mask

    async def get(self, namespace: str, key: str) -> Entry | None:
        key, now = self._key(key), self._clock()
        row = await self._store.read(lambda db: entries.get(db, namespace, key, now=now), None)
        if row is None:
            return None
        try:
            return Entry(parse(row.value), row.version)
        except ValueError as error:
            raise OctoError(
                f"the value of `{key}` in `{self._store}` is not JSON: {error}", hint="delete it, or write it anew"
            ) from error

    async def put(
        self, namespace: str, key: str, value: Json, *, expected: int | None = None, ttl: int | None = None
    ) -> int:
        key, text, now = self._key(key), self._text(value), self._clock()

        def work(db: Connection) -> int:
            if ttl is not None:  # whoever adds what expires also clears what has
                entries.delete_expired(db, now=now)
            version = _checked(entries.version(db, namespace, key, now=now), expected) + 1
            entries.put(db, namespace, key, text, version, now=now, expires=_deadline(now, ttl))
            return version

        return await self._store.write(work)

    async def delete(self, namespace: str, key: str, *, expected: int | None = None) -> None:
        key, now = self._key(key), self._clock()

        def work(db: Connection) -> None:
            if found := entries.version(db, namespace, key, now=now):
                _checked(found, expected)
            entries.delete(db, namespace, key)

        if self._store.exists():
            await self._store.write(work)

    def _key(self, key: str) -> str:
        """The key as it is stored; one that shows a secret is told apart by its hash."""
        key = clean_text(key)
        shown = self._mask(key)
        return key if shown == key else f"{shown} {sha256(key.encode()).hexdigest()}"

    def _text(self, value: Json) -> str:
        text = dumps(value)
        return text if self._mask(text) == text else dumps(masked(value, self._mask))


class _Kept(NamedTuple):
    text: str
    version: int
    expires: int | None


class VolatileEntries:
    """Entries in memory, as JSON text, so that nobody shares a value with them."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._kept: dict[tuple[str, str], _Kept] = {}
        self._sweep_at = 1024

    async def get(self, namespace: str, key: str) -> Entry | None:
        kept = self._fresh(namespace, key)
        return Entry(parse(kept.text), kept.version) if kept else None

    async def put(
        self, namespace: str, key: str, value: Json, *, expected: int | None = None, ttl: int | None = None
    ) -> int:
        found = self._fresh(namespace, key)
        version = _checked(found.version if found else 0, expected) + 1
        self._kept[namespace, key] = _Kept(dumps(value), version, _deadline(self._clock(), ttl))
        if len(self._kept) >= self._sweep_at:
            self._sweep()
        return version

    async def delete(self, namespace: str, key: str, *, expected: int | None = None) -> None:
        if found := self._fresh(namespace, key):
            _checked(found.version, expected)
        self._kept.pop((namespace, key), None)

    def _fresh(self, namespace: str, key: str) -> _Kept | None:
        kept = self._kept.get((namespace, key))
        return kept if kept and (kept.expires is None or kept.expires > self._clock()) else None

    def _sweep(self) -> None:
        """Forget what has expired, at sizes that double, so that it costs next to nothing per write."""
        now = self._clock()
        self._kept = {at: kept for at, kept in self._kept.items() if kept.expires is None or kept.expires > now}
        self._sweep_at = max(1024, 2 * len(self._kept))


def _checked(version: int, expected: int | None) -> int:
    """The version of what is there, 0 for nothing, if it is the one that was expected."""
    if expected is not None and version != expected:
        raise Conflict
    return version


def _deadline(now: int, ttl: int | None) -> int | None:
    return None if ttl is None else min(now + ttl, _LAST)
