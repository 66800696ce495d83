"""Waits until a file changes. Only files that matter are looked at, never a whole tree."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeAlias

State: TypeAlias = dict[Path, object]
"""What sets a file apart from what it was before, for each one; None for one that is not there."""

INTERVAL: Final = 0.1
"""Seconds between two looks."""
QUIET: Final = 0.2
"""Seconds without a change after which changes are over: an editor, or a checkout, makes several."""
_YAML: Final = (".yaml", ".yml")


def state(config: Path, others: Iterable[Path]) -> State:
    """The config, a file or a directory of files, and other files, as they are now."""
    files = {config, *others}
    found: State = {}
    if config.is_dir():
        inside = frozenset(file for file in _inside(config) if file.suffix.lower() in _YAML)
        found[config] = inside
        files = (files - {config}) | inside
    return found | {file: _sign(file) for file in files}


async def until_changed(look: Callable[[], State], seen: State) -> None:
    """Wait until what is looked at is not what was seen, and does not change any more.

    A file that was not looked at before is taken as it is.
    """
    now = look()
    while not _differs(now, seen):
        await asyncio.sleep(INTERVAL)
        now = look()
    last: State = {}
    while now != last:
        last = now
        await asyncio.sleep(QUIET)
        now = look()


def add(now: State, seen: State) -> None:
    """Add to what was seen the files that were not looked at before."""
    for path, sign in now.items():
        seen.setdefault(path, sign)


def _differs(now: State, seen: State) -> bool:
    add(now, seen)
    return any(seen[path] != sign for path, sign in now.items())


def _inside(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:  # it may be gone for a moment
        return []


def _sign(file: Path) -> object:
    try:
        facts = file.stat()
    except (OSError, ValueError):
        return None
    return facts.st_mtime_ns, facts.st_size, facts.st_ino
