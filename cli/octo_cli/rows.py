"""The rows of `--each`: JSON lines or CSV, read piece by piece, so that a file may be larger than the memory."""

from __future__ import annotations

import csv
import io
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from json import JSONDecodeError
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TextIO

from octo import encoding
from octo.errors import Location, OctoError, Problem, UsageError
from octo.values import Json, clean_text, parse
from octo_cli import inputs

if TYPE_CHECKING:
    from _csv import Reader

_PIECE: Final = 64 * 1024
"""Bytes of JSON lines that are read at once."""
_BATCH: Final = 100
"""Rows of CSV that are read at once."""
_LONGEST: Final = 10_000_000
"""Characters of a row of CSV. Beyond this a quote was most likely never closed."""
_LONGEST_LINE: Final = 64_000_000
"""Bytes of a line of JSON lines. Beyond this the file is most likely one document, not one on each line."""


class Row(NamedTuple):
    """One row, or what is wrong with it."""

    number: int
    """Counts from 1; blank lines are no rows."""
    line: int
    """The line of the file that it begins on."""
    value: Json
    """What it holds; of a row that cannot be read, its text."""
    fault: str = ""
    doubt: Problem | None = None
    """What is told of the row though it can be read."""


@contextmanager
def opened(name: str, *, raw: bool = False) -> Iterator[Iterator[list[Row]]]:
    """The rows of a file in batches of what is there; `-` is standard input, `.csv` and `.tsv` mean CSV.

    `raw` takes each line as text. Raises UsageError for a file that cannot be read.
    """
    is_csv = name.lower().endswith((".csv", ".tsv"))
    if is_csv and raw:
        raise UsageError("`--content-type` takes lines as they are, the rows of a CSV file are mappings")
    with _stream(name) as stream:
        yield _readable(_csv(stream, name) if is_csv else _lines(stream, name, raw), name)


def _readable(batches: Iterator[list[Row]], name: str) -> Iterator[list[Row]]:
    try:
        yield from batches
    except OSError as error:
        raise OctoError(f"`--each`: cannot read on in `{name}`: {(error.strerror or str(error)).lower()}") from error


def _stream(name: str) -> io.FileIO:
    """The bytes of a file, unbuffered: one that is being waited for can be closed, and gives what is there."""
    try:
        if name == "-":
            return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
        return inputs.path(name).open("rb", buffering=0)
    except (OSError, ValueError, AttributeError) as error:  # the last: no standard input at all
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"`--each`: cannot read `{name}`: {reason.lower()}") from error


# ---------------------------------------------------------------- JSON lines


def _lines(stream: io.FileIO, name: str, raw: bool) -> Iterator[list[Row]]:
    read = _text if raw else _json
    number = line = 0
    for lines in _pieces(stream, name):
        rows = []
        for text in lines:
            line += 1
            if text is None:
                number += 1
                rows.append(Row(number, line, None, _TOO_LONG))
            elif text and not text.isspace():
                number += 1
                rows.append(read(number, line, text)._replace(doubt=_doubt(text, name, line)))
        yield rows


def _pieces(stream: io.FileIO, name: str) -> Iterator[list[bytes | None]]:
    """The lines of a stream, as many at once as one read gives; a pipe is not waited for longer than needed.

    None stands for a line that is too long, of which no more is kept.
    """
    begun = Begun()
    first = True
    while piece := stream.read(_PIECE):
        if first:
            _refuse_other(piece, name)
            piece, first = piece.removeprefix(b"\xef\xbb\xbf"), False
        head, *rest = piece.split(b"\n")
        begun.add(head)
        if rest:
            lines = [begun.take(), *rest[:-1]]
            begun.add(rest[-1])
            yield lines
    yield [begun.take()]


