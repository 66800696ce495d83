"""The Anthropic Messages wire."""

from __future__ import annotations

import json
import logging
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from octo.errors import BadRequest, ProviderError, Truncated
from octo.llm import conversation, faults, thinking
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
    CustomDelta,
    Delta,
    File,
    NamedTool,
    Part,
    Reasoning,
    StopReason,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolInput,
    ToolReady,
    ToolResult,
    ToolStart,
    Usage,
)
from octo.llm.credentials import Credentials, Headers, join_url
from octo.llm.facts import takes_temperature
from octo.llm.wire import BROKE_OFF, Endpoint, HttpCall, Unreadable, count_of, shown, text_of, to_bytes
from octo.values import Json, clean_text

NAME: Final = "anthropic"
"""What this wire writes into the replay data that it makes."""

MEDIA_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf"})

VERSION: Final = "2023-06-01"
VERTEX_VERSION: Final = "vertex-2023-10-16"
_CONTEXT_1M: Final = "context-1m-2025-08-07"
_MAX_TOKENS: Final = 4096
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})
_EPHEMERAL: Final = {"cache_control": {"type": "ephemeral"}}

_log = logging.getLogger("octo.llm")

# ---------------------------------------------------------------- request


def encode(request: ChatRequest, endpoint: Endpoint, *, stream: bool) -> HttpCall:
    """The call of the Messages API; whatever the conversation holds, the vendor finds it well-formed."""
    messages = _messages(request.messages)
    tools = _tools(request, messages)
    model = request.model or endpoint.model
    max_tokens = next(n for n in (request.max_tokens, endpoint.max_tokens, _MAX_TOKENS) if n and n > 0)
    system = [] if conversation.is_blank(request.system) else [{"type": "text", "text": request.system}]
    if endpoint.caches(request):
        _mark_for_caching(system, tools, messages)
    may_begin = not _open_turn_began_without_thinking(messages)
    reasoning = thinking.settings(request, endpoint, max_tokens, may_begin=may_begin)
    on_vertex = endpoint.credentials.platform == "vertex"
    body: dict[str, Json] = {"anthropic_version": VERTEX_VERSION} if on_vertex else {"model": model}
    body["max_tokens"] = max_tokens
    if system:
        body["system"] = system
    if tools:
        body["tools"] = tools
        body |= _tool_choice(thinking.unforced(request, reasoning))
    body["messages"] = messages
    body |= reasoning
    if "temperature" not in endpoint.refused and not thinking.is_on(reasoning) and takes_temperature(model):
        sampling = {"temperature": request.temperature, "top_p": request.top_p}
        body |= {name: value for name, value in sampling.items() if value is not None}
    if request.stop:
        body["stop_sequences"] = list(request.stop)
    if user := endpoint.credentials.user or request.user:
        body["metadata"] = {"user_id": user}
    if stream:
        body["stream"] = True
    base_url = endpoint.credentials.base_url
    address = vertex_url(base_url, model, stream=stream) if on_vertex else url(base_url)
    return HttpCall(address, headers(endpoint.credentials), to_bytes(body), stream)


def vertex_url(base_url: str, model: str, *, stream: bool) -> str:
    """The address of a model on Vertex AI; the base names the collection of models."""
    return join_url(base_url, f"{quote(model, safe='@')}:{'streamRawPredict' if stream else 'rawPredict'}")


def url(base_url: str, path: str = "messages") -> str:
    """The address of a path of the API; the base may end in `/v1` or not."""
    return join_url(re.sub(r"/+v1/*(?=\?|$)", "", base_url, count=1), f"v1/{path}")


