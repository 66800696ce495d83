"""`--log`, `--events`, `--traces` and the store: writing down what runs do while they do it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from octo.errors import UsageError
from octo_cli import inputs, logs, output
from octo_cli.session import Session

if TYPE_CHECKING:
    from octo.config.model import Config
    from octo.observe import Observer
    from octo.runlog.recorder import Recorder, Sink
    from octo.store.store import Store

_LAST_LINES: Final = 256 * 1024
"""Bytes at the end of a log among which its last record begins."""


@contextmanager
def recording(session: Session, *, log: str | None, events: str | None) -> Iterator[tuple[Observer, ...]]:
    """The observers that write the run log, as long as it lasts; none when nobody asked for one.

    Raises UsageError for a file that cannot be written. When one stops taking records, a warning says so at the end.
    """
    if not (log or events):
        yield ()
        return
    from octo.runlog.recorder import Recorder, Writer

    if log and events and output.is_same(inputs.path(log), inputs.path(events)):
        raise UsageError("`--log` and `--events` name the same file", hint="one of them is enough")
    with ExitStack() as files:
        writers = {
            name: Writer(_opened(session, option, name, files))
            for option, name in (("--log", log), ("--events", events))
            if name
        }
        try:
            yield (Recorder(writers.values(), mask=session.mask, pieces=bool(events)),)
        finally:
            for name, writer in writers.items():
                if writer.error is not None and name != "-":
                    reason = (writer.error.strerror or str(writer.error)).lower()
                    logs.write(session, "warn", f"the run log `{name}` is not complete: {reason}")


def keeping(session: Session, config: Config, store: Store, *, values: bool) -> tuple[Observer, ...]:
    """The observer that keeps runs with agents in the store; none when there can be no such run, or no store.

    With `values`, it keeps the values of drafts.
    """
    if store.path is None:
        return ()
    from octo.runlog.reach import flows_with_agents

    flows = flows_with_agents(config)
    if not flows:
        return ()
    from octo.runlog.keeper import Keeper
    from octo.runtime import random_id

    path = str(config.origin.path.absolute())
    return (
        Keeper(
            store,
            flows,
            path,
            mask=session.masked,
            warn=lambda text: logs.write(session, "warn", text),
            new_id=random_id,
            values=values,
        ),
    )


@dataclass(frozen=True, slots=True)
class Trace:
    """What the run log of a program that serves is to hold."""

    file: Path | None
    """None for no run log."""
    bodies: bool
    vars: bool
    limit: int
    """Bytes of a body or of the variables; larger ones are left out."""
    room: int
    """Records that wait to be written; further ones are dropped."""


@contextmanager
def tracing(session: Session, trace: Trace) -> Iterator[Recorder | None]:
    """The observer that appends to a run log beside the work, as long as it lasts.

    A file that cannot be opened is told of, and nothing is recorded. Raises UsageError for one that is no run log.
    """
    if trace.file is None:
        yield None
        return
    from octo.runlog.recorder import Recorder

    with appending(session, trace.file, room=trace.room) as opened:
        if opened is None:
            yield None
            return
        logs.write(session, "warn", f"`{trace.file}` records what messages hold; that is meant for development")
        sink, last = opened
        yield Recorder([sink], mask=session.masked, limit=trace.limit, bodies=trace.bodies, vars=trace.vars, last=last)


@contextmanager
def appending(session: Session, path: Path, *, room: int, alone: bool = False) -> Iterator[tuple[Sink, int] | None]:
    """What takes the records that are appended to a run log, and the number of the last one there.

    Of a file that cannot be opened a warning tells, and there is None. Raises UsageError for one that is no run log,
    or whose directory does not exist; when it is to be written `alone`, also for one that another program writes.
    """
    from octo.runlog.background import BackgroundWriter

    with ExitStack() as files:
        try:
            if path.is_dir():
                raise UsageError(f"`--log`: `{path}` is a directory", hint="name a file")
            if not path.parent.exists():
                raise UsageError(f"`--log`: there is no directory `{path.parent}`", hint="make it first")
            _keep_what_is_no_log("--log", path)
            last = _last_number(path)
            stream = _stream(path, os.O_APPEND, files)
            if alone:
                _claim(stream, path)
            if _ends_within_a_line(path):
                stream.write("\n")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            logs.write(session, "warn", f"nothing is recorded: cannot write `{path}`: {reason}")
            yield None
            return
        writer = BackgroundWriter(stream, room=room)
        try:
            yield writer, last
        finally:
            writer.close()
            if writer.error is not None:
                reason = (writer.error.strerror or str(writer.error)).lower()
                logs.write(session, "warn", f"the run log `{path}` is not complete: {reason}")


def _last_number(path: Path) -> int:
    """The number of the last record of a log, from which one goes on to count."""
    if not path.is_file():
        return 0
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _LAST_LINES))
        numbers = re.findall(rb'^\{"seq":(\d+),', file.read(), re.MULTILINE)
    return max(map(int, numbers), default=0)


def _claim(stream: TextIO, path: Path) -> None:
    """Raises UsageError when another program has claimed the file. Where the system knows no claims, all may write."""
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(f"`--log`: another program writes `{path}`", hint="name a file of its own") from None
    except OSError:
        return


def _ends_within_a_line(path: Path) -> bool:
    """Whether the last line of a log was not written to its end, so that a record may not follow it there."""
    if not path.is_file() or not path.stat().st_size:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _opened(session: Session, option: str, name: str, files: ExitStack) -> TextIO:
    """A stream to write to: a file that only its owner can read, a pipe, or standard output."""
    if name == "-":
        if option == "--log":
            raise UsageError("`--log` writes a file", hint="`--events -` writes the same to standard output")
        return session.out
    path = inputs.path(name)
    try:
        _keep_what_is_no_log(option, path)
        return _stream(path, os.O_TRUNC, files)
    except OSError as error:
        raise UsageError(f"`{option}`: cannot write `{name}`: {(error.strerror or str(error)).lower()}") from error


def _stream(path: Path, mode: int, files: ExitStack) -> TextIO:
    """A file to write to that only its owner can read, or what else there is at a path."""
    stream = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | mode, 0o600), "w", encoding="utf-8")
    files.callback(_close, stream)
    if path.is_file() and sys.platform != "win32":
        os.fchmod(stream.fileno(), 0o600)
    return stream


def _close(stream: TextIO) -> None:
    """What could not be written was told already."""
    with suppress(OSError):
        stream.close()


def _keep_what_is_no_log(option: str, path: Path) -> None:
    output.keep_others(option, path, "run log", (b'{"seq":',))
