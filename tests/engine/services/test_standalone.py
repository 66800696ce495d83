"""octo/services/standalone.py, octo/services/base.py: versioned entries, in the store and in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from octo.errors import OctoError
from octo.services.base import Conflict, Entries, Entry
from octo.services.standalone import standalone
from octo.store.store import Store

TIERS = pytest.mark.parametrize("namespace", ["user", "user_volatile"])


class Clock:
    now = 1_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store") as store:
        yield store


@pytest.fixture
def entries(store: Store, clock: Clock) -> Entries:
    return standalone(store, clock=clock, mask=lambda text: text.replace("s3cret", "***")).entries


@TIERS
async def test_versions_count_writes_and_begin_anew_after_a_delete(entries: Entries, namespace: str) -> None:
    assert await entries.get(namespace, "k") is None
    assert await entries.put(namespace, "k", {"n": 1}) == 1
    assert await entries.put(namespace, "k", {"n": 2}) == 2
    assert await entries.get(namespace, "k") == Entry({"n": 2.0}, 2)

    await entries.delete(namespace, "k")
    await entries.delete(namespace, "k", expected=7)

    assert await entries.get(namespace, "k") is None
    assert await entries.put(namespace, "k", None, expected=0) == 1
    assert await entries.get(namespace, "k") == Entry(None, 1)


@TIERS
async def test_a_write_that_expects_another_version_is_a_conflict(entries: Entries, namespace: str) -> None:
    await entries.put(namespace, "k", 1)

    for attempt in (
        entries.put(namespace, "k", 2, expected=0),
        entries.put(namespace, "k", 2, expected=2),
        entries.put(namespace, "other", 2, expected=1),
        entries.delete(namespace, "k", expected=2),
    ):
        with pytest.raises(Conflict, match="kv: object version conflict"):
            await attempt

    assert await entries.put(namespace, "k", 3, expected=1) == 2
    await entries.delete(namespace, "k", expected=2)


@TIERS
async def test_an_entry_ends_when_its_time_is_over(entries: Entries, clock: Clock, namespace: str) -> None:
    await entries.put(namespace, "k", "old", ttl=10)
    await entries.put(namespace, "k", "new", ttl=10)
    await entries.put(namespace, "long", "stays", ttl=2**70)

    clock.now += 9
    assert await entries.get(namespace, "k") == Entry("new", 2)
    clock.now += 1
    assert await entries.get(namespace, "k") is None
    assert await entries.put(namespace, "k", "anew", expected=0) == 1
    assert await entries.get(namespace, "long") == Entry("stays", 1)


async def test_what_expires_does_not_pile_up(entries: Entries, store: Store, clock: Clock) -> None:
    for number in range(20):
        clock.now += 10
        await entries.put("cache", f"{number}", number, ttl=25)

    assert await store.read(lambda db: db.execute("SELECT count(*) FROM entries").fetchone()[0], 0) == 3


async def test_namespaces_are_separate_and_their_names_choose_the_tier(
    entries: Entries, store: Store, clock: Clock
) -> None:
    for namespace in ("user", "system", "user_volatile", "user_secrets"):
        await entries.put(namespace, "k", namespace)

    assert [await entries.get(name, "k") for name in ("user", "system", "user_volatile", "user_secrets")] == [
        Entry("user", 1),
        Entry("system", 1),
        Entry("user_volatile", 1),
        Entry("user_secrets", 1),
    ]
    later = standalone(store, clock=clock).entries
    assert await later.get("user", "k") == Entry("user", 1)
    assert await later.get("user_volatile", "k") is None
    assert await later.get("user_secrets", "k") is None


async def test_nobody_shares_a_value_with_the_memory(entries: Entries) -> None:
    value: dict[str, Any] = {"list": [1.0]}
    await entries.put("user_volatile", "k", value)
    value["list"].append(2.0)
    first = await entries.get("user_volatile", "k")
    assert first is not None
    first.value["list"].append(3.0)

    assert await entries.get("user_volatile", "k") == Entry({"list": [1.0]}, 1)


async def test_thousands_of_expired_entries_leave_the_memory(entries: Entries, clock: Clock) -> None:
    for number in range(3000):
        clock.now += 1
        await entries.put("cache_volatile", str(number), number, ttl=100)

    assert [await entries.get("cache_volatile", str(number)) for number in (2899, 2900, 2999)] == [
        None,
        Entry(2900.0, 1),
        Entry(2999.0, 1),
    ]


async def test_no_secret_is_in_the_file(entries: Entries, store: Store) -> None:
    await entries.put("user", "key of s3cret", {"s3cret": ["<s3cret>", 1]})
    await entries.put("user", "key of ***", "another")

    assert await entries.get("user", "key of s3cret") == Entry({"***": ["<***>", 1.0]}, 1)
    assert await entries.get("user", "key of ***") == Entry("another", 1)
    store.close()
    assert b"s3cret" not in (store.path or Path()).read_bytes()


async def test_text_that_is_no_unicode_is_stored_all_the_same(entries: Entries) -> None:
    await entries.put("user", "half \ud83d", "half \ud83d")

    assert await entries.get("user", "half \ud83d") == Entry("half \ufffd", 1)


async def test_a_value_that_is_no_json_is_reported(entries: Entries, store: Store) -> None:
    await entries.put("user", "k", 1)
    await store.write(lambda db: db.execute("UPDATE entries SET value = '{'"))

    with pytest.raises(OctoError, match=r"^the value of `k` in `.*octo\.db` is not JSON: ") as caught:
        await entries.get("user", "k")

    assert caught.value.hint == "delete it, or write it anew"


async def test_a_delete_creates_no_store(entries: Entries, tmp_path: Path) -> None:
    await entries.delete("user", "k")

    assert list(tmp_path.iterdir()) == []
