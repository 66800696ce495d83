"""Files that cannot be written, also for tests that root runs."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

OVERRIDING = (1, 2, 3)
"""The numbers of the capabilities that let root read and write all files, and change those of others."""
DROP_FOR_CHILDREN = 24
VERSION_3 = 0x20080522


def obeying(work: Callable[[], T]) -> T:
    """Do work in a thread that permissions bind, with all processes that it starts."""
    with ThreadPoolExecutor(1, initializer=_obey) as thread:
        return thread.submit(work).result()


def _obey() -> None:
    """On Linux, privileges belong to a thread. Elsewhere tests are not run by root."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in OVERRIDING:
        libc.prctl(DROP_FOR_CHILDREN, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, twice
    libc.capget(header, sets)
    for which in range(3):
        sets[which] &= ~sum(1 << capability for capability in OVERRIDING)
    if libc.capset(header, sets):
        raise OSError(ctypes.get_errno(), "cannot give privileges up")


@contextmanager
def read_only(directory: Path, *, files: bool = True, itself: bool = True) -> Iterator[None]:
    """Take the right to write away from a directory, and from the files in it."""
    changed = [path for path in directory.iterdir() if path.is_file()] if files else []
    changed += [directory] if itself else []
    modes = {path: path.stat().st_mode for path in changed}
    for path, mode in modes.items():
        path.chmod(mode & 0o555)
    try:
        yield
    finally:
        for path, mode in reversed(modes.items()):
            path.chmod(mode)
