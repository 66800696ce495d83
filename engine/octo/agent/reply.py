"""One answer of a model: whether it can be used, and made fit to be kept and sent again."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from octo.errors import OctoError
from octo.llm.chat import ChatMessage, ChatResponse, Part, Reasoning, Text, ToolCall
from octo.values import clean_text

_QUOTED: Final = 200
"""How many characters of an answer that cannot be used stand in the error."""


def is_malformed(response: ChatResponse) -> bool:
    """Whether the model called a tool in a form that cannot be read."""
    return response.stop_reason == "malformed" and not response.calls


class CutOff(NamedTuple):
    """A call that was cut off, and by what."""

    call: ToolCall
    by: str


def cut_off(response: ChatResponse) -> CutOff | None:
    """The call that was cut off: always the last one, also when its arguments happen to parse."""
    if response.calls and response.stop_reason == "max_tokens":
        return CutOff(response.calls[-1], limit(response))
    return None


def limit(response: ChatResponse) -> str:
    """What cut an answer off, as texts say it."""
    return "the end of the context window" if response.fills_window else "the output cap (`maxTokens`)"


def remedy(response: ChatResponse) -> str | None:
    """What helps against an answer that was cut off, if it was."""
    if response.stop_reason != "max_tokens":
        return None
    return "shorten the prompt" if response.fills_window else "raise `maxTokens`"


def unfit(text: str, answer: str) -> OctoError:
    """The error of an answer that cannot be used; recovery chains read it whole."""
    found = f"; the answer begins with `{answer.strip()[:_QUOTED]}`" if answer.strip() else ""
    error = OctoError(f"{text}{found}")
    error.detail = answer
    return error


def readable(turn: ChatMessage, number: int) -> ChatMessage:
    """The turn without halves of characters, which can neither be stored nor sent, and with an id for each call.

    `number` is that of the model call, from which missing ids are made.
    """
    parts = enumerate(turn.parts)
    return replace(turn, parts=tuple(_readable_part(part, f"call-{number}-{index}") for index, part in parts))


def _readable_part(part: Part, id: str) -> Part:
    match part:
        case Text() | Reasoning():
            text = clean_text(part.text)
            return part if text == part.text else replace(part, text=text)
        case ToolCall():
            texts = (clean_text(part.id) or id, clean_text(part.name), clean_text(part.arguments))
            return part if texts == (part.id, part.name, part.arguments) else ToolCall(*texts, part.replay)
    return part
