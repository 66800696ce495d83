"""YAML text to plain values, with the place of every key, value and list item.

The events come from libyaml; what they mean is decided here, by the YAML 1.2 core schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

try:
    from yaml._yaml import CParser as _Parser
except ImportError:  # a PyYAML that was built without libyaml
    from yaml import BaseLoader as _Parser  # type: ignore[assignment]

from octo.config.scalars import core
from octo.config.source import SourceText
from octo.config.syntax import character_problem, syntax_problem
from octo.errors import Problem
from octo.values import Json, kind_of, render

MAX_DEPTH = 200
MAX_ALIAS_NODES = 100_000
MAX_ALIAS_TEXT = 10_000_000
MAX_PROBLEMS = 1000
"""More than anyone reads before they mend the first ones."""

Span: TypeAlias = int
"""Start and end of a piece of the text, in one number: a large file has hundreds of thousands of them."""

_CORE = "tag:yaml.org,2002:"
_SCALAR_TAGS = frozenset(_CORE + name for name in ("str", "int", "float", "bool", "null"))
_KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}


class Branch:
    """The place of a mapping or list, and of everything in it."""

    __slots__ = ("children", "keys", "span")

    def __init__(self, span: Span, keys: dict[str, Span], children: dict[str, Node] | list[Node]) -> None:
        self.span = span
        self.keys = keys
        self.children = children

    @property
    def members(self) -> dict[str, Node]:
        """The children of a mapping."""
        return self.children if isinstance(self.children, dict) else {}


Node: TypeAlias = "Branch | Span"
"""The place of a value; a scalar needs nothing but its span."""


def start_of(span: Span) -> int:
    return span >> 32


def end_of(span: Span) -> int:
    return span & 0xFFFFFFFF


class Reading:
    """What came out of one text: the first document's value and places, and everything that is wrong."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.data: Json = {}
        self.root: Node = 0
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []


def read_yaml(source: SourceText) -> Reading:
    """Read the first document of a text. After a syntax error the problems found before it are kept."""
    reading = Reading(source)
    text, restore = _shield(source.text)
    try:
        _Builder(reading, _Parser(text), restore).run()
    except yaml.MarkedYAMLError as error:
        reading.problems.append(syntax_problem(source, error))
    except yaml.reader.ReaderError:
        reading.problems.append(character_problem(source))
    except _GiveUp as error:
        reading.problems.append(error.problem)
    return reading


def events(text: str) -> Iterator[Any]:
    """The events of a text, whose marks count in it as it is written."""
    stream = _Parser(_shield(text)[0])
    while stream.check_event():
        yield stream.get_event()


def too_many(first: Problem) -> Problem:
    """What is said in the place of the first problem that is not shown."""
    message = f"there are more than {MAX_PROBLEMS} problems; those from here on are not shown"
    return Problem(message, first.location, "mend the others first")


