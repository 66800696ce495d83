"""The answer of a command on standard output: one JSON document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from octo.errors import OctoError, UsageError
from octo.logline import printable
from octo.values import Json, Ordered, dumps, masked
from octo_cli.session import Session
from octo_cli.startup import writing

_DATABASE: Final = b"SQLite format 3\0"
_BESIDE_DATABASES: Final = re.compile(r"(.+)-(?:wal|shm|journal)")
"""The names of files that SQLite has beside a database."""


def document(session: Session, parts: Mapping[str, Json], *, json: bool = False) -> None:
    """Print one JSON document whose top level keeps its order.

    On a terminal it is laid out and coloured; in a pipe, and with `json`, it stands on one line.
    """
    if session.mask is not str:
        parts = masked(Ordered(parts), session.mask)
    if json or not session.for_people(session.out):
        line = dumps(Ordered(parts))
        _put(session, printable(line) if session.for_people(session.out) else line)
        return
    words = printable(laid_out(Ordered(parts)))
    if not session.coloured(session.out):
        _put(session, words)
        return
    from rich.console import Console
    from rich.highlighter import JSONHighlighter
    from rich.text import Text

    with writing():
        Console(file=session.out, color_system="standard").print(JSONHighlighter()(Text(words)), soft_wrap=True)


def line(session: Session, parts: Mapping[str, Json]) -> str:
    """One JSON document on one line, secrets masked; its top level keeps its order."""
    return dumps(masked(Ordered(parts), session.mask))


def put_lines(session: Session, lines: Sequence[str]) -> None:
    """Print lines at once."""
    if lines:
        _put(session, "\n".join(lines))


def check_targets(
    targets: Mapping[str, Path | None],
    reads: Mapping[str, Path | Iterable[Path] | None],
    others: Mapping[str, Path | None] = MappingProxyType({}),
) -> None:
    """Raises UsageError for files that an option names and that cannot be written, before any work is done.

    What the command itself reads is not written over, and two outputs do not go into one file. `reads` says by whom a
    file is read, or a directory with the YAML files in it; `others` are outputs that are opened elsewhere.
    """
    written: dict[str, Path] = {}
    for option, path in others.items():
        if path is not None and _has_something_to_lose(path):
            _keep(option, path, reads)
        if path is not None:
            written[option] = path
    for option, path in targets.items():
        if path is None:
            continue
        if path.is_dir():
            raise UsageError(f"`{option}`: `{path}` is a directory", hint="name a file in it")
        if not path.parent.is_dir():
            raise UsageError(f"`{option}`: there is no directory `{path.parent}`", hint="make it first")
        if not _has_something_to_lose(path):
            continue
        _keep(option, path, reads)
        for other, before in written.items():
            if is_same(path, before):
                raise UsageError(f"`{option}` and `{other}` name the same file", hint="name another one")
        written[option] = path


def keep_others(option: str, path: Path, what: str, starts: Sequence[bytes]) -> None:
    """Raises UsageError for a file that something else is in: a mistyped name shall not cost a config, or a store.

    `what` this one would be begins in one of some ways.
    """
    if not path.is_file():
        return
    keep_stores(option, path)
    try:
        with path.open("rb") as file:
            start = file.read(200).lstrip(b"\xef\xbb\xbf \r\n").lower()
    except OSError as error:
        raise UsageError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from error
    if start and not start.startswith(tuple(starts)):
        raise UsageError(
            f"`{option}`: `{path}` exists and is no {what}",
            hint=f"only a {what} is written over; name another file, or remove this one",
        )


def keep_stores(option: str, path: Path) -> None:
    """Raises UsageError for a database, or what SQLite has beside one: they belong to all processes that use it."""
    target = path.resolve()
    beside = _BESIDE_DATABASES.fullmatch(target.name)
    for database in (target, *([target.with_name(beside[1])] if beside else ())):
        with suppress(OSError), database.open("rb") as file:
            if file.read(len(_DATABASE)) == _DATABASE:
                raise UsageError(f"`{option}`: `{path}` belongs to an SQLite database", hint="name another file")


def _keep(option: str, path: Path, reads: Mapping[str, Path | Iterable[Path] | None]) -> None:
    for reader, sources in reads.items():
        if any(is_same(path, file) for file in _files(sources)):
            raise UsageError(f"`{option}`: `{path}` is a file that {reader} reads", hint="name another file")
    keep_stores(option, path)


def _has_something_to_lose(path: Path) -> bool:
    """Whether it is a file, or may become one; a pipe or a device is not."""
    return path.is_file() or not path.exists()


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file, which need not exist."""
    with suppress(OSError, ValueError):
        return one.resolve() == other.resolve() or one.samefile(other)
    return False


def _files(sources: Path | Iterable[Path] | None) -> Iterator[Path]:
    for path in (sources,) if isinstance(sources, Path) else sources or ():
        yield path
        if path.is_dir():
            with suppress(OSError):  # whoever reads it says what is wrong
                yield from (file for file in path.iterdir() if file.suffix.lower() in (".yaml", ".yml"))


def to_file(session: Session, parts: Mapping[str, Json], path: Path) -> None:
    """Write one JSON document on one line into a file that only its owner can read: whole, or not at all."""
    text_to_file(line(session, parts) + "\n", path)


def text_to_file(words: str, path: Path) -> None:
    """Write a text into a file that only its owner can read: whole, or not at all."""
    try:
        if path.exists() and not path.is_file():  # a pipe or a device takes the text as it is
            path.write_text(words, encoding="utf-8")
        else:
            _replace(path.resolve(), words)
    except OSError as error:
        raise OctoError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from error


def _replace(target: Path, content: str) -> None:
    import os
    import tempfile

    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")  # its mode is 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink()
        raise


def text(session: Session, words: str) -> None:
    """Print text for people, secrets masked."""
    _put(session, printable(session.mask(words)))


def painted(session: Session, words: str) -> None:
    """Print text for people that may hold colours; the caller has made its parts printable."""
    _put(session, session.mask(words))


def lines(session: Session) -> Mapping[str, Callable[[str], None]]:
    """What writes a line of a flow's own log to standard output or standard error."""
    return {"stdout": partial(text, session), "stderr": session.tell}


def _put(session: Session, words: str) -> None:
    with writing():
        session.out.write(words + "\n")
        session.out.flush()


def laid_out(value: Json, indent: str = "") -> str:
    """JSON with a line for each entry."""
    inner = indent + "  "
    match value:
        case dict() if value:
            keys = value if isinstance(value, Ordered) else sorted(value)
            items = [f"{inner}{dumps(key)}: {laid_out(value[key], inner)}" for key in keys]
            return "{\n" + ",\n".join(items) + f"\n{indent}}}"
        case list() if value:
            return "[\n" + ",\n".join(inner + laid_out(item, inner) for item in value) + f"\n{indent}]"
    return dumps(value)
