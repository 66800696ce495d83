"""One YAML file: its value, and where each key, value and list item stands in it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from octo import encoding
from octo.config.alignment import place_of
from octo.config.parser import Branch, Node, end_of, read_yaml, start_of
from octo.config.source import SourceText
from octo.errors import ConfigError, Excerpt, ExpressionError, Location, Problem
from octo.values import Json, clean_text

Path: TypeAlias = tuple[str | int, ...]

_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")
"""Anchor and tag in front of a scalar."""


@dataclass(frozen=True)
class Document:
    """A parsed file. The value may be replaced, the places stay those of the file."""

    file: str
    data: Json = field(repr=False)
    warnings: tuple[Problem, ...] = ()
    unresolved: frozenset[Path] = frozenset()
    """The scalars with a `${NAME}` that has no value. That is reported; what else is wrong with them follows."""
    _source: SourceText = field(kw_only=True, repr=False, compare=False)
    _root: Node = field(kw_only=True, repr=False, compare=False)

    def with_data(self, data: Json) -> Document:
        return replace(self, data=data)

    def location(self, path: Path, *, key: bool = False) -> Location:
        """Where a value starts, or its key; for a path that does not exist, what encloses it."""
        return self._source.location(self._find(path, key)[0])

    def problem(
        self, message: str, path: Path, *, key: bool = False, hint: str | None = None, part: str = ""
    ) -> Problem:
        """A problem whose caret marks the scalar or key at a path, or only a part of the scalar's text."""
        start, end, scalar = self._find(path, key)
        if scalar and part and (found := self._verbatim(start, end).find(part)) >= 0:
            start += found
            end = start + len(part)
        return self._source.problem(message, start, end if scalar else None, hint)

    def written(self, path: Path) -> str:
        """The scalar at a path as the file spells it, anchor and tag taken off."""
        start, end, _ = self._find(path, False)
        text = self._source.text[start:end]
        return text[_properties(text) :]

    def expression_problem(self, error: ExpressionError, message: str, path: Path) -> Problem:
        """A problem inside an expression that a scalar holds.

        The caret is exact where the place in the file is certain. Where it is not (escapes, values of the
        environment), the scalar is marked and the expression shown beside it.
        """
        start, end, scalar = self._find(path, False)
        text = self._source.text[start:end]
        before = error.source[: error.column - 1]
        row = before.count("\n")
        line = error.source.split("\n")[row]
        column = len(before) - (before.rfind("\n") + 1) + 1
        length = max(1, min(error.length, len(line) - column + 1))
        found = self._verbatim(start, end).find(error.source) if scalar and error.source else -1
        if found >= 0:
            index = start + found + column - 1
            return Problem(message, self._source.location(index), error.hint, length=length)
        place = self._source.location(start)
        if text[_properties(text) :].startswith("|"):
            shown = self._source.line(place.line + 1 + row)
            if line and shown.endswith(line):
                at = Location(self.file, place.line + 1 + row, len(shown) - len(line) + column)
                return Problem(message, at, error.hint, length=length)
        written = text[_properties(text) :] if scalar else ""
        if (aligned := place_of(written, error.source, len(before))) is not None:
            index = end - len(written) + aligned
            length = self._source.columns(index, index + length)
            return Problem(message, self._source.location(index), error.hint, length=length)
        marked = self._source.columns(start, end) if scalar else 1
        return Problem(message, place, error.hint, length=marked, excerpt=Excerpt(line, column, length))

    def _find(self, path: Path, key: bool) -> tuple[int, int, bool]:
        """Start and end of the value or key at a path, and whether its text is a scalar."""
        node = self._root
        last = len(path) - 1
        for depth, step in enumerate(path):
            if not isinstance(node, Branch):
                break
            if key and depth == last and step in node.keys:
                span = node.keys[str(step)]
                return start_of(span), end_of(span), True
            try:
                node = node.children[step]  # type: ignore[index]  # a step of the wrong kind is no member
            except (KeyError, IndexError, TypeError):
                break
        if isinstance(node, Branch):
            return start_of(node.span), end_of(node.span), False
        return start_of(node), end_of(node), True

    def _verbatim(self, start: int, end: int) -> str:
        """The text of a scalar if it stands on one line, else nothing."""
        text = self._source.text[start:end]
        return "" if "\n" in text or "\r" in text else text


def _properties(text: str) -> int:
    match = _PROPERTIES.match(text)
    return match.end() if match else 0


def parse(text: bytes | str, file: str, *, what: str = "config") -> Document:
    """Read the first YAML document of a text; an empty one is an empty mapping.

    `what` is the kind of file, for error texts. Raises ConfigError with everything that is wrong.
    """
    if isinstance(text, bytes):
        text = _decode(text, file, what)
    source = SourceText(file, clean_text(text).removeprefix("\ufeff"))
    reading = read_yaml(source)
    if reading.problems:
        raise ConfigError([_titled(problem, what) for problem in reading.problems])
    return Document(file, reading.data, tuple(reading.warnings), _source=reading.source, _root=reading.root)


def _decode(data: bytes, file: str, what: str) -> str:
    wrong = encoding.misfit(data)
    if wrong is None:
        return data.decode()
    before = SourceText(file, wrong.before)
    raise ConfigError([_titled(before.problem(wrong.message, len(before.text), hint=encoding.HINT), what)])


def _titled(problem: Problem, what: str) -> Problem:
    return replace(problem, message=f"parse {what}: {problem.message}")
