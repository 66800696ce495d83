"""What the operators do with two values. A failure carries no place: the compiled expression adds it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping

from octo.cel.values import (
    ABSENT,
    INT_MAX,
    INT_MIN,
    NUMBERS,
    UINT_MAX,
    Duration,
    Failure,
    Optional,
    Timestamp,
    UInt,
    Value,
    equal,
    kind_of,
    map_key,
    plain,
    text_of,
)
from octo.errors import shortened

_ORDERED = frozenset({str, bytes, bool, Duration, Timestamp}) | NUMBERS


def add(left: Value, right: Value) -> Value:
    kind = type(left)
    other = type(right)
    if kind is other:
        if kind is str or kind is float or kind is list or kind is bytes:
            return left + right
        if kind is int:
            return _int(left + right)
        if kind is UInt:
            return _uint(int(left) + int(right))
        if kind is Duration:
            return Duration(left.ns + right.ns)
    elif kind in NUMBERS and other in NUMBERS:
        return float(left) + float(right)
    elif kind is Timestamp and other is Duration:
        return Timestamp(left.ns + right.ns, left.offset)
    elif kind is Duration and other is Timestamp:
        return Timestamp(left.ns + right.ns, right.offset)
    return _retry(add, "+", left, right)


def subtract(left: Value, right: Value) -> Value:
    kind = type(left)
    other = type(right)
    if kind is other:
        if kind is float:
            return left - right
        if kind is int:
            return _int(left - right)
        if kind is UInt:
            return _uint(int(left) - int(right))
        if kind is Duration:
            return Duration(left.ns - right.ns)
        if kind is Timestamp:
            difference = left.ns - right.ns
            if not INT_MIN <= difference <= INT_MAX:
                raise Failure("duration out of range")
            return Duration(difference)
    elif kind in NUMBERS and other in NUMBERS:
        return float(left) - float(right)
    elif kind is Timestamp and other is Duration:
        return Timestamp(left.ns - right.ns, left.offset)
    return _retry(subtract, "-", left, right)


def multiply(left: Value, right: Value) -> Value:
    kind = type(left)
    other = type(right)
    if kind is other:
        if kind is float:
            return left * right
        if kind is int:
            return _int(left * right)
        if kind is UInt:
            return _uint(int(left) * int(right))
    elif kind in NUMBERS and other in NUMBERS:
        return float(left) * float(right)
    return _retry(multiply, "*", left, right)


def divide(left: Value, right: Value) -> Value:
    kind = type(left)
    other = type(right)
    if kind is other and (kind is int or kind is UInt):
        if right == 0:
            raise Failure("division by zero")
        quotient = abs(left) // abs(right)
        return _uint(quotient) if kind is UInt else _int(quotient if (left < 0) == (right < 0) else -quotient)
    if kind in NUMBERS and other in NUMBERS:
        return _divide_doubles(float(left), float(right))
    return _retry(divide, "/", left, right)


def _divide_doubles(left: float, right: float) -> float:
    if right:
        return left / right
    if left == 0 or left != left or right != right:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def modulo(left: Value, right: Value) -> Value:
    kind = type(left)
    other = type(right)
    if kind in NUMBERS and other in NUMBERS:
        if right == 0:
            raise Failure("modulus by zero")
        if kind is not other or kind is float:
            return _modulo_doubles(float(left), float(right))
        if left == INT_MIN and right == -1:
            raise Failure("integer overflow")
        rest = abs(left) % abs(right)
        return kind(-rest if left < 0 else rest)
    return _retry(modulo, "%", left, right)


def _modulo_doubles(left: float, right: float) -> float:
    for number in (left, right):
        if not number.is_integer():
            raise Failure("modulus of a number with a fraction")
    return math.fmod(left, right)


def _int(number: int) -> int:
    if INT_MIN <= number <= INT_MAX:
        return number
    raise Failure("integer overflow")


def _uint(number: int) -> UInt:
    if 0 <= number <= UINT_MAX:
        return UInt(number)
    raise Failure("unsigned integer overflow")


def _comparison(sign: str, compare: Callable[[Value, Value], bool]) -> Callable[[Value, Value], bool]:
    """An order of values of one kind. Numbers of two kinds are compared as doubles, if one of them is one."""

    def compared(left: Value, right: Value) -> bool:
        kind = type(left)
        other = type(right)
        if kind is other:
            if kind in _ORDERED:
                return compare(left, right)
        elif kind in NUMBERS and other in NUMBERS:
            if kind is float or other is float:
                return compare(float(left), float(right))
            return compare(left, right)
        return bool(_retry(compared, sign, left, right))

    return compared


less = _comparison("<", operator.lt)
less_or_equal = _comparison("<=", operator.le)
greater = _comparison(">", operator.gt)
greater_or_equal = _comparison(">=", operator.ge)


def not_equal(left: Value, right: Value) -> bool:
    return not equal(left, right)


def is_in(element: Value, container: Value) -> bool:
    """Whether a list has the element, or a map the key."""
    kind = type(container)
    if kind is list:
        if type(element) is str:
            return element in container
        if type(element) in NUMBERS:
            return _has_number(container, element)
        return any(equal(element, item) for item in container)
    if isinstance(container, Mapping):
        return find(container, element) is not ABSENT
    return bool(_retry(is_in, "in", element, container))


def _has_number(numbers: list[Value], number: Value) -> bool:
    """`in` of Python is fast, but finds a NaN by identity, and `true` for 1."""
    if number != number or number not in numbers:
        return False
    return any(item == number and type(item) is not bool for item in numbers)


def negate(value: Value) -> Value:
    if type(value) is float:
        return -value
    if type(value) is int:
        return _int(-value)
    raise no_overload(f"-{kind_of(value).name}")


def find(mapping: Mapping[Value, Value], key: Value) -> Value:
    """The value under a key, or ABSENT."""
    if type(key) is float and key != key:
        return ABSENT
    return mapping.get(map_key(key), ABSENT)


def select(operand: Value, field: str) -> Value:
    """`operand.field`. A value that is no map has no fields."""
    if isinstance(operand, Mapping):
        try:
            return operand[field]
        except KeyError:
            raise Failure(f"no such key: {field}") from None
    if type(operand) is Optional:
        if not operand.present:
            return operand
        if isinstance(operand.value, Mapping):
            return select_optional(operand.value, field)
    raise Failure(f"no such key: {field}")


def select_optional(operand: Value, field: str) -> Optional:
    """`operand.?field`: absent also when the operand is no map."""
    if type(operand) is Optional:
        operand = operand.value
    if isinstance(operand, Mapping) and field in operand:
        return Optional(operand[field])
    return ABSENT


def has(operand: Value, field: str) -> bool:
    """`has(operand.field)`: whether the field is there, whatever its value."""
    if type(operand) is Optional:
        operand = operand.value
    return isinstance(operand, Mapping) and field in operand


def index(operand: Value, key: Value) -> Value:
    """`operand[key]`."""
    if isinstance(operand, Mapping):
        value = find(operand, key)
        if value is ABSENT:
            written = f'"{_shown(key)}"' if isinstance(key, str) else _shown(key)
            hint = f"`[?{written}].orValue(…)` reads it if it is there, or something else"
            raise Failure(f"no such key: {_shown(key)}", hint=hint)
        return value
    if type(operand) is list:
        place = _place(operand, key)
        if 0 <= place < len(operand):
            return operand[place]
        raise Failure(f"index out of bounds: {place}")
    if type(operand) is Optional:
        return index_optional(operand, key) if operand.present else operand
    if isinstance(operand, tuple):
        return index(list(operand), key)
    if operand is None and isinstance(key, str):
        raise Failure(f"no such key: {_shown(key)}")
    raise no_overload(f"{kind_of(operand).name}[{kind_of(key).name}]")


def index_optional(operand: Value, key: Value) -> Optional:
    """`operand[?key]`: absent also when the operand is null or absent."""
    if type(operand) is Optional:
        operand = operand.value
    if operand is None:
        return ABSENT
    if isinstance(operand, Mapping):
        value = find(operand, key)
        return ABSENT if value is ABSENT else Optional(value)
    if type(operand) is list:
        place = _place(operand, key)
        return Optional(operand[place]) if 0 <= place < len(operand) else ABSENT
    if isinstance(operand, tuple):
        return index_optional(list(operand), key)
    raise no_overload(f"{kind_of(operand).name}[?{kind_of(key).name}]")


def _place(elements: list[Value], key: Value) -> int:
    if type(key) in NUMBERS and key == key and key not in (math.inf, -math.inf) and int(key) == key:
        return int(key)
    raise no_overload(f"list[{kind_of(key).name}]" if type(key) is not float else f"list[{_shown(key)}]")


def _shown(key: Value) -> str:
    return shortened(text_of(key) or "")


def no_overload(form: str) -> Failure:
    return Failure(f"no such overload: {form}")


def _retry(operate: Callable[[Value, Value], Value], sign: str, left: Value, right: Value) -> Value:
    """Once more with the exact types, if the activation held others; otherwise no rule joins the two kinds."""
    exact = plain(left), plain(right)
    if exact[0] is not left or exact[1] is not right:
        return operate(*exact)
    raise no_overload(f"{kind_of(left).name} {sign} {kind_of(right).name}")


BINARY: Mapping[str, Callable[[Value, Value], Value]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": modulo,
    "==": equal,
    "!=": not_equal,
    "<": less,
    "<=": less_or_equal,
    ">": greater,
    ">=": greater_or_equal,
    "in": is_in,
}
