"""Asking the person at the terminal before something is done that cannot be undone."""

from __future__ import annotations

import sys

from octo.errors import UsageError
from octo.logline import printable
from octo_cli.session import Session


def agreed(session: Session, question: str) -> bool:
    """What the person at the terminal says. Raises UsageError when there is none."""
    if not (session.for_people(session.err) and sys.stdin is not None and sys.stdin.isatty()):
        raise UsageError(f"{question.rstrip('?')}: nobody is there to be asked", hint="`--yes` does it without asking")
    session.tell(printable(session.masked(f"{question} [y/N] ")), end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
