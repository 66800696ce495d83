"""A YAML text as a tree that keeps what data does not: spelling, comments, blank lines, anchors, order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

_PROPERTY: Final = re.compile(r"[&!]\S*\s*")
"""An anchor or a tag in front of a value."""
_ANCHOR: Final = re.compile(r"(?:!\S*\s+)?&")
_TEXT: Final = re.compile(r"(?:[&!]\S*\s+)*[|>][^+\n#]*(?:\s#.*)?\n")
"""The first line of a text under `|` or `>` that does not keep the blank lines at its end."""
_DASH: Final = re.compile(r"(?:#.*\n|[^-#])*-")
"""All up to the first dash that is in no comment."""
_BESIDE: Final = -1
"""The column of a comment that stands behind a dash, and so before what comes next."""


@dataclass(slots=True)
class Scalar:
    """A value or an alias, as it is written, with anchor and tag."""

    text: str
    column: int = 0
    """Where the mapping or list starts in which a text under `|` or `>` stands."""
    comment: str = ""
    """What stands behind it on its line, with the spaces before it."""


@dataclass(slots=True)
class Collection:
    """A mapping or a list."""

    is_list: bool
    flow: bool
    """Whether it is written in brackets."""
    properties: str
    column: int = 0
    entries: list[Entry] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)
    """Comments behind the last entry."""
    comment: str = ""
    """What stands on the line where it opens, or behind its bracket."""


Node: TypeAlias = Scalar | Collection


@dataclass(slots=True)
class Entry:
    """An item of a list, or a key and its value."""

    before: list[str]
    """The comments above it; empty texts are blank lines."""
    key: str | None
    """As it is written; None in a list."""
    value: Node


@dataclass(frozen=True, slots=True)
class Tree:
    """The first document of a text, and what stands around it."""

    before: str
    """Up to `---`, that included; empty when the document is not marked."""
    root: Collection
    after: str
    """What follows the document."""


class NotKept(Exception):
    """The tree cannot hold what the text says."""


def read(text: str, events: Iterator[Any]) -> Tree | None:
    """The tree of a text, from the events of its first document; None when that is no mapping and no list.

    Raises NotKept.
    """
    return _Reader(text, events).read()


def has_anchor(node: Node) -> bool:
    """Whether a value, a key in it or a value in it has an anchor."""
    if isinstance(node, Scalar):
        return _ANCHOR.match(node.text) is not None
    return _ANCHOR.match(node.properties) is not None or any(
        _ANCHOR.match(entry.key or "") or has_anchor(entry.value) for entry in node.entries
    )


class _Reader:
    def __init__(self, text: str, events: Iterator[Any]) -> None:
        self.text = text
        self.events = events
        self.at = 0
        """How far the text has been read."""
        self.last: Node | None = None
        """The value that a comment on the same line belongs to."""
        self.opening = ""
        """A comment on the line of a key, before its value."""
        self.waiting: list[tuple[int | None, str]] = []
        """Comments that belong to what comes next, each with its column; blank lines have none."""
        self.closed: list[Collection] = []
        """Collections that have ended just now, the innermost first."""

    def read(self) -> Tree | None:
        start = next((event for event in self.events if isinstance(event, DocumentStartEvent)), None)
        if start is None:
            return None
        before = ""
        if start.explicit:
            _, self.at = _ends(start)
            before = self.text[: self.at]
        root = self.node(next(self.events), -1)
        if isinstance(root, Scalar):
            return None
        end = next(self.events)
        self.advance(end.start_mark.index)
        root.tail += self.settle(-1)
        return Tree(before, root, self.text[end.start_mark.index :])

    # ------------------------------------------------------------ values

    def node(self, event: Any, column: int) -> Node:
        """The value that begins with an event, inside a collection at a column."""
        start, end = _ends(event)
        if isinstance(event, ScalarEvent | AliasEvent):
            self.begin(start)
            if _TEXT.match(self.text, start, end):  # blank lines at its end belong to what follows
                end = start + len(self.text[start:end].rstrip("\n")) + (self.text[end - 1] == "\n")
            scalar = Scalar(self.text[start:end], column)
            self.at, self.last = end, scalar
            return scalar
        self.advance(start)
        properties = self.properties(start, bool(event.anchor) + bool(event.tag))
        collection = Collection(
            isinstance(event, SequenceStartEvent), event.flow_style, " ".join(properties.split()), comment=self.opening
        )
        self.opening = ""
        self.at = start + len(properties.rstrip())
        self.last = collection if properties else None
        if collection.flow:
            self.at, self.last = end, None
        collection.column = self.column(start) if not properties else -1
        if collection.is_list:
            self.items(collection)
        else:
            self.members(collection)
        return collection

    def properties(self, start: int, count: int) -> str:
        """So many anchors and tags, with the spaces behind them."""
        end = start
        for _ in range(count):
            if match := _PROPERTY.match(self.text, end):
                end = match.end()
        return self.text[start:end]

    def members(self, mapping: Collection) -> None:
        while not isinstance(event := next(self.events), MappingEndEvent):
            if not isinstance(event, ScalarEvent | AliasEvent):
                raise NotKept
            start, end = _ends(event)
            self.begin(start)
            if mapping.column < 0:
                mapping.column = self.column(start)
            before = self.settle(mapping.column)
            key = self.text[start:end]
            if "\n" in key or (isinstance(event, ScalarEvent) and event.style in ("|", ">")):
                raise NotKept
            self.at, self.last = end, None
            value_event = next(self.events)
            value = self.node(value_event, mapping.column)
            if isinstance(value, Scalar):
                before += self.settle(mapping.column)
            mapping.entries.append(Entry(before, key, value))
        self.close(mapping, event)

    def items(self, sequence: Collection) -> None:
        while not isinstance(event := next(self.events), SequenceEndEvent):
            start = event.start_mark.index
            if sequence.column < 0 and not sequence.flow:
                dash = _DASH.match(self.text, self.at)
                sequence.column = self.column(dash.end() - 1) if dash else 0
            self.begin(start)
            before = self.settle(sequence.column)
            self.last = None
            sequence.entries.append(Entry(before, None, self.node(event, sequence.column)))
        self.close(sequence, event)

    def close(self, collection: Collection, event: Any) -> None:
        if not collection.flow:
            self.closed.append(collection)
            return
        self.begin(event.start_mark.index)
        collection.tail += self.settle(-1)
        self.at, self.last = event.end_mark.index, collection

    # ------------------------------------------------------------ what stands between values

    def begin(self, index: int) -> None:
        """Read up to a piece that takes no comment from the line above its own."""
        before = len(self.waiting)
        self.advance(index)
        if self.opening:
            self.waiting.insert(before, (_BESIDE, self.opening.strip()))
            self.opening = ""

    def advance(self, index: int) -> None:
        """Read the comments and blank lines up to the next piece."""
        if index <= self.at:
            return
        lines = self.text[self.at : index].split("\n")
        fresh = self.at == 0 or self.text[self.at - 1] == "\n"
        position, begun = self.at, False
        for number, line in enumerate(lines):
            head, mark, _ = line.partition("#")
            if mark:
                self.comment(line, len(head), position + len(head), same_line=number == 0 and not fresh)
            elif not head.strip() and not begun and number < len(lines) - 1 and (number or fresh):
                self.waiting.append((None, ""))
            begun = begun or bool(head.strip())  # behind a dash no blank line is kept
            position += len(line) + 1
        self.at = index

    def comment(self, line: str, mark: int, position: int, *, same_line: bool) -> None:
        text, head = line[mark:].rstrip(), line[:mark]
        if not same_line:
            self.waiting.append((_BESIDE if head.strip() else self.column(position), text))
            return
        spaces = head[len(head.rstrip()) :].replace("\t", "  ") or " "
        if self.last is not None and not self.last.comment:
            self.last.comment = spaces + text
        elif self.last is None and not self.opening:
            self.opening = spaces + text
        else:
            self.waiting.append((_BESIDE, text))

    def settle(self, column: int) -> list[str]:
        """The comments that belong to the next piece, in a collection at a column.

        Those above it that stand further to the right belong to the end of what has closed before it: the outermost
        that begins in their column.
        """
        waiting, self.waiting = self.waiting, []
        closed, self.closed = self.closed, []
        taken, owner = 0, 0
        for index, (at, _) in enumerate(waiting):
            if at is None:
                continue
            if not closed or at <= column:
                break
            while owner < len(closed) - 1 and (closed[owner].column > at or closed[owner + 1].column == at):
                owner += 1
            closed[owner].tail += [text for _, text in waiting[taken : index + 1]]
            taken = index + 1
        return [text for _, text in waiting[taken:]]

    def column(self, index: int) -> int:
        return index - (self.text.rfind("\n", 0, index) + 1)


def _ends(event: Any) -> tuple[int, int]:
    return event.start_mark.index, event.end_mark.index
