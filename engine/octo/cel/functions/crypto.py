"""Message authentication."""

from __future__ import annotations

from octo.cel.functions import function
from octo.cel.values import to_bytes


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
