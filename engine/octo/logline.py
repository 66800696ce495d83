"""One line of a log, as text or as JSON: time, level, what happened, and fields."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Final

from octo.values import Json, dumps

LEVELS: Final = {"debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40}
"""The words for levels, and their ranks."""

_SHOWN: Final = {10: "DEBUG", 20: "INFO", 30: "WARN", 40: "ERROR"}
_ALWAYS_QUOTED: Final = {"error", "hint"}
_BARE: Final = re.compile(r"[^\s\"=\\\x00-\x20\x7f-\xa0\u2028\u2029]+")
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def rank(level: str) -> int:
    """The rank of a level; that of `info` for a word that is none."""
    return LEVELS.get(level.lower(), LEVELS["info"])


def shown(level: str) -> str:
    """A level as lines show it: `WARN` for `warning`."""
    return _SHOWN[rank(level)]


def as_text(at: int, level: str, text: str, fields: Mapping[str, str]) -> str:
    """`time=… level=… msg="…"` and the fields; texts, and what needs it, in quotes. `at` is in ns since 1970."""
    parts = [f"time={stamp(at)}", f"level={shown(level)}", f"msg={_quoted(text)}"]
    for name, value in fields.items():
        bare = name not in _ALWAYS_QUOTED and _BARE.fullmatch(value)
        parts.append(f"{name}={value if bare else _quoted(value)}")
    return " ".join(parts)


def as_json(at: int, level: str, text: str, fields: Mapping[str, Json]) -> str:
    """`{"time":…,"level":…,"msg":…}` with the fields after them. `at` is in ns since 1970."""
    line = {"time": stamp(at), "level": shown(level), "msg": text, **fields}
    return "{" + ",".join(f"{dumps(name)}:{dumps(value)}" for name, value in line.items()) + "}"


def stamp(at: int) -> str:
    """A point in time, to the millisecond."""
    seconds, rest = divmod(at, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest // 1_000_000:03d}Z"


def printable(text: str) -> str:
    """The text with its control characters spelt out, so that none of them reaches a terminal."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _quoted(text: str) -> str:
    return printable(encode_basestring(text))
