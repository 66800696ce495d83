"""octo/cel/functions/strings.py: text by code points."""

import pytest

from octo.cel import compile as compile_expression
from octo.errors import ExpressionError


def evaluate(source):
    return compile_expression(source, ()).evaluate({})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("'abc'.contains('b') && 'abc'.startsWith('a') && 'abc'.endsWith('c')", True),
        ("'a\U0001f600c'.charAt(1)", "\U0001f600"),
        ("'abc'.charAt(3)", ""),
        ("'abcabc'.indexOf('c')", 2),
        ("'abcabc'.indexOf('c', 3)", 5),
        ("'abcabc'.indexOf('x')", -1),
        ("'abcabc'.lastIndexOf('c')", 5),
        ("'abcabc'.lastIndexOf('c', 4)", 2),
        ("['a', 'b'].join('-')", "a-b"),
        ("['a', 'b'].join()", "ab"),
        ("'\u00c4Bc'.lowerAscii()", "\u00c4bc"),
        ("'\u00e4bC'.upperAscii()", "\u00e4BC"),
        ("'aaa'.replace('a', 'bb')", "bbbbbb"),
        ("'aaa'.replace('a', 'b', 2)", "bba"),
        ("'ab'.replace('', '-')", "-a-b-"),
        ("'a,b,c'.split(',')", ["a", "b", "c"]),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("'a,b'.split(',', 0)", []),
        ("'abc'.split('')", ["a", "b", "c"]),
        ("'abc'.split('', 2)", ["a", "bc"]),
        ("''.split(',')", [""]),
        ("''.split('')", []),
        ("'abc'.replace('b', 'x', 0)", "abc"),
        ("'h\u00e9llo'.substring(1)", "\u00e9llo"),
        ("'hello'.substring(1, 3)", "el"),
        ("'\u00a0 a b\\n'.trim()", "a b"),
        ("'ab\U0001f600'.reverse()", "\U0001f600ba"),
        ("strings.quote('a\"b\\n')", '"a\\"b\\n"'),
    ],
)
def test_a_function_of_text_has_its_value(source, expected):
    assert evaluate(source) == expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("'abc'.charAt(4)", "index out of range: 4"),
        ("'abc'.indexOf('a', -1)", "index out of range: -1"),
        ("'abc'.lastIndexOf('a', 9)", "index out of range: 9"),
        ("'abc'.substring(4)", "index out of range: 4"),
        ("'abc'.substring(2, 1)", "index out of range: 2 is behind 1"),
        ("['a', 1].join()", "`join` needs a list of text, element 1 is none"),
        ("'abc'.split('b', dyn(1e19))", "no such overload: string.split(string, double)"),
        ("'abc'.substring(1, dyn(null))", "no such overload: string.substring(int, null_type)"),
    ],
)
def test_a_position_outside_is_refused(source, message):
    with pytest.raises(ExpressionError) as caught:
        evaluate(source)

    assert caught.value.message == message
