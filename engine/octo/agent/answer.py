"""What a model's final text makes of the message body."""

from __future__ import annotations

from typing import Final

from octo.values import Json, parse

_FENCE: Final = "```"


def fold(text: str) -> Json:
    """The body that an answer gives: the JSON value it holds, else the text exactly as the model wrote it."""
    try:
        return parse(unfenced(text))
    except ValueError:
        return text


def unfenced(text: str) -> str:
    """The text without surrounding white space and without the code fence it starts with.

    Only a fence at the very start counts, and it ends at the last one, so that a fence inside a JSON string
    does no harm. Of the language tags only `json` is known: any other one stays and makes the answer text.
    """
    trimmed = text.strip()
    if not trimmed.startswith(_FENCE):
        return trimmed
    inner = trimmed.removeprefix(_FENCE)
    for tag in ("json", "JSON"):
        if inner.startswith(tag):
            inner = inner.removeprefix(tag)
            break
    end = inner.rfind(_FENCE)
    return (inner if end < 0 else inner[:end]).strip()


def is_empty(text: str) -> bool:
    """Whether an answer says nothing, so that the body stays as it is."""
    return not unfenced(text)