def headers(credentials: Credentials, given: Mapping[str, str] = MappingProxyType({})) -> Headers:
    """The headers of a call. Those that are given have been asked for, such as the version of the API."""
    if credentials.platform == "vertex":
        return credentials.headers({name: value for name, value in given.items() if name != "anthropic-version"})
    headers = dict(credentials.headers({"anthropic-version": VERSION, **given}))
    if credentials.enable_1m_context:
        name = next((name for name in headers if name.lower() == "anthropic-beta"), "anthropic-beta")
        named = [word.strip() for word in headers.get(name, "").split(",") if word.strip()]
        headers[name] = ",".join(dict.fromkeys([*named, _CONTEXT_1M]))
    return tuple(headers.items())


def _open_turn_began_without_thinking(messages: Sequence[Json]) -> bool:
    """Whether the model is in the middle of a turn that did not begin with thinking, or in which others took part."""
    before = ""
    for message in reversed(messages):
        kind = message["content"][0]["type"]
        if message["role"] == "user" and kind != "tool_result":
            break
        if message["role"] == "assistant":
            if kind not in _THINKING and any(_is_foreign(block) for block in message["content"]):
                return True
            before = kind
    return before not in {"", *_THINKING}


def _is_foreign(block: Json) -> bool:
    """Whether a block is a call that another model made: the vendor's own ids have a form of their own."""
    return block["type"] == "tool_use" and not block["id"].startswith("toolu_")


def _tools(request: ChatRequest, messages: Sequence[Json]) -> list[dict[str, Json]]:
    tools = [_tool(tool.name, tool.description, tool.input_schema) for tool in request.tools]
    if tools:
        return tools
    # The vendor wants the tools that the conversation called to be defined, also when none may be called now.
    called = (block["name"] for turn in messages for block in turn["content"] if block["type"] == "tool_use")
    return [_tool(name, "", {}) for name in dict.fromkeys(called)]


def _tool(name: str, description: str, schema: Json) -> dict[str, Json]:
    tool = {"name": name, "description": description, "input_schema": schema}
    if conversation.is_blank(description):
        del tool["description"]
    if "type" not in schema:
        tool["input_schema"] = {"type": "object", **schema}
    return tool


def _tool_choice(request: ChatRequest) -> dict[str, Json]:
    choice = request.tool_choice if request.tools else "none"
    one = {} if request.parallel_calls else {"disable_parallel_tool_use": True}
    match choice:
        case "auto":
            return {"tool_choice": {"type": "auto", **one}} if one else {}
        case "any":
            return {"tool_choice": {"type": "any", **one}}
        case "none":
            return {"tool_choice": {"type": "none"}}
        case NamedTool(name):
            return {"tool_choice": {"type": "tool", "name": name, **one}}


def _mark_for_caching(
    system: list[dict[str, Json]], tools: list[dict[str, Json]], messages: list[dict[str, Json]]
) -> None:
    """Set a breakpoint after the system text, after the tools, and after the last message."""
    for blocks in (system, tools):
        if blocks:
            blocks[-1] |= _EPHEMERAL
    last = messages[-1]["content"][-1]
    if last["type"] in {"text", "tool_result", "image", "document"}:
        last |= _EPHEMERAL


# ---------------------------------------------------------------- messages


def _messages(turns: Iterable[ChatMessage]) -> list[dict[str, Json]]:
    messages: list[dict[str, Json]] = []
    for turn in conversation.valid(turns):
        role = "assistant" if turn.role == "assistant" else "user"
        blocks = list(_assistant_blocks(turn.parts) if role == "assistant" else _user_blocks(turn.parts))
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    for message in messages:
        if not message["content"] or message["content"][-1]["type"] in {"thinking", "redacted_thinking"}:
            message["content"].append({"type": "text", "text": conversation.NO_CONTENT})
    if not messages:
        raise BadRequest("the conversation has no user turn")
    _trim_prefill(messages[-1])
    return messages


def _trim_prefill(last: dict[str, Json]) -> None:
    """An answer that the model is to go on with must not end with white space."""
    block = last["content"][-1]
    if last["role"] == "assistant" and block["type"] == "text":
        block["text"] = block["text"].rstrip()


