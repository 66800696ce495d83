"""The kinds of values in expressions: what they are called, when two are equal, and their JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from operator import is_
from typing import Any, TypeAlias

from octo.values import Json, clean_text, number_text

Value: TypeAlias = Any
"""A JSON value as it is (its numbers are float, the kind `double`), or one of int, UInt, bytes, Timestamp,
Duration, Optional, Kind."""

INT_MIN, INT_MAX = -(1 << 63), (1 << 63) - 1
UINT_MAX = (1 << 64) - 1
STEPS_MAX = 1_000_000
SIZE_MAX = 64_000_000

_SECOND = 1_000_000_000
_TIMESTAMP_MIN = -62_135_596_800 * _SECOND
_TIMESTAMP_MAX = 253_402_300_800 * _SECOND - 1
_DURATION_MAX = 315_576_000_000 * _SECOND


class Failure(Exception):
    """An evaluation that went wrong. Whoever knows the place in the source adds it on the way out."""

    def __init__(self, message: str, column: int = 0, length: int = 1, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.column = column
        self.length = length
        self.hint = hint

    def at(self, column: int, length: int = 1) -> Failure:
        """The same failure, placed, unless an inner part has placed it already."""
        if not self.column:
            self.column, self.length = column, length
        return self


class Exceeded(Failure):
    """A budget ran out. Unlike other failures, no operator absorbs it."""


class UInt(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


class Kind:
    """The kind of a value, itself a value: `type(1) == int`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


class Duration:
    """A span of time in nanoseconds."""

    __slots__ = ("ns",)

    def __init__(self, ns: int) -> None:
        if not -_DURATION_MAX <= ns <= _DURATION_MAX:
            raise Failure("duration out of range")
        self.ns = ns

    def __eq__(self, other: object) -> bool:
        return type(other) is Duration and other.ns == self.ns

    def __lt__(self, other: Duration) -> bool:
        return self.ns < other.ns

    def __le__(self, other: Duration) -> bool:
        return self.ns <= other.ns

    def __hash__(self) -> int:
        return hash(self.ns)

    def __str__(self) -> str:
        seconds, fraction = divmod(abs(self.ns), _SECOND)
        return f"{'-' if self.ns < 0 else ''}{seconds}{_fraction(fraction)}s"


class Timestamp:
    """A point in time: nanoseconds since 1970 in UTC, and the zone offset in minutes that it was written with."""

    __slots__ = ("ns", "offset")

    def __init__(self, ns: int, offset: int = 0) -> None:
        if not _TIMESTAMP_MIN <= ns <= _TIMESTAMP_MAX:
            raise Failure("timestamp out of range")
        self.ns = ns
        self.offset = offset

    def __eq__(self, other: object) -> bool:
        return type(other) is Timestamp and other.ns == self.ns

    def __lt__(self, other: Timestamp) -> bool:
        return self.ns < other.ns

    def __le__(self, other: Timestamp) -> bool:
        return self.ns <= other.ns

    def __hash__(self) -> int:
        return hash(self.ns)

    def __str__(self) -> str:
        from datetime import datetime, timedelta

        local = self.ns + self.offset * 60 * _SECOND
        offset = self.offset
        if not _TIMESTAMP_MIN <= local <= _TIMESTAMP_MAX:
            local, offset = self.ns, 0
        seconds, fraction = divmod(local - _TIMESTAMP_MIN, _SECOND)
        date = (datetime(1, 1, 1) + timedelta(seconds=seconds)).isoformat()
        return f"{date}{_fraction(fraction)}{_zone(offset)}"


def _fraction(ns: int) -> str:
    return f".{ns:09d}".rstrip("0") if ns else ""


def _zone(offset: int) -> str:
    if not offset:
        return "Z"
    hours, minutes = divmod(abs(offset), 60)
    return f"{'-' if offset < 0 else '+'}{hours:02d}:{minutes:02d}"


class Optional:
    """A value that may be absent."""

    __slots__ = ("present", "value")

    def __init__(self, value: Value, present: bool = True) -> None:
        self.value = value
        self.present = present


ABSENT = Optional(None, present=False)


