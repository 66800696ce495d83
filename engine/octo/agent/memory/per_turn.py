"""What is worked out once for each turn of a conversation that is looked at again and again while it grows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from octo.llm.chat import ChatMessage

T = TypeVar("T")


class PerTurn(Generic[T]):
    """Does some work once for each turn, which it knows again by its identity: a turn never changes."""

    def __init__(self, work: Callable[[ChatMessage], T]) -> None:
        self._work = work
        self._found: dict[int, T] = {}
        self._turns: list[ChatMessage] = []
        """Those turns, which live as long as they stand here; no other one gets the identity of one."""

    def of(self, turns: Sequence[ChatMessage]) -> list[T]:
        """What was worked out for each of the turns."""
        found = self._found
        for turn in turns:
            if id(turn) not in found:
                found[id(turn)] = self._work(turn)
                self._turns.append(turn)
        return [found[id(turn)] for turn in turns]
