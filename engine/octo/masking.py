"""In which forms a secret may stand in a text, so that it can be hidden in all of them."""

from __future__ import annotations

import json
import re
from binascii import b2a_base64
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final
from urllib.parse import quote, quote_plus

from octo import values

SHORTEST: Final = 6
"""Masking what is shorter would wreck ordinary text."""

_SHORTEST_PART: Final = 4
"""So many characters of a secret are hidden where an ellipsis stands for the rest of it."""
_NESTED: Final = 5
"""How often a text may have been written as JSON inside of other JSON."""
_ESCAPE: Final = re.compile("%[0-9A-F]{2}")
_ELLIPSIS: Final = re.compile("( ?… ?)")
_WRITERS: Final = (json.dumps, partial(json.dumps, ensure_ascii=False), values.dumps)


def forms(secrets: Iterable[str]) -> tuple[str, ...]:
    """Each secret as it is, on one line, as JSON, URLs and pages in HTML write it, in base64 and in hex; longest first.

    Secrets that are too short to be masked have none.
    """
    found: set[str] = set()
    for secret in secrets:
        for text in {secret, secret.strip(), " ".join(secret.split())}:
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


def hidden(text: str, forms: Sequence[str]) -> str:
    """The text with `***` in the place of every form of a secret; `forms` begin with the longest.

    Where a secret was cut, what of it stands beside the ellipsis is hidden.
    """
    for form in forms:
        if form in text:
            text = text.replace(form, "***")
    return _without_parts(text, forms) if forms and "…" in text else text


def _without_parts(text: str, forms: Sequence[str]) -> str:
    parts = _ELLIPSIS.split(text)
    backwards = [form[::-1] for form in forms]
    for at in range(1, len(parts), 2):
        before, after = parts[at - 1], parts[at + 1]
        if cut := max(_overlap(before, form) for form in forms):
            parts[at - 1] = f"{before[:-cut]}***"
        if cut := max(_overlap(after[len(form) :: -1], form) for form in backwards):
            parts[at + 1] = f"***{after[cut:]}"
    return "".join(parts)


def _overlap(text: str, form: str) -> int:
    """How many characters of a form are its beginning and the end of the text; 0 when they are few."""
    tail = text[-_SHORTEST_PART:]
    if len(tail) < _SHORTEST_PART:
        return 0
    end = len(form)
    while (at := form.rfind(tail, 0, end)) >= 0:
        end = at + len(tail)
        if text.endswith(form[:end]):
            return end
        end -= 1
    return 0


def _forms(text: str) -> Iterator[str]:
    yield from _nested(text)
    for escaped in (
        quote(text, errors="replace"),
        quote(text, "", errors="replace"),
        quote_plus(text, errors="replace"),
    ):
        yield escaped
        yield _ESCAPE.sub(lambda escape: escape[0].lower(), escaped)
    yield from _on_pages(text)
    data = text.encode(errors="replace")
    yield data.decode("latin-1")  # as a header is read that was sent as UTF-8
    yield data.hex()
    yield data.hex().upper()
    for form in _base64(data):
        yield form
        yield form.replace("+", "-").replace("/", "_")


def _on_pages(text: str) -> Iterator[str]:
    """The text as pages in HTML hold it; each framework has its own way of writing quotes."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    yield text
    for double in ("&quot;", "&#34;"):
        for single in ("'", "&#x27;", "&#39;", "&apos;"):
            yield text.replace('"', double).replace("'", single)


def _nested(text: str) -> set[str]:
    """The text as it is, and as JSON inside of JSON holds it."""
    found = texts = {text}
    for _ in range(_NESTED):
        texts = {write(text)[1:-1] for text in texts for write in _WRITERS} - found
        found = found | texts
    return found


def _base64(data: bytes) -> Iterator[str]:
    """The whole, with its padding and without, and what of it is the same wherever it stands in something longer."""
    whole = b2a_base64(data, newline=False).decode("ascii")
    yield whole
    yield whole.rstrip("=")
    for before in range(3):
        longer = b2a_base64(bytes(before) + data, newline=False).decode("ascii")
        yield longer[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
