"""Sizes, kinds and conversions: what the language itself defines."""

from __future__ import annotations

import math
import re

from octo.cel.functions import Number, function
from octo.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Duration,
    Failure,
    Kind,
    Timestamp,
    UInt,
    Value,
    kind_of,
    text_of,
    to_bytes,
)

_INT = re.compile(r"[-+]?[0-9]+")
_DOUBLE = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?(?:Infinity|Inf|inf)|NaN|nan")
_TRUE = frozenset({"true", "True", "TRUE", "t", "T", "1"})
_FALSE = frozenset({"false", "False", "FALSE", "f", "F", "0"})


@function("size", ".size")
def size(value: str | bytes | list[Value] | dict[Value, Value]) -> int:
    """The number of characters of a text, bytes, elements of a list, or entries of a map."""
    return len(value)


@function("type")
def type_(value: Value) -> Kind:
    """The kind of a value, to compare with `int`, `string`, `list`, …"""
    return kind_of(value)


@function("dyn")
def dyn(value: Value) -> Value:
    """The value, with its kind no longer known while the expression is compiled."""
    return value


@function("int")
def int_(value: Number | str | Timestamp | Duration) -> int:
    """A whole number: a double loses its fraction, a timestamp gives Unix seconds, a duration nanoseconds."""
    match value:
        case Timestamp():
            return value.ns // 1_000_000_000
        case Duration():
            return value.ns
        case str():
            number = _parse_int(value, "int")
        case _:
            number = _whole(value, "int")
    if not INT_MIN <= number <= INT_MAX:
        raise Failure("int out of range")
    return number


@function("uint")
def uint(value: Number | str) -> UInt:
    """A whole number that is not negative: a double loses its fraction."""
    number = _parse_int(value, "uint") if isinstance(value, str) else _whole(value, "uint")
    if not 0 <= number <= UINT_MAX:
        raise Failure("uint out of range")
    return UInt(number)


def _parse_int(text: str, kind: str) -> int:
    if _INT.fullmatch(text) is None or len(text) > 64:
        raise Failure(f"no {kind}: `{text}`")
    return int(text)


def _whole(number: float, kind: str) -> int:
    """Without its fraction. The smallest int as a double may have been any smaller number, so it is refused."""
    if type(number) is float and not -9.223372036854775808e18 < number < (
        1.8446744073709552e19 if kind == "uint" else 9.223372036854775808e18
    ):
        raise Failure(f"{kind} out of range")
    return int(number)


@function("double")
def double(value: Number | str) -> float:
    """A number with a fraction."""
    if isinstance(value, str):
        if _DOUBLE.fullmatch(value) is None:
            raise Failure(f"no double: `{value}`")
        number = float(value)
        if math.isinf(number) and not value.endswith(("inf", "Inf", "Infinity")):
            raise Failure("double out of range")
        return number
    return float(value)


@function("string")
def string(value: Number | bool | str | bytes | Timestamp | Duration) -> str:
    """The text of a scalar. Whole numbers have no fraction and no exponent: `string(250.0)` is `250`."""
    return text_of(value) or ""


@function("bool")
def bool_(value: bool | str) -> bool:
    """True or false from its text."""
    if isinstance(value, bool):
        return value
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise Failure(f"no bool: `{value}`")


@function("bytes")
def bytes_(value: str | bytes) -> bytes:
    """The UTF-8 bytes of a text."""
    return to_bytes(value)
