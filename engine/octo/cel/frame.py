"""What one evaluation works with: the activation, the variables of comprehensions, and what is left to spend."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from octo.cel.values import SIZE_MAX, STEPS_MAX, Exceeded, Value
from octo.errors import OctoError

SURROUNDINGS: Final = "surroundings of an evaluation"
"""Where an activation holds its Surroundings, if any; no expression can name it."""
_PAYER: Final = "evaluation that pays"


def _no_template(name: str, scope: Mapping[str, object]) -> str:
    raise OctoError(f'load template "{name}": resource: not found')


class Surroundings(NamedTuple):
    """What functions reach beyond their arguments."""

    random: Callable[[int], bytes] = os.urandom
    """So many random bytes."""

    template: Callable[[str, Mapping[str, object]], str] = _no_template
    """The text of a template with the values of a scope in it; raises OctoError."""


class Frame:
    """The state of one evaluation. A program has none of its own, so threads and tasks may share it."""

    __slots__ = ("activation", "payer", "places", "size", "steps")

    def __init__(self, activation: Mapping[str, Any], places: int) -> None:
        self.activation = activation
        self.places: list[Value] = [None] * places
        self.payer: Frame | None = activation.get(_PAYER)
        """The evaluation that this one is part of, whose budget it spends."""
        self.steps = STEPS_MAX
        self.size = SIZE_MAX

    def step(self, count: int) -> None:
        """Pay for passing that many elements."""
        payer = self.payer or self
        payer.steps -= count
        if payer.steps < 0:
            raise Exceeded(f"evaluation exceeds its budget of {STEPS_MAX} steps")

    def grow(self, value: Value) -> None:
        """Pay for a text, bytes or list that was made."""
        if type(value) is list:
            self.step(len(value))
            return
        self.spend(len(value))

    def spend(self, size: int) -> None:
        """Pay for that many characters or bytes."""
        payer = self.payer or self
        payer.size -= size
        if payer.size < 0:
            raise _too_large()

    def foresee(self, size: int) -> None:
        """Refuse what would be larger than what is left."""
        if size > self.left:
            raise _too_large()

    @property
    def left(self) -> int:
        """How many characters or bytes may still be made."""
        return (self.payer or self).size

    @property
    def surroundings(self) -> Surroundings:
        found: Surroundings = self.activation.get(SURROUNDINGS, _NOTHING_AROUND)
        return found

    def inner(self) -> dict[str, Any]:
        """An activation with the same variables, for evaluations that are part of this one."""
        return {**self.activation, _PAYER: self.payer or self}


def _too_large() -> Exceeded:
    return Exceeded("evaluation exceeds its budget of 64 MB")


_NOTHING_AROUND: Final = Surroundings()

Step: TypeAlias = Callable[[Frame], Value]
"""A compiled node."""
