"""Answers of Anthropic's Messages API, decoded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from octo.errors import ProviderError, Truncated
from octo.llm import conversation, faults
from octo.llm.chat import (
    ChatMessage,
    ChatResponse,
    Citation,
    CustomDelta,
    Delta,
    Part,
    Reasoning,
    Search,
    StopReason,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolInput,
    ToolReady,
    ToolStart,
    Usage,
)
from octo.llm.wire import BROKE_OFF, Unreadable, count_of, shown, text_of
from octo.values import Json, clean_text

NAME: Final = "anthropic"
"""What this wire writes into the replay data that it makes."""

_RETRIED: Final = frozenset({"api_error", "overloaded_error", "rate_limit_error", "timeout_error"})
_STOP_REASONS: Final[dict[str, StopReason]] = {
    "refusal": "refusal",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "tool_use": "tool_use",
    "pause_turn": "pause",
}
_USUAL: Final = frozenset({"end_turn", "stop_sequence", "tool_use", "max_tokens", "pause_turn"})
"""Reasons to stop of which there is nothing more to say."""
_USAGE: Final = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cached_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}


@dataclass(slots=True)
class _Block:
    """A content block while it comes in. Its text is also the argument text of a call."""

    type: str
    fragments: list[str] = field(default_factory=list)
    id: str = ""
    name: str = ""
    replay: dict[str, Json] = field(default_factory=dict)
    citations: list[Citation] = field(default_factory=list)
    open: bool = True

    @property
    def text(self) -> str:
        return "".join(self.fragments)

    def part(self) -> Part | None:
        """What the block is in the answer, if it is anything."""
        match self.type:
            case "text":
                text = clean_text(self.text)
                return Text(text, citations=tuple(self.citations)) if text else None
            case "tool_use":
                return self.call()
            case "server_tool_use":
                input = conversation.arguments(self.text) or {}
                block = {"type": self.type, "id": self.id, "name": self.name, "input": input}
                return Search(text_of(input.get("query")), {"wire": NAME, "block": block})
            case "web_search_tool_result":
                return Search("", {"wire": NAME, "block": self.replay})
            case _:
                return Reasoning(clean_text(self.text), {"wire": NAME, **self.replay})

    def call(self) -> ToolCall:
        return ToolCall(self.id, self.name, conversation.canonical(self.text))


class Decoder:
    """Gathers the blocks of one message."""

    def __init__(self) -> None:
        self.complete = False
        self._blocks: dict[int, _Block] = {}
        self.model = ""
        self._stop_reason = ""
        self._explanation = ""
        self._usage: dict[str, int] = {}

    @property
    def ended(self) -> bool:
        return self.complete

    @property
    def usage(self) -> Usage | None:
        return _usage(self._usage)

    def feed(self, event: Json) -> list[Delta]:
        match event:
            case {"type": "message_start", "message": {} as message}:
                self.model = text_of(message.get("model"))
                self._count(message.get("usage"))
            case {"type": "content_block_start", "content_block": {"type": str()} as block}:
                return self._start(_index(event), block)
            case {"type": "content_block_delta", "delta": {"type": str()} as delta}:
                return self._extend(_index(event), delta)
            case {"type": "content_block_stop"}:
                return self._stop(_index(event))
            case {"type": "message_delta", "delta": {} as delta}:
                self._stop_reason = text_of(delta.get("stop_reason")) or self._stop_reason
                if isinstance(details := delta.get("stop_details"), dict):
                    self._explanation = text_of(details.get("explanation")) or text_of(details.get("category"))
                self._count(event.get("usage"))
            case {"type": "message_stop"}:
                self.complete = True
                return [delta for index in self._blocks for delta in self._stop(index)]
            case {"type": "error"}:
                raise _failure(event.get("error"))
            case {"type": "message", "content": [*blocks]}:
                return [delta for step in _as_stream(event, blocks) for delta in self.feed(step)]
            case {"type": "message"}:
                raise Unreadable(f"expected `content` to be a list of blocks, found {shown(event.get('content'))}")
            case {"type": "message_start" | "content_block_start" | "content_block_delta" | "message_delta"}:
                raise Unreadable(f"expected an event with its content, found {shown(event)}")
            case {"type": str()}:
                pass  # `ping`, and what later versions of the API may add
            case {"error": error} if error:
                raise _failure(error)
            case _:
                raise Unreadable(f"expected a message with a `type`, found {shown(event)}")
        return []

    def finish(self) -> ChatResponse:
        if not self.complete:
            raise Truncated(BROKE_OFF, retryable=True)
        parts = (block.part() for block in self._blocks.values())
        return ChatResponse(
            message=ChatMessage("assistant", tuple(part for part in parts if part is not None)),
            stop_reason=_STOP_REASONS.get(self._stop_reason, "end_turn"),
            model=self.model,
            usage=self.usage,
            stop_detail=self._stop_detail(),
        )

    def _stop_detail(self) -> str:
        if self._stop_reason in _USUAL:
            return ""
        return ": ".join(filter(None, (self._stop_reason, clean_text(self._explanation))))

    def _start(self, index: int, start: dict[str, Json]) -> list[Delta]:
        if index in self._blocks:
            return []
        match start["type"]:
            case "text":
                text, cited = text_of(start.get("text")), start.get("citations")
                block = self._blocks[index] = _Block("text", [text])
                block.citations += [page for one in (cited if isinstance(cited, list) else ()) for page in _page(one)]
                return [TextDelta(text, index)] if text else []
            case "thinking":
                text, signature = text_of(start.get("thinking")), text_of(start.get("signature"))
                replay = {"signature": signature} if signature else {}
                self._blocks[index] = _Block("thinking", [text], replay=replay)
                return [ThinkingDelta(text, index)] if text else []
            case "redacted_thinking":
                self._blocks[index] = _Block("thinking", replay={"data": text_of(start.get("data"))})
            case "server_tool_use" if start.get("name") == "web_search":
                block = self._blocks[index] = _Block("server_tool_use", id=text_of(start.get("id")), name="web_search")
                if arguments := start.get("input"):
                    block.fragments.append(json.dumps(arguments, ensure_ascii=False))
            case "web_search_tool_result":
                told = {name: start.get(name) for name in ("type", "tool_use_id", "content")}
                self._blocks[index] = _Block("web_search_tool_result", replay=told)
            case "tool_use":
                id = text_of(start.get("id")) or f"call_{index}"
                call = self._blocks[index] = _Block("tool_use", id=id, name=text_of(start.get("name")))
                deltas: list[Delta] = [ToolStart(call.id, call.name, index)]
                if arguments := start.get("input"):
                    call.fragments.append(json.dumps(arguments, ensure_ascii=False))
                    deltas.append(ToolInput(call.text, call.id, call.name, index))
                return deltas
        return []

    def _extend(self, index: int, delta: dict[str, Json]) -> list[Delta]:
        block = self._blocks.get(index)
        kind = block.type if block is not None and block.open else ""
        match delta["type"], kind:
            case "text_delta", "text":
                fragment = self._append(index, delta.get("text"))
                return [TextDelta(fragment, index)] if fragment else []
            case "thinking_delta", "thinking":
                fragment = self._append(index, delta.get("thinking"))
                return [ThinkingDelta(fragment, index)] if fragment else []
            case "signature_delta", "thinking":
                replay = self._blocks[index].replay
                replay["signature"] = replay.get("signature", "") + text_of(delta.get("signature"))
            case "input_json_delta", "tool_use":
                fragment = self._append(index, delta.get("partial_json"))
                call = self._blocks[index]
                return [ToolInput(fragment, call.id, call.name, index)] if fragment else []
            case "input_json_delta", "server_tool_use":
                self._append(index, delta.get("partial_json"))
            case "citations_delta", "text":
                self._blocks[index].citations += _page(delta.get("citation"))
            case (("text_delta" | "thinking_delta" | "signature_delta" | "input_json_delta" | "citations_delta"), _):
                pass  # a fragment of a block that is none of ours
            case name, _:
                more = {key: value for key, value in delta.items() if key != "type"}
                return [CustomDelta(name, _only_text(more), index)]
        return []

    def _append(self, index: int, fragment: Json) -> str:
        text = text_of(fragment)
        self._blocks[index].fragments.append(text)
        return text

    def _stop(self, index: int) -> list[Delta]:
        block = self._blocks.get(index)
        if block is None or not block.open:
            return []
        block.open = False
        return [ToolReady(block.call())] if block.type == "tool_use" else []

    def _count(self, usage: Json) -> None:
        """Fields that are present replace what was known."""
        if isinstance(usage, dict):
            for theirs, ours in _USAGE.items():
                number = count_of(usage.get(theirs))
                if number is not None:
                    self._usage[ours] = number


def _as_stream(message: dict[str, Json], blocks: Sequence[Json]) -> Iterator[dict[str, Json]]:
    """The events that a message would have come in, had it been streamed."""
    yield {"type": "message_start", "message": message}
    for index, block in enumerate(blocks):
        if not (isinstance(block, dict) and isinstance(block.get("type"), str)):
            raise Unreadable(f"expected a block with a `type` in `content`, found {shown(block)}")
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_stop", "index": index}
    stop = {name: message.get(name) for name in ("stop_reason", "stop_details")}
    yield {"type": "message_delta", "delta": stop}
    yield {"type": "message_stop"}


def _failure(error: Json) -> ProviderError:
    kind = text_of(error.get("type")) if isinstance(error, dict) else ""
    return faults.from_event(error, retryable=kind in _RETRIED)


def _usage(known: dict[str, int]) -> Usage | None:
    if not any(known.values()):
        return None
    read = [known[name] for name in ("input_tokens", "cached_tokens", "cache_write_tokens") if name in known]
    return Usage(**known, prompt_tokens=sum(read) if read else None)


def _page(citation: Json) -> Iterator[Citation]:
    """The page of the web that is cited, if it is one."""
    match citation:
        case {"url": str() as url} if url:
            yield Citation(clean_text(url), clean_text(text_of(citation.get("title"))))


def _index(event: dict[str, Json]) -> int:
    index = event.get("index", 0)
    if type(index) is not int:
        raise Unreadable(f"expected a whole number as `index` of a block, found {shown(index)}")
    return index


def _only_text(fields: dict[str, Json]) -> str:
    """The one field of a fragment if it is text, else all of them as JSON."""
    values = list(fields.values())
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
