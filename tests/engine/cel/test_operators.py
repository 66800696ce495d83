"""octo/cel/operators.py: arithmetic, comparison, containment, selection."""

import math

import pytest

from octo.cel import compile as compile_expression
from octo.cel.values import UInt
from octo.errors import ExpressionError

BODY = {"n": 3.0, "half": 0.5, "s": "text", "none": None, "list": [1.0, "a", True], "i": 1.0, "map": {"k": 1.0}}


def evaluate(source):
    return compile_expression(source, ["body"]).evaluate({"body": BODY})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("5 / 2", 2),
        ("-5 / 2", -2),
        ("5 % -3", 2),
        ("-5 % 3", -2),
        ("5u / 2u", UInt(2)),
        ("7u % 4u", UInt(3)),
        ("body.n + 1", 4.0),
        ("body.n * 2.0", 6.0),
        ("body.n / 2", 1.5),
        ("body.n % 2", 1.0),
        ("1 + 2u", 3.0),
        ("1 - 0.5", 0.5),
        ("2 * 3u", 6.0),
        ("1.0 / 0.0", math.inf),
        ("-1 / 0.0", -math.inf),
        ("-body.n", -3.0),
        ("'a' + 'b'", "ab"),
        ("b'a' + b'b'", b"ab"),
        ("[1] + [2.0]", [1, 2.0]),
    ],
)
def test_arithmetic_stays_in_its_kind_or_yields_a_double(source, expected):
    value = evaluate(source)

    assert (type(value), value) == (type(expected), expected)


@pytest.mark.parametrize(
    "source",
    [
        "1 == 1.0 && 1u == 1 && body.n == 3",
        "body.n != 4 && body.s != 3 && !(body.none == 0)",
        "1 < 1.5 && 2u > 1 && 1.0 <= 1 && 3 >= 2u",
        "'a' < 'b' && false < true && b'a' < b'b'",
        "[1, [2.0]] == [1.0, [2]] && {'a': 1} == {'a': 1.0}",
        "!(0.0 / 0.0 == 0.0 / 0.0)",
        "1 in [1.0] && 'k' in body.map && !('x' in body.map) && !(1 in [true]) && !(true in [1])",
        "2.0 in {1: 'a', 2: 'b'} && !(true in {1: 'a'})",
        "body.list[0] == 1.0 && body.list[body.i] == 'a' && body.list[1u] == 'a'",
        "body.map['k'] == 1 && {1: 'a', true: 'b'}[1] == 'a' && {1: 'a', true: 'b'}[true] == 'b'",
        "body.?none.hasValue() && !body.?zip.hasValue() && !body.none.?a.hasValue() && !body.list[?9].hasValue()",
        "has(body.none) && !has(body.zip) && !has(body.s.a) && !has(body.none.a)",
        "optional.of({'a': {'b': 1}}).a.b.value() == 1 && !optional.of({'a': {}}).a.b.hasValue()",
    ],
)
def test_a_comparison_holds(source):
    assert evaluate(source) is True


@pytest.mark.parametrize(
    ("source", "message", "column", "length"),
    [
        ("body.a", "no such key: a", 6, 1),
        ("body.s.first", "no such key: first", 8, 5),
        ("body.none.a", "no such key: a", 11, 1),
        ("body['x-id']", "no such key: x-id", 6, 6),
        ("body.map[2]", "no such key: 2", 10, 1),
        ("has(body.a.b)", "no such key: a", 10, 1),
        ("body.list[3]", "index out of bounds: 3", 11, 1),
        ("body.list[-1]", "index out of bounds: -1", 11, 2),
        ("body.list[body.half]", "no such overload: list[0.5]", 11, 9),
        ("body.s[0]", "no such overload: string[int]", 8, 1),
        ("body.s + 1", "no such overload: string + int", 8, 1),
        ("1 < body.s", "no such overload: int < string", 3, 1),
        ("'a' in body.n", "no such overload: string in double", 5, 2),
        ("9223372036854775807 + 1", "integer overflow", 21, 1),
        ("-9223372036854775808 / -1", "integer overflow", 22, 1),
        ("1u - 2u", "unsigned integer overflow", 4, 1),
        ("1 / 0", "division by zero", 3, 1),
        ("1.0 % 0.0", "modulus by zero", 5, 1),
        ("body.half % 2", "modulus of a number with a fraction", 11, 1),
        ("-body.s", "no such overload: -string", 1, 1),
        ("!body.s", "no such overload: !string", 1, 1),
    ],
)
def test_a_failure_is_told_at_its_place(source, message, column, length):
    with pytest.raises(ExpressionError) as caught:
        evaluate(source)

    error = caught.value
    assert (error.message, error.column, error.length, error.source) == (message, column, length, source)


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        (
            "body.s.a",
            "`has(body.s.a)` tells whether it is there, `body.s.?a.orValue(…)` reads it if it is there, "
            "or something else",
        ),
        ("body.list[0].a", "`.?a.orValue(…)` reads it if it is there, or something else"),
        ("body['x-id']", '`[?"x-id"].orValue(…)` reads it if it is there, or something else'),
        ("body.map[2]", "`[?2].orValue(…)` reads it if it is there, or something else"),
    ],
)
def test_what_to_do_about_a_key_that_is_not_there(source, hint):
    with pytest.raises(ExpressionError) as caught:
        compile_expression(source, ["body"]).evaluate({"body": {"s": {}, "list": [{}], "map": {}}})

    assert caught.value.hint == hint
