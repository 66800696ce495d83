"""Reasoning that a model writes at the beginning of its text, between `<think>` and `</think>`."""

from __future__ import annotations

from typing import Final, Literal

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"


class Thoughts:
    """Tells reasoning from text, while both come in fragments."""

    def __init__(self) -> None:
        self._place: Literal["before", "opened", "inside", "closed", "text"] = "before"
        self._held = ""
        """The end of what came, of which the next fragment decides."""

    def feed(self, fragment: str) -> tuple[str, str]:
        """Reasoning and text of the next fragment."""
        if self._place == "text":
            return "", fragment
        thought, rest, self._held = "", self._held + fragment, ""
        if self._place == "before":
            start = rest.lstrip()
            if start != _OPEN and _OPEN.startswith(start):
                self._held = rest
                return "", ""
            if not start.startswith(_OPEN):
                self._place = "text"
                return "", rest
            self._place, rest = "opened", start.removeprefix(_OPEN)
        if self._place == "opened":
            rest = rest.lstrip()
            self._place = "inside" if rest else "opened"
        if self._place == "inside":
            thought, mark, rest = rest.partition(_CLOSE)
            if not mark:
                self._held = _begun(thought)
                return thought.removesuffix(self._held), ""
            self._place = "closed"
        if self._place == "closed":
            rest = rest.lstrip()
            self._place = "text" if rest else "closed"
        return thought, rest

    def finish(self) -> tuple[str, str]:
        """What was held back, as no more comes."""
        held, self._held = self._held, ""
        return (held, "") if self._place == "inside" else ("", held)


def _begun(text: str) -> str:
    """The end of a text that may be the beginning of the closing mark."""
    return next((_CLOSE[:size] for size in range(len(_CLOSE) - 1, 0, -1) if text.endswith(_CLOSE[:size])), "")
