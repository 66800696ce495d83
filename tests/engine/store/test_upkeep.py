"""octo/store/upkeep.py, octo/store/entries.py: what a store holds, a copy of it, and less of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection

import pytest

from octo.errors import StoreError, UsageError
from octo.store import entries, migrations, upkeep
from octo.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store") as store:
        yield store


async def fill(store: Store, count: int, *, expires: int | None = None) -> None:
    def work(db: Connection) -> None:
        for number in range(count):
            entries.put(db, "cache", f"{expires} {number}", "x" * 1000, 1, now=0, expires=expires)

    await store.write(work)


async def count(store: Store) -> int:
    found = await upkeep.contents(store)
    return found.rows["entries"] if found else 0


async def test_the_contents_are_counted(store: Store) -> None:
    assert await upkeep.contents(store) is None

    await fill(store, 3)

    found = await upkeep.contents(store)
    assert found is not None
    assert (found.version, found.rows) == (migrations.LATEST, {"entries": 3})
    assert found.log > 3000


async def test_a_copy_is_taken_while_others_write(store: Store, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    await fill(store, 50)
    with Store(tmp_path / "store") as other:
        writing = [asyncio.create_task(fill(other, 50, expires=number)) for number in range(5)]
        size = await upkeep.backup(store, tmp_path / "copy" / "octo.db")
        await asyncio.gather(*writing)

    assert size == (tmp_path / "copy" / "octo.db").stat().st_size
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["octo.db"]
    with Store(tmp_path / "copy") as copy:
        assert await count(copy) % 50 == 0
        assert await count(copy) >= 50


async def test_a_copy_replaces_no_file_unless_it_is_forced_to(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_text("precious", encoding="utf-8")
    await fill(store, 1)

    with pytest.raises(UsageError) as caught:
        await upkeep.backup(store, target)
    assert str(caught.value) == f"`{target}` exists already"
    assert caught.value.hint == "name another file, or replace it with `--force`"
    assert target.read_text(encoding="utf-8") == "precious"

    await upkeep.backup(store, target, force=True)

    assert target.read_bytes().startswith(b"SQLite format 3")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "store"]


async def test_a_copy_that_cannot_be_made_leaves_nothing(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreError) as missing:
        await upkeep.backup(store, tmp_path / "copy.db")
    await fill(store, 1)
    with pytest.raises(UsageError) as unwritable:
        await upkeep.backup(store, tmp_path / "nowhere" / "copy.db")

    assert str(missing.value) == f"there is no store `{store.path}`"
    assert str(unwritable.value) == f"cannot write `{tmp_path}/nowhere/copy.db`: no such file or directory"
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


async def test_pruning_removes_what_has_expired_and_shrinks_the_file(store: Store) -> None:
    assert await upkeep.prune(store, now=5) == upkeep.Pruned(0, 0)
    await fill(store, 100, expires=5)
    await fill(store, 10, expires=6)
    await fill(store, 1)

    pruned = await upkeep.prune(store, now=5)

    assert pruned.expired == 100
    assert pruned.freed > 90_000
    assert await count(store) == 11
