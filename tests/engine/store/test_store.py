"""octo/store/store.py, octo/store/migrations.py: opening, transactions, locks, and files that must be left alone."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import pytest

from octo.agent import versions
from octo.agent.versions import Change
from octo.errors import StoreError
from octo.store import entries, migrations, threads
from octo.store.store import Store

ELSEWHERE = "name another directory with `--store DIR`"


def add(key: str, value: str = "1") -> Any:
    return lambda db: entries.put(db, "user", key, value, 1, now=1)


def keys(db: Connection) -> list[str]:
    return [key for (key,) in db.execute("SELECT key FROM entries ORDER BY key")]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store") as store:
        yield store


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the file of the store is; the directory exists already."""
    (tmp_path / "store").mkdir()
    return tmp_path / "store" / "octo.db"


# ---------------------------------------------------------------- creating


async def test_nothing_is_created_before_the_first_write(store: Store, tmp_path: Path) -> None:
    assert await store.read(keys, ["nothing"]) == ["nothing"]
    assert list(tmp_path.iterdir()) == []

    await store.write(add("a"))

    assert await store.read(keys, ["nothing"]) == ["a"]


async def test_the_store_is_for_its_owner_and_stays_out_of_git(store: Store, tmp_path: Path) -> None:
    await store.write(add("a"))

    folder = tmp_path / "store"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.glob("octo.db*")]}
    assert modes == {"store": 0o700, "octo.db": 0o600, "octo.db-wal": 0o600, "octo.db-shm": 0o600}
    assert (folder / ".gitignore").read_text(encoding="utf-8") == "*\n"


async def test_a_directory_that_holds_other_things_is_not_hidden_from_git(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text("flows: []\n", encoding="utf-8")

    with Store(tmp_path) as store:
        await store.write(add("a"))

    assert sorted(path.name for path in tmp_path.iterdir()) == ["app.yaml", "octo.db"]


async def test_an_older_store_keeps_its_entries_and_makes_its_search_index_anew(store: Store, file: Path) -> None:
    made_by(
        file,
        7,
        "INSERT INTO entries VALUES ('user', 'agent-memory/old', 1, '[]', NULL)",
        "CREATE TABLE kept_sources (kind, id)",
        "CREATE TABLE kept_texts (text)",
        "CREATE VIRTUAL TABLE kept_index USING fts5(text)",
        "CREATE TRIGGER kept_entries_gone AFTER DELETE ON entries BEGIN DELETE FROM kept_sources; END",
    )

    def work(db: Connection) -> list[str]:
        return [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE name GLOB 'kept_*'")]

    assert await store.read(work, ["unread"]) == []
    assert await store.read(threads.rows, []) == [threads.Row("old", 1, 2, None)]


@pytest.mark.parametrize("version", range(migrations.LATEST))
async def test_a_store_of_any_version_is_brought_up_to_this_one(store: Store, file: Path, version: int) -> None:
    made_by(file, version)
    await store.write(add("a"))

    assert await store.read(keys, []) == ["a"]
    with Store(file.parent / "new") as new:
        await new.write(add("a"))
        assert await store.read(tables, []) == await new.read(tables, [])


async def test_agents_of_an_older_store_go_on_counting(store: Store, file: Path) -> None:
    made_by(
        file,
        8,
        """
        INSERT INTO agent (name, hash, version, next_version, updated_at, updated_by, connector, model, tools,
            description, value)
        VALUES ('a', '', 3, 7, 1, 'ann', 'llm', '', 0, '', '{}')
        """,
    )
    deployed = await versions.deploy(store, "a", {"connector": "llm", "prompt": "x"}, Change("ann", 1))

    assert deployed.version == 7


def made_by(file: Path, version: int, *statements: str) -> None:
    """A store as an older octo left it."""
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        for step in migrations.STEPS[:version]:
            step(db)
        db.execute(f"PRAGMA application_id = {migrations.APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {version}")
        for statement in statements:
            db.execute(statement)


def tables(db: Connection) -> list[Any]:
    """The names of all tables with their columns, and of what belongs to them."""
    found = db.execute("SELECT type, name FROM sqlite_master ORDER BY name").fetchall()
    return [(type, name, db.execute(f'PRAGMA table_info("{name}")').fetchall()) for type, name in found]


async def test_a_file_that_a_crash_left_empty_becomes_the_store(file: Path, store: Store) -> None:
    file.touch()

    await store.write(add("a"))

    assert await store.read(keys, []) == ["a"]


def test_many_may_make_the_store_at_the_same_moment(tmp_path: Path) -> None:
    def begin(key: str, directory: Path) -> None:
        with Store(directory) as store:
            asyncio.run(store.write(add(key)))

    for round_ in range(20):
        directory = tmp_path / str(round_)
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(begin, "abcdefgh", [directory] * 8))
        with Store(directory) as store:
            assert asyncio.run(store.read(keys, [])) == list("abcdefgh")


async def test_a_store_in_memory_ends_when_it_is_closed() -> None:
    store = Store()
    await store.write(add("a"))
    assert await store.read(keys, []) == ["a"]

    store.close()

    assert await store.read(keys, ["nothing"]) == []
    store.close()


async def test_sqlite_is_imported_with_the_first_use_only(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys; from pathlib import Path; from octo.store.store import Store\n"
        "store = Store(Path('store')); asyncio.run(store.read(len, 0))\n"
        "print('sqlite3' in sys.modules); asyncio.run(store.write(str)); print('sqlite3' in sys.modules); store.close()"
    )
    output = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True).stdout

    assert output.split() == [b"False", b"True"]


