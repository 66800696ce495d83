"""JSON values: parse, print, clone, render."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring
from typing import Any, Final, TypeAlias

from octo.errors import OctoError

Json: TypeAlias = Any
"""A decoded JSON value: None, bool, float (or int), str, list, dict with text keys."""

NESTING: Final = 200
"""How deep a JSON document may be nested."""

_EXACT = 2**53
"""Up to here every integer is a double."""
_UNSAFE = re.compile("[<>&\u2028\u2029]")
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class Ordered(dict[str, Json]):
    """A mapping that is printed in its own order, not in that of its keys."""


class Written(str):
    """A value that has been written as JSON text before, with keys in order: it is printed as it is."""

    __slots__ = ()


def parse(text: str | bytes) -> Json:
    """Decode one strict JSON document. Every number is a double, lone surrogates become U+FFFD.

    Raises ValueError (`json.JSONDecodeError`, whose text tells line and column) for anything else, `NaN` included.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig", errors="replace")
    try:
        value = _decoder.decode(text)
    except RecursionError:
        raise ValueError(f"nested more than {NESTING} levels deep") from None
    except json.JSONDecodeError as error:
        error.args = (json_fault(error),)
        raise
    if text.count("[") + text.count("{") > NESTING:
        _refuse_depth(value)
    return clean(value) if "\\ud" in text or "\\uD" in text or not _is_clean(text) else value


def json_fault(error: ValueError | RecursionError) -> str:
    """What is wrong with a text that is no JSON, and where."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg[:1].lower()}{error.msg[1:]} at line {error.lineno}, column {error.colno}"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _refuse_depth(value: Json) -> None:
    level = [value]
    for _ in range(NESTING + 1):
        level = [
            child
            for item in level
            if type(item) is dict or type(item) is list
            for child in (item.values() if type(item) is dict else item)
        ]
        if not level:
            return
    raise ValueError(f"nested more than {NESTING} levels deep")


def _double(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number is out of the range of doubles")
    return number


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"`{name}` is not JSON")


_decoder = json.JSONDecoder(parse_int=_double, parse_float=_double, parse_constant=_refuse_constant)


def clean(value: Json) -> Json:
    """The same value with U+FFFD in the place of lone surrogates, which no UTF-8 text can hold."""
    match value:
        case str():
            return clean_text(value)
        case list():
            return [clean(item) for item in value]
        case dict():
            return {clean_text(key): clean(item) for key, item in value.items()}
    return value


def clean_text(text: str) -> str:
    """The text with pairs of surrogates joined and lone ones replaced by U+FFFD."""
    if _is_clean(text):
        return text
    return text.encode("utf-16-le", errors="surrogatepass").decode("utf-16-le", errors="replace")


def _is_clean(text: str) -> bool:
    """Whether there is no surrogate in a text, which UTF-8 cannot hold."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def dumps(value: Json) -> str:
    """Compact JSON on one line, keys sorted (but of `Ordered`), numbers by `number_text`; safe inside HTML."""
    try:
        text = clean_text(_text(value))
    except RecursionError:
        raise OctoError("a value is nested too deeply") from None
    if "<" in text or ">" in text or "&" in text or not text.isascii():
        text = _UNSAFE.sub(lambda match: _ESCAPES[match[0]], text)
    return text


def _text(value: Json) -> str:
    """The JSON text of a value, surrogates and unsafe characters as they are."""
    kind = type(value)
    if kind is str:
        return encode_basestring(value)
    if kind is dict or kind is Ordered:
        members = []  # no comprehension, which takes a second frame per level
        for key in value if kind is Ordered else sorted(value):
            members.append(f"{encode_basestring(key)}:{_text(value[key])}")
        return f"{{{','.join(members)}}}"
    if kind is float or kind is int:
        return number_text(value) if math.isfinite(value) else f'"{number_text(value)}"'
    if kind is list or kind is tuple:
        return f"[{','.join(map(_text, value))}]"
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is Written:
        return str(value)
    if isinstance(value, str):
        return encode_basestring(str(value))
    if isinstance(value, Mapping):
        return _text(dict(value))
    raise TypeError(f"a value of type `{kind.__name__}` has no JSON form")


def number_text(number: int | float) -> str:
    """The one text of a number: no fraction or exponent for whole doubles, else the shortest digits.

    Exponents appear only below 1e-6 and from 1e21 on, as in ECMAScript.
    """
    if isinstance(number, int):
        return str(number)
    if not math.isfinite(number):
        return "NaN" if number != number else ("Infinity" if number > 0 else "-Infinity")
    size = abs(number)
    if size < 1e16 and number == int(number):
        return "-0" if number == 0 and math.copysign(1, number) < 0 else str(int(number))
    digits = repr(number)
    mantissa, mark, exponent = digits.partition("e")
    if mark and 1e16 <= size < 1e21:
        whole, _, fraction = mantissa.partition(".")
        return whole + fraction.ljust(int(exponent), "0")
    if not mark:
        return digits
    if 1e-6 <= size < 1e21:
        places = -int(exponent) + len(mantissa.partition(".")[2])
        return f"{number:.{places}f}"
    return f"{mantissa}e{int(exponent):+d}"


def render(value: Json) -> str:
    """Text as it is, everything else as compact JSON: what a setting that needs text makes of a value."""
    return value if isinstance(value, str) else dumps(value)


def masked(value: Json, mask: Callable[[str], str]) -> Json:
    """The value with the secrets in its texts hidden; a number that shows one becomes text."""
    match value:
        case Written():
            return masked(parse(value), mask)
        case str():
            return mask(value)
        case bool() | None:
            return value
        case int() | float():
            shown = number_text(value)
            return value if mask(shown) == shown else mask(shown)
        case list():
            return [masked(item, mask) for item in value]
        case dict():
            kind = Ordered if type(value) is Ordered else dict
            return kind((mask(key), masked(item, mask)) for key, item in value.items())
    return value


def clone(value: Json) -> Json:
    """A deep copy in which every number is a double, as if the value had been written and read again."""
    try:
        return _clone(value)
    except RecursionError:
        raise OctoError("a value is nested too deeply") from None


def _clone(value: Json) -> Json:
    kind = type(value)
    if kind is dict:
        return {key: _clone(item) for key, item in value.items()}
    if kind is list or kind is tuple:
        return [_clone(item) for item in value]
    if kind is int:
        return float(value)
    return value


def native(value: Json) -> Json:
    """A deep copy as Python code expects it: whole doubles, which all JSON integers are here, become ints."""
    kind = type(value)
    if kind is float:
        return int(value) if value.is_integer() and abs(value) <= _EXACT else value
    if kind is dict:
        return {key: native(item) for key, item in value.items()}
    if kind is list or kind is tuple:
        return [native(item) for item in value]
    return value


def kind_of(value: Json) -> str:
    """The JSON kind of a value, in the words of error texts."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
        case dict():
            return "a mapping"
    return type(value).__name__
