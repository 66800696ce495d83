"""Calls of an HTTP API as values: how it is called, what is asked, and what is answered."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from octo.errors import OctoError
from octo.http.url import Reference

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE")
EXCERPT: Final = 200
"""How many characters of an answer an error text quotes."""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNSENDABLE: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_HALF: Final = re.compile(r"[\ud800-\udfff]")
"""What stands for a byte of the environment that is not UTF-8."""
_LEGACY_CHARSET: Final = re.compile(r"charset\s*=\s*\"?((?:iso-8859-|windows-125)\d+)", re.IGNORECASE)


class HttpError(OctoError):
    """A request that was not answered, or not as it must be."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How an API is called."""

    timeout: float = 30.0
    """Seconds for one attempt, its redirects and the reading of the body included."""
    headers: tuple[tuple[str, str], ...] = ()
    """Sent unless a call has a header of the same name."""
    max_bytes: int = 1024 * 1024
    """Where bodies are cut."""
    attempts: int = 3
    max_wait: float = 30.0
    """The longest wait before an attempt, in seconds."""
    idle_connections: int = 100
    idle_seconds: float = 90.0
    keep_alive: bool = True
    cached: int = 0
    """How many answers to `GET` are kept; 0 for none."""
    cached_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Call:
    """A request below the base URL of a connector."""

    method: str
    path: Reference
    query: str = ""
    """Encoded; comes after the query of the path."""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The final answer to a call, with as much of the body as the connector takes."""

    url: str
    """The URL that was asked, as error texts may show it."""
    status: int
    content_type: str
    body: bytes
    summary: str
    """The status and the beginning of the body, as error texts may show them."""

    @property
    def text(self) -> str:
        """The body as text: UTF-8, unless it is declared as one of the older alphabets."""
        declared = _LEGACY_CHARSET.search(self.content_type)
        try:
            return self.body.decode(declared[1] if declared else "utf-8", errors="replace")
        except LookupError:
            return self.body.decode(errors="replace")


def is_token(name: str) -> bool:
    """Whether a text can be a method or the name of a header."""
    return _TOKEN.fullmatch(name) is not None


def header_fault(name: str, value: str) -> str | None:
    """What is wrong with a header, or None."""
    if not is_token(name):
        return f"`{' '.join(name.split())}` is not the name of an HTTP header"
    if _UNSENDABLE.search(value):
        return f"the value of header `{name}` holds a line break or another control character"
    if not value.isascii() and _HALF.search(value):
        return f"the value of header `{name}` holds bytes that are not UTF-8"
    return None


def excerpt(status: int, body: bytes, mask: Callable[[str], str] = str) -> str:
    """The status and the beginning of an answer, in one line and without secrets."""
    text = " ".join(mask(body.decode(errors="replace")).split())[:EXCERPT].rstrip()
    return f"{status}: {text}" if text else str(status)
