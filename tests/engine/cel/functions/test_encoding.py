"""octo/cel/functions/encoding.py and octo/cel/functions/crypto.py: bytes as text, and message authentication."""

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
        (
            "hexEncode(hmacSha256('key', 'The quick brown fox jumps over the lazy dog'))",
            "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8",
        ),
        (
            "hexEncode(hmacSha1(b'key', 'The quick brown fox jumps over the lazy dog'))",
            "de7c9b85b8b78aa6bc8a7a36f70a90701c9db4d9",
        ),
        ("secureCompare('a', b'a') && !secureCompare('a', 'b') && !secureCompare('a', 'ab')", True),
    ],
)
def test_bytes_are_encoded_and_signed(source, expected):
    assert evaluate(source) == expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("base64.decode('a')", "text is not base64"),
        ("base64.decode('a*b=')", "text is not base64"),
        ("hexEncode(1)", "no such overload: hexEncode(int)"),
        ("hmacSha256('k', null)", "no such overload: hmacSha256(string, null_type)"),
    ],
)
def test_what_are_no_bytes_is_refused(source, message):
    with pytest.raises(ExpressionError) as caught:
        evaluate(source)

    assert caught.value.message == message