class Begun:
    """A line whose end has not come yet."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > _LONGEST_LINE:
            self._parts.clear()
        else:
            self._parts.append(part)

    def take(self) -> bytes | None:
        """The line as a whole, None when it is too long; the next one begins."""
        line = b"".join(self._parts) if self._size <= _LONGEST_LINE else None
        self._parts, self._size = [], 0
        return line


_TOO_LONG: Final = f"the row is longer than {_LONGEST_LINE // 1_000_000} MB: each row stands on a line of its own"


def _json(number: int, line: int, text: bytes) -> Row:
    try:
        return Row(number, line, parse(text))
    except JSONDecodeError as error:
        fault = f"{error.msg[:1].lower()}{error.msg[1:]} at column {error.colno}"
    except ValueError as error:
        fault = str(error)
    if number == 1 and _is_like_csv(text):
        fault += "; CSV is read from a file whose name ends in `.csv` or `.tsv`"
    return Row(number, line, _decoded(text), f"the row is not valid JSON: {fault}")


def _is_like_csv(text: bytes) -> bool:
    return text[:1] not in b"{[" and any(mark in text for mark in (b",", b";", b"\t"))


def _text(number: int, line: int, text: bytes) -> Row:
    return Row(number, line, _decoded(text))


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", errors="replace").rstrip("\r")


def _doubt(text: bytes, name: str, line: int) -> Problem | None:
    """The warning for a line that is not all UTF-8."""
    wrong = None if text.isascii() else encoding.misfit(text)
    return wrong and inputs.read_anyway(wrong, Location("stdin" if name == "-" else name, line, len(wrong.before) + 1))


def _refuse_other(beginning: bytes, name: str) -> None:
    """Raises UsageError for a file that says that it is not UTF-8."""
    other = encoding.marked(beginning)
    if other:
        title = "stdin" if name == "-" else f"`{name}`"
        raise UsageError(f"`--each`: {title} is {other}, expected UTF-8", hint=encoding.HINT)


# ---------------------------------------------------------------- CSV


def _csv(stream: io.FileIO, name: str) -> Iterator[list[Row]]:
    csv.field_size_limit(2 * _LONGEST)
    with io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="") as text:
        lines = Lines(text, name)
        reader = csv.reader(lines, strict=True, delimiter=lines.separator())
        rows = _records(reader, lines, _header(reader, name))
        while batch := list(islice(rows, _BATCH)):
            yield batch


class Lines:
    """The lines of a CSV file. Those of the row that is being read are kept: they are read again, as rows of their
    own, when a quote in the first of them is never closed.
    """

    def __init__(self, text: TextIO, name: str) -> None:
        self._text = text
        self._name = name
        self._read = 0
        self._doubt: Problem | None = None
        self._again: deque[str] = deque()
        self._row: list[str] = []
        self._size = 0
        self.given = 0
        """How many lines of the file the rows so far have."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else self._readline()
        if not line:
            raise StopIteration
        self._row.append(line)
        self.given += 1
        self._size += len(line)
        if self._size > _LONGEST:
            raise csv.Error(f"it is longer than {_LONGEST // 1_000_000} MB")
        return line

    def separator(self) -> str:
        """A comma; a semicolon where the first line has some and no comma, as spreadsheets of many countries do; a tab
        in a file of that kind.
        """
        first = self._readline()
        self._again.append(first)
        if self._name.lower().endswith(".tsv"):
            return "\t"
        return ";" if ";" in first and "," not in first else ","

    def _readline(self) -> str:
        """The next line of the file. What is not UTF-8 in it becomes U+FFFD."""
        text = self._text.readline(_LONGEST + 1)
        self._read += 1
        if text.isascii():
            return text
        data = text.encode(errors="surrogateescape")
        if self._read == 1:
            _refuse_other(data, self._name)
        self._doubt = self._doubt or _doubt(data, self._name, self._read)
        return data.decode(errors="replace")

    def doubt(self) -> Problem | None:
        """What is to be told of the lines that were read since this was last asked."""
        found, self._doubt = self._doubt, None
        return found

    def begin(self) -> None:
        """The next line begins a row."""
        self._row.clear()
        self._size = 0

    def give_up(self, error: csv.Error) -> str:
        """What is wrong with the row; what follows its faulty line is read again."""
        opening = self._opening()
        if opening is None:
            self._skip()
            return str(error)
        rest = self._row[opening + 1 :]
        self.given -= len(rest)
        line = self.given
        self._again.extendleft(reversed(rest))
        return f"the quote that opens in line {line} is not closed"

    def _opening(self) -> int | None:
        """Which line of the row opens a quote that stays open, if the row came to no end."""
        opening, inside = None, False
        for number, line in enumerate(self._row):
            quotes = line.replace('""', "").count('"')
            inside ^= quotes % 2 == 1
            if quotes and inside:
                opening = number
        return opening if inside else None

    def _skip(self) -> None:
        """Pass the rest of a line that is too long."""
        while self._row and self._row[-1][-1:] not in ("\n", "\r"):
            self._row[-1] = self._text.readline(_LONGEST)
            if not self._row[-1]:
                break


def _header(reader: Reader, name: str) -> list[str]:
    """The names of the columns; none of a file without any row."""
    what = f"`--each`: the first row of `{name}` names the columns"
    try:
        header = [clean_text(column) for column in next((fields for fields in reader if fields), [])]
    except csv.Error as error:
        raise UsageError(f"{what}, but is not valid CSV: {error}") from error
    for index, column in enumerate(header):
        if not column.strip():
            raise UsageError(f"{what}, but column {index + 1} has no name")
        if column in header[:index]:
            raise UsageError(f"{what}, but two have the name `{column}`")
    return header


def _records(reader: Reader, lines: Lines, header: Sequence[str]) -> Iterator[Row]:
    number = 0
    while True:
        lines.begin()
        line = lines.given + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            number += 1
            yield Row(number, line, None, f"the row is not valid CSV: {lines.give_up(error)}", lines.doubt())
            continue
        if not fields:
            continue
        number += 1
        texts = [clean_text(field) for field in fields]
        if len(texts) == len(header):
            yield Row(number, line, dict(zip(header, texts, strict=True)), doubt=lines.doubt())
        else:
            found = f"expected {len(header)} fields as in the first row, found {len(texts)}"
            yield Row(number, line, list(texts), found, lines.doubt())
