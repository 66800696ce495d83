"""Message authentication and encryption."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from octo.cel.functions import Extra, function
from octo.cel.values import Failure, to_bytes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

_CRYPTOGRAPHY = Extra("cryptography", "crypto")
_NONCE = 12
_TAG = 16


@function("hmacSha256")
def hmac_sha256(key: str | bytes, payload: str | bytes) -> bytes:
    """The HMAC-SHA-256 of a payload; the key comes first."""
    import hmac

    return hmac.digest(to_bytes(key), to_bytes(payload), "sha256")


@function("hmacSha1")
def hmac_sha1(key: str | bytes, payload: str | bytes) -> bytes:
    """The HMAC-SHA-1 of a payload; the key comes first."""
    import hmac

    return hmac.digest(to_bytes(key), to_bytes(payload), "sha1")


@function("secureCompare")
def secure_compare(left: str | bytes, right: str | bytes) -> bool:
    """Whether both are the same, in a time that does not tell where they differ."""
    import hmac

    return hmac.compare_digest(to_bytes(left), to_bytes(right))


@function("toAes", extra=_CRYPTOGRAPHY)
def to_aes(data: str | bytes, key: str | bytes) -> bytes:
    """Text or bytes sealed with AES-GCM; the key has 16, 24 or 32 bytes. Needs the extra `crypto`.

    The result is a nonce of 12 bytes, the ciphertext and a tag of 16 bytes.
    """
    return _sealed(_aes(key), data)


@function("fromAes", extra=_CRYPTOGRAPHY)
def from_aes(data: bytes, key: str | bytes) -> bytes:
    """The bytes that `toAes` has sealed; an error when the key is another one or the data was changed."""
    return _opened(_aes(key), data)


@function("toChacha", extra=_CRYPTOGRAPHY)
def to_chacha(data: str | bytes, key: str | bytes) -> bytes:
    """Text or bytes sealed with ChaCha20-Poly1305, laid out as by `toAes`; the key has 32 bytes.

    Needs the extra `crypto`.
    """
    return _sealed(_chacha(key), data)


@function("fromChacha", extra=_CRYPTOGRAPHY)
def from_chacha(data: bytes, key: str | bytes) -> bytes:
    """The bytes that `toChacha` has sealed; an error when the key is another one or the data was changed."""
    return _opened(_chacha(key), data)


def _aes(key: str | bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(_key(key, 16, 24, 32))


def _chacha(key: str | bytes) -> ChaCha20Poly1305:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    return ChaCha20Poly1305(_key(key, 32))


def _key(key: str | bytes, *lengths: int) -> bytes:
    raw = to_bytes(key)
    if len(raw) in lengths:
        return raw
    expected = " or ".join(", ".join(map(str, lengths)).rsplit(", ", 1))
    raise Failure(f"the key must have {expected} bytes, got {len(raw)}")


def _sealed(cipher: AESGCM | ChaCha20Poly1305, data: str | bytes) -> bytes:
    nonce = os.urandom(_NONCE)  # never from a random source that could be replayed: one nonce used twice opens all
    return nonce + cipher.encrypt(nonce, to_bytes(data), None)


def _opened(cipher: AESGCM | ChaCha20Poly1305, data: bytes) -> bytes:
    from cryptography.exceptions import InvalidTag

    if len(data) < _NONCE + _TAG:
        raise Failure(f"sealed data has at least {_NONCE + _TAG} bytes, got {len(data)}")
    try:
        return cipher.decrypt(data[:_NONCE], data[_NONCE:], None)
    except InvalidTag:
        raise Failure("sealed data cannot be opened: the key is another one, or the data was changed") from None
