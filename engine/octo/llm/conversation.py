"""The conversation as every vendor takes it: what must hold between turns, made to hold."""

from __future__ import annotations

import json
import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from octo.errors import BadRequest
from octo.llm.chat import ChatMessage, Part, Text, ToolCall, ToolResult
from octo.values import Json, clean_text

INTERRUPTED: Final = "interrupted, outcome unknown"
"""What the model reads where the result of a call was lost."""
NO_CONTENT: Final = "(no content)"
"""What stands where a vendor wants text and there is none."""
_UNUSUAL: Final = re.compile(r"[^a-zA-Z0-9_-]")
"""What not every vendor takes in ids and names of calls."""
_LONGEST_NAME: Final = 64
_DEEPEST: Final = 200
"""So many levels of nesting every vendor reads."""

_log = logging.getLogger("octo.llm")


def valid(messages: Iterable[ChatMessage], *, user_first: bool = True) -> list[ChatMessage]:
    """The conversation with each call answered in the next turn, unique call ids, and no two turns of a kind.

    A call without a result gets a failed one, a result without its call is left out, neighbours of one role
    become one. With `user_first`, turns of the assistant before the first user turn are left out.
    """
    turns = _with_unique_ids(_with_results(messages))
    if user_first:
        turns = _from_first_user(turns)
    return _merged(turns)


def is_blank(text: str) -> bool:
    return not text.strip()


def _with_results(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    turns: list[ChatMessage] = []
    open_calls: tuple[ToolCall, ...] = ()
    results: list[ToolResult] = []

    def settle() -> None:
        nonlocal open_calls, results
        if open_calls:
            turns.append(ChatMessage("tool", tuple(_in_call_order(open_calls, results))))
        open_calls, results = (), []

    for message in messages:
        match message.role:
            case "tool":
                results += [part for part in message.parts if isinstance(part, ToolResult)]
            case "user":
                settle()
                turns.append(message)
            case "assistant":
                settle()
                turns.append(_with_plain_names(message))
                open_calls = turns[-1].calls
            case _:
                raise BadRequest(f"unknown message role `{message.role}`")
    settle()
    return turns


def _with_plain_names(message: ChatMessage) -> ChatMessage:
    """The turn with each call under a name that all vendors take; a call without a name is left out.

    What a model invents for a name may hold anything, and its turn is sent on every later call.
    """
    parts = (_with_plain_name(part) if isinstance(part, ToolCall) else part for part in message.parts)
    return replace(message, parts=tuple(part for part in parts if part is not None))


def _with_plain_name(call: ToolCall) -> ToolCall | None:
    """The call under a plain name. A signature is for the name that it was made for, so another one loses it."""
    if is_blank(call.name):
        return None
    plain = _UNUSUAL.sub("_", call.name)[:_LONGEST_NAME]
    return call if plain == call.name else replace(call, name=plain, replay=None)


def _in_call_order(calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> Iterable[ToolResult]:
    waiting: defaultdict[str, list[ToolResult]] = defaultdict(list)
    for result in results:
        waiting[result.call_id].append(result)
    for call in calls:
        if waiting[call.id]:
            yield waiting[call.id].pop(0)
        else:
            yield ToolResult(call.id, call.name, INTERRUPTED, is_error=True)


def _with_unique_ids(turns: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Each call under an id of its own, in letters that all vendors take; the result right after it follows.

    A result has the place of its call, so the ids of a turn can be given anew without looking anything up.
    """
    used: set[str] = set()
    unique: list[ChatMessage] = []
    ids: list[str] = []
    for turn in turns:
        if turn.role == "tool":
            results = (part for part in turn.parts if isinstance(part, ToolResult))
            parts = [replace(result, call_id=id) for result, id in zip(results, ids, strict=True)]
            turn = replace(turn, parts=tuple(parts))
        elif turn.calls:
            ids = [_unused(call.id, used) for call in turn.calls]
            turn = _with_ids(turn, iter(ids))
        unique.append(turn)
    return unique


def _with_ids(turn: ChatMessage, ids: Iterator[str]) -> ChatMessage:
    parts = (replace(part, id=next(ids)) if isinstance(part, ToolCall) else part for part in turn.parts)
    return replace(turn, parts=tuple(parts))


def _unused(id: str, used: set[str]) -> str:
    base = _UNUSUAL.sub("_", id) or "call"
    candidate, number = base, 1
    while candidate in used:
        number += 1
        candidate = f"{base}-{number}"
    used.add(candidate)
    return candidate


def _from_first_user(turns: Sequence[ChatMessage]) -> list[ChatMessage]:
    start = next((index for index, turn in enumerate(turns) if turn.role == "user"), len(turns))
    if start:
        _log.warning("%d turns before the first user turn are not sent", start)
    return list(turns[start:])


def _merged(turns: Sequence[ChatMessage]) -> list[ChatMessage]:
    merged: list[ChatMessage] = []
    for turn in turns:
        if merged and merged[-1].role == turn.role:
            merged[-1] = replace(turn, parts=(*merged[-1].parts, *turn.parts))
        else:
            merged.append(turn)
    return merged


def without_blank_text(parts: Iterable[Part]) -> list[Part]:
    """The parts but for text that is blank after trimming, which no vendor takes."""
    return [part for part in parts if not (isinstance(part, Text) and is_blank(part.text))]


def arguments(text: str) -> dict[str, Json] | None:
    """The arguments of a call as the object that vendors want; None for text that is none."""
    try:
        value = _strict.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and _nests_at_most(_DEEPEST, value) else None


def canonical(arguments: str) -> str:
    """Argument text that is JSON in its compact form, so that a streamed call equals an unstreamed one."""
    if is_blank(arguments):
        return "{}"
    try:
        return clean_text(json.dumps(_strict.decode(arguments), ensure_ascii=False, separators=(",", ":")))
    except (ValueError, RecursionError):
        return clean_text(arguments)


def _nests_at_most(depth: int, value: Json) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth > 0 and all(_nests_at_most(depth - 1, item) for item in items)


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"`{name}` is not JSON")


_strict: Final = json.JSONDecoder(parse_constant=_refuse_constant)
