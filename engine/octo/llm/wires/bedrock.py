"""The Converse wire of Amazon Bedrock."""

from __future__ import annotations

import logging
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from octo.errors import BadRequest
from octo.llm import conversation, facts, thinking
from octo.llm.aws import Frames
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    File,
    NamedTool,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from octo.llm.credentials import join_url
from octo.llm.refusals import TOOL_CHOICE
from octo.llm.wire import Endpoint, HttpCall, shortened, to_bytes
from octo.llm.wires.bedrock_answer import NAME, Decoder
from octo.values import Json

IMAGE_FORMATS: Final = {"image/jpeg": "jpeg", "image/png": "png", "image/gif": "gif", "image/webp": "webp"}
DOCUMENT_FORMATS: Final = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "text/html": "html",
    "text/plain": "txt",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}
MEDIA_TYPES: Final = frozenset(IMAGE_FORMATS | DOCUMENT_FORMATS)

BESIDE_DOCUMENTS: Final = "The documents are attached."
"""What stands beside documents where there is no text, as the vendor wants some."""

_CACHE_POINT: Final = {"cachePoint": {"type": "default"}}
_LONGEST_ID: Final = 64
_LONGEST_NAME: Final = 200
_LONGEST_USER: Final = 256
_UNUSUAL_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9 \-()\[\]]")
_UNUSUAL_IN_USERS: Final = re.compile(r"[^a-zA-Z0-9 :_@$#=/+,.\-]")

_log = logging.getLogger("octo.llm")

# ---------------------------------------------------------------- request


def encode(request: ChatRequest, endpoint: Endpoint, *, stream: bool) -> HttpCall:
    """The call of Converse or ConverseStream; whatever the conversation holds, the vendor finds it well-formed."""
    model = request.model or endpoint.model
    if not model:
        raise BadRequest("no model is named", hint="set `model` on the connector or on the agent")
    may_force = facts.can_be_made_to_call(model) and TOOL_CHOICE not in endpoint.refused
    if not may_force and request.tool_choice != "none":
        request = replace(request, tool_choice="auto")
    messages = _messages(request.messages)
    system: list[Json] = [] if conversation.is_blank(request.system) else [{"text": request.system}]
    tools = _tools(request, messages)
    max_tokens = max(request.max_tokens or endpoint.max_tokens or 0, 0) or None
    more = _more_fields(request, endpoint, model, max_tokens, messages)
    inference: dict[str, Json] = {} if max_tokens is None else {"maxTokens": max_tokens}
    sampling = thinking.sampling(request, endpoint, more)
    inference |= {{"top_p": "topP"}.get(name, name): value for name, value in sampling.items()}
    if request.stop:
        inference["stopSequences"] = list(request.stop)
    if endpoint.caches(request):
        _mark_for_caching(facts.cache_places(model), system, tools, messages)
    body: dict[str, Json] = {}
    if system:
        body["system"] = system
    if tools:
        body["toolConfig"] = {"tools": tools, **_tool_choice(thinking.unforced(request, more))}
    body["messages"] = messages
    if inference:
        body["inferenceConfig"] = inference
    if more:
        body["additionalModelRequestFields"] = more
    if user := _UNUSUAL_IN_USERS.sub("-", endpoint.credentials.user)[:_LONGEST_USER]:
        body["requestMetadata"] = {"user": user}
    headers = endpoint.credentials.headers({})
    return HttpCall(_url(endpoint, model, stream), headers, to_bytes(body), stream, framing=Frames)


def lists(base_url: str) -> tuple[str, ...]:
    """The addresses of the lists of models and of profiles, which another host of the region has."""
    address = base_url.replace("//bedrock-runtime.", "//bedrock.", 1)
    return join_url(address, "foundation-models"), join_url(address, "inference-profiles")


def _url(endpoint: Endpoint, model: str, stream: bool) -> str:
    operation = "converse-stream" if stream else "converse"
    return join_url(endpoint.credentials.base_url, f"model/{quote(model, safe='', errors='replace')}/{operation}")


def _more_fields(
    request: ChatRequest, endpoint: Endpoint, model: str, max_tokens: int | None, messages: Sequence[Json]
) -> dict[str, Json]:
    """What goes to the model beside the parameters that all models share: how hard it is to think."""
    name = model.lower()
    if "claude" in name:
        may_begin = not _open_turn_began_without_thinking(messages)
        return thinking.settings(request, endpoint, max_tokens, may_begin=may_begin)
    effort = request.reasoning_effort
    if effort and "openai." in name:
        return {"reasoning_effort": effort}
    if effort and effort != "none":
        text = "%sthe reasoning effort is left out: how the model `%s` takes one is not known"
        _log.warning(text, endpoint.who, model)
    return {}


def _open_turn_began_without_thinking(messages: Sequence[Json]) -> bool:
    """Whether the model is in the middle of a turn that did not begin with thinking, or in which others took part."""
    first: Json = {"reasoningContent": None}
    for message in reversed(messages):
        if message["role"] == "user" and "toolResult" not in message["content"][0]:
            break
        if message["role"] == "assistant":
            first = message["content"][0]
            if "reasoningContent" not in first and any(map(_is_foreign, message["content"])):
                return True
    return "reasoningContent" not in first


