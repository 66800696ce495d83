"""octo/cel/functions/encoding.py: bytes as text."""

import pytest

from octo.cel import compile as compile_expression
from octo.errors import ExpressionError


def evaluate(source):
    return compile_expression(source, ()).evaluate({})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("base64.encode(b'ab')", "YWI="),
        ("base64.decode('YWI=')", b"ab"),
        ("base64.decode('YWI')", b"ab"),
        ("hexEncode('h\u00e9')", "68c3a9"),
        ("hexEncode(b'\\xff')", "ff"),
    ],
)
def test_bytes_are_encoded(source, expected):
    assert evaluate(source) == expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("base64.decode('a')", "text is not base64"),
        ("base64.decode('a*b=')", "text is not base64"),
        ("hexEncode(1)", "no such overload: hexEncode(int)"),
    ],
)
def test_what_are_no_bytes_is_refused(source, message):
    with pytest.raises(ExpressionError) as caught:
        evaluate(source)

    assert caught.value.message == message
