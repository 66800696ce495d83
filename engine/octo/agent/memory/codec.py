"""Turns of a conversation as JSON, for the store, and back."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import Final, cast

from octo.agent.memory.per_turn import PerTurn
from octo.llm.chat import ChatMessage, Citation, File, Part, Reasoning, Role, Search, Text, ToolCall, ToolResult
from octo.values import Json, clean_text, json_fault, kind_of

_ROLES: Final = ("user", "assistant", "tool")


class Writer:
    """Writes one conversation again and again while it grows: each turn is encoded once.

    Attachments are left out, unless `files` are to be kept, and so is blank text.
    """

    def __init__(self, *, files: bool) -> None:
        self._files = files
        self._texts = PerTurn(self._text)

    def write(self, turns: Sequence[ChatMessage]) -> str:
        """The JSON text of what `encode` makes of the turns."""
        return f"[{','.join(filter(None, self._texts.of(turns)))}]"

    def _text(self, turn: ChatMessage) -> str:
        """The JSON text of one turn; empty for one without content."""
        parts = tuple(part for part in turn.parts if not (isinstance(part, Text) and not part.text.strip()))
        (message,) = encode([ChatMessage(turn.role, parts)], files=self._files)
        return clean_text(json.dumps(message, ensure_ascii=False, separators=(",", ":"))) if message["parts"] else ""


def encode(turns: Iterable[ChatMessage], *, files: bool = False) -> list[Json]:
    """The turns as JSON. Attachments are left out, unless `files` are to be kept."""
    return [
        {
            "role": turn.role,
            "parts": [_encoded(part) for part in turn.parts if files or not isinstance(part, File)],
        }
        for turn in turns
    ]


def decode(stored: Json) -> list[ChatMessage]:
    """The turns of what `encode` made. Raises ValueError for anything else, with the place of the first fault."""
    if not isinstance(stored, list):
        raise ValueError(f"expected a list of messages, found {kind_of(stored)}")
    return [_turn(index, message) for index, message in enumerate(stored)]


def _encoded(part: Part) -> Json:
    match part:
        case Text(text, replay, citations):
            cited: dict[str, Json] = {"citations": [list(astuple(one)) for one in citations]} if citations else {}
            return {"text": text} | cited | _replay(replay)
        case Reasoning(text, replay):
            return {"reasoning": text} | _replay(replay)
        case ToolCall(id, name, arguments, replay):
            return {"call": name, "id": id, "arguments": arguments} | _replay(replay)
        case ToolResult(id, name, text, is_error):
            return {"result": text, "id": id, "name": name} | ({"isError": True} if is_error else {})
        case Search(query, replay):
            return {"search": query} | _replay(replay)
        case File(mime_type, data, name):
            return {"file": base64.b64encode(data).decode("ascii"), "mimeType": mime_type, "name": name}


def _replay(replay: Json) -> dict[str, Json]:
    """Opaque data as text, so that not a digit of it changes in the store."""
    return {} if replay is None else {"replay": json.dumps(replay, ensure_ascii=False, separators=(",", ":"))}


def _turn(index: int, message: Json) -> ChatMessage:
    where = f"message {index}"
    if not isinstance(message, dict):
        raise ValueError(f"{where}: expected a mapping, found {kind_of(message)}")
    role, parts = message.get("role"), message.get("parts")
    if role not in _ROLES:
        raise ValueError(f"{where}: its role is none of `user`, `assistant` and `tool`")
    if not isinstance(parts, list):
        raise ValueError(f"{where}: `parts` must be a list, found {kind_of(parts)}")
    return ChatMessage(cast("Role", role), tuple(_part(f"{where}, part {at}", part) for at, part in enumerate(parts)))


def _part(where: str, part: Json) -> Part:
    if not isinstance(part, dict):
        raise ValueError(f"{where}: expected a mapping, found {kind_of(part)}")

    def text(key: str, default: str | None = None) -> str:
        value = part.get(key, default)
        if not isinstance(value, str):
            raise ValueError(f"{where}: `{key}` must be text, found {kind_of(value)}")
        return clean_text(value)

    try:
        replay = json.loads(text("replay")) if "replay" in part else None
        if "text" in part:
            return Text(text("text"), replay, _citations(part.get("citations", ()), where))
        if "reasoning" in part:
            return Reasoning(text("reasoning"), replay)
        if "call" in part:
            return ToolCall(text("id", ""), text("call"), text("arguments", ""), replay)
        if "result" in part:
            return ToolResult(text("id", ""), text("name", ""), text("result"), part.get("isError") is True)
        if "search" in part:
            return Search(text("search"), replay)
        if "file" in part:
            data = base64.b64decode(text("file").encode(), validate=True)
            return File(text("mimeType"), data, text("name", ""))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{where}: `replay` is no JSON: {json_fault(error)}") from None
    except binascii.Error:
        raise ValueError(f"{where}: `file` must be base64") from None
    raise ValueError(f"{where}: it is neither text, reasoning, a call, a result, a search nor a file")


def _citations(stored: Json, where: str) -> tuple[Citation, ...]:
    """The pages that a text rests on."""
    try:
        return tuple(Citation(str(url), str(title), _place(start), _place(end)) for url, title, start, end in stored)
    except (TypeError, ValueError):
        raise ValueError(f"{where}: a citation must be a list of address, title, start and end") from None


def _place(number: Json) -> int | None:
    return None if number is None else int(number)
