"""octo_cli/watching.py: waiting until a file changes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from octo_cli.watching import State, state, until_changed


async def noticed(look, act, seconds: float = 2.0) -> bool:
    """Whether a change is noticed."""
    seen: State = look()
    waiting = asyncio.create_task(until_changed(look, seen))
    await asyncio.sleep(0.15)
    assert not waiting.done()
    act()
    try:
        async with asyncio.timeout(seconds):
            await waiting
    except TimeoutError:
        return False
    return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.yaml").write_text("a: 1", encoding="utf-8")
    (tmp_path / "more.yml").write_text("b: 1", encoding="utf-8")
    return tmp_path


def replaced(path: Path) -> None:
    other = path.with_suffix(".new")
    other.write_text("a: 2", encoding="utf-8")
    other.replace(path)


@pytest.mark.parametrize(
    "act",
    [
        lambda folder: (folder / "app.yaml").write_text("a: 22", encoding="utf-8"),
        lambda folder: replaced(folder / "app.yaml"),
        lambda folder: (folder / "app.yaml").unlink(),
        lambda folder: (folder / ".env").write_text("A=1", encoding="utf-8"),
    ],
    ids=["written", "replaced by another file of its size", "removed", "another file that appears"],
)
async def test_a_change_of_a_file_is_noticed(folder: Path, act) -> None:
    def look() -> State:
        return state(folder / "app.yaml", [folder / ".env"])

    assert await noticed(look, lambda: act(folder))


@pytest.mark.parametrize(
    "act",
    [
        lambda folder: (folder / "third.yaml").write_text("a: 1", encoding="utf-8"),
        lambda folder: (folder / "more.yml").unlink(),
        lambda folder: (folder / "more.yml").write_text("b: 22", encoding="utf-8"),
    ],
    ids=["a new file", "a removed file", "a changed file"],
)
async def test_a_change_in_a_directory_is_noticed(folder: Path, act) -> None:
    assert await noticed(lambda: state(folder, []), lambda: act(folder))


async def test_other_files_are_left_alone(folder: Path) -> None:
    def act() -> None:
        (folder / ".app.yaml.swp").write_text("x", encoding="utf-8")
        (folder / "notes.txt").write_text("x", encoding="utf-8")

    assert not await noticed(lambda: state(folder, []), act, seconds=0.4)


async def test_a_file_that_is_looked_at_for_the_first_time_is_taken_as_it_is(folder: Path) -> None:
    files: list[Path] = []

    assert not await noticed(lambda: state(folder / "app.yaml", files), lambda: files.append(folder / "more.yml"), 0.4)


async def test_changes_that_follow_each_other_are_one(folder: Path) -> None:
    loop = asyncio.get_running_loop()
    for number in range(3):
        loop.call_later(0.15 + number * 0.12, (folder / "app.yaml").write_text, "x" * number)
    started = loop.time()

    await until_changed(lambda: state(folder / "app.yaml", []), state(folder / "app.yaml", []))

    assert loop.time() - started > 0.5


async def test_a_link_that_is_set_anew_is_noticed(folder: Path) -> None:
    (folder / "one").mkdir()
    (folder / "two").mkdir()
    for name in ("one", "two"):
        (folder / name / "c.yaml").write_text("a: 1", encoding="utf-8")
        os.utime(folder / name / "c.yaml", (1, 1))
    (folder / "now").symlink_to(folder / "one")

    def act() -> None:
        (folder / "next").symlink_to(folder / "two")
        (folder / "next").replace(folder / "now")

    assert await noticed(lambda: state(folder / "now" / "c.yaml", []), act)
