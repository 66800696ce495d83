"""Text from a pattern with verbs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from octo.cel.functions import function
from octo.cel.values import Failure, Kind, Optional, UInt, Value, guard_size, items, kind_of, text_of, to_bytes
from octo.values import number_text

_CLAUSE = re.compile(r"%(?:(%)|(?:\.(\d{1,3}))?([sdfebxXo]))?")
_PRECISION = 6


@function(".format")
def format_(text: str, arguments: list[Value]) -> str:
    """The text with `%s %d %f %.2f %e %b %o %x %X` replaced by the arguments in turn; `%%` is a percent sign."""
    parts: list[str] = []
    end = used = size = 0
    for match in _CLAUSE.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
        if match[1]:
            parts.append("%")
            continue
        if not match[3]:
            raise Failure(f"`{text[match.start() : match.start() + 2]}` is no verb of `format`")
        if used >= len(arguments):
            raise Failure(f"`{match[0]}` has no argument: there are only {len(arguments)}")
        parts.append(_VERBS[match[3]](arguments[used], int(match[2] or _PRECISION)))
        used += 1
        size += len(parts[-1])
        guard_size(size)
    return "".join(parts) + text[end:]


def _any(value: Value, precision: int) -> str:
    match value:
        case None:
            return "null"
        case list():
            return f"[{', '.join(_any(item, precision) for item in value)}]"
        case dict():
            entries = [f"{_any(key, precision)}: {_any(item, precision)}" for key, item in items(value)]
            return f"{{{', '.join(sorted(entries))}}}"
        case Kind():
            return value.name
        case Optional():
            return f"optional({_any(value.value, precision)})" if value.present else "optional.none()"
    return text_of(value) or ""


def _integer(value: Value, precision: int) -> str:
    number = _number("d", value)
    return str(_whole("d", number)) if math.isfinite(number) else number_text(number)


def _fixed(value: Value, precision: int) -> str:
    number = float(_number("f", value))
    return f"{number:.{precision}f}" if math.isfinite(number) else number_text(number)


def _scientific(value: Value, precision: int) -> str:
    number = float(_number("e", value))
    return f"{number:.{precision}e}" if math.isfinite(number) else number_text(number)


def _binary(value: Value, precision: int) -> str:
    return f"{int(value) if type(value) is bool else _whole('b', value):b}"


def _octal(value: Value, precision: int) -> str:
    return f"{_whole('o', value):o}"


def _hexadecimal(value: Value, precision: int) -> str:
    if isinstance(value, str | bytes):
        return to_bytes(value).hex()
    return f"{_whole('x', value):x}"


def _upper_hexadecimal(value: Value, precision: int) -> str:
    return _hexadecimal(value, precision).upper()


def _number(verb: str, value: Value) -> int | float:
    if type(value) is int or type(value) is float:
        return value
    if type(value) is UInt:
        return int(value)
    raise Failure(f"`%{verb}` needs a number, got {kind_of(value).name}")


def _whole(verb: str, value: Value) -> int:
    number = _number(verb, value)
    if isinstance(number, float) and not number.is_integer():
        raise Failure(f"`%{verb}` needs a whole number, got {number_text(number)}")
    return int(number)


_VERBS: Mapping[str, Callable[[Value, int], str]] = {
    "s": _any,
    "d": _integer,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hexadecimal,
    "X": _upper_hexadecimal,
}
