"""Answers that are kept for a while, by the URL that gave them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Cache(Generic[T]):
    """At most so many answers, each for so many nanoseconds of a clock."""

    def __init__(self, entries: int, ttl: int, clock: Callable[[], int]) -> None:
        self._entries = entries
        self._ttl = ttl
        self._clock = clock
        self._kept: dict[str, tuple[int, T]] = {}
        """The end of its time and the answer, the oldest first."""

    def get(self, url: str) -> T | None:
        """The answer that is kept for a URL."""
        end, answer = self._kept.get(url, (0, None))
        return answer if self._clock() < end else None

    def put(self, url: str, answer: T) -> None:
        """Keep an answer; when there is no room the oldest one goes."""
        self._kept.pop(url, None)
        if len(self._kept) >= self._entries:
            del self._kept[next(iter(self._kept))]
        self._kept[url] = (self._clock() + self._ttl, answer)
