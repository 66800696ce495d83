"""octo/store/store.py: stores that cannot be written are read, and nothing is left beside them."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from octo.errors import StoreError
from octo.store import entries, migrations, upkeep
from octo.store.store import Store
from permissions import obeying, read_only

ELSEWHERE = "name another directory with `--store DIR`"


def add(key: str) -> Any:
    return lambda db: entries.put(db, "user", key, "1", 1, now=1)


def keys(db: sqlite3.Connection) -> list[str]:
    return [key for (key,) in db.execute("SELECT key FROM entries ORDER BY key")]


@pytest.fixture(params=["plain", "a # b%20?c=d"], ids=["a plain name", "a name that an address has to escape"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A store with one entry, which nobody has open."""
    folder = tmp_path / request.param
    with Store(folder) as store:
        asyncio.run(store.write(add("a")))
    return folder


def look(folder: Path) -> list[str]:
    def work() -> list[str]:
        with Store(folder) as store:
            return asyncio.run(store.read(keys, ["nothing"]))

    return obeying(work)


def fault(folder: Path, work: Any) -> tuple[str, str | None]:
    def attempt() -> StoreError:
        with Store(folder) as store, pytest.raises(StoreError) as caught:
            asyncio.run(work(store))
        return caught.value

    error = obeying(attempt)
    return error.message, error.hint


@pytest.mark.parametrize(
    ("files", "itself"), [(True, False), (False, True), (True, True)], ids=["file", "directory", "both"]
)
def test_what_cannot_be_written_is_read_and_nothing_is_left_beside_it(folder: Path, files: bool, itself: bool) -> None:
    before = sorted(folder.iterdir())
    with read_only(folder, files=files, itself=itself):
        assert look(folder) == ["a"]
        assert fault(folder, lambda store: store.write(add("b"))) == (
            f"`{folder / 'octo.db'}` cannot be written: the file or its directory is read-only",
            f"make the file and its directory writable, or {ELSEWHERE}",
        )
        assert sorted(folder.iterdir()) == before

    assert look(folder) == ["a"]


def test_what_another_process_has_just_written_is_read(folder: Path) -> None:
    with Store(folder) as other:
        asyncio.run(other.write(add("b")))
        with read_only(folder):
            assert look(folder) == ["a", "b"]


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from octo.store import entries
from octo.store.store import Store

store = Store(Path(sys.argv[1]))
asyncio.run(store.write(lambda db: entries.put(db, "user", "b", "1", 1, now=1)))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_log_of_a_process_that_was_killed_is_read_as_far_as_that_is_possible(folder: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False)
    with read_only(folder):
        assert look(folder) == ["a", "b"]
    (folder / "octo.db-shm").unlink()
    with read_only(folder):
        assert fault(folder, lambda store: store.read(keys, [])) == (
            f"`{folder / 'octo.db'}` cannot be read: its log `octo.db-wal` is not empty, and reading that takes write "
            "access to the directory",
            "make the directory writable, or copy both files to another and name it with `--store DIR`",
        )

    assert look(folder) == ["a", "b"]


def test_an_older_store_that_cannot_be_written_is_an_error(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "octo.db")) as db:
        db.execute(f"PRAGMA user_version = {migrations.LATEST - 1}")
    with read_only(folder):
        assert fault(folder, lambda store: store.read(keys, [])) == (
            f"`{folder / 'octo.db'}` is of version {migrations.LATEST - 1}, and cannot be written to bring it to "
            f"{migrations.LATEST}",
            f"make the file and its directory writable for once, or {ELSEWHERE}",
        )


def test_a_store_that_can_be_written_by_then_is_written(folder: Path) -> None:
    """And one that cannot be any more is read on."""

    def work() -> list[str]:
        with Store(folder) as store:
            with read_only(folder):
                assert asyncio.run(store.read(keys, [])) == ["a"]
            asyncio.run(store.write(add("b")))
            with read_only(folder):
                return asyncio.run(store.read(keys, []))

    assert obeying(work) == ["a", "b"]


def test_what_is_searched_is_indexed_in_a_copy(folder: Path) -> None:
    async def search() -> list[list[str]]:
        with Store(folder) as store:
            async with store.to_search() as searched:
                await searched.write(add("b"))
                return [await searched.read(keys, []), await store.read(keys, [])]

    with read_only(folder):
        assert obeying(lambda: asyncio.run(search())) == [["a", "b"], ["a"]]
    assert asyncio.run(search()) == [["a", "b"], ["a", "b"]]


def test_a_copy_is_made_of_what_cannot_be_written(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()

    def work() -> None:
        with Store(folder) as store:
            asyncio.run(upkeep.backup(store, tmp_path / "copy" / "octo.db"))

    with read_only(folder):
        obeying(work)

    assert look(tmp_path / "copy") == ["a"]
