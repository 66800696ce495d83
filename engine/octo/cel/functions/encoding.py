"""Bytes as text."""

from __future__ import annotations

from octo.cel.functions import function
from octo.cel.values import Failure, to_bytes


@function("base64.encode")
def base64_encode(data: bytes) -> str:
    """The bytes as base64 text, with padding."""
    from base64 import b64encode

    return b64encode(data).decode("ascii")


@function("base64.decode")
def base64_decode(text: str) -> bytes:
    """The bytes that a base64 text stands for; padding may be missing."""
    from base64 import b64decode

    bare = text.rstrip("=")
    try:
        return b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except ValueError:
        raise Failure("text is not base64") from None


@function("hexEncode")
def hex_encode(data: str | bytes) -> str:
    """The bytes as lowercase hexadecimal digits; a text counts as UTF-8."""
    return to_bytes(data).hex()
