"""In which forms a secret may stand in a text, so that it can be hidden in all of them."""

from __future__ import annotations

import json
import re
from binascii import b2a_base64
from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from urllib.parse import quote, quote_plus

from octo import values

SHORTEST: Final = 6
"""Masking what is shorter would wreck ordinary text."""

_SHORTEST_CORE: Final = 12
_ESCAPE: Final = re.compile("%[0-9A-F]{2}")


def forms(secrets: Iterable[str]) -> tuple[str, ...]:
    """Each secret as it is, without surrounding space, as JSON and URLs write it, in base64 and in hex; longest first.

    Secrets that are too short to be masked have none.
    """
    found: set[str] = set()
    for secret in secrets:
        for text in {secret, secret.strip()}:
            if len(text) >= SHORTEST:
                found.update(_forms(text))
    return tuple(sorted(found, key=lambda form: (-len(form), form)))


def whole(text: str, forms: Sequence[str]) -> int:
    """How much of a text that goes on can be shown by itself: up to there no secret is cut in two."""
    firsts = {form[0] for form in forms}
    longest = max(map(len, forms), default=0)
    end = len(text)
    for start in range(max(0, end - longest + 1), end):
        if text[start] in firsts and any(len(form) > end - start and form.startswith(text[start:]) for form in forms):
            end = start
            break
    while cut := [at for form in forms if 0 <= (at := text.find(form, max(0, end - len(form) + 1))) < end]:
        end = min(cut)
    return end


def hidden(text: str, forms: Iterable[str]) -> str:
    """The text with `***` in the place of every form of a secret; `forms` begin with the longest."""
    for form in forms:
        if form in text:
            text = text.replace(form, "***")
    return text


def _forms(text: str) -> Iterator[str]:
    yield text
    for written in (json.dumps(text), json.dumps(text, ensure_ascii=False), values.dumps(text)):
        yield written[1:-1]
    for escaped in (
        quote(text, errors="replace"),
        quote(text, "", errors="replace"),
        quote_plus(text, errors="replace"),
    ):
        yield escaped
        yield _ESCAPE.sub(lambda escape: escape[0].lower(), escaped)
    data = text.encode(errors="replace")
    yield data.decode("latin-1")  # as a header is read that was sent as UTF-8
    yield data.hex()
    yield data.hex().upper()
    for form in _base64(data):
        yield form
        yield form.replace("+", "-").replace("/", "_")


def _base64(data: bytes) -> Iterator[str]:
    """The whole, with its padding and without, and what of it is the same wherever it stands in something longer."""
    whole = b2a_base64(data, newline=False).decode("ascii")
    yield whole
    yield whole.rstrip("=")
    for before in range(3):
        longer = b2a_base64(bytes(before) + data, newline=False).decode("ascii")
        core = longer[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        if len(core) >= _SHORTEST_CORE:
            yield core
