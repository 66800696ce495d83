"""The Gemini wire: `generateContent`, of the Gemini API and on Vertex AI."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, assert_never
from urllib.parse import quote

from octo.errors import BadRequest, Truncated
from octo.llm import conversation, faults, media
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
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
from octo.llm.credentials import Credentials, join_url, with_query
from octo.llm.facts import is_before_gemini_3
from octo.llm.framing import DONE
from octo.llm.schemas import GeminiForm
from octo.llm.wire import BROKE_OFF, Endpoint, HttpCall, Unreadable, count_of, shown, text_of, to_bytes
from octo.values import Json, clean_text

NAME: Final = "gemini"
"""What this wire writes into the replay data that it makes."""

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
    body["contents"] = _contents(request.messages)
    body |= _tools(request)
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
    """The address of a model's method; on Vertex AI the base names the collection of models already."""
    name = quote(model.removeprefix("models/"), safe="/@:")
    path = name if credentials.platform == "vertex" else f"models/{name}"
    return join_url(credentials.base_url, f"{path}:{method}")


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
    if request.output_schema and not (request.tools and is_before_gemini_3(model)):  # which take only one of them
        config["responseMimeType"] = "application/json"
        config["responseSchema"] = GeminiForm(request.output_schema).of_value()
    return config


def _thinking(effort: str, endpoint: Endpoint, model: str) -> dict[str, Json]:
    """How much to think: up to Gemini 2.5 in tokens, later in words."""
    in_tokens, flash = is_before_gemini_3(model), "flash" in model.lower()
    if effort == "none":
        if in_tokens:
            return {"thinkingBudget": 0 if flash else 128}
        return {"thinkingLevel": "minimal" if flash else "low"}
    if effort and in_tokens:
        return {"thinkingBudget": _BUDGETS.get(effort, _DYNAMIC), "includeThoughts": True}
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


def _tools(request: ChatRequest) -> dict[str, Json]:
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


def _contents(turns: Iterable[ChatMessage]) -> list[dict[str, Json]]:
    contents: list[dict[str, Json]] = []
    calls: Mapping[str, ToolCall] = {}
    for turn in conversation.valid(turns):
        if turn.role == "assistant":
            parts = list(_model_parts(turn.parts))
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


def _model_parts(parts: Iterable[Part]) -> Iterator[dict[str, Json]]:
    """A turn of the model in its order, with the signatures of its own where they were; files are not sent."""
    for part in parts:
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

_UNSPECIFIED: Final = frozenset(
    {"", "FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED"}
)
_REFUSALS: Final = frozenset(
    {
        "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
        "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION",
    }
)  # fmt: skip
_USUAL: Final = frozenset({"STOP", "MAX_TOKENS"})
"""Reasons to end of which there is nothing more to say."""
_MALFORMED: Final = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"})


def decoder(request: ChatRequest | None = None) -> Decoder:
    return Decoder(request)


@dataclass(slots=True)
class _Run:
    """A text or a thought while it comes in: it ends with its signature, or where something else begins."""

    thought: bool
    index: int
    fragments: list[str] = field(default_factory=list)
    signature: str = ""

    def part(self) -> Part | None:
        text = clean_text("".join(self.fragments))
        signed = {"signature": self.signature} if self.signature else {}
        if self.thought:
            return Reasoning(text, {"wire": NAME, **signed})
        return Text(text, {"wire": NAME, **signed} if signed else None) if text or signed else None


