"""The process log on standard error: `key=value` records in a pipe, plain lines on a terminal."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from json.encoder import encode_basestring
from typing import Final

from octo.values import Json, render
from octo_cli.session import Session

LEVELS: Final = {"debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40}
DEFAULT_LEVEL: Final = "info"

_SHOWN: Final = {10: "DEBUG", 20: "INFO", 30: "WARN", 40: "ERROR"}
_COLOURS: Final = {"DEBUG": "bright_black", "INFO": "blue", "WARN": "yellow", "ERROR": "red"}
_TEXTS: Final = {"error", "hint"}
_BARE: Final = re.compile(r"[^\s\"=\\\x00-\x20\x7f-\xa0\u2028\u2029]+")
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def write(session: Session, level: str, text: str, fields: Mapping[str, Json] | None = None) -> None:
    """Write one line to the process log, unless `LOG_LEVEL` hides it. Fields that are None are left out."""
    rank = LEVELS.get(level.lower(), 20)
    if rank < threshold(session):
        return
    shown = _SHOWN[rank]
    given = {name: session.mask(render(value)) for name, value in (fields or {}).items() if value is not None}
    if session.for_people(session.err):
        line = _plain(session, shown, session.mask(text), given)
    else:
        line = record(shown, session.mask(text), given)
    session.tell(line)


@contextmanager
def engine_lines(session: Session) -> Iterator[None]:
    """Take what octo's modules say through `logging` into the process log, for the time of a run."""
    import logging

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            write(session, record.levelname, record.getMessage())

    logger, lines = logging.getLogger("octo"), Lines()
    level, propagate = logger.level, logger.propagate
    logger.addHandler(lines)
    logger.setLevel(threshold(session))
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(lines)
        logger.setLevel(level)
        logger.propagate = propagate


def threshold(session: Session) -> int:
    """The lowest rank that is written. A `LOG_LEVEL` of another kind means the default."""
    return LEVELS.get(session.environ.get("LOG_LEVEL", "").strip().lower(), LEVELS[DEFAULT_LEVEL])


def check_level(session: Session) -> None:
    """Warn of a `LOG_LEVEL` that is none."""
    level = session.environ.get("LOG_LEVEL", "").strip()
    if level and level.lower() not in LEVELS:
        write(session, "warn", f"`LOG_LEVEL` is `{level}`, expected `debug`, `info`, `warn` or `error`; using `info`")


def record(level: str, text: str, fields: dict[str, str]) -> str:
    """One log record: `time=… level=… msg="…"` and the fields; texts, and what needs it, in quotes."""
    parts = [f"time={_now()}", f"level={level}", f"msg={_quoted(text)}"]
    for name, value in fields.items():
        bare = name not in _TEXTS and _BARE.fullmatch(value)
        parts.append(f"{name}={value if bare else _quoted(value)}")
    return " ".join(parts)


def printable(text: str) -> str:
    """The text with its control characters spelt out, so that none of them reaches a terminal."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _plain(session: Session, level: str, text: str, fields: dict[str, str]) -> str:
    label = "warning" if level == "WARN" else level.lower()
    if session.coloured(session.err):
        import typer

        label = typer.style(label, fg=_COLOURS[level])
    told = "".join(f"  {name}={printable(value)}" for name, value in fields.items())
    return f"{label}: {printable(text)}{told}"


def _quoted(text: str) -> str:
    return printable(encode_basestring(text))


def _now() -> str:
    nanoseconds = time.time_ns()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(nanoseconds // 1_000_000_000))
    return f"{stamp}.{nanoseconds // 1_000_000 % 1000:03d}Z"
