"""Plain scalars, by the YAML 1.2 core schema."""

from __future__ import annotations

import math
import re

from octo.values import Json

_CONSTANTS: dict[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_NUMBER_START = frozenset("0123456789+-.")
_INTEGER = re.compile(r"[-+]?[0-9]+").fullmatch
_OCTAL = re.compile(r"0o[0-7]+").fullmatch
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+").fullmatch
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?").fullmatch
_MOST_DIGITS = 400
"""More than any double needs; Python refuses to read very long integers."""


def core(text: str) -> Json:
    """What an unquoted scalar means. Raises OverflowError for a number that no double can hold."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _NUMBER_START:
        return text
    if _INTEGER(text):
        return _integer(text, 10)
    if _FLOAT(text):
        return _float(text)
    if _HEXADECIMAL(text):
        return _integer(text[2:], 16)
    if _OCTAL(text):
        return _integer(text[2:], 8)
    return text


def natural(text: str) -> Json:
    """An integer, float or boolean if the text reads as one, else the text itself; never null."""
    try:
        value = core(text)
    except OverflowError:
        return str(text)
    return str(text) if value is None or isinstance(value, str) else value


def _integer(digits: str, base: int) -> int:
    if len(digits) > _MOST_DIGITS:
        raise OverflowError
    value = int(digits, base)
    float(value)
    return value


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise OverflowError
    return value