class BoolKey:
    """A bool as key of a map. Python holds True and 1 for the same key; expressions do not."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value


_TRUE_KEY, _FALSE_KEY = BoolKey(True), BoolKey(False)

NULL, BOOL, INT, UINT, DOUBLE = Kind("null_type"), Kind("bool"), Kind("int"), Kind("uint"), Kind("double")
STRING, BYTES, LIST, MAP, TYPE = Kind("string"), Kind("bytes"), Kind("list"), Kind("map"), Kind("type")
TIMESTAMP, DURATION = Kind("google.protobuf.Timestamp"), Kind("google.protobuf.Duration")
OPTIONAL = Kind("optional_type")

KINDS: Mapping[type, Kind] = {
    type(None): NULL,
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    list: LIST,
    dict: MAP,
    Timestamp: TIMESTAMP,
    Duration: DURATION,
    Optional: OPTIONAL,
    Kind: TYPE,
}
KIND_NAMES: Mapping[str, Kind] = {kind.name: kind for kind in KINDS.values()}
NUMBERS = frozenset({int, UInt, float})


def kind_of(value: Value) -> Kind:
    return KINDS.get(type(value)) or KINDS[type(plain(value))]


def plain(value: Value) -> Value:
    """The value with the exact type of its kind: activations may hold subclasses, tuples, read-only mappings."""
    if type(value) in KINDS:
        return value
    match value:
        case str():
            return str(value)
        case int():
            return int(value)
        case float():
            return float(value)
        case bytes():
            return bytes(value)
        case Mapping():
            return dict(value)
        case tuple() | list():
            return list(value)
    raise Failure(f"a value of type `{type(value).__name__}` has no kind in expressions")


def equal(left: Value, right: Value) -> bool:
    """Whether two values are the same: numbers across their kinds, lists and maps deeply."""
    kind = type(left)
    other = type(right)
    if kind is other:
        if kind is list:
            return len(left) == len(right) and all(map(equal, left, right))
        if kind is dict:
            return len(left) == len(right) and all(
                key in right and equal(value, right[key]) for key, value in left.items()
            )
        if kind is Optional:
            return left.present == right.present and equal(left.value, right.value)
        if kind in KINDS:
            return bool(left == right)
    elif kind in NUMBERS and other in NUMBERS:
        return float(left) == float(right) if kind is float or other is float else bool(left == right)
    elif kind in KINDS and other in KINDS:
        return False
    return equal(plain(left), plain(right))


def map_key(value: Value) -> Value:
    """The value as the key under which a dict holds it."""
    kind = type(value)
    if kind is str or kind in NUMBERS:
        return value
    if kind is bool:
        return _TRUE_KEY if value else _FALSE_KEY
    if isinstance(value, str):
        return str(value)
    raise Failure(f"a value of kind `{kind_of(value).name}` cannot be the key of a map")


def keys(mapping: Mapping[Value, Value]) -> list[Value]:
    """The keys of a map as values."""
    return [key.value if type(key) is BoolKey else key for key in mapping]


def items(mapping: Mapping[Value, Value]) -> list[tuple[Value, Value]]:
    """The keys and values of a map, both as values."""
    return [(key.value if type(key) is BoolKey else key, value) for key, value in mapping.items()]


def text_of(value: Value) -> str | None:
    """The text of a scalar, as `string()` and `format` write it; None for kinds that have none."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return number_text(value)
        case Timestamp() | Duration():
            return str(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise Failure("bytes are not UTF-8 text") from None
    return None


def to_bytes(data: str | bytes) -> bytes:
    """Bytes as they are, text as UTF-8."""
    return data if isinstance(data, bytes) else clean_text(data).encode()


def guard_steps(steps: int) -> None:
    """Refuse work that would burst the budget, before it is begun."""
    if steps > STEPS_MAX:
        raise Exceeded(f"evaluation exceeds its budget of {STEPS_MAX} steps")


def guard_size(size: int) -> None:
    """Refuse a text or list that would burst the budget, before it is made."""
    if size > SIZE_MAX:
        raise Exceeded("evaluation exceeds its budget of 64 MB")


def to_json(value: Value) -> Json:
    """The JSON value that a result stands for. Plain JSON inside it is shared, not copied."""
    return _Bridge().cross(value)


class _Bridge:
    """One conversion; counts what it passes, since a small result may hold one large value many times."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0

    def cross(self, value: Value) -> Json:
        kind = type(value)
        if kind is str:
            self.count(len(value))
            return value
        if kind is float:
            return value if isfinite(value) else number_text(value)
        if value is None or kind is bool:
            return value
        if kind is dict:
            return self.mapping(value)
        if kind is list:
            return self.sequence(value)
        if kind is int or kind is UInt:
            return float(value) if -(1 << 53) < value < 1 << 53 else str(int(value))
        if kind is bytes:
            from base64 import b64encode

            self.count(len(value) * 4 // 3)
            return b64encode(value).decode("ascii")
        if kind is Timestamp or kind is Duration:
            return str(value)
        if kind is Optional:
            return self.cross(value.value) if value.present else None
        if kind is Kind:
            raise Failure("convert expression result: a value of kind `type` has no JSON form")
        return self.cross(plain(value))

    def mapping(self, value: dict[Value, Value]) -> Json:
        size = 0
        changed: dict[str, Json] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise self.refused_key(key)
            size += len(key) + 8
            kind = type(item)
            if kind is str:
                size += len(item)
            elif not (item is None or (kind is float and isfinite(item))):
                crossed = self.cross(item)
                if crossed is not item:
                    changed[key] = crossed
        self.count(size)
        return {**value, **changed} if changed else value

    def sequence(self, value: list[Value]) -> Json:
        self.count(8 * len(value))
        crossed = [self.cross(item) for item in value]
        return value if all(map(is_, crossed, value)) else crossed

    def refused_key(self, key: Value) -> Failure:
        kind = "bool" if type(key) is BoolKey else kind_of(key).name
        return Failure(f"convert expression result: a JSON object has text keys, not keys of kind `{kind}`")

    def count(self, size: int) -> None:
        self.size += size
        guard_size(self.size)