class Decoder:
    """Gathers the parts of one candidate. Each event is an answer of its own form, so a whole one is one event."""

    def __init__(self, request: ChatRequest | None = None) -> None:
        self.complete = False
        turns = request.messages if request is not None else ()
        self._turn = 1 + sum(turn.role == "assistant" for turn in turns)
        self._used = {call.id for turn in turns for call in turn.calls}
        self._parts: list[_Run | ToolCall | File] = []
        self._waiting: list[ToolCall] = []
        """Calls of which it was not yet told that they are whole."""
        self._began = self.ended = self._blocked = False
        self._has_candidate = False
        self._reason = ""
        self._told: dict[str, str] = {}
        """What the vendor tells of a block or an end that is not the usual one: words, each with an explanation."""
        self._model = ""
        self._usage: Json = None

    def feed(self, event: Json) -> list[Delta]:
        if event == DONE:
            return []
        if not isinstance(event, dict) or not event.keys() & _KEYS:
            raise Unreadable(f"expected an answer with `candidates`, found {shown(event)}")
        if error := event.get("error"):
            raise faults.from_event(error)
        candidate = _first(event.get("candidates"))
        deltas = [delta for part in _parts(candidate) for delta in self._take(part)]
        self._began = True
        self._has_candidate = self._has_candidate or candidate is not None
        self._model = self._model or text_of(event.get("modelVersion"))
        self._usage = event.get("usageMetadata") or self._usage
        feedback = event.get("promptFeedback")
        self._blocked = self._blocked or _named(feedback, "blockReason") != ""
        self._reason = _named(candidate, "finishReason") or self._reason
        self._explain(feedback, "blockReason", "blockReasonMessage")
        self._explain(candidate, "finishReason", "finishMessage")
        self.ended = self.ended or self._blocked or self._reason != ""
        self.complete = self.ended and (self._blocked or "usageMetadata" in event)
        if self.ended:
            deltas += map(ToolReady, self._waiting)
            self._waiting = []
        return deltas

    def finish(self) -> ChatResponse:
        if not self.ended and (self._has_candidate or not self._began):
            raise Truncated(BROKE_OFF, retryable=True)
        parts = [part.part() if isinstance(part, _Run) else part for part in self._parts]
        message = ChatMessage("assistant", tuple(part for part in parts if part is not None))
        return ChatResponse(
            message,
            self._stop_reason(message),
            self._model,
            _usage(self._usage),
            stop_detail=clean_text(", ".join(": ".join(filter(None, one)) for one in self._told.items())),
        )

    def _explain(self, told: Json, key: str, explanation: str) -> None:
        word = _named(told, key)
        if word and word not in _USUAL:
            self._told[word] = text_of(told.get(explanation)) or self._told.get(word, "")

    def _stop_reason(self, message: ChatMessage) -> StopReason:
        calls = bool(message.calls)
        if self._blocked or not self._has_candidate or (self._reason in _REFUSALS and not calls):
            return "refusal"
        if self._reason == "MAX_TOKENS":
            return "max_tokens"
        if calls:
            return "tool_use"
        if self._reason in _MALFORMED:
            return "malformed"
        return "end_turn" if message.parts or self._reason == "STOP" else "refusal"

    # ------------------------------------------------------------ parts

    def _take(self, part: Json) -> list[Delta]:
        match part:
            case {"functionCall": {} as call}:
                return self._call(call, text_of(part.get("thoughtSignature")))
            case {"inlineData": {"data": str() as data} as blob}:
                if part.get("thought") is not True:  # else it is a draft
                    self._add_file(data, text_of(blob.get("mimeType")))
            case {"text": str() as text}:
                return self._extend(text, part)
            case {"thoughtSignature": str()} if part.keys() <= {"thought", "thoughtSignature"}:
                return self._extend("", part)
        return []

    def _extend(self, text: str, part: Mapping[str, Json]) -> list[Delta]:
        thought, signature = part.get("thought") is True, text_of(part.get("thoughtSignature"))
        if not text and not signature:
            return []
        run = self._parts[-1] if self._parts else None
        if not isinstance(run, _Run) or run.thought != thought or run.signature:
            run = _Run(thought, len(self._parts))
            self._parts.append(run)
        run.fragments.append(text)
        run.signature = signature
        kind = ThinkingDelta if thought else TextDelta
        return [kind(text, run.index)] if text else []

    def _call(self, call: Mapping[str, Json], signature: str) -> list[Delta]:
        given, name = text_of(call.get("id")), text_of(call.get("name"))
        replay = {"wire": NAME}
        if given:
            replay["id"] = given
        if signature:
            replay["signature"] = signature
        arguments = clean_text(json.dumps(call.get("args") or {}, ensure_ascii=False, separators=(",", ":")))
        made = ToolCall(given or self._new_id(name), name, arguments, replay)
        index = len(self._parts)
        self._used.add(made.id)
        self._parts.append(made)
        self._waiting.append(made)
        return [ToolStart(made.id, name, index), ToolInput(arguments, made.id, name, index)]

    def _new_id(self, name: str) -> str:
        """An id that no other call of the conversation has: the tool, the turn, and the place in it."""
        place = 1 + sum(isinstance(part, ToolCall) for part in self._parts)
        while (id := f"{name}-{self._turn}-{place}") in self._used:
            self._turn += 1
        return id

    def _add_file(self, data: str, mime_type: str) -> None:
        try:
            content = b64decode(data, validate=True)
        except ValueError:
            raise Unreadable(f"expected the data of a file in base64, found {shown(data)}") from None
        self._parts.append(File(media.sniff(content) or media.plain_type(mime_type), content))


_KEYS: Final = frozenset({"candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId", "error"})
"""An answer has one of these."""


def _first(candidates: Json) -> dict[str, Json] | None:
    """The candidate that counts; only one was asked for."""
    if candidates is None or candidates == []:
        return None
    if isinstance(candidates, list) and isinstance(candidates[0], dict):
        return candidates[0]
    raise Unreadable(f"expected `candidates` to be a list of mappings, found {shown(candidates)}")


def _parts(candidate: dict[str, Json] | None) -> Sequence[Json]:
    content = candidate.get("content") if candidate is not None else None
    parts = content.get("parts") if isinstance(content, dict) else None
    if parts is not None and not isinstance(parts, list):
        raise Unreadable(f"expected `parts` to be a list, found {shown(parts)}")
    return parts or []


def _named(value: Json, key: str) -> str:
    """A word of an enumeration; empty when it says nothing."""
    word = text_of(value.get(key)) if isinstance(value, dict) else ""
    return "" if word in _UNSPECIFIED else word


def _usage(usage: Json) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    thinking = count_of(usage.get("thoughtsTokenCount"))
    read = _sum(count_of(usage.get("promptTokenCount")), count_of(usage.get("toolUsePromptTokenCount")))
    found = Usage(
        input_tokens=read,
        output_tokens=_sum(count_of(usage.get("candidatesTokenCount")), thinking),
        thinking_tokens=thinking,
        cached_tokens=count_of(usage.get("cachedContentTokenCount")),
        prompt_tokens=read,
    )
    return found if any(getattr(found, name) for name in found.__slots__) else None


def _sum(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else a + b
