"""`--log` and `--events`: writing down what a run does while it does it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from octo.errors import UsageError
from octo_cli import inputs, logs
from octo_cli.session import Session

if TYPE_CHECKING:
    from octo.observe import Observer


@contextmanager
def recording(session: Session, *, log: str | None, events: str | None) -> Iterator[tuple[Observer, ...]]:
    """The observers that write the run log, as long as it lasts; none when nobody asked for one.

    Raises UsageError for a file that cannot be written. When one stops taking records, a warning says so at the end.
    """
    if not (log or events):
        yield ()
        return
    from octo.runlog.recorder import Recorder, Writer

    if log == events:
        raise UsageError("`--log` and `--events` name the same file", hint="one of them is enough")
    with ExitStack() as files:
        writers = {
            name: Writer(_opened(session, option, name, files))
            for option, name in (("--log", log), ("--events", events))
            if name
        }
        try:
            yield (Recorder(writers.values(), mask=session.mask),)
        finally:
            for name, writer in writers.items():
                if writer.error is not None and name != "-":
                    reason = (writer.error.strerror or str(writer.error)).lower()
                    logs.write(session, "warn", f"the run log `{name}` is not complete: {reason}")


def _opened(session: Session, option: str, name: str, files: ExitStack) -> TextIO:
    """A stream to write to: a file that only its owner can read, a pipe, or standard output."""
    if name == "-":
        if option == "--log":
            raise UsageError("`--log` writes a file", hint="`--events -` writes the same to standard output")
        return session.out
    path = inputs.path(name)
    try:
        _keep_what_is_no_log(option, path)
        stream = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8")
        files.callback(_close, stream)
        if path.is_file() and sys.platform != "win32":
            os.fchmod(stream.fileno(), 0o600)
    except OSError as error:
        raise UsageError(f"`{option}`: cannot write `{name}`: {(error.strerror or str(error)).lower()}") from error
    return stream


def _close(stream: TextIO) -> None:
    """What could not be written was told already."""
    with suppress(OSError):
        stream.close()


def _keep_what_is_no_log(option: str, path: Path) -> None:
    """Raises UsageError for a file that something else is in: a mistyped name shall not cost a config."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        start = file.read(7)
    if start and start != b'{"seq":':
        raise UsageError(
            f"`{option}`: `{path}` exists and is no run log",
            hint="only a run log is written over; name another file, or remove this one",
        )
