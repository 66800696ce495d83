"""The Anthropic Messages wire."""

from __future__ import annotations

import logging
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from octo.errors import BadRequest
from octo.llm import conversation, thinking
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    File,
    NamedTool,
    Part,
    Reasoning,
    Search,
    Text,
    ToolCall,
    ToolResult,
)
from octo.llm.credentials import Credentials, Headers, join_url
from octo.llm.wire import Endpoint, HttpCall, to_bytes
from octo.llm.wires.anthropic_answer import NAME, Decoder
from octo.values import Json

MEDIA_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf"})

VERSION: Final = "2023-06-01"
VERTEX_VERSION: Final = "vertex-2023-10-16"
_CONTEXT_1M: Final = "context-1m-2025-08-07"
_MAX_TOKENS: Final = 4096
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})
_WEB_SEARCH: Final = {"type": "web_search_20250305", "name": "web_search"}
_EPHEMERAL: Final = {"cache_control": {"type": "ephemeral"}}

_log = logging.getLogger("octo.llm")

# ---------------------------------------------------------------- request


def encode(request: ChatRequest, endpoint: Endpoint, *, stream: bool) -> HttpCall:
    """The call of the Messages API; whatever the conversation holds, the vendor finds it well-formed."""
    messages = _messages(request.messages, search=request.web_search)
    tools = _tools(request, messages)
    model = request.model or endpoint.model
    max_tokens = next(n for n in (request.max_tokens, endpoint.max_tokens, _MAX_TOKENS) if n and n > 0)
    system = [] if conversation.is_blank(request.system) else [{"type": "text", "text": request.system}]
    if endpoint.caches(request):
        _mark_for_caching(system, tools, messages)
    if request.web_search:
        tools.append(_WEB_SEARCH)
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
    body |= thinking.sampling(request, endpoint, reasoning)
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
    name = _WEB_SEARCH["name"]
    if request.web_search and any(tool.name == name for tool in request.tools):
        raise BadRequest(
            f"the tool `{name}` has the name of the vendor's own search of the web", hint="rename the tool"
        )
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
    may_search = request.web_search and request.tool_choice != "none"
    choice = request.tool_choice if request.tools else "auto" if may_search else "none"
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


def _messages(turns: Iterable[ChatMessage], *, search: bool) -> list[dict[str, Json]]:
    messages: list[dict[str, Json]] = []
    for turn in conversation.valid(turns):
        role = "assistant" if turn.role == "assistant" else "user"
        blocks = list(_assistant_blocks(turn.parts, search=search) if role == "assistant" else _user_blocks(turn.parts))
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    for message in messages[:-1]:
        message["content"] = _without_open_searches(message["content"])
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


def _without_open_searches(content: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """The blocks of a turn that is over, without searches that were never answered, which the vendor refuses."""
    asked = {block["id"] for block in content if block["type"] == "server_tool_use"}
    found = {block["tool_use_id"] for block in content if block["type"] == "web_search_tool_result"}
    alone = asked ^ found
    return [block for block in content if not alone & {block.get("id"), block.get("tool_use_id")}]


def _assistant_blocks(parts: Sequence[Part], *, search: bool) -> Iterator[dict[str, Json]]:
    """Reasoning first, then text and calls in their order; files of the assistant are not sent.

    Where the vendor searched the web, all is in its order: a turn that it paused comes back to it as it was.
    """
    searched = search and any(isinstance(part, Search) and _is_own(part.replay) for part in parts)
    if not searched:
        parts = sorted(parts, key=lambda part: not isinstance(part, Reasoning))
    for part in conversation.without_blank_text(parts):
        match part:
            case Reasoning(text, replay) if _is_own(replay):
                if "data" in replay:
                    yield {"type": "redacted_thinking", "data": replay["data"]}
                elif replay.get("signature"):
                    yield {"type": "thinking", "thinking": text, "signature": replay["signature"]}
            case Text(text):
                yield {"type": "text", "text": text}
            case ToolCall(id, name, arguments):
                yield {"type": "tool_use", "id": id, "name": name, "input": conversation.arguments(arguments) or {}}
            case Search(_, {"wire": "anthropic", "block": {} as block}) if search:
                yield block


def _is_own(replay: Json) -> bool:
    return isinstance(replay, dict) and replay.get("wire") == NAME


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


def decoder(_: ChatRequest | None = None) -> Decoder:
    return Decoder()
