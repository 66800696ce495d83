"""`--each`: a flow called once for each row of a file, some rows at once, answers in the order of the rows."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self, TextIO

from octo import invocation
from octo.errors import OctoError, UsageError
from octo.message import Dropped, Message
from octo.runtime import Runtime
from octo.values import Json, Ordered
from octo_cli import diagnostics, inputs, logs, output, rows, signals
from octo_cli.progress import FlowLog, Progress, span
from octo_cli.rows import Row
from octo_cli.session import Session

AT_ONCE: Final = 8
"""Rows that run at once, unless `--parallel` says otherwise."""
_AHEAD: Final = 8
"""How many times as many rows may be done, or under way, behind one that takes long."""


@dataclass(frozen=True, slots=True)
class Each:
    """What `--each` is asked to do, and what the calls of all rows have in common."""

    source: str
    """The file of rows; `-` is standard input."""
    flow: str
    assignments: Sequence[str] = ()
    """What `--set` puts below each body."""
    attachments: Sequence[Json] = ()
    """What `--attach` appends to `files` of each body."""
    content_type: str | None = None
    vars: dict[str, Json] = field(default_factory=dict)
    memory_id: str = ""
    """Which memory the agents of all rows go on with."""
    limit: float | None = None
    """Seconds for one row."""
    parallel: int = AT_ONCE
    errors: Path | None = None
    """Where rows that failed are written."""

    def __post_init__(self) -> None:
        """Raises UsageError for what would be wrong with every row."""
        if self.content_type is not None and (self.assignments or self.attachments):
            raise UsageError("`--set` and `--attach` change a JSON body, `--content-type` takes the body as it is")
        inputs.with_settings(None, self.assignments)
        with suppress(OSError):  # there is no such file yet, or no such name for standard output
            if self.errors and self.errors.samefile("/dev/stdout") and not self.errors.samefile(os.devnull):
                told = f"`--errors`: `{self.errors}` is standard output, which takes the answers"
                raise UsageError(told, hint="name another file")

    def run(self, session: Session, engine: Callable[..., Runtime]) -> None:
        """Call the flow with every row. Raises OctoError when some failed, or when the work broke off."""
        tally = Tally()
        with rows.opened(self.source, raw=self.content_type is not None) as batches:
            signals.run(session, self._run(session, engine, batches, tally))
        if tally.failed:
            hint = "give `--errors FILE` to keep the rows that failed"
            if self.errors is not None:
                hint = f"`jq -c .input {self.errors}` prints the rows that failed, to try them again"
            raise OctoError(f"{tally.failed:,} of {tally.done:,} rows failed", hint=hint)

    async def _run(
        self, session: Session, engine: Callable[..., Runtime], batches: Iterator[list[Row]], tally: Tally
    ) -> None:
        progress = Progress(session, tally.line)
        try:
            async with engine(observers=[FlowLog(session), progress]) as runtime:
                runtime.flow(self.flow)
                progress.open()
                with Failures(session, self.errors) as failures:
                    await Rows(session, runtime, self, failures, tally).run(batches)
        finally:
            progress.close()

    async def call(self, runtime: Runtime, row: Row) -> Message:
        """Call the flow with a row. Raises Dropped and OctoError."""
        if row.fault:
            raise UsageError(row.fault)
        body = row.value
        if self.assignments:
            body = inputs.with_settings(body, self.assignments)
        if self.attachments:
            body = inputs.with_attachments(body, self.attachments)
        return await invocation.call(
            runtime,
            self.flow,
            body,
            vars=dict(self.vars),
            content_type=self.content_type,
            memory_id=self.memory_id,
            limit=self.limit,
        )


@dataclass(slots=True)
class Tally:
    """How far the rows are."""

    done: int = 0
    failed: int = 0
    started: float = field(default_factory=time.monotonic)

    def line(self) -> str:
        """What a person wants to know of it now."""
        seconds = time.monotonic() - self.started
        rate = self.done / seconds if seconds else 0.0
        shown = f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
        rows = "row" if self.done == 1 else "rows"
        return f"{self.done:,} {rows} done, {self.failed:,} failed, {shown} rows/s, {span(seconds)}"


class Failures:
    """Where rows that failed are written: into the file of `--errors`, else into the process log.

    The file is a new one from the first row on, for its owner only, and holds whole lines at any moment.
    """

    def __init__(self, session: Session, path: Path | None) -> None:
        self._session = session
        self._path = path
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        if self._path is not None:
            with _writing(self._path):
                self._file = _fresh(self._path)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with suppress(OSError):  # told when it was written
                self._file.close()

    def add(self, row: Row, text: str) -> None:
        """Note what went wrong with a row."""
        if self._file is None or self._path is None:
            logs.write(self._session, "error", "row failed", {"row": row.number, "line": row.line, "error": text})
            return
        parts = Ordered(row=row.number, line=row.line, error=text)
        if row.value is not None or not row.fault:
            parts["input"] = row.value
        with _writing(self._path):
            self._file.write(output.line(self._session, parts) + "\n")
            self._file.flush()


class Rows:
    """The rows on their way: read ahead, called, and answered in their order."""

    def __init__(self, session: Session, runtime: Runtime, each: Each, failures: Failures, tally: Tally) -> None:
        self._session = session
        self._runtime = runtime
        self._each = each
        self._failures = failures
        self._tally = tally
        self._begun: deque[tuple[Row, asyncio.Task[str]]] = deque()
        """Rows that are not printed yet, in order."""
        self._slots = asyncio.Semaphore(each.parallel)
        self._room = asyncio.Semaphore(each.parallel * _AHEAD)
        self._news = asyncio.Event()
        self._doubted = False
        # Files and pipes may block: the loop must go on meanwhile, and Ctrl-C must not wait for them.
        self._reader = ThreadPoolExecutor(1)
        self._writer = ThreadPoolExecutor(1)

    async def run(self, batches: Iterator[list[Row]]) -> None:
        """Call the flow with every row. Raises OctoError when rows cannot be read or answers not be written.

        When it is cancelled, what is finished is still printed.
        """
        reading = asyncio.create_task(self._read(batches))
        reading.add_done_callback(lambda _: self._news.set())
        try:
            await self._print(reading)
        except asyncio.CancelledError:
            await self._stop(reading)
            await self._put(list(self._finished()))
            raise
        finally:
            await self._stop(reading)
            self._reader.shutdown(wait=False)
            self._writer.shutdown(wait=False)

    async def _read(self, batches: Iterator[list[Row]]) -> None:
        """Begin with rows as soon as there is room for them."""
        loop = asyncio.get_running_loop()
        while (batch := await loop.run_in_executor(self._reader, next, batches, None)) is not None:
            for row in batch:
                self._doubt(row)
                await self._room.acquire()
                await self._slots.acquire()
                task = asyncio.create_task(self._answer(row))
                task.add_done_callback(lambda _: self._slots.release())
                self._begun.append((row, task))
                self._news.set()

    def _doubt(self, row: Row) -> None:
        """Tell what is doubtful about the first such row: most often the others are like it."""
        if row.doubt is not None and not self._doubted:
            self._doubted = True
            diagnostics.warn(self._session, row.doubt)

    async def _answer(self, row: Row) -> str:
        """The line that a row is answered with."""
        failure: str | None = None
        try:
            message = await self._each.call(self._runtime, row)
            answer = message.shown()
        except Dropped:
            answer = Ordered(dropped=True)
        except OctoError as error:
            answer, failure = Ordered(), error.message
        self._tally.done += 1
        return output.line(self._session, answer if failure is None else self._failed(row, failure))

    def _failed(self, row: Row, text: str) -> Ordered:
        self._tally.failed += 1
        self._failures.add(row, text)
        return Ordered(error=text)

    async def _print(self, reading: asyncio.Task[None]) -> None:
        """Print answers in order until all rows are done."""
        while True:
            while not self._begun:
                if reading.done():
                    return reading.result()
                self._news.clear()
                await self._news.wait()
            head = self._begun[0][1]
            if not head.done():
                await asyncio.wait((head,))
            lines = self._ready()
            await self._put(lines)
            for _ in lines:
                self._room.release()

    def _ready(self) -> list[str]:
        """The lines of the first rows, as far as they are done. Raises what was wrong with the first."""
        lines: list[str] = []
        while self._begun and (task := self._begun[0][1]).done():
            if lines and task.exception() is not None:
                break
            lines.append(task.result())
            self._begun.popleft()
        return lines

    async def _put(self, lines: list[str]) -> None:
        writing = asyncio.get_running_loop().run_in_executor(self._writer, output.put_lines, self._session, lines)
        await asyncio.shield(writing)

    async def _stop(self, reading: asyncio.Task[None]) -> None:
        reading.cancel()
        tasks = [task for _, task in self._begun]
        for task in tasks:
            task.cancel()
        await asyncio.gather(reading, *tasks, return_exceptions=True)

    def _finished(self) -> Iterator[str]:
        """The lines up to the last row that is finished; one before it that is not counts as failed."""
        finished = [not task.cancelled() and task.exception() is None for _, task in self._begun]
        while finished and not finished[-1]:
            finished.pop()
        for (row, task), is_finished in zip(self._begun, finished, strict=False):
            yield task.result() if is_finished else output.line(self._session, self._failed(row, "interrupted"))


def _fresh(path: Path) -> TextIO:
    """A new empty file in the place of the one that may be there; a pipe or a device is taken as it is."""
    if not path.exists() or path.is_file():
        path = path.resolve()
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # its mode is 0600
        os.close(handle)
        Path(name).replace(path)
    return path.open("a", encoding="utf-8")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OctoError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from error
