"""octo/runlog/kept.py: finding runs again, and removing them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from octo.errors import UsageError
from octo.runlog import kept
from octo.runlog.keeper import STALE
from octo.store import runs
from octo.store.runs import RunRow
from octo.store.store import Store

SECOND = 10**9
NOW = 1_000 * SECOND
OVER = RunRow("", "ask", "app.yaml", 0, socket.gethostname(), 1, 0, ended=NOW, outcome="completed")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / ".octo") as opened:
        yield opened


async def add(store: Store, *rows: RunRow) -> None:
    for row in rows:
        stored = replace(row)
        await store.write(lambda db, row=stored: runs.begin(db, row, "spare"))  # type: ignore[misc]
        await store.write(lambda db, row=stored: runs.update(db, row))  # type: ignore[misc]


async def ids(store: Store) -> list[str]:
    return [run.row.id for run in await kept.newest(store, limit=100, now=NOW)]


# ---------------------------------------------------------------- states


def ended_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({}, "completed"),
        ({"outcome": "failed"}, "failed"),
        ({"ended": None, "pid": os.getpid(), "seen": NOW - 1}, "running"),
        ({"ended": None, "pid": ended_process(), "seen": NOW - 1}, "interrupted"),
        ({"ended": None, "pid": os.getpid(), "seen": NOW - STALE}, "interrupted"),
        ({"ended": None, "pid": -1, "host": "elsewhere", "seen": NOW - 1}, "running"),
        ({"ended": None, "pid": os.getpid(), "host": "elsewhere", "seen": NOW - STALE}, "interrupted"),
    ],
    ids=["over", "failed", "goes on", "killed", "silent", "on another machine", "silent on another machine"],
)
async def test_a_run_goes_on_as_long_as_its_process_does(store: Store, change: dict[str, object], state: str) -> None:
    await add(store, replace(OVER, id="a", **change))  # type: ignore[arg-type]

    assert [run.state for run in await kept.newest(store, limit=1, now=NOW)] == [state]


async def test_runs_that_failed_or_broke_off_are_chosen(store: Store) -> None:
    broke_off = replace(OVER, id="b", ended=None, seen=0)
    await add(store, replace(OVER, id="a", outcome="failed"), broke_off, replace(OVER, id="c"))

    found = await kept.newest(store, limit=100, now=NOW, failed=True)

    assert [run.row.id for run in found] == ["b", "a"]


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("name", "found"),
    [("abc1", "abc1"), ("abd", "abd3"), ("latest", "x4"), ("-1", "x4"), ("-3", "abc12")],
    ids=["an id with which another one begins", "the beginning of an id", "latest", "last", "third last"],
)
async def test_a_run_has_many_names(store: Store, name: str, found: str) -> None:
    await add(store, *(replace(OVER, id=id) for id in ("abc1", "abc12", "abd3", "x4")))

    assert (await kept.find(store, name, now=NOW)).row.id == found


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("abc", "2 runs begin with `abc`: `abc456789ab`, `abc123456ab`", "give more characters of the id"),
        ("xbc123", "there is no run `xbc123` in `{}`", "did you mean `abc123456abcdef`?"),
        ("lastest", "there is no run `lastest` in `{}`", "did you mean `latest`?"),
        ("zzz", "there is no run `zzz` in `{}`", "`octo runs list` shows the runs that there are"),
        ("-3", "there is no run `-3` in `{}`", "`octo runs list` shows the runs that there are"),
        ("", "there is no run `` in `{}`", "`octo runs list` shows the runs that there are"),
    ],
    ids=["two", "nearly", "nearly the word", "nothing like it", "not so many", "empty"],
)
async def test_a_name_of_no_run_is_refused(store: Store, name: str, message: str, hint: str) -> None:
    await add(store, *(replace(OVER, id=id) for id in ("abc123456abcdef", "abc456789abcdef")))

    with pytest.raises(UsageError) as caught:
        await kept.find(store, name, now=NOW)

    assert (caught.value.message, caught.value.hint) == (message.format(store), hint)


async def test_without_a_store_nothing_is_found_and_none_is_made(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        await kept.find(store, "latest", now=NOW)

    assert caught.value.hint == "runs in which an agent worked are recorded; there is none yet"
    assert (await ids(store), list(tmp_path.iterdir())) == ([], [])


# ---------------------------------------------------------------- pruning


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        ({"keep": 3}, ["goes on", "d", "c"]),
        ({"keep": 0}, ["goes on"]),
        ({"older_than": 600 * SECOND}, ["goes on", "d", "c"]),
        ({"older_than": 100 * SECOND, "keep": 4}, ["goes on", "d", "c", "b"]),
        ({"older_than": 900 * SECOND, "keep": 0}, ["goes on", "d", "c", "b"]),
    ],
    ids=["but so many", "all", "old ones", "old ones but so many", "very old ones"],
)
async def test_old_runs_are_removed_but_none_that_goes_on(
    store: Store, choice: dict[str, int], left: list[str]
) -> None:
    began = {"a": 50, "b": 200, "c": 500, "d": 800}
    running = replace(OVER, id="goes on", ended=None, pid=os.getpid(), seen=NOW)
    await add(store, *(replace(OVER, id=id, began=at * SECOND) for id, at in began.items()))
    await add(store, running)

    await kept.remove(store, await kept.prune(store, now=NOW, **choice))

    assert await ids(store) == left
