"""What one evaluation works with: the activation, the variables of comprehensions, and what is left to spend."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from octo.cel.values import SIZE_MAX, STEPS_MAX, Exceeded, Value


class Frame:
    """The state of one evaluation. A program has none of its own, so threads and tasks may share it."""

    __slots__ = ("activation", "places", "size", "steps")

    def __init__(self, activation: Mapping[str, object], places: int) -> None:
        self.activation = activation
        self.places: list[Value] = [None] * places
        self.steps = STEPS_MAX
        self.size = SIZE_MAX

    def step(self, count: int) -> None:
        """Pay for passing that many elements."""
        self.steps -= count
        if self.steps < 0:
            raise Exceeded(f"evaluation exceeds its budget of {STEPS_MAX} steps")

    def grow(self, value: Value) -> None:
        """Pay for a text, bytes or list that was made."""
        if type(value) is list:
            self.step(len(value))
            return
        self.size -= len(value)
        if self.size < 0:
            raise Exceeded("evaluation exceeds its budget of 64 MB")


Step: TypeAlias = Callable[[Frame], Value]
"""A compiled node."""
