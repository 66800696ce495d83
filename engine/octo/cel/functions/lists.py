"""Lists."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key

from octo.cel.functions import Whole, function
from octo.cel.operators import less
from octo.cel.values import Failure, Value, equal, guard_steps, kind_of


@function("lists.range")
def range_(count: Whole) -> list[Value]:
    """The numbers from 0 up to, not including, a count."""
    guard_steps(count)
    return list(range(count))


@function(".slice")
def slice_(values: list[Value], start: Whole, end: Whole) -> list[Value]:
    """The elements from a position up to, not including, another."""
    if not 0 <= start <= end <= len(values):
        raise Failure(f"index out of range: {start} to {end} of {len(values)} elements")
    return values[start:end]


@function(".flatten")
def flatten(values: list[Value], depth: Whole = 1) -> list[Value]:
    """The list with the elements of its lists in their place, down to a depth; 1 if not given."""
    if depth < 0:
        raise Failure(f"depth of `flatten` must not be negative, got {depth}")
    flat = values
    for _ in range(depth):
        if not any(type(value) is list for value in flat):
            break
        flat = _flatter(flat)
    return flat


def _flatter(values: list[Value]) -> list[Value]:
    flat: list[Value] = []
    for value in values:
        if type(value) is list:
            flat += value
        else:
            flat.append(value)
        guard_steps(len(flat))
    return flat


@function(".sort")
def sort(values: list[Value]) -> list[Value]:
    """The elements in ascending order; they are numbers, or all of one other kind."""
    return sort_by([(value, value) for value in values])


def sort_by(pairs: Sequence[tuple[Value, Value]]) -> list[Value]:
    """The second of each pair, in the order of the first."""
    if not pairs:
        return []
    first, _ = pairs[0]
    for key, _ in pairs:
        _refuse_incomparable(first, key)
    return [value for _, value in sorted(pairs, key=cmp_to_key(_compare_first))]


def _compare_first(left: tuple[Value, Value], right: tuple[Value, Value]) -> int:
    return -1 if left[0] < right[0] else int(right[0] < left[0])


def _refuse_incomparable(first: Value, key: Value) -> None:
    try:
        less(first, key)
    except Failure:
        kinds = f"{kind_of(first).name} and {kind_of(key).name}"
        raise Failure(f"values of kinds {kinds} cannot be sorted") from None


@function(".distinct")
def distinct(values: list[Value]) -> list[Value]:
    """The elements without repetitions, in the order of their first occurrence."""
    found: list[Value] = []
    seen: set[tuple[str, Value]] = set()
    others: list[Value] = []
    for value in values:
        key = _scalar_key(value)
        if key is None:
            if any(equal(value, other) for other in others):
                continue
            others.append(value)
            guard_steps(len(others) ** 2 >> 4)
        elif key in seen:
            continue
        else:
            seen.add(key)
        found.append(value)
    return found


def _scalar_key(value: Value) -> tuple[str, Value] | None:
    """What equal scalars share; None for values that have to be compared one by one."""
    kind = type(value)
    if kind is str or kind is bool or kind is bytes:
        return kind.__name__, value
    return ("number", value) if isinstance(value, int | float) and value == value else None


@function(".reverse")
def reverse(values: list[Value]) -> list[Value]:
    """The elements from last to first."""
    return values[::-1]
