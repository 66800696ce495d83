"""Values that nobody changes, where there are many kinds of them on the way of every start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(kind: type[T]) -> type[T]:
    """Makes a dataclass with slots that is frozen to the type checker.

    It is not frozen in a run, where that would double the time that it takes to make the class, and each value of it.
    """
    return dataclass(slots=True)(kind)
