"""Lists as sets: order and repetition do not count."""

from __future__ import annotations

from octo.cel.functions import function
from octo.cel.operators import is_in
from octo.cel.values import Value, guard_steps


@function("sets.contains")
def contains(values: list[Value], part: list[Value]) -> bool:
    """Whether the first list has every element of the second."""
    return _has_all(values, part)


@function("sets.equivalent")
def equivalent(left: list[Value], right: list[Value]) -> bool:
    """Whether each list has every element of the other."""
    return _has_all(left, right) and _has_all(right, left)


@function("sets.intersects")
def intersects(left: list[Value], right: list[Value]) -> bool:
    """Whether the lists have an element in common."""
    guard_steps(len(left) * len(right) >> 4)
    return any(is_in(value, right) for value in left)


def _has_all(values: list[Value], part: list[Value]) -> bool:
    guard_steps(len(values) * len(part) >> 4)
    return all(is_in(value, values) for value in part)
