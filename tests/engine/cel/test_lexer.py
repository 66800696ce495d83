"""octo/cel/lexer.py: literals, their values, and what is no token."""

import pytest

from octo.cel import compile as compile_expression
from octo.cel.values import UInt
from octo.errors import ExpressionError


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("12", 12),
        ("0x1F", 31),
        ("-9223372036854775808", -9223372036854775808),
        ("7u", UInt(7)),
        ("0xffu", UInt(255)),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ('"a\\tb\\"\\x41\\u00e9\\U0001F600\\101"', 'a\tb"A\u00e9\U0001f600A'),
        ("'a\"b'", 'a"b'),
        ('r"a\\d"', "a\\d"),
        ('"""two\nlines"""', "two\nlines"),
        ("b'\\xff\\377a'", b"\xff\xffa"),
        ("b'\u00e9'", b"\xc3\xa9"),
        ("true", True),
        ("null", None),
        ("1 // a remark", 1),
        ("{'a b': 1}.`a b`", 1),
    ],
)
def test_a_literal_has_its_value_and_kind(source, expected):
    value = compile_expression(source, ()).evaluate({})

    assert (type(value), value) == (type(expected), expected)


@pytest.mark.parametrize(
    ("source", "message", "column", "hint"),
    [
        ('"abc', 'text is not closed: `"` is missing', 1, None),
        ("'a\nb'", "text is not closed: `'` is missing", 1, None),
        ('"a\\q"', "unknown escape `\\q`", 3, "a backslash itself is written `\\\\`"),
        ('"\\ud800"', "unknown escape `\\u`", 2, "a backslash itself is written `\\\\`"),
        ("b'\\u0041'", "unknown escape `\\u`", 3, "a backslash itself is written `\\\\`"),
        ("1 = 1", "unexpected character `=`", 3, "to compare, write `==`"),
        ("a & b", "unexpected character `&`", 3, "to join conditions, write `&&`"),
        ("\u201ca\u201d", "unexpected character `\u201c`", 1, "text stands between straight quotes"),
        ("1 # 2", "unexpected character `#`", 3, None),
        ("1 + 1e999", "double out of range", 5, "no double is larger than about 1.8e308"),
        ("9223372036854775808", "integer out of range", 1, None),
        ("1 + 18446744073709551616u", "unsigned integer out of range", 5, None),
    ],
)
def test_what_is_no_token_is_refused_at_its_place(source, message, column, hint):
    with pytest.raises(ExpressionError) as caught:
        compile_expression(source, ())

    assert (caught.value.message, caught.value.column, caught.value.hint) == (message, column, hint)
