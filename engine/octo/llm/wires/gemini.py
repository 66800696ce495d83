"""The Gemini wire: `generateContent`, of the Gemini API and on Vertex AI."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, assert_never
from urllib.parse import quote

from octo.errors import BadRequest
from octo.llm import conversation
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
from octo.llm.credentials import Credentials, join_url, with_query
from octo.llm.facts import is_before_gemini_3
from octo.llm.refusals import BUDGET, EFFORT, WORD
from octo.llm.schemas import GeminiForm
from octo.llm.wire import Endpoint, HttpCall, to_bytes
from octo.llm.wires.gemini_answer import NAME, Decoder
from octo.values import Json

MEDIA_TYPES: Final = frozenset(
    {
        "image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf", "text/plain",
        "audio/wav", "audio/mpeg", "audio/mp3", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac",
    }
)  # fmt: skip

SKIPPED_SIGNATURE: Final = "skip_thought_signature_validator"
"""What the vendor wants as the signature of a call that another model made."""

_BUDGETS: Final = {"low": 1024, "medium": 8192, "high": 24576}
"""Tokens for thinking by the word for an effort; with any other word the model decides."""
_DYNAMIC: Final = -1
_SEARCH: Final[dict[str, Json]] = {"googleSearch": {}}
_CHOICES: Final[dict[str, Json]] = {"any": {"mode": "ANY"}, "none": {"mode": "NONE"}}

# ---------------------------------------------------------------- request


def encode(request: ChatRequest, endpoint: Endpoint, *, stream: bool) -> HttpCall:
    """The call that asks for content; whatever the conversation holds, the vendor finds it well-formed."""
    model = request.model or endpoint.model
    if request.output_type == "image":
        request = _for_drawing(request)
    body: dict[str, Json] = {}
    if not conversation.is_blank(request.system):
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    body["contents"] = _contents(request.messages, search=request.web_search)
    body |= _tools(request, model)
    if config := _generation_config(request, endpoint, model):
        body["generationConfig"] = config
    credentials = endpoint.credentials
    return HttpCall(url(credentials, model, stream=stream), credentials.headers({}), to_bytes(body), stream)


def _for_drawing(request: ChatRequest) -> ChatRequest:
    """The request of an image: models that draw take no system text, so it stands before what the user says."""
    system = () if conversation.is_blank(request.system) else (Text(f"{request.system}\n\n"),)
    first, *others = request.messages or (ChatMessage("user", ()),)
    place = len(first.files)
    first = replace(first, parts=(*first.parts[:place], *system, *first.parts[place:]))
    return replace(request, system="", messages=(first, *others), tools=())


def address(credentials: Credentials, model: str, method: str) -> str:
    """The address of a model's method."""
    name = quote(model.removeprefix("models/"), safe="/@:")
    return join_url(root(credentials.base_url), f"models/{name}:{method}")


def root(base_url: str) -> str:
    """The address that paths of the API are joined to; the base may name the collection of models already."""
    return re.sub(r"/+models/*(?=\?|$)", "", base_url, count=1)


def url(credentials: Credentials, model: str, *, stream: bool) -> str:
    """Where content is asked for."""
    found = address(credentials, model, "streamGenerateContent" if stream else "generateContent")
    return with_query(found, "alt=sse") if stream else found


def _generation_config(request: ChatRequest, endpoint: Endpoint, model: str) -> dict[str, Json]:
    config: dict[str, Json] = {}
    max_tokens = request.max_tokens or endpoint.max_tokens or 0
    if max_tokens > 0:
        config["maxOutputTokens"] = max_tokens
    if request.temperature is not None and "temperature" not in endpoint.refused:
        config["temperature"] = request.temperature
    if request.top_p is not None:
        config["topP"] = request.top_p
    if request.stop:
        config["stopSequences"] = list(request.stop)
    if request.output_type == "image":
        return config | {"responseModalities": ["TEXT", "IMAGE"]}
    if thinking := _thinking(request.reasoning_effort or "", endpoint, model):
        config["thinkingConfig"] = thinking
    takes_only_one = (request.tools or request.web_search) and is_before_gemini_3(model)
    if request.output_schema and not takes_only_one:
        config["responseMimeType"] = "application/json"
        config["responseSchema"] = GeminiForm(request.output_schema).of_value()
    return config


def _thinking(effort: str, endpoint: Endpoint, model: str) -> dict[str, Json]:
    """How much to think: up to Gemini 2.5 in tokens, later in words; what the model refused is said in another way."""
    refused, flash = endpoint.refused, "flash" in model.lower()
    in_tokens = is_before_gemini_3(model) or EFFORT in refused
    if BUDGET in refused:
        return {} if effort == "none" else {"includeThoughts": True}
    if effort == "none":
        if in_tokens:
            return {"thinkingBudget": 0 if flash else 128}
        return {"thinkingLevel": "minimal" if flash and WORD not in refused else "low"}
    if effort and in_tokens:
        return {"thinkingBudget": _BUDGETS.get(effort, _DYNAMIC), "includeThoughts": True}
    if effort and WORD in refused:
        return {"thinkingLevel": "low" if effort == "minimal" else "high", "includeThoughts": True}
    if effort:
        return {"thinkingLevel": effort, "includeThoughts": True}
    match endpoint.thinking:
        case "off":
            return {}
        case "adaptive":
            return {"thinkingBudget": _DYNAMIC, "includeThoughts": True}
        case "budgeted":
            return {"thinkingBudget": endpoint.thinking_budget or _DYNAMIC, "includeThoughts": True}
        case _ as unknown:
            assert_never(unknown)


