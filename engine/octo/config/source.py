"""The text of a file, with its lines and columns."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

from octo.errors import Location, Problem


class SourceText:
    """A file's text, and lines and columns in it. Both count characters, as editors do."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer(r"\r\n?|\n", self.text))]

    def location(self, index: int) -> Location:
        line = bisect_right(self._line_starts, index)
        return Location(self.file, line, index - self._line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of a line, without its line break; empty beyond the end."""
        starts = self._line_starts
        if number > len(starts):
            return ""
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n")

    def columns(self, start: int, end: int) -> int:
        """How many columns of its first line a piece of the text covers; at least one."""
        place = self.location(start)
        rest = len(self.line(place.line).rstrip()) - place.column + 1
        return max(1, min(end - start, rest))

    def problem(self, message: str, start: int, end: int | None = None, hint: str | None = None) -> Problem:
        length = 1 if end is None else self.columns(start, end)
        return Problem(message, self.location(start), hint, length=length)
