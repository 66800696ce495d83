"""octo/cel/functions/math.py: numbers."""

import math

import pytest

from octo.cel import compile as compile_expression
from octo.cel.values import UInt
from octo.errors import ExpressionError


def evaluate(source):
    return compile_expression(source, ["body"]).evaluate({"body": {"n": 2.5, "list": [3.0, 1.0]}})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("math.greatest(1, 2.5, 2u)", 2.5),
        ("math.least(body.list)", 1.0),
        ("math.least(-1)", -1),
        ("math.ceil(1.2)", 2.0),
        ("math.floor(-1.2)", -2.0),
        ("1.0 / math.ceil(-0.2)", -math.inf),
        ("math.round(body.n)", 3.0),
        ("math.round(-0.5)", -1.0),
        ("math.round(0.49999999999999994)", 0.0),
        ("math.trunc(-1.9)", -1.0),
        ("math.abs(-3)", 3),
        ("math.sign(-2.5)", -1.0),
        ("math.sign(3u)", UInt(1)),
        ("math.sqrt(16)", 4.0),
        ("math.isNaN(math.sqrt(-1))", True),
        ("math.isInf(1.0 / 0.0) && math.isFinite(1.0)", True),
        ("math.bitAnd(6, 3)", 2),
        ("math.bitAnd(dyn(6.0), 3)", 2),
        ("math.bitOr(6u, 3u)", UInt(7)),
        ("math.bitXor(6, 3)", 5),
        ("math.bitNot(0)", -1),
        ("math.bitShiftLeft(1, 63)", -9223372036854775808),
        ("math.bitShiftRight(-1, 60)", 15),
        ("math.bitShiftRight(1u, 70)", UInt(0)),
    ],
)
def test_a_function_of_numbers_has_its_value(source, expected):
    value = evaluate(source)

    assert (type(value), value) == (type(expected), expected)


def test_infinite_numbers_are_not_rounded():
    assert evaluate("[math.ceil(1.0/0.0), math.floor(1.0/0.0), math.round(1.0/0.0), math.trunc(1.0/0.0)]") == (
        [math.inf] * 4
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("math.abs(-9223372036854775808)", "integer overflow"),
        ("math.least([])", "`math.least` needs at least one number"),
        ("math.greatest([1, 'a'])", "`math.greatest` needs numbers, got string"),
        ("math.greatest([1], 2)", "`math.greatest` takes numbers or one list"),
        ("math.bitAnd(1, 1u)", "bits of int and uint cannot be joined"),
        ("math.bitShiftLeft(1, -1)", "bits cannot be moved by -1"),
    ],
)
def test_a_wrong_number_is_refused(source, message):
    with pytest.raises(ExpressionError) as caught:
        evaluate(source)

    assert caught.value.message == message
