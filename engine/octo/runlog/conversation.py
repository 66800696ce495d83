"""What a model was asked and answered, as records tell it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias, assert_never

from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    CustomDelta,
    Delta,
    File,
    Reasoning,
    Retry,
    Search,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolInput,
    ToolResult,
)
from octo.values import Json, parse

PieceType: TypeAlias = Literal["text", "thinking", "tool_input", "custom", "retry"]

_PARSED: Final = 32768
"""Up to so many characters, arguments and results that are JSON are told as what they mean, not as text."""


def asked(request: ChatRequest, told: Sequence[ChatMessage]) -> dict[str, Json]:
    """What is new in a request: its messages beyond those that were told already, which are only counted.

    System text and tools stand where the conversation begins.
    """
    earlier = _common(request.messages, told)
    messages = [turn(message) for message in request.messages[earlier:]]
    if earlier:
        return {"earlier": earlier, "messages": messages}
    tools = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema} for tool in request.tools
    ]
    return _filled({"system": request.system, "tools": tools, "messages": messages})


def turn(message: ChatMessage) -> dict[str, Json]:
    """One turn, sorted by kinds of parts. Of files there is all but the content."""
    shown: dict[str, Any] = {"role": message.role, "reasoning": "", "text": ""}
    lists: dict[str, list[Json]] = {"files": [], "searches": [], "calls": [], "results": []}
    for part in message.parts:
        match part:
            case Text():
                shown["text"] += part.text
            case Reasoning():
                shown["reasoning"] += part.text
            case File():
                lists["files"].append(_filled({"mimeType": part.mime_type, "name": part.name, "size": len(part.data)}))
            case Search():
                lists["searches"] += [part.query] if part.query else []
            case ToolCall():
                lists["calls"].append({"toolCallId": part.id, "tool": part.name, "input": decoded(part.arguments)})
            case ToolResult():
                result = {"toolCallId": part.call_id, "tool": part.name, "output": decoded(part.text)}
                lists["results"].append(result | ({"isError": True} if part.is_error else {}))
            case _:
                assert_never(part)
    citations = [_filled({"url": one.url, "title": one.title}) for one in message.citations]
    return _filled(shown | lists | {"citations": citations})


def piece(delta: Delta) -> tuple[PieceType, dict[str, Json]] | None:
    """What is told of a piece of an answer that is being streamed, under which name; nothing of some."""
    match delta:
        case TextDelta(text, index):
            return "text", {"text": text, "index": index}
        case ThinkingDelta(text, index):
            return "thinking", {"text": text, "index": index}
        case ToolInput(text, id, name, index):
            return "tool_input", {"text": text, "index": index, "tool": name, "toolCallId": id}
        case CustomDelta(name, text, index):
            return "custom", {"name": name, "text": text, "index": index}
        case Retry(attempt, reason):
            return "retry", {"attempt": attempt, "reason": reason}
    return None


def decoded(text: str) -> Json:
    """What a text means if it is JSON, else the text; null when it is empty."""
    if len(text) > _PARSED:
        return text
    try:
        return parse(text) if text.strip() else None
    except ValueError:
        return text


def _common(messages: Sequence[ChatMessage], told: Sequence[ChatMessage]) -> int:
    """How many messages are the same from the start. Files may have been taken out since."""
    count = 0
    for message, known in zip(messages, told, strict=False):
        if message is not known and message.without_files() != known.without_files():
            break
        count += 1
    return count


def _filled(parts: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in parts.items() if value not in ("", [])}
