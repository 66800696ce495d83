"""Numbers."""

from __future__ import annotations

import math

from octo.cel.functions import Number, Whole, function
from octo.cel.values import INT_MIN, UINT_MAX, Failure, UInt, Value, kind_of


@function("math.greatest")
def greatest(first: Number | list[Value], *rest: Number) -> Number:
    """The largest of the arguments, or of one list."""
    return max(_numbers("greatest", first, rest))


@function("math.least")
def least(first: Number | list[Value], *rest: Number) -> Number:
    """The smallest of the arguments, or of one list."""
    return min(_numbers("least", first, rest))


def _numbers(name: str, first: Value, rest: tuple[Value, ...]) -> list[Number]:
    if isinstance(first, list) and rest:
        raise Failure(f"`math.{name}` takes numbers or one list")
    numbers = first if isinstance(first, list) else [first, *rest]
    if not numbers:
        raise Failure(f"`math.{name}` needs at least one number")
    for number in numbers:
        if not isinstance(number, int | float) or isinstance(number, bool):
            raise Failure(f"`math.{name}` needs numbers, got {kind_of(number).name}")
    return numbers


@function("math.ceil")
def ceil(number: float) -> float:
    """The next whole number, upwards."""
    return math.copysign(math.ceil(number), number) if math.isfinite(number) else number


@function("math.floor")
def floor(number: float) -> float:
    """The next whole number, downwards."""
    return math.copysign(math.floor(number), number) if math.isfinite(number) else number


@function("math.round")
def round_(number: float) -> float:
    """The nearest whole number; a half goes away from zero."""
    if not math.isfinite(number) or number.is_integer():
        return number
    whole = math.trunc(number)
    return math.copysign(abs(whole) + (abs(number - whole) >= 0.5), number)


@function("math.trunc")
def trunc(number: float) -> float:
    """The number without its fraction."""
    return math.copysign(math.trunc(number), number) if math.isfinite(number) else number


@function("math.abs")
def abs_(number: Number) -> Number:
    """The number without its sign."""
    if number == INT_MIN and type(number) is int:
        raise Failure("integer overflow")
    return type(number)(abs(number))


@function("math.sign")
def sign(number: Number) -> Number:
    """-1, 0 or 1."""
    return number if number != number else type(number)((number > 0) - (number < 0))


@function("math.sqrt")
def sqrt(number: Number) -> float:
    """The square root; NaN of a negative number."""
    return math.sqrt(number) if number >= 0 else math.nan


@function("math.isNaN")
def is_nan(number: float) -> bool:
    """Whether the value is not a number."""
    return math.isnan(number)


@function("math.isInf")
def is_inf(number: float) -> bool:
    """Whether the number is infinite."""
    return math.isinf(number)


@function("math.isFinite")
def is_finite(number: float) -> bool:
    """Whether the number is neither infinite nor NaN."""
    return math.isfinite(number)


@function("math.bitAnd")
def bit_and(left: Whole | UInt, right: Whole | UInt) -> Number:
    """The bits that both numbers have."""
    return _bits(left, right, int(left) & int(right))


@function("math.bitOr")
def bit_or(left: Whole | UInt, right: Whole | UInt) -> Number:
    """The bits that one of the numbers has."""
    return _bits(left, right, int(left) | int(right))


@function("math.bitXor")
def bit_xor(left: Whole | UInt, right: Whole | UInt) -> Number:
    """The bits that exactly one of the numbers has."""
    return _bits(left, right, int(left) ^ int(right))


@function("math.bitNot")
def bit_not(number: Whole | UInt) -> Number:
    """All bits turned."""
    return _bits(number, number, ~int(number))


@function("math.bitShiftLeft")
def bit_shift_left(number: Whole | UInt, places: Whole) -> Number:
    """The bits moved towards the higher end."""
    return _bits(number, number, int(number) << _places(places))


@function("math.bitShiftRight")
def bit_shift_right(number: Whole | UInt, places: Whole) -> Number:
    """The bits moved towards the lower end; zeros follow, whatever the sign."""
    return _bits(number, number, (int(number) & UINT_MAX) >> _places(places))


def _places(places: int) -> int:
    if places < 0:
        raise Failure(f"bits cannot be moved by {places}")
    return min(places, 64)


def _bits(left: int | UInt, right: int | UInt, bits: int) -> int | UInt:
    """64 bits as a number of the kind of the operands."""
    if type(left) is not type(right):
        raise Failure(f"bits of {kind_of(left).name} and {kind_of(right).name} cannot be joined")
    bits &= UINT_MAX
    if isinstance(left, UInt):
        return UInt(bits)
    return bits - (1 << 64) if bits >> 63 else bits
