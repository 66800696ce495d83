"""Unified differences in colour; where one line took the place of another, the words that changed stand out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import typer

_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}
_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")
_ALIKE: Final = 0.5
"""So much of two lines must be the same for the rest to stand out."""


def painted(lines: Sequence[str]) -> Iterator[str]:
    """The lines of a difference with colours."""
    at = 0
    while at < len(lines):
        removed, added = _run(lines, at, "-"), 0
        if removed:
            added = _run(lines, at + removed, "+")
        if removed and removed == added:
            pairs = [_pair(lines[at + one], lines[at + removed + one]) for one in range(removed)]
            yield from (old for old, _ in pairs)
            yield from (new for _, new in pairs)
            at += removed + added
        else:
            yield _plain(lines[at])
            at += 1


def _run(lines: Sequence[str], start: int, mark: str) -> int:
    """How many lines from one on begin with a mark."""
    end = start
    while end < len(lines) and lines[end].startswith(mark) and not lines[end].startswith(mark * 3 + " "):
        end += 1
    return end - start


def _plain(line: str) -> str:
    if line.startswith(("--- ", "+++ ")):
        return typer.style(line, bold=True)
    colour = _COLOURS.get(line[:1])
    return typer.style(line, fg=colour) if colour else line


def _pair(old: str, new: str) -> tuple[str, str]:
    """Two lines, of which the second took the place of the first."""
    from difflib import SequenceMatcher

    before, after = _WORDS.findall(old[1:]), _WORDS.findall(new[1:])
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return _plain(old), _plain(new)
    parts: tuple[list[str], list[str]] = ([typer.style("-", fg="red")], [typer.style("+", fg="green")])
    for what, a, b, c, d in matcher.get_opcodes():
        for shown, words, colour in ((parts[0], before[a:b], "red"), (parts[1], after[c:d], "green")):
            if words:
                changed = True if what != "equal" else None
                shown.append(typer.style("".join(words), fg=colour, bold=changed, underline=changed))
    return "".join(parts[0]), "".join(parts[1])
