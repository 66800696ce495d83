"""The newest part of a conversation, cut so that nothing in it refers to what is gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from octo.agent.memory.compaction import exchanges
from octo.llm.chat import ChatMessage, File, Text


def newest(turns: Sequence[ChatMessage], most: int) -> list[ChatMessage]:
    """The last turns, at most so many, from a user turn on. When the newest exchange alone is longer, all of it."""
    tail = list(turns[-most:])
    start = _first_user(tail)
    if start is not None:
        return tail[start:]
    return next((piece for piece in reversed(exchanges(turns)) if piece[0].role == "user"), [])


def fitting(turns: Sequence[ChatMessage], fits: Callable[[list[ChatMessage]], bool]) -> list[ChatMessage]:
    """The conversation without its oldest exchanges, as many as it takes; empty when not even the newest fits."""
    pieces = exchanges(turns)
    low, high = 0, len(pieces)
    while low < high:
        middle = (low + high) // 2
        if fits([turn for piece in pieces[middle:] for turn in piece]):
            high = middle
        else:
            low = middle + 1
    return [turn for piece in pieces[low:] for turn in piece]


def without_bytes(turn: ChatMessage) -> ChatMessage:
    """The turn with the name, type and size of each attachment in its place: the bytes are not kept."""
    parts = (Text(_told(part)) if isinstance(part, File) else part for part in turn.parts)
    return ChatMessage(turn.role, tuple(parts)) if turn.files else turn


def _told(file: File) -> str:
    name = f"{file.name}, " if file.name else ""
    return f"[file: {name}{file.mime_type}, {len(file.data)} bytes]\n"


def _first_user(turns: Sequence[ChatMessage]) -> int | None:
    return next((at for at, turn in enumerate(turns) if turn.role == "user"), None)