# ---------------------------------------------------------------- transactions


async def test_a_write_that_fails_leaves_nothing(store: Store) -> None:
    def work(db: Connection) -> None:
        add("half")(db)
        raise ValueError("no")

    await store.write(add("a"))
    with pytest.raises(ValueError, match="no"):
        await store.write(work)
    await store.write(add("b"))

    assert await store.read(keys, []) == ["a", "b"]


async def test_a_process_that_is_killed_leaves_what_it_finished_and_nothing_else(tmp_path: Path) -> None:
    code = """
import asyncio, os, signal, sys
from pathlib import Path
from octo.store import entries, migrations
from octo.store.store import Store

def finished(db): entries.put(db, "user", "finished", "1", 1, now=1)
def half(db):
    entries.put(db, "user", "half", "1", 1, now=1)
    os.kill(os.getpid(), signal.SIGKILL)

async def main(store):
    await store.write(finished)
    await store.write(half)

asyncio.run(main(Store(Path("store"))))
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False)

    with Store(tmp_path / "store") as store:
        assert await store.read(keys, []) == ["finished"]


async def test_what_one_has_written_another_reads_at_once(store: Store, tmp_path: Path) -> None:
    with Store(tmp_path / "store") as other:
        await store.write(add("a"))
        await other.write(add("b"))

        assert await store.read(keys, []) == ["a", "b"]


# ---------------------------------------------------------------- locks

HOLDER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("inside", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
async def locked(store: Store, tmp_path: Path) -> Any:
    """Another process that is inside a transaction on the store."""
    await store.write(add("a"))
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, str(store.path), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert holder.stdout
    assert await holder.stdout.readline() == b"inside\n"
    yield holder
    await holder.communicate(b"")


async def test_a_lock_that_is_held_too_long_is_an_error_that_names_file_and_process(store: Store, locked: Any) -> None:
    store.patience = 0.1

    with pytest.raises(StoreError) as caught:
        await store.write(add("b"))

    who = f"the process {locked.pid}" if Path("/proc/locks").exists() else "another process"
    assert str(caught.value) == f"`{store.path}` stayed locked by {who} for 0.1 s"
    assert caught.value.hint == "nothing was written; run again when that process is done, or end it"


async def test_a_write_waits_for_the_lock_while_everything_else_goes_on(store: Store, locked: Any) -> None:
    longest = 0.0

    async def heart() -> None:
        nonlocal longest
        before = time.perf_counter()
        for _ in range(60):
            await asyncio.sleep(0.001)
            longest, before = max(longest, time.perf_counter() - before), time.perf_counter()
        locked.stdin.write(b"\n")

    beating = asyncio.create_task(heart())
    await store.write(add("b"))

    assert beating.done()
    assert await store.read(keys, []) == ["a", "b"]
    assert longest < 0.5


async def test_reading_waits_for_nobody(store: Store, locked: Any) -> None:
    store.patience = 0

    assert await store.read(keys, []) == ["a"]


async def test_a_write_that_is_given_up_is_not_done_later(store: Store, locked: Any) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await store.write(add("b"))
    await locked.communicate(b"")

    assert await store.read(keys, []) == ["a"]


# ---------------------------------------------------------------- files that must be left alone


def other_program(file: Path) -> None:
    db = sqlite3.connect(file)
    db.execute("CREATE TABLE songs (title)")
    db.close()


def newer(file: Path) -> None:
    db = sqlite3.connect(file)
    db.execute("PRAGMA application_id = 0x6F63746F")
    db.execute("PRAGMA user_version = 99")
    db.close()


def text(file: Path) -> None:
    file.write_text("flows: []\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("prepare", "message", "hint"),
    [
        (text, "`{}` is not an SQLite file", f"move it away, or {ELSEWHERE}"),
        (other_program, "`{}` is the SQLite file of another program", ELSEWHERE),
        (
            newer,
            f"`{{}}` is of version 99, and this octo knows the versions up to {migrations.LATEST}",
            f"install a newer octo, or {ELSEWHERE}",
        ),
        (Path.mkdir, "`{}` is not an SQLite file", f"move it away, or {ELSEWHERE}"),
        (os.mkfifo, "`{}` is not an SQLite file", f"move it away, or {ELSEWHERE}"),
        (lambda file: file.symlink_to("/dev/zero"), "`{}` is not an SQLite file", f"move it away, or {ELSEWHERE}"),
    ],
    ids=["text", "another program", "newer", "a directory", "a pipe", "a device"],
)
async def test_a_file_that_is_not_ours_is_refused_and_stays_as_it_is(
    file: Path, store: Store, prepare: Any, message: str, hint: str
) -> None:
    prepare(file)
    before = file.read_bytes() if file.is_file() else b""

    for attempt in (store.write(add("a")), store.read(keys, [])):
        with pytest.raises(StoreError) as caught:
            await attempt
        assert (str(caught.value), caught.value.hint) == (message.format(file), hint)

    assert (file.read_bytes() if file.is_file() else b"") == before
    assert [path.name for path in file.parent.iterdir()] == ["octo.db"]


async def test_a_damaged_file_is_reported(tmp_path: Path) -> None:
    with Store(tmp_path / "store") as store:
        for number in range(200):
            await store.write(add(f"key {number}", '"' + "x" * 500 + '"'))
    file = tmp_path / "store" / "octo.db"
    content = file.read_bytes()
    file.write_bytes(content[:8192] + b"\xa5" * (len(content) - 8192))

    with Store(tmp_path / "store") as store, pytest.raises(StoreError) as caught:
        await store.read(keys, [])

    assert str(caught.value) == f"`{file}` is damaged: database disk image is malformed"
    assert caught.value.hint == "put a backup in its place; `sqlite3 octo.db .recover` saves what is readable"


@pytest.mark.parametrize(
    ("pragma", "message", "hint"),
    [
        (
            "query_only = ON",
            "`{}` cannot be written: attempt to write a readonly database",
            f"make the file and its directory writable, or {ELSEWHERE}",
        ),
        (
            "max_page_count = 1",
            "`{}` cannot grow: database or disk is full",
            "free some space; what was stored before is intact",
        ),
    ],
    ids=["read-only", "full"],
)
async def test_a_write_that_the_disk_refuses_is_an_error_and_loses_nothing(
    store: Store, pragma: str, message: str, hint: str
) -> None:
    """SQLite itself plays the disk that is full or read-only."""
    await store.write(add("a"))
    await store.read(lambda db: db.execute(f"PRAGMA {pragma}").fetchone(), None)

    with pytest.raises(StoreError) as caught:
        await store.write(add("b", "x" * 100_000))

    assert (str(caught.value), caught.value.hint) == (message.format(store.path), hint)
    assert await store.read(keys, []) == ["a"]


async def test_a_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StoreError) as caught:
        await Store(tmp_path / "file").write(add("a"))
    with pytest.raises(StoreError) as below:
        await Store(tmp_path / "file" / "store").write(add("a"))

    assert str(caught.value) == f"cannot create the store `{tmp_path / 'file'}`: a file of that name exists"
    assert str(below.value) == f"cannot create the store `{tmp_path / 'file' / 'store'}`: not a directory"
    assert caught.value.hint == below.value.hint == ELSEWHERE