def _is_foreign(block: Json) -> bool:
    """Whether a block is a call that another model made: ids of the service have a form of their own."""
    return "toolUse" in block and not block["toolUse"]["toolUseId"].startswith("tooluse_")


def _tools(request: ChatRequest, messages: Sequence[Json]) -> list[Json]:
    """The tools that may be called, and where none may be, those that the conversation called.

    The vendor wants the latter to be defined, and knows no way to forbid them.
    """
    called = {block["toolUse"]["name"]: None for turn in messages for block in turn["content"] if "toolUse" in block}
    offered = {tool.name: tool for tool in request.tools}
    if request.tool_choice == "none":
        offered = {name: tool for name, tool in offered.items() if name in called}
    if offered:
        return [_tool(tool.name, tool.description, tool.input_schema) for tool in offered.values()]
    return [_tool(name, "", {}) for name in called]


def _tool(name: str, description: str, schema: Json) -> dict[str, Json]:
    told = {} if conversation.is_blank(description) else {"description": description}
    typed = schema if "type" in schema else {"type": "object", **schema}
    return {"toolSpec": {"name": name, **told, "inputSchema": {"json": typed}}}


def _tool_choice(request: ChatRequest) -> dict[str, Json]:
    match request.tool_choice if request.tools else "none":
        case "any":
            return {"toolChoice": {"any": {}}}
        case NamedTool(name):
            return {"toolChoice": {"tool": {"name": name}}}
    return {}


def _mark_for_caching(places: frozenset[str], system: list[Json], tools: list[Json], messages: list[Json]) -> None:
    """Set a cache point after the system text, after the tools, and after the last message."""
    parts = {"system": system, "tools": tools, "messages": messages[-1]["content"]}
    for place, blocks in parts.items():
        if place in places and blocks:
            blocks.append(_CACHE_POINT)


# ---------------------------------------------------------------- messages


def _messages(turns: Iterable[ChatMessage]) -> list[Json]:
    messages: list[Json] = []
    names: set[str] = set()
    for turn in conversation.valid(turns):
        role = "assistant" if turn.role == "assistant" else "user"
        blocks = list(_assistant_blocks(turn.parts) if role == "assistant" else _user_blocks(turn.parts, names))
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    if not messages:
        raise BadRequest("the conversation has no user turn")
    for message in messages:
        _complete(message["content"])
    _trim_prefill(messages[-1])
    return messages


def _complete(content: list[Json]) -> None:
    """Add the text without which the vendor does not take a message."""
    kinds = {kind for block in content for kind in block}
    if "document" in kinds and "text" not in kinds:
        content.append({"text": BESIDE_DOCUMENTS})
    elif not content or "reasoningContent" in content[-1]:
        content.append({"text": conversation.NO_CONTENT})


def _trim_prefill(last: Json) -> None:
    """An answer that the model is to go on with must not end with white space."""
    block = last["content"][-1]
    if last["role"] == "assistant" and "text" in block:
        block["text"] = block["text"].rstrip()


def _assistant_blocks(parts: Sequence[Part]) -> Iterator[dict[str, Json]]:
    """Reasoning first, then text and calls in their order; files of the assistant are not sent."""
    for part in parts:
        if isinstance(part, Reasoning) and isinstance(part.replay, dict) and part.replay.get("wire") == NAME:
            if "data" in part.replay:
                yield {"reasoningContent": {"redactedContent": part.replay["data"]}}
            elif part.replay.get("signature"):
                signed = {"text": part.text, "signature": part.replay["signature"]}
                yield {"reasoningContent": {"reasoningText": signed}}
    for part in conversation.without_blank_text(parts):
        if isinstance(part, Text):
            yield {"text": part.text}
        elif isinstance(part, ToolCall):
            input = conversation.arguments(part.arguments) or {}
            yield {"toolUse": {"toolUseId": shortened(part.id, _LONGEST_ID), "name": part.name, "input": input}}


def _user_blocks(parts: Sequence[Part], names: set[str]) -> Iterator[dict[str, Json]]:
    for part in conversation.without_blank_text(parts):
        match part:
            case Text():
                yield {"text": part.text}
            case File():
                yield _file_block(part, names)
            case ToolResult():
                text = conversation.NO_CONTENT if conversation.is_blank(part.text) else part.text
                result = {"toolUseId": shortened(part.call_id, _LONGEST_ID), "content": [{"text": text}]}
                yield {"toolResult": result | {"status": "error"} if part.is_error else result}


def _file_block(file: File, names: set[str]) -> dict[str, Json]:
    source = {"bytes": b64encode(file.data).decode("ascii")}
    if image := IMAGE_FORMATS.get(file.mime_type):
        return {"image": {"format": image, "source": source}}
    format = DOCUMENT_FORMATS[file.mime_type]
    return {"document": {"format": format, "name": _document_name(file.name, names), "source": source}}


def _document_name(name: str, used: set[str]) -> str:
    """The name of a document in the letters that the vendor takes, unlike all others of the request."""
    usual = " ".join(_UNUSUAL_IN_NAMES.sub("-", " ".join(name.split())).split())[: _LONGEST_NAME - 10].strip()
    base = usual or "document"
    candidate, number = base, 1
    while candidate in used:
        number += 1
        candidate = f"{base} ({number})"
    used.add(candidate)
    return candidate


# ---------------------------------------------------------------- answer


def decoder(_: ChatRequest) -> Decoder:
    return Decoder()
