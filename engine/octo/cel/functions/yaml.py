"""Values to and from YAML."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from json.encoder import encode_basestring
from typing import Any

from octo.cel.functions import function
from octo.cel.values import Failure, Value, guard_size, to_json
from octo.errors import shortened
from octo.values import clean_text, dumps, number_text

_NODES_MAX = 1_000_000

_CORE = "tag:yaml.org,2002:"
_TAGS = frozenset({"binary", "bool", "float", "int", "map", "merge", "null", "omap"}) | frozenset(
    {"pairs", "seq", "set", "str", "timestamp", "value"}
)
"""The kinds that YAML has; any other is one of a programming language."""

_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: dict[str, Value] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)(?:(?:[Tt]|[ \t]+)(\d\d?):(\d\d):(\d\d)(\.\d+)?"
    r"[ \t]*(?:(Z)|([-+])(\d\d?)(?::?(\d\d))?)?)?",
    re.A,
)
_UNPRINTABLE = r"\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff"
_PLAIN = re.compile(rf"[A-Za-z0-9_./+~^()$-](?:[^\x00-\x1f{_UNPRINTABLE}]*[^\s\x00-\x1f{_UNPRINTABLE}:])?")
_NOT_PLAIN = re.compile(r": | #|^[-?] |^---|^\.\.\.|^[-?:]$")
_OTHER_KIND = re.compile(
    r"(?i:y|yes|n|no|on|off|true|false|null|~)|[-+]?(?:[0-9][0-9_,]*)(?::[0-5]?[0-9])*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.[0-9_]+(?:[eE][-+]?[0-9]+)?|[-+]?\.(?i:inf|nan)|0[xob][0-9a-fA-F_]+|\d{4}-\d\d?-\d\d?.*"
)
_BLOCK_TEXT = re.compile(rf"[^\s\x00-\x1f{_UNPRINTABLE}][^\x00-\x08\x0b-\x1f{_UNPRINTABLE}]*")
_ESCAPED = re.compile(f"[{_UNPRINTABLE}]")


@function("toYaml")
def to_yaml(value: Value) -> str:
    """The value as YAML in block style, indented by 4, keys sorted."""
    return "\n".join(_lines(to_json(value))) + "\n"


def _lines(value: Value) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key in sorted(value):
            yield from _entry(f"{_text(key)}:", value[key])
    elif isinstance(value, list) and value:
        for item in value:
            first, *rest = _lines(item)
            yield f"- {first}"
            yield from (f"  {line}" if line else line for line in rest)
    elif isinstance(value, str) and "\n" in value and _BLOCK_TEXT.fullmatch(value):
        yield from _block_text(value)
    else:
        yield _scalar(value)


def _entry(head: str, value: Value) -> Iterator[str]:
    lines = list(_lines(value))
    if isinstance(value, dict | list) and value:
        yield head
        yield from (f"    {line}" if line else line for line in lines)
    else:
        yield f"{head} {lines[0]}"
        yield from (f"  {line}" if line else line for line in lines[1:])


def _block_text(text: str) -> Iterator[str]:
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    yield "|" if ends == 1 else "|+" if ends else "|-"
    yield from (f"  {line}" if line else line for line in body.split("\n"))
    yield from [""] * (ends - 1)


def _scalar(value: Value) -> str:
    if isinstance(value, str):
        return _text(value)
    return number_text(value) if type(value) is float else dumps(value)


def _text(text: str) -> str:
    """The text as it is, if it would be read back as the same text; else in quotes."""
    plain = _PLAIN.fullmatch(text) and not _NOT_PLAIN.search(text) and not _OTHER_KIND.fullmatch(text)
    if plain and text not in ("<<", "="):
        return text
    quoted = encode_basestring(clean_text(text))
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


@function("fromYaml")
def from_yaml(text: str) -> Value:
    """The value of the first document of a YAML text; its numbers are doubles, its timestamps RFC 3339 text."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Reader(yaml.parse(clean_text(text), Loader=loader)).document()
    except yaml.YAMLError as error:
        raise Failure(f"text is not YAML: {_shown(error)}") from None


