"""Values that may be absent."""

from __future__ import annotations

from octo.cel.functions import function
from octo.cel.values import ABSENT, Duration, Failure, Optional, Timestamp, Value


@function("optional.of")
def of(value: Value) -> Optional:
    """An optional value that is there."""
    return Optional(value)


@function("optional.none")
def none() -> Optional:
    """An optional value that is absent."""
    return ABSENT


@function("optional.ofNonZeroValue")
def of_non_zero_value(value: Value) -> Optional:
    """Absent for null, false, 0 and what is empty, else the value."""
    zero = value.ns == 0 if isinstance(value, Duration | Timestamp) else not value
    return ABSENT if zero else Optional(value)


@function("optional.unwrap", ".unwrapOpt")
def unwrap(values: list[Value]) -> list[Value]:
    """The values that are there of a list of optional values."""
    if any(type(value) is not Optional for value in values):
        raise Failure("`unwrap` needs a list of optional values")
    return [value.value for value in values if value.present]


@function(".hasValue")
def has_value(optional: Optional) -> bool:
    """Whether the value is there."""
    return optional.present


@function(".value")
def value(optional: Optional) -> Value:
    """The value; an error when it is absent."""
    if not optional.present:
        raise Failure("optional value is absent")
    return optional.value


@function(".or")
def or_(optional: Optional, other: Optional) -> Optional:
    """This optional value if it is there, else the other."""
    return optional if optional.present else other


@function(".orValue")
def or_value(optional: Optional, default: Value) -> Value:
    """The value, or the default when it is absent."""
    return optional.value if optional.present else default


@function(".first")
def first(values: list[Value]) -> Optional:
    """The first element, absent for an empty list."""
    return Optional(values[0]) if values else ABSENT


@function(".last")
def last(values: list[Value]) -> Optional:
    """The last element, absent for an empty list."""
    return Optional(values[-1]) if values else ABSENT
