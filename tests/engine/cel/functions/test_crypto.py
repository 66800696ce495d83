"""octo/cel/functions/crypto.py: message authentication and encryption."""

import sys

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from octo.cel import compile as compile_expression
from octo.errors import ExpressionError

KEYS = [16, 24, 32]


def evaluate(source, **variables):
    return compile_expression(source, variables).evaluate(variables)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "hexEncode(hmacSha256('key', 'The quick brown fox jumps over the lazy dog'))",
            "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8",
        ),
        (
            "hexEncode(hmacSha1(b'key', 'The quick brown fox jumps over the lazy dog'))",
            "de7c9b85b8b78aa6bc8a7a36f70a90701c9db4d9",
        ),
        ("hmacSha256('', '') == hmacSha256(b'', b'')", True),
        ("secureCompare('a', b'a') && !secureCompare('a', 'b') && !secureCompare('a', 'ab')", True),
        ("secureCompare('h\u00e9', b'h\\xc3\\xa9')", True),
    ],
)
def test_a_payload_is_signed_and_compared(source, expected):
    assert evaluate(source) == expected


@pytest.mark.parametrize("length", KEYS)
def test_what_is_sealed_with_aes_is_opened_again(length):
    assert evaluate("fromAes(toAes('h\u00e9', key), key)", key=bytes(length)) == "h\u00e9".encode()


def test_what_is_sealed_with_chacha_is_opened_again():
    assert evaluate("fromChacha(toChacha(b'\\x00\\xff', key), key)", key="k" * 32) == b"\x00\xff"


@pytest.mark.parametrize(("name", "cipher"), [("Aes", AESGCM), ("Chacha", ChaCha20Poly1305)])
def test_sealed_data_is_nonce_ciphertext_and_tag(name, cipher):
    key = bytes(range(32))
    sealed = evaluate(f"to{name}('secret', key)", key=key)

    assert len(sealed) == 12 + 6 + 16
    assert cipher(key).decrypt(sealed[:12], sealed[12:], None) == b"secret"
    assert (
        evaluate(f"from{name}(data, key)", key=key, data=bytes(12) + cipher(key).encrypt(bytes(12), b"x", None)) == b"x"
    )


def test_the_same_data_is_never_sealed_the_same_way():
    assert evaluate("toAes('a', key) != toAes('a', key)", key=bytes(16)) is True


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("toAes('a', 'short')", "the key must have 16, 24 or 32 bytes, got 5"),
        ("toChacha('a', '0123456789abcdef')", "the key must have 32 bytes, got 16"),
        ("fromAes(b'abc', '0123456789abcdef')", "sealed data has at least 28 bytes, got 3"),
        (
            "fromAes(toAes('a', '0123456789abcdef'), '0123456789abcdeF')",
            "sealed data cannot be opened: the key is another one, or the data was changed",
        ),
        ("fromAes('text', '0123456789abcdef')", "no such overload: fromAes(string, string)"),
        ("toAes(1, 'k')", "no such overload: toAes(int, string)"),
        ("hmacSha256('k', null)", "no such overload: hmacSha256(string, null_type)"),
        ("secureCompare(1, 1)", "no such overload: secureCompare(int, int)"),
    ],
)
def test_what_cannot_be_sealed_or_opened_is_refused(source, message):
    with pytest.raises(ExpressionError) as caught:
        evaluate(source)

    assert caught.value.message == message


def test_without_the_package_encryption_does_not_compile(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)

    with pytest.raises(ExpressionError) as caught:
        compile_expression("1 + fromAes(b'', 'k')", ())

    assert (caught.value.message, caught.value.hint, caught.value.column) == (
        "function `fromAes` needs the package `cryptography`",
        "install it: pip install 'octo-runner[crypto]'",
        5,
    )
    compile_expression("hmacSha256('k', 'p')", ())
