"""How many tokens a conversation has: an estimate without a tokenizer, which learns from what providers count."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, assert_never

from octo.llm.chat import ChatMessage, File, Part, Reasoning, Search, Text, ToolCall, ToolResult
from octo.values import Json

_BYTES_PER_TOKEN: Final = 4
_FILE_BYTES_PER_TOKEN: Final = 750
_LEAST, _MOST = 0.5, 4.0
"""Between these is what a token of the estimate can count."""


def weight(turn: ChatMessage) -> int:
    """The size of a turn in quarters of a token; weights can be added up."""
    return sum(map(_weight, turn.parts))


def tokens(weight: int) -> int:
    """The estimate of what has that weight."""
    return weight // _BYTES_PER_TOKEN


def estimate(turns: Iterable[ChatMessage]) -> int:
    """About how many tokens turns have: a quarter of their bytes, files at 750 bytes each."""
    return tokens(sum(map(weight, turns)))


def _weight(part: Part) -> int:
    match part:
        case Text() | ToolResult():
            return _bytes(part.text)
        case Reasoning():
            return _bytes(part.text) + _opaque(part.replay)
        case Search():
            return _bytes(part.query) + _opaque(part.replay)
        case ToolCall():
            return _bytes(part.arguments)
        case File():
            return _BYTES_PER_TOKEN * (len(part.data) // _FILE_BYTES_PER_TOKEN)
        case _:
            assert_never(part)


def _opaque(replay: Json) -> int:
    return 0 if replay is None else len(json.dumps(replay))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class Meter:
    """Predicts what a provider will count, from estimates and from what it counted before."""

    __slots__ = ("_last", "knows", "overhead", "scale")

    def __init__(self, estimate: int = 0, tokens: int = 0) -> None:
        """A stored conversation of so many tokens, if that is known, says what a token of its estimate counts."""
        self.scale = _within_bounds(tokens / estimate) if estimate and tokens else 1.0
        self.knows = bool(estimate and tokens)
        """Whether the scale comes from what a provider counted."""
        self.overhead = 0
        """What a prompt holds beside the conversation: system text and tools. Less than nothing is possible."""
        self._last: tuple[int, int] | None = None
        """The last estimate of what was sent, and what the provider counted."""

    @property
    def has_measured(self) -> bool:
        """Whether a provider has counted a prompt of this run."""
        return self._last is not None

    def learn(self, estimate: int, measured: int) -> None:
        """Take note of what a provider counted in a prompt of that estimate."""
        if self._last is not None and self._last[0] != estimate:
            self.scale = _within_bounds((measured - self._last[1]) / (estimate - self._last[0]))
        self.overhead = measured - self.size(estimate)
        self._last = (estimate, measured)
        self.knows = True

    def predict(self, estimate: int) -> int:
        """What a provider will count in the prompt of a conversation of that estimate."""
        return max(0, self.overhead + self.size(estimate))

    def size(self, estimate: int) -> int:
        """What the conversation alone counts."""
        return round(self.scale * estimate)


def _within_bounds(scale: float) -> float:
    return min(max(scale, _LEAST), _MOST)
