"""octo/cel/functions/core.py and octo/cel/functions/__init__.py: sizes, kinds, conversions, and how arguments fit."""

import pytest

from octo.cel import compile as compile_expression
from octo.cel.functions import known, overloads
from octo.cel.values import UInt
from octo.errors import ExpressionError


def evaluate(source, body=None):
    return compile_expression(source, ["body"]).evaluate({"body": body})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("size('h\u00e9\U0001f600')", 3),
        ("'ab'.size() + size(b'abc') + [1].size() + {1: 2}.size()", 7),
        ("string(250.0)", "250"),
        ("string(0.1)", "0.1"),
        ("string(1000000.0)", "1000000"),
        ("string(1234567.5)", "1234567.5"),
        ("string(1e21)", "1e+21"),
        ("string(0.0000001)", "1e-7"),
        ("string(12) + string(7u) + string(true) + string(b'x')", "127truex"),
        ("string(timestamp('2024-01-02T03:04:05.250Z'))", "2024-01-02T03:04:05.25Z"),
        ("string(duration('90m'))", "5400s"),
        ("int(-3.9)", -3),
        ("int('-12')", -12),
        ("int(7u)", 7),
        ("int(timestamp('1970-01-02T00:00:00Z'))", 86400),
        ("int(duration('1s'))", 1_000_000_000),
        ("uint(3.7)", UInt(3)),
        ("uint('42')", UInt(42)),
        ("double('1e3')", 1000.0),
        ("double(5)", 5.0),
        ("bool('TRUE') && !bool('f')", True),
        ("bytes('\u00e9')", b"\xc3\xa9"),
        ("dyn(1)", 1),
    ],
)
def test_a_conversion_has_its_value(source, expected):
    value = evaluate(source)

    assert (type(value), value) == (type(expected), expected)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("size(body)", "no such overload: size(null_type)"),
        ("string(body)", "no such overload: string(null_type)"),
        ("string(b'\\xff')", "bytes are not UTF-8 text"),
        ("int('1.5')", "no int: `1.5`"),
        ("double('1e400')", "double out of range"),
        ("double('-1e400')", "double out of range"),
        ("int(1e30)", "int out of range"),
        ("int(0.0 / 0.0)", "int out of range"),
        ("uint(-1)", "uint out of range"),
        ("uint('-1')", "uint out of range"),
        ("double('x')", "no double: `x`"),
        ("bool('yes')", "no bool: `yes`"),
    ],
)
def test_what_cannot_be_converted_is_refused(source, message):
    with pytest.raises(ExpressionError) as caught:
        evaluate(source)

    assert caught.value.message == message


def test_a_double_without_fraction_serves_as_position():
    body = {"i": 1.0, "half": 0.5}

    assert evaluate("'abc'.substring(body.i)", body) == "bc"
    with pytest.raises(ExpressionError, match=r"^no such overload: string.substring\(double\)$"):
        evaluate("'abc'.substring(body.half)", body)


def test_every_name_leads_to_functions_with_a_reference_text():
    without = [
        name for name in known() if not overloads(name) or not all(each.documentation for each in overloads(name))
    ]

    assert without == []
    assert {"size", ".size", "math.greatest", "toJson", ".orValue", "regex.extract"} <= set(known())
