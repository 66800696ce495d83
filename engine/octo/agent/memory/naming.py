"""The title of a new conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from octo.agent.inputs import FRAME
from octo.errors import OctoError
from octo.message import Dropped
from octo.values import clean_text, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from octo.block import Chain
    from octo.message import Message
    from octo.run import Run
    from octo.values import Json

_MOST: Final = 80
"""Bytes of a title."""


async def title(chain: Chain | None, message: Message, question: str, run: Run, warn: Callable[[str], None]) -> str:
    """What the chain makes of the message; without one, or when it gives none, the first line of the question.

    Empty text and null say that there is to be no title, and so does a message that the chain drops.
    """
    if chain is None:
        return _from_question(question)
    try:
        named = _named((await run.chain(chain, message)).body)
    except Dropped:
        return ""
    except OctoError as error:
        warn(f"`nameThread` failed, so the conversation is named after its first question: {error.message}")
        return _from_question(question)
    return clipped(named) if len(named.encode()) > _MOST else named


def _named(body: Json) -> str:
    """The text that is the title, or holds it. Raises OctoError for anything else."""
    if isinstance(body, dict) and body:
        held = next((body[key] for key in ("title", "name") if isinstance(body.get(key), str)), None)
        if held is None:
            raise OctoError("its body is a mapping without a `title`, and without a `name`, that is text")
        body = held
    if body is not None and body != {} and not isinstance(body, str):
        raise OctoError(f"its body is {kind_of(body)}, and neither text nor a mapping with a `title`")
    return clean_text(body).strip() if isinstance(body, str) else ""


def _from_question(question: str) -> str:
    said = clean_text(question).removeprefix(FRAME)
    return _cut(next((line.strip() for line in said.splitlines() if line.strip()), ""))


def clipped(text: str) -> str:
    """The text within the bytes that a title may have, with an ellipsis."""
    return f"{_cut(text).rstrip()}…"


def _cut(text: str) -> str:
    return text.encode()[:_MOST].decode(errors="ignore")
