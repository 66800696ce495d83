"""Regular expressions, in the syntax of RE2."""

from __future__ import annotations

import re

from octo.cel.functions import Whole, function
from octo.cel.patterns import Match, Pattern, pattern
from octo.cel.values import ABSENT, Failure, Optional, guard_size

_REFERENCE = re.compile(r"\\(.?)", re.S)


@function("matches", ".matches")
def matches(text: str, expression: str) -> bool:
    """Whether the regular expression matches somewhere in the text."""
    return pattern(expression).search(text) is not None


@function("regex.extract")
def extract(text: str, expression: str) -> Optional:
    """The first match, or its one group; absent when nothing matches."""
    found = _with_one_group(expression)
    match = found.search(text)
    part = match and _part(match, found)
    return ABSENT if part is None else Optional(part)


@function("regex.extractAll")
def extract_all(text: str, expression: str) -> list[str]:
    """All matches, or their one group each."""
    found = _with_one_group(expression)
    parts = [_part(match, found) for match in found.all(text)]
    return [part for part in parts if part is not None]


@function("regex.replace")
def replace(text: str, expression: str, replacement: str, limit: Whole = -1) -> str:
    """The text with its matches replaced, all or the first so many; `\\1` stands for the first group."""
    found = pattern(expression)
    pieces = _pieces(replacement, found)
    parts: list[str] = []
    end = size = 0
    for number, match in enumerate(found.all(text)):
        if number == limit:
            break
        new = "".join(piece if isinstance(piece, str) else match[piece] or "" for piece in pieces)
        parts += (text[end : match.start()], new)
        end = match.end()
        size += len(new)
        guard_size(size)
    return "".join(parts) + text[end:]


def _with_one_group(expression: str) -> Pattern:
    found = pattern(expression)
    if found.groups > 1:
        raise Failure(f"pattern `{expression}` has {found.groups} groups, at most one can be extracted")
    return found


def _part(match: Match, found: Pattern) -> str | None:
    part: str | None = match[found.groups]
    return part


def _pieces(replacement: str, found: Pattern) -> list[str | int]:
    """The replacement as texts and numbers of groups."""
    pieces: list[str | int] = []
    end = 0
    for match in _REFERENCE.finditer(replacement):
        pieces.append(replacement[end : match.start()])
        end = match.end()
        if match[1] == "\\":
            pieces.append("\\")
        elif match[1] in tuple("0123456789") and int(match[1]) <= found.groups:
            pieces.append(int(match[1]))
        else:
            raise Failure(f"replacement refers to group `{match[0]}`, pattern has {found.groups}")
    pieces.append(replacement[end:])
    return pieces
