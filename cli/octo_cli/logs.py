"""The process log on standard error: `key=value` records in a pipe, plain lines on a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from octo import logline
from octo.logline import LEVELS, printable
from octo.values import Json, render
from octo_cli.session import Session

_COLOURS: Final = {"DEBUG": "bright_black", "INFO": "blue", "WARN": "yellow", "ERROR": "red"}


def write(session: Session, level: str, text: str, fields: Mapping[str, Json] | None = None) -> None:
    """Write one line to the process log, unless `LOG_LEVEL` hides it. Fields that are None are left out."""
    if logline.rank(level) < threshold(session):
        return
    given = {name: session.mask(render(value)) for name, value in (fields or {}).items() if value is not None}
    if session.for_people(session.err):
        line = _plain(session, logline.shown(level), session.mask(text), given)
    else:
        line = record(level, session.mask(text), given)
    session.tell(line)


@contextmanager
def engine_lines(session: Session) -> Iterator[None]:
    """Take what octo's modules and its server say through `logging` into the process log, for the time of a run.

    The server is heard only when something is wrong.
    """
    import logging

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            write(session, record.levelname, record.getMessage())

    lines = Lines()
    loggers = [logging.getLogger(name) for name in ("octo", "uvicorn")]
    before = [(logger.level, logger.propagate) for logger in loggers]
    for logger, least in zip(loggers, (threshold(session), max(threshold(session), logging.WARNING)), strict=True):
        logger.addHandler(lines)
        logger.setLevel(least)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, (level, propagate) in zip(loggers, before, strict=True):
            logger.removeHandler(lines)
            logger.setLevel(level)
            logger.propagate = propagate


def threshold(session: Session) -> int:
    """The lowest rank that is written. A `LOG_LEVEL` of another kind means the default."""
    return logline.rank(session.environ.get("LOG_LEVEL", "").strip())


def check_level(session: Session) -> None:
    """Warn of a `LOG_LEVEL` that is none."""
    level = session.environ.get("LOG_LEVEL", "").strip()
    if level and level.lower() not in LEVELS:
        write(session, "warn", f"`LOG_LEVEL` is `{level}`, expected `debug`, `info`, `warn` or `error`; using `info`")


def record(level: str, text: str, fields: dict[str, str]) -> str:
    """One log record of this moment."""
    return logline.as_text(time.time_ns(), level, text, fields)


def _plain(session: Session, level: str, text: str, fields: dict[str, str]) -> str:
    label = "warning" if level == "WARN" else level.lower()
    if session.coloured(session.err):
        import typer

        label = typer.style(label, fg=_COLOURS[level])
    told = "".join(f"  {name}={printable(value)}" for name, value in fields.items())
    return f"{label}: {printable(text)}{told}"
