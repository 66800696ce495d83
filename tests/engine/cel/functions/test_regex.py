"""octo/cel/functions/regex.py: matches, extraction, replacement."""

import pytest

from octo.cel import compile as compile_expression
from octo.errors import ExpressionError


def evaluate(source):
    return compile_expression(source, ["body"]).evaluate({"body": {"note": "see case-12 and case-7"}})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (r"body.note.matches('case-\\d+')", True),
        (r"matches('abc', '^b')", False),
        (r"regex.extract(body.note, 'case-(\\d+)').orValue('none')", "12"),
        (r"regex.extract(body.note, 'case-\\d+').value()", "case-12"),
        (r"regex.extract(body.note, 'task').hasValue()", False),
        (r"regex.extract('b', '(a)?b').hasValue()", False),
        (r"regex.extractAll(body.note, 'case-(\\d+)')", ["12", "7"]),
        (r"regex.extractAll('aab', 'a')", ["a", "a"]),
        (r"regex.replace(body.note, 'case-(\\d+)', '#\\1')", "see #12 and #7"),
        (r"regex.replace('aaa', 'a', 'b', 2)", "bba"),
        (r"regex.replace('aaa', 'a', 'b', 0)", "aaa"),
        (r"regex.replace('ab', '(a)(b)', '\\2\\\\\\0')", "b\\ab"),
        (r"regex.replace('ab', '', '-')", "-a-b-"),
        (r"regex.replace('abc', 'b*', '-')", "-a-c-"),
        (r"regex.extractAll('abc', 'b*')", ["", "b", ""]),
    ],
)
def test_a_regular_expression_finds_its_matches(source, expected):
    assert evaluate(source) == expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("regex.extract('a', '(a)(b)')", "pattern `(a)(b)` has 2 groups, at most one can be extracted"),
        (r"regex.replace('a', 'a', '\\1')", r"replacement refers to group `\1`, pattern has 0"),
        ("'a'.matches('(')", "bad pattern `(`: `)` is missing"),
    ],
)
def test_a_wrong_use_is_refused(source, message):
    with pytest.raises(ExpressionError) as caught:
        evaluate(source)

    assert caught.value.message == message
