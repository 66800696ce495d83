"""Runs command lines in process: arguments in, standard output, standard error and exit status out."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from octo_cli.main import main


class Outcome(NamedTuple):
    """What a command line left behind. The times of log records are cut out."""

    stdout: str
    stderr: str
    status: int


class Screen(io.StringIO):
    """A stream that says whether it is a terminal."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


Octo = Callable[..., Outcome]


@pytest.fixture
def octo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Octo:
    """Run a command line in a directory of its own; `terminal` says which streams a person looks at."""
    monkeypatch.chdir(tmp_path)

    def run(
        *args: str, stdin: str | bytes = b"", environ: Mapping[str, str] | None = None, terminal: str = ""
    ) -> Outcome:
        out, err = Screen("out" in terminal), Screen("err" in terminal)
        with _standard_input(tmp_path, stdin), redirect_stdout(out), redirect_stderr(err):
            status = main(args, environ={"NO_COLOR": "1"} | dict(environ or {}))
        return Outcome(out.getvalue(), re.sub(r"(?m)^time=\S+Z ", "", err.getvalue()), status)

    return run


PLUGIN = """
import asyncio
import os

from octo import Block, Dropped, Duration, Message, Run

class Wait(Block, type="test-wait"):
    for_: Duration

    async def execute(self, message: Message, run: Run) -> Message:
        os.write(1, b"waiting\\n")
        try:
            await asyncio.sleep(self.for_.seconds)
        finally:
            os.write(1, b"left\\n")
        return message

class Stubborn(Block, type="test-stubborn"):
    async def execute(self, message: Message, run: Run) -> Message:
        os.write(1, b"waiting\\n")
        try:
            await asyncio.sleep(30)
        finally:
            os.write(1, b"cleaning up\\n")
            await asyncio.sleep(30)
        return message

class Drop(Block, type="test-drop"):
    async def execute(self, message: Message, run: Run) -> Message:
        raise Dropped

class Memory(Block, type="test-memory"):
    async def execute(self, message: Message, run: Run) -> Message:
        raise MemoryError

class Recursion(Block, type="test-recursion"):
    async def execute(self, message: Message, run: Run) -> Message:
        return await self.execute(message, run)

class Nest(Block, type="test-nest"):
    async def execute(self, message: Message, run: Run) -> Message:
        for _ in range(100_000):
            message.body = [message.body]
        return message

class Crash(Block, type="test-crash"):
    async def execute(self, message: Message, run: Run) -> Message:
        raise KeyError(run.environment["API_KEY"])
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A directory to put on the path: a distribution that offers the blocks whose types begin with `test-`."""
    folder = tmp_path / "plugin"
    facts = folder / "waiting-1.0.dist-info"
    facts.mkdir(parents=True)
    (folder / "waiting.py").write_text(PLUGIN, encoding="utf-8")
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: waiting\nVersion: 1.0\n", encoding="utf-8")
    points = [f"test-{name.lower()} = waiting:{name}" for name in re.findall(r"class (\w+)", PLUGIN)]
    (facts / "entry_points.txt").write_text("\n".join(["[octo.blocks]", *points]), encoding="utf-8")
    return folder


@contextmanager
def _standard_input(folder: Path, content: str | bytes) -> Iterator[None]:
    file = folder / ".stdin"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    before = sys.stdin
    with file.open(encoding="utf-8") as stream:
        sys.stdin = stream
        try:
            yield
        finally:
            sys.stdin = before
            file.unlink()