def _shown(error: Any) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"{problem} in line {mark.line + 1}" if mark is not None else problem


class _Reader:
    """Builds the value of a document from the events of the parser."""

    def __init__(self, events: Iterator[Any]) -> None:
        self.events = events
        self.anchors: dict[str, Value] = {}
        self.sizes: dict[int, int] = {}
        self.nodes = 0

    def document(self) -> Value:
        for event in self.events:
            if _name(event) == "DocumentStart":
                return self.value(next(self.events))
        return None

    def value(self, event: Any) -> Value:
        before = self.nodes
        self.nodes += 1
        tag = getattr(event, "tag", None) or ""
        if tag.startswith(_CORE) and tag.removeprefix(_CORE) not in _TAGS:
            raise Failure(
                f"text is not YAML: unknown tag `!!{tag.removeprefix(_CORE)}` in line {event.start_mark.line + 1}"
            )
        match _name(event):
            case "Alias":
                if event.anchor not in self.anchors:
                    raise Failure(f"text is not YAML: alias `{event.anchor}` has no anchor before it")
                found = self.anchors[event.anchor]
                self.count(self.sizes.get(id(found), 1))
                return found
            case "Scalar":
                value = _resolve(event)
            case "SequenceStart":
                value = self.sequence()
            case _:
                value = self.mapping()
        self.count(0)
        if event.anchor:
            self.anchors[event.anchor] = value
            self.sizes[id(value)] = self.nodes - before
        return value

    def count(self, nodes: int) -> None:
        """A value that is used many times counts as often: what it stands for may be far larger than the text."""
        self.nodes += nodes
        if self.nodes > _NODES_MAX:
            guard_size(self.nodes * 1000)

    def sequence(self) -> list[Value]:
        values: list[Value] = []
        while _name(event := next(self.events)) != "SequenceEnd":
            values.append(self.value(event))
        return values

    def mapping(self) -> dict[str, Value]:
        values: dict[str, Value] = {}
        merged: list[Value] = []
        while _name(event := next(self.events)) != "MappingEnd":
            line = event.start_mark.line + 1
            merging = _name(event) == "Scalar" and event.value == "<<" and event.implicit[0]
            key = self.value(event)
            value = self.value(next(self.events))
            if merging:
                merged += value if isinstance(value, list) else [value]
            elif not isinstance(key, str):
                raise Failure(f"key of a mapping is not text in line {line}")
            elif key in values:
                raise Failure(f"key `{shortened(key)}` is repeated in line {line}")
            else:
                values[key] = value
        for other in merged:
            if not isinstance(other, dict):
                raise Failure("text is not YAML: `<<` needs a mapping")
            values = {**other, **values}
        return values


def _name(event: Any) -> str:
    return type(event).__name__.removesuffix("Event")


def _resolve(event: Any) -> Value:
    """The value of a scalar: quoted or tagged as text it is text, else what it looks like."""
    text: str = event.value
    tag = event.tag
    if tag == "tag:yaml.org,2002:str" or (tag is None and not event.implicit[0]) or tag == "!":
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text) or _FLOAT.fullmatch(text):
        return _number(text)
    return _timestamp(text) or text


def _number(text: str) -> float:
    try:
        number = float(int(text[2:], 16 if text[1] == "x" else 8)) if text[:2] in ("0x", "0o") else float(text)
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise Failure("text is not YAML: a number is out of the range of doubles")
    return number


def _timestamp(text: str) -> str | None:
    """A timestamp of YAML as RFC 3339 text."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, _, sign, hours, minutes = match.groups()
    date = f"{year}-{month:0>2}-{day:0>2}"
    zone = f"{sign}{hours:0>2}:{minutes or '00'}" if sign else "Z"
    if hour is None:
        return f"{date}T00:00:00Z" if len(month) == len(day) == 2 else None
    digits = (fraction or "").rstrip("0").rstrip(".")
    return f"{date}T{hour:0>2}:{minute}:{second}{digits}{zone}"
