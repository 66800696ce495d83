"""Env files: lines `KEY=value`, to variables and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from octo.values import Json, kind_of, render

_LINE_END = re.compile(r"\r\n|\n|\r")
_EXPORT = re.compile(r"export\s+")
_NO_KEY = re.compile(r"[=#'\"\s]")
_NEEDS_QUOTES = re.compile(r"[\s#'\"\\]")
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_ESCAPED = re.compile(r"\\(.)", re.S)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}

HINT: Final = "write `KEY=VALUE`, or `#` before a comment"


class Fault(ValueError):
    """What is wrong with a line of an env file, whose text is not told: it may be a secret."""

    def __init__(self, line: int, what: str, hint: str = HINT) -> None:
        super().__init__(f"line {line} {what}")
        self.hint = hint
        self.line = line
        self.what = what
        """What is wrong, as said of the line."""


def parse(text: str) -> dict[str, str]:
    """The variables of an env file. Raises Fault for a line that assigns nothing."""
    variables: dict[str, str] = {}
    opening = 0
    for number, line in enumerate(_LINE_END.split(text.removeprefix("\ufeff")), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        key, equals, value = line.partition("=")
        key = _EXPORT.sub("", key, count=1).strip() if _EXPORT.match(key) else key.strip()
        if not equals or not key:
            what = "has no name before `=`" if equals else "has no `=`"
            if opening:
                what += f"; the quote in line {opening} is not closed there, and a value stands on one line"
            raise Fault(number, what)
        value = value.strip()
        variables[key] = _unquoted(value)
        opening = number if value[:1] in ("'", '"') and not _is_quoted(value) else 0
    return variables


def _is_quoted(value: str) -> bool:
    return len(value) > 1 and value[0] == value[-1] and value[0] in "'\""


def _unquoted(value: str) -> str:
    if not _is_quoted(value):
        return value
    inner = value[1:-1]
    if value[0] == "'":
        return inner
    return _ESCAPED.sub(lambda match: _CONTROLS.get(match[1], match[1]), inner)


def dump(variables: Mapping[str, Json]) -> str:
    """The variables as lines, sorted by name; values are quoted only where they must be.

    Raises ValueError for a name or a value that cannot stand there.
    """
    return "\n".join(f"{_key(key)}={_value(key, variables[key])}" for key in sorted(variables))


def _key(key: str) -> str:
    if not key:
        raise ValueError("the name of an environment variable is empty")
    if _NO_KEY.search(key):
        raise ValueError(f"`{key}` is no name of an environment variable")
    return key


def _value(key: str, value: Json) -> str:
    if isinstance(value, list | dict):
        raise ValueError(f"value of `{key}` is {kind_of(value)}, an environment variable holds text")
    text = "" if value is None else render(value)
    return f'"{text.translate(_ESCAPES)}"' if not text or _NEEDS_QUOTES.search(text) else text
