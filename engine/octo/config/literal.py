"""Secrets that are written out where only a reference to them should stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from octo.values import Json

_SHAPES: Final = re.compile(
    r"\bsk-[A-Za-z0-9_-]{17,}|\bAKIA[0-9A-Z]{16,}|\bAIza[0-9A-Za-z_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{16,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{15,}|\beyJ[A-Za-z0-9_-]{5,}\.eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*"
)
"""What keys of well-known providers look like."""


def is_secret(text: str) -> bool:
    """Whether a text looks like a key, or holds one."""
    return _SHAPES.search(text) is not None


def secrets(value: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where texts stand that look like a key or a password."""
    match value:
        case str() if is_secret(value):
            yield path
        case dict():
            for key, item in value.items():
                yield from secrets(item, (*path, key))
        case list():
            for index, item in enumerate(value):
                yield from secrets(item, (*path, index))
