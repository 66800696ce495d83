"""Lay out a YAML file of octo without a change of what it says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import yaml

from octo.config import document, parser
from octo.errors import ConfigError, Location, Problem
from octo.layout import nodes, order, printer
from octo.layout.nodes import Collection, Node, NotKept, Scalar, Tree
from octo.values import Json

_MARK = "\ufeff"
_HEADER: Final = re.compile(r"(?:[&!]\S*\s+)*[|>][^\s#]*[ \t]+(#.*)")
"""The first line of a text under `|` or `>` with a comment in it."""


def lay_out(content: bytes, file: str) -> bytes:
    """The content of a file, laid out. A byte order mark stays, and so do line breaks, which become all alike: those of
    Windows if there is one of them, else `\\n`.

    Raises ConfigError for what is no YAML in UTF-8, and for what cannot be laid out as it is.
    """
    before = document.parse(content, file, what="file").data
    text = content.decode("utf-8")
    mark = _MARK if text.startswith(_MARK) else ""
    newline = "\r\n" if "\r\n" in text else "\n"
    _refuse_second(text, file)
    text = text.removeprefix(_MARK).replace("\r\n", "\n").replace("\r", "\n")
    result = _laid_out(text)
    if result is None or not _says(result, before):
        message = "cannot be laid out without a change of what it says"
        raise ConfigError([Problem(message, Location(file, 1, 1), "it has been left as it is")])
    return (mark + result.replace("\n", newline)).encode("utf-8")


def _refuse_second(text: str, file: str) -> None:
    """Raises ConfigError for a file of several documents, of which octo would read the first only."""
    starts: Iterator[Any] = (event for event in parser.events(text) if isinstance(event, yaml.DocumentStartEvent))
    with suppress(yaml.YAMLError):  # what is wrong behind the first document concerns nobody
        next(starts, None)
        second = next(starts, None)
        if second is not None:
            place = Location(file, second.start_mark.line + 1, second.start_mark.column + 1)
            hint = "octo reads the first one only; put each into a file of its own"
            raise ConfigError(
                [Problem("a second document begins here, and only files of one are laid out", place, hint)]
            )


def _laid_out(text: str) -> str | None:
    """The text laid out; None when that would lose a comment, or cannot be done."""
    try:
        tree = nodes.read(text, parser.events(text))
        if tree is None:
            return text
        before = comments(tree)
        order.arrange(tree.root)
        result = printer.text(tree)
        again = nodes.read(result, parser.events(result))
    except (NotKept, yaml.YAMLError):
        return None
    return result if again is not None and comments(again) == before else None


def comments(tree: Tree) -> Counter[str]:
    """All comments, each with its number."""
    return Counter(comment.strip() for comment in _found(tree.root) if comment.strip())


def _found(node: Node) -> Iterator[str]:
    yield node.comment
    if isinstance(node, Scalar) and (header := _HEADER.match(node.text)):
        yield header[1]
    if isinstance(node, Collection):
        yield from node.tail
        for entry in node.entries:
            yield from entry.before
            yield from _found(entry.value)


def _says(text: str, data: Json) -> bool:
    try:
        return same(document.parse(text, "").data, data)
    except ConfigError:
        return False


def same(one: Json, other: Json) -> bool:
    """Whether two values are equal and of the same kinds throughout, in whatever order their keys stand."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) or one != one