class _GiveUp(Exception):
    """Reading on would not end in reasonable time or depth."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem


_OPEN: Json = object()
"""Stands for an anchor whose value is not complete yet."""

Merge: TypeAlias = "tuple[dict[str, Json], Branch]"


class _Builder:
    """Builds the values of one document from the parser's events."""

    def __init__(self, reading: Reading, parser: Any, restore: Callable[[str, str], str] | None) -> None:
        self.reading = reading
        self.source = reading.source
        self.next: Callable[[], Any] = parser.get_event
        self.restore = restore
        self.anchors: dict[str, tuple[Json, Node]] = {}
        self.words: dict[str, str] = {}
        self.alias_nodes = 0
        self.alias_text = 0

    def run(self) -> None:
        self.next()
        if type(self.next()) is StreamEndEvent:
            return
        first = self.next()
        data, root = self.node(first, 1)
        empty = type(first) is ScalarEvent and first.value == "" and not first.style
        self.reading.data, self.reading.root = ({} if empty else data), root
        self.next()
        event = self.next()
        if type(event) is DocumentStartEvent:
            place = self.source.location(_ends(event)[0])
            self.reading.warnings.append(
                Problem(
                    "only the first document of a file is read, and another one starts here",
                    place,
                    "put it into a file of its own",
                    length=3,
                    severity="warning",
                )
            )

    def node(self, event: Any, depth: int) -> tuple[Json, Node]:
        kind = type(event)
        if kind is ScalarEvent:
            value = self.scalar(event)
            place: Node = event.start_mark.index << 32 | event.end_mark.index
        elif kind is AliasEvent:
            return self.alias(event, depth)
        else:
            if depth > MAX_DEPTH:
                message = f"nested more than {MAX_DEPTH} levels deep"
                raise _GiveUp(self.source.problem(message, event.start_mark.index))
            if event.anchor:
                self.anchors[event.anchor] = _OPEN, 0
            if kind is MappingStartEvent:
                value, place = self.mapping(event, depth)
                self.expect_tag(event, "map")
            else:
                value, place = self.sequence(event, depth)
                self.expect_tag(event, "seq")
        if event.anchor:
            self.anchors[event.anchor] = value, place
        return value, place

    def sequence(self, start: SequenceStartEvent, depth: int) -> tuple[Json, Branch]:
        items: list[Json] = []
        places: list[Node] = []
        while type(event := self.next()) is not SequenceEndEvent:
            value, place = self.node(event, depth + 1)
            items.append(value)
            places.append(place)
        return items, Branch(_span(start), {}, places)

    def mapping(self, start: MappingStartEvent, depth: int) -> tuple[Json, Branch]:
        data: dict[str, Json] = {}
        keys: dict[str, Span] = {}
        places: dict[str, Node] = {}
        merges: list[Merge] | None = None
        while type(event := self.next()) is not MappingEndEvent:
            key = self.key(event, depth)
            before = len(self.reading.problems)
            value, place = self.node(self.next(), depth + 1)
            if key is None:
                continue
            if key == "<<" and value is None and len(self.reading.problems) > before:
                continue  # an alias that is reported
            if key == "<<" and not event.style and event.tag in (None, "tag:yaml.org,2002:merge"):
                if merges is not None:
                    self.problem("duplicate key `<<`", event, "give one list: `<<: [*first, *second]`")
                merges = [*(merges or []), *self.merged(value, place, event)]
            elif key in data:
                first = self.source.location(start_of(keys[key]))
                hint = f"the first one is at {first}; keep one of them"
                self.problem(f"duplicate key `{_short(key)}`", event, hint)
            else:
                data[key] = value
                keys[key] = _span(event)
                places[key] = place
        if merges:
            return self.with_merges(data, Branch(_span(start), keys, places), merges)
        return data, Branch(_span(start), keys, places)

    def key(self, event: Any, depth: int) -> str | None:
        """The text of a key as it is written, so that `200` and `yes` are keys; None after a problem."""
        kind = type(event)
        if kind is ScalarEvent:
            text: str = event.value
            if not text and not event.style and event.tag is None:
                self.problem("expected a key before `:`, found nothing", event, 'write `""` for an empty key')
                return None
            if event.tag not in (None, "!", "tag:yaml.org,2002:merge") and event.tag not in _SCALAR_TAGS:
                self.unknown_tag(event)
            if self.restore is not None:
                text = self.restore(text, event.style)
            text = self.words.setdefault(text, text)
            if event.anchor:
                self.anchors[event.anchor] = text, _span(event)
            return text
        value, _ = self.node(event, depth + 1)
        if isinstance(value, dict | list):
            found = kind_of(value)
            hint = "quote a text that starts with `{` or `[`"
            self.problem(f"expected text as a key, found {found}", event, hint)
            return None
        return render(value)

    def scalar(self, event: ScalarEvent) -> Json:
        text: str = event.value
        if self.restore is not None:
            text = self.restore(text, event.style or "")
        tag = event.tag
        if tag is None:
            return text if event.style else self.core(text, event)
        if tag == "!" or tag == "tag:yaml.org,2002:str":
            return text
        if tag not in _SCALAR_TAGS:
            self.unknown_tag(event)
            return text
        name = tag.removeprefix(_CORE)
        value = self.core(text, event)
        if type(value) not in _KINDS[name]:
            self.problem(f"expected a value of kind `!!{name}`, found `{_short(text)}`", event)
            return value
        return float(value) if name == "float" else value

    def core(self, text: str, event: ScalarEvent) -> Json:
        try:
            return core(text)
        except OverflowError:
            hint = "no number is larger than about 1.8e308; put it in quotes if it is text"
            self.problem(f"number `{_short(text)}` is too large", event, hint)
            return text

    def alias(self, event: AliasEvent, depth: int) -> tuple[Json, Node]:
        """A copy of what the anchor holds, at the anchor's place."""
        name = event.anchor
        if name not in self.anchors:
            hint = f"mark a value above with `&{name}`, or quote a text that starts with `*`"
            self.problem(f"alias `*{name}` has no anchor", event, hint)
            return None, _span(event)
        value, place = self.anchors[name]
        if value is _OPEN:
            self.problem(f"alias `*{name}` stands inside the value that it repeats", event)
            return None, _span(event)
        return self.copy(value, event, depth), place

    def copy(self, value: Json, event: AliasEvent, depth: int) -> Json:
        self.alias_nodes += 1
        if isinstance(value, str):
            self.alias_text += len(value)
        if self.alias_nodes > MAX_ALIAS_NODES or self.alias_text > MAX_ALIAS_TEXT or depth > MAX_DEPTH + 1:
            message = "aliases repeat more than 100 000 values, 10 MB of text or 200 levels"
            raise _GiveUp(self.source.problem(message, *_ends(event), "repeat less through aliases"))
        if isinstance(value, dict):
            for key in value:
                self.alias_text += len(key)
            return {key: self.copy(item, event, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self.copy(item, event, depth + 1) for item in value]
        return value

    def merged(self, value: Json, place: Node, key: ScalarEvent) -> list[Merge]:
        """The mappings that a merge key names."""
        if isinstance(value, dict) and isinstance(place, Branch):
            return [(value, place)]
        if isinstance(value, list) and isinstance(place, Branch) and all(isinstance(v, dict) for v in value):
            return list(zip(value, place.children, strict=True))  # type: ignore[arg-type]  # all are mappings
        hint = "a plain key of this name is written in quotes"
        found = "a list of other things" if isinstance(value, list) else kind_of(value)
        self.problem(f"expected a mapping or a list of mappings after `<<`, found {found}", key, hint)
        return []

    def with_merges(self, data: dict[str, Json], own: Branch, merges: list[Merge]) -> tuple[Json, Branch]:
        """Merged keys come first; a mapping's own keys win, then those of earlier mappings."""
        merged: dict[str, Json] = {}
        keys: dict[str, Span] = {}
        places: dict[str, Node] = {}
        for value, branch in reversed(merges):
            merged |= value
            keys |= branch.keys
            places |= branch.members
        return merged | data, Branch(own.span, keys | own.keys, places | own.members)

    def expect_tag(self, event: Any, name: str) -> None:
        if event.tag not in (None, "!", _CORE + name):
            self.unknown_tag(event)

    def unknown_tag(self, event: Any) -> None:
        tag = event.tag
        shown = "!!" + tag.removeprefix(_CORE) if tag.startswith(_CORE) else tag
        self.problem(f"unknown tag `{shown}`", event, "remove it, or quote a text that starts with `!`")

    def problem(self, message: str, event: Any, hint: str | None = None) -> None:
        scalar = isinstance(event, ScalarEvent | AliasEvent)
        start, end = _ends(event)
        problem = self.source.problem(message, start, end if scalar else None, hint)
        if len(self.reading.problems) == MAX_PROBLEMS:
            raise _GiveUp(too_many(problem))
        self.reading.problems.append(problem)


def _span(event: Any) -> Span:
    span: int = event.start_mark.index << 32 | event.end_mark.index
    return span


def _ends(event: Any) -> tuple[int, int]:
    return event.start_mark.index, event.end_mark.index


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"


# What YAML 1.2 and JSON allow inside a text, but libyaml reads otherwise or not at all: NEL, LS and PS (line
# breaks in YAML 1.1), controls from U+007F on, the byte order mark; and escaped surrogates.
_FOREIGN = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_ESCAPED_SURROGATE = re.compile(r"((?<!\\)(?:\\\\)*)\\(?=u[dD][89a-fA-F])")
_FIRST_SPARE = 0xF0000
"""The start of a plane for private use, whose characters libyaml leaves alone."""


def _shield(text: str) -> tuple[str, Callable[[str, str], str] | None]:
    """The text with stand-ins, one for one, and the function that puts a scalar right again."""
    foreign = sorted(set(_FOREIGN.findall(text)))
    escaped = "\\u" in text and _ESCAPED_SURROGATE.search(text) is not None
    if not foreign and not escaped:
        return text, None
    spare = (chr(code) for code in range(_FIRST_SPARE, _FIRST_SPARE + 0xFFFD) if chr(code) not in text)
    stand_ins = dict(zip(foreign, spare, strict=False))
    backslash = next(spare)
    text = text.translate(str.maketrans(stand_ins))
    text = _ESCAPED_SURROGATE.sub(rf"\1{backslash}", text)
    originals = str.maketrans({stand_in: character for character, stand_in in stand_ins.items()})
    escape = re.compile(backslash + "u([0-9a-fA-F]{4})")

    def restore(value: str, style: str) -> str:
        value = value.translate(originals)
        if backslash not in value:
            return value
        if style == '"':
            value = escape.sub(lambda match: chr(int(match[1], 16)), value)
            value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return value.replace(backslash, "\\")

    return text, restore
