"""Env files: lines `KEY=value`, to variables and back."""

from __future__ import annotations

import re
from collections.abc import Mapping

from octo.values import Json, kind_of, render

_LINE_END = re.compile(r"\r\n|\n|\r")
_EXPORT = re.compile(r"export\s+")
_NO_KEY = re.compile(r"[=#'\"\s]")
_NEEDS_QUOTES = re.compile(r"[\s#'\"\\]")
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_ESCAPED = re.compile(r"\\(.)", re.S)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}


def parse(text: str) -> dict[str, str]:
    """The variables of an env file. Raises ValueError for a line that assigns nothing, without showing it."""
    variables: dict[str, str] = {}
    for number, line in enumerate(_LINE_END.split(text.removeprefix("\ufeff")), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        key, equals, value = line.partition("=")
        key = _EXPORT.sub("", key, count=1).strip() if _EXPORT.match(key) else key.strip()
        if not equals or not key:
            raise ValueError(f"line {number} has {'no name before `=`' if equals else 'no `=`'}")
        variables[key] = _unquoted(value.strip())
    return variables


def _unquoted(value: str) -> str:
    if len(value) < 2 or value[0] != value[-1] or value[0] not in "'\"":
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
