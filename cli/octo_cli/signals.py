"""Ctrl-C and SIGTERM while a command works: the first ends it in good order, the second at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar, cast

from octo_cli import startup
from octo_cli.session import Session

T = TypeVar("T")

_SHOW_CURSOR = b"\x1b[?25h"
_NUMBERS = (signal.SIGINT, signal.SIGTERM)


def run(session: Session, work: Coroutine[Any, Any, T]) -> T:
    """Run the work of a command to its end. Raises KeyboardInterrupt when a signal ended it."""
    import asyncio  # here, because the help reads every command and needs no event loop

    startup.over(session.environ)
    finished, result = asyncio.run(_until_signal(session, work))
    if not finished:
        raise KeyboardInterrupt
    return cast(T, result)


async def _until_signal(session: Session, work: Coroutine[Any, Any, T]) -> tuple[bool, T | None]:
    import asyncio

    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    came = False

    def stop(*_: object) -> None:
        nonlocal came
        if came:
            if session.for_people(session.err):
                os.write(session.err.fileno(), _SHOW_CURSOR)  # a display that was cut off may have hidden it
            os._exit(startup.INTERRUPTED)
        came = True
        loop.call_soon_threadsafe(task.cancel)

    previous = [signal.signal(number, stop) for number in _NUMBERS]
    try:
        return True, await task
    except asyncio.CancelledError:
        if not came:
            raise
        return False, None
    finally:
        for number, handler in zip(_NUMBERS, previous, strict=True):
            signal.signal(number, handler)