def _tools(request: ChatRequest, model: str) -> dict[str, Json]:
    if not request.web_search:
        return _functions(request)
    if not request.tools:
        return {"tools": [_SEARCH]}
    if is_before_gemini_3(model):
        raise BadRequest(
            f"`{model}` cannot search the web and call tools in one request",
            hint="name a later model, or leave out the tools or the search",
        )
    asked = _functions(request)
    told = {**asked.get("toolConfig", {}), "includeServerSideToolInvocations": True}
    return {"tools": [*asked["tools"], _SEARCH], "toolConfig": told}


def _functions(request: ChatRequest) -> dict[str, Json]:
    if not request.tools:
        return {}
    declarations: list[Json] = []
    for tool in request.tools:
        declaration: dict[str, Json] = {"name": tool.name}
        if not conversation.is_blank(tool.description):
            declaration["description"] = tool.description
        if (parameters := GeminiForm(tool.input_schema).of_arguments()) is not None:
            declaration["parameters"] = parameters
        declarations.append(declaration)
    choice = _CHOICES.get(request.tool_choice) if isinstance(request.tool_choice, str) else None
    if isinstance(request.tool_choice, NamedTool):
        choice = {"mode": "ANY", "allowedFunctionNames": [request.tool_choice.name]}
    configured = {"toolConfig": {"functionCallingConfig": choice}} if choice else {}
    return {"tools": [{"functionDeclarations": declarations}], **configured}


# ---------------------------------------------------------------- contents


def _contents(turns: Iterable[ChatMessage], *, search: bool) -> list[dict[str, Json]]:
    contents: list[dict[str, Json]] = []
    calls: Mapping[str, ToolCall] = {}
    for turn in conversation.valid(turns):
        if turn.role == "assistant":
            parts = list(_model_parts(turn.parts, search=search))
            calls = {call.id: call for call in turn.calls}
        else:
            parts = list(_user_parts(turn.parts, calls))
        if not any(part.keys() - {"thought", "thoughtSignature"} and not part.get("thought") for part in parts):
            parts.append({"text": conversation.NO_CONTENT})
        contents.append({"role": "model" if turn.role == "assistant" else "user", "parts": parts})
    if not contents:
        raise BadRequest("the conversation has no user turn")
    return contents


def _user_parts(parts: Sequence[Part], calls: Mapping[str, ToolCall]) -> Iterator[dict[str, Json]]:
    for part in conversation.without_blank_text(parts):
        match part:
            case Text(text):
                yield {"text": text}
            case File():
                mime_type = "audio/mp3" if part.mime_type == "audio/mpeg" else part.mime_type
                yield {"inlineData": {"mimeType": mime_type, "data": b64encode(part.data).decode("ascii")}}
            case ToolResult():
                yield _result(part, calls.get(part.call_id))


def _model_parts(parts: Iterable[Part], *, search: bool) -> Iterator[dict[str, Json]]:
    """A turn of the model in its order, with the signatures of its own where they were; files are not sent."""
    for part in parts:
        match part:
            case Search(_, {"wire": "gemini", "part": {} as step}) if search:
                yield step
        if not isinstance(part, Text | Reasoning | ToolCall):
            continue
        own = part.replay if _is_own(part.replay) else {}
        signed = {"thoughtSignature": own["signature"]} if own.get("signature") else {}
        if isinstance(part, ToolCall):
            call = {"name": part.name, "args": conversation.arguments(part.arguments) or {}}
            if not own:
                signed = {"thoughtSignature": SKIPPED_SIGNATURE}
            yield {"functionCall": call | _given_id(part), **signed}
        elif signed or not conversation.is_blank(part.text):
            if isinstance(part, Text):
                yield {"text": part.text, **signed}
            elif own:
                yield {"text": part.text, "thought": True, **signed}


def _is_own(replay: Json) -> bool:
    return isinstance(replay, dict) and replay.get("wire") == NAME


def _given_id(call: ToolCall | None) -> dict[str, Json]:
    """The id of a call, if the vendor gave it one."""
    replay = call.replay if call is not None and _is_own(call.replay) else {}
    return {"id": replay["id"]} if "id" in replay else {}


def _result(result: ToolResult, call: ToolCall | None) -> dict[str, Json]:
    """A result as text: inside an object the vendor would take some values for references."""
    text = conversation.NO_CONTENT if conversation.is_blank(result.text) else result.text
    return {
        "functionResponse": {
            "name": call.name if call is not None else "unknown_function",
            "response": {"error" if result.is_error else "result": text},
            **_given_id(call),
        }
    }


# ---------------------------------------------------------------- answer


def decoder(request: ChatRequest | None = None) -> Decoder:
    return Decoder(request)