def _assistant_blocks(parts: Sequence[Part]) -> Iterator[dict[str, Json]]:
    """Reasoning first, then text and calls in their order; files of the assistant are not sent."""
    for part in parts:
        if isinstance(part, Reasoning) and isinstance(part.replay, dict) and part.replay.get("wire") == NAME:
            if "data" in part.replay:
                yield {"type": "redacted_thinking", "data": part.replay["data"]}
            elif part.replay.get("signature"):
                yield {"type": "thinking", "thinking": part.text, "signature": part.replay["signature"]}
    for part in conversation.without_blank_text(parts):
        if isinstance(part, Text):
            yield {"type": "text", "text": part.text}
        elif isinstance(part, ToolCall):
            input = conversation.arguments(part.arguments) or {}
            yield {"type": "tool_use", "id": part.id, "name": part.name, "input": input}


def _user_blocks(parts: Sequence[Part]) -> Iterator[dict[str, Json]]:
    for part in conversation.without_blank_text(parts):
        match part:
            case Text(text):
                yield {"type": "text", "text": text}
            case File():
                yield _file_block(part)
            case ToolResult():
                text = conversation.NO_CONTENT if conversation.is_blank(part.text) else part.text
                block = {"type": "tool_result", "tool_use_id": part.call_id, "content": text}
                yield block | {"is_error": True} if part.is_error else block


def _file_block(file: File) -> dict[str, Json]:
    source = {"type": "base64", "media_type": file.mime_type, "data": b64encode(file.data).decode("ascii")}
    if file.mime_type != "application/pdf":
        return {"type": "image", "source": source}
    title = {} if conversation.is_blank(file.name) else {"title": file.name}
    return {"type": "document", "source": source, **title}


# ---------------------------------------------------------------- answer

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


def decoder(_: ChatRequest | None = None) -> Decoder:
    return Decoder()


@dataclass(slots=True)
class _Block:
    """A content block while it comes in. Its text is also the argument text of a call."""

    type: str
    fragments: list[str] = field(default_factory=list)
    id: str = ""
    name: str = ""
    replay: dict[str, Json] = field(default_factory=dict)
    open: bool = True

    @property
    def text(self) -> str:
        return "".join(self.fragments)

    def part(self) -> Part | None:
        """What the block is in the answer, if it is anything."""
        match self.type:
            case "text":
                text = clean_text(self.text)
                return Text(text) if text else None
            case "tool_use":
                return self.call()
            case _:
                return Reasoning(clean_text(self.text), {"wire": NAME, **self.replay})

    def call(self) -> ToolCall:
        return ToolCall(self.id, self.name, conversation.canonical(self.text))


class Decoder:
    """Gathers the blocks of one message."""

    def __init__(self) -> None:
        self.complete = False
        self._blocks: dict[int, _Block] = {}
        self._model = ""
        self._stop_reason = ""
        self._explanation = ""
        self._usage: dict[str, int] = {}

    @property
    def ended(self) -> bool:
        return self.complete

    def feed(self, event: Json) -> list[Delta]:
        match event:
            case {"type": "message_start", "message": {} as message}:
                self._model = text_of(message.get("model"))
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
            model=self._model,
            usage=_usage(self._usage),
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
                text = text_of(start.get("text"))
                self._blocks[index] = _Block("text", [text])
                return [TextDelta(text, index)] if text else []
            case "thinking":
                text, signature = text_of(start.get("thinking")), text_of(start.get("signature"))
                replay = {"signature": signature} if signature else {}
                self._blocks[index] = _Block("thinking", [text], replay=replay)
                return [ThinkingDelta(text, index)] if text else []
            case "redacted_thinking":
                self._blocks[index] = _Block("thinking", replay={"data": text_of(start.get("data"))})
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
            case (("text_delta" | "thinking_delta" | "signature_delta" | "input_json_delta"), _):
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
