"""The Chat Completions wire, which most servers speak, each in its own way."""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final, Literal

from octo.errors import BadRequest, ProviderError, Truncated
from octo.llm import conversation, facts, faults, media, schemas, thinking
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
from octo.llm.credentials import join_url
from octo.llm.framing import DONE
from octo.llm.thoughts import Thoughts
from octo.llm.wire import BROKE_OFF, Endpoint, HttpCall, Unreadable, count_of, shown, text_of, to_bytes
from octo.values import Json, clean_text

NAME: Final = "chat_completions"
"""What this wire writes into the replay data that it makes."""

IMAGE_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
AUDIO_FORMATS: Final = {"audio/wav": "wav", "audio/mpeg": "mp3"}
MEDIA_TYPES: Final = IMAGE_TYPES | {"application/pdf"} | AUDIO_FORMATS.keys()

MaxTokens = Literal["max_completion_tokens", "max_tokens"]

_OUTPUT: Final = "structured_output"
_LONGEST_ID: Final = 40
_NINE: Final = re.compile("[a-zA-Z0-9]{9}")


def _new_id() -> str:
    import secrets

    return f"call_{secrets.token_hex(12)}"


@dataclass(frozen=True, slots=True)
class ChatCompletions:
    """The wire as one provider speaks it."""

    dialect: str
    """The provider, which is the only one that gets its own replay data back."""
    address: Callable[[str, str], str] = join_url
    """From a base URL and a path to the address of a call."""
    max_tokens: MaxTokens = "max_completion_tokens"
    """What the cap of an answer is called, as long as the server does not refuse it."""
    cache_key: bool = False
    """Whether prompts are cached by a key."""
    usage_accounting: bool = False
    """Whether usage is to be asked for in a way of its own, and comes with a cost in USD."""
    switches_thinking: bool = False
    """Whether an effort of `none` is said as `thinking: {type: disabled}`, and is needed where a tool is forced."""
    unstreamed_schemas: bool = False
    """Whether an answer of a certain form cannot be streamed."""
    effort_or_temperature: bool = False
    """Whether a temperature is not to be sent beside an effort."""
    echo: Literal["nothing", "reasoning_content", "reasoning_details"] = "nothing"
    """Which reasoning the model wants back: its text while tools run, or all of it as it came."""
    draws: bool = False
    """Whether images can be asked for."""
    bare_media: bool = False
    """Whether documents and audio are sent without name and format."""
    short_ids: bool = False
    """Whether ids of calls have nine letters and digits."""
    user_after_answer: bool = False
    """Whether a turn of the user cannot follow results of tools."""
    new_id: Callable[[], str] = _new_id
    """Makes the id of a call that comes without one."""

    def decoder(self, _: ChatRequest | None = None) -> Decoder:
        return Decoder(self)

    def encode(self, request: ChatRequest, endpoint: Endpoint, *, stream: bool) -> HttpCall:
        """The call of `chat/completions`; whatever the conversation holds, the server finds it well-formed."""
        credentials = endpoint.credentials
        model = request.model or endpoint.model
        body: dict[str, Json] = {"model": model, "messages": self._messages(request)}
        if not model:
            raise BadRequest("no model is named", hint="set `model` on the connector or on the agent")
        if request.output_type == "image":
            body["modalities"] = self._modalities()
        effort = self._effort(request, endpoint, model)
        if self._thinks_unforced(request, model) and effort not in ("", "none"):
            request = replace(request, tool_choice="auto")
        form = _answer_form(request, model)
        body |= _tools(request) | form | self._settings(request, endpoint, effort)
        if credentials.user:
            body["user"] = credentials.user
        if self.cache_key and "prompt_cache_key" not in endpoint.refused and (key := endpoint.cache_key(request)):
            body["prompt_cache_key"] = key
        if self.usage_accounting and "usage" not in endpoint.refused:
            body["usage"] = {"include": True}
        stream = stream and not (form and self.unstreamed_schemas)
        if stream:
            body["stream"] = True
            if "stream_options" not in endpoint.refused:
                body["stream_options"] = {"include_usage": True}
        url = self.address(credentials.base_url, "chat/completions")
        return HttpCall(url, credentials.headers({}), to_bytes(body), stream)

    def _settings(self, request: ChatRequest, endpoint: Endpoint, effort: str) -> dict[str, Json]:
        """The cap of the answer, the effort and the temperature, each as the server wants it and if it does."""
        settings: dict[str, Json] = {}
        max_tokens = request.max_tokens or endpoint.max_tokens or 0
        if max_tokens > 0:
            settings[self._cap(endpoint.refused)] = max_tokens
        if effort == "none" and self.switches_thinking:
            settings["thinking"] = {"type": "disabled"}
        elif effort:
            settings["reasoning_effort"] = effort
        drops = "temperature" in endpoint.refused or (self.effort_or_temperature and effort)
        if request.temperature is not None and not drops:
            settings["temperature"] = request.temperature
        return settings

    def _effort(self, request: ChatRequest, endpoint: Endpoint, model: str) -> str:
        """How hard the model is to think; not at all where that does not go with the tools."""
        if request.output_type == "image":
            return ""
        effort = request.reasoning_effort or endpoint.reasoning
        if effort and request.tools and not facts.takes_effort_with_tools(model):
            return "none"
        if self._thinks_unforced(request, model) and effort != "none" and not (effort and request.may_think_first):
            return "none" if self.switches_thinking else ""
        return effort

    def _thinks_unforced(self, request: ChatRequest, model: str) -> bool:
        """Whether a tool is forced on a model that cannot think then."""
        return thinking.forces(request) and (self.switches_thinking or facts.is_claude(model))

    def _modalities(self) -> list[Json]:
        if not self.draws:
            raise BadRequest("no images can be asked for on Chat Completions")
        return ["image", "text"]

    def _cap(self, refused: frozenset[str]) -> MaxTokens:
        other: MaxTokens = "max_tokens" if self.max_tokens == "max_completion_tokens" else "max_completion_tokens"
        return other if self.max_tokens in refused else self.max_tokens

    # ------------------------------------------------------------ messages

    def _messages(self, request: ChatRequest) -> list[dict[str, Json]]:
        turns = conversation.valid(request.messages, user_first=False)
        if not turns:
            raise BadRequest("the conversation has no user turn")
        messages: list[dict[str, Json]] = []
        if not conversation.is_blank(request.system):
            messages.append({"role": "system", "content": request.system})
        open_turn = max((place for place, turn in enumerate(turns) if turn.role == "user"), default=-1)
        for place, turn in enumerate(turns):
            match turn.role:
                case "user":
                    if self.user_after_answer and place and turns[place - 1].role == "tool":
                        messages.append({"role": "assistant", "content": conversation.NO_CONTENT})
                    messages.append({"role": "user", "content": self._user_content(turn)})
                case "assistant":
                    messages.append(self._assistant(turn, is_open=place > open_turn))
                case "tool":
                    messages += [self._result(part) for part in turn.parts if isinstance(part, ToolResult)]
        return messages

    def _user_content(self, turn: ChatMessage) -> Json:
        """Text as text, which every server reads; with files, a list of parts."""
        parts = conversation.without_blank_text(turn.parts)
        if turn.files:
            return [self._user_part(part) for part in parts if isinstance(part, Text | File)]
        return "\n\n".join(part.text for part in parts if isinstance(part, Text)) or conversation.NO_CONTENT

    def _user_part(self, part: Text | File) -> dict[str, Json]:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text}
        data = b64encode(part.data).decode("ascii")
        url = f"data:{part.mime_type};base64,{data}"
        if sound := AUDIO_FORMATS.get(part.mime_type):
            return {"type": "input_audio", "input_audio": data if self.bare_media else {"data": data, "format": sound}}
        if part.mime_type != "application/pdf":
            return {"type": "image_url", "image_url": {"url": url}}
        if self.bare_media:
            return {"type": "document_url", "document_url": url}
        return {"type": "file", "file": {"filename": media.pdf_name(part.name), "file_data": url}}

    def _assistant(self, turn: ChatMessage, *, is_open: bool) -> dict[str, Json]:
        """A turn of the model; files that it made are not sent."""
        text = "" if conversation.is_blank(turn.text) else turn.text
        message: dict[str, Json] = {"role": "assistant", "content": text or None}
        if turn.calls:
            message["tool_calls"] = list(map(self._call, turn.calls))
        elif not text:
            message["content"] = conversation.NO_CONTENT
        return message | self._echoed(turn.parts, is_open=is_open)

    def _echoed(self, parts: Iterable[Part], *, is_open: bool) -> dict[str, Json]:
        own = [(part.text, part.replay) for part in parts if isinstance(part, Reasoning) and self._is_own(part.replay)]
        match self.echo:
            case "reasoning_content":
                text = "".join(text for text, _ in own) if is_open else ""
                return {"reasoning_content": text} if text else {}
            case "reasoning_details":
                details = [detail for _, replay in own for detail in replay.get("details", ())]
                return {"reasoning_details": details} if details else {}
        return {}

    def _is_own(self, replay: Json) -> bool:
        return isinstance(replay, dict) and replay.get("wire") == NAME and replay.get("dialect") == self.dialect

    def _call(self, call: ToolCall) -> dict[str, Json]:
        """A call with its arguments as the model wrote them, if they are an object at all."""
        arguments = "{}" if conversation.arguments(call.arguments) is None else call.arguments
        function = {"name": call.name, "arguments": arguments}
        extra = {"extra_content": call.replay["extra_content"]} if self._is_own(call.replay) else {}
        return {"id": self._id(call.id), "type": "function", "function": function, **extra}

    def _result(self, result: ToolResult) -> dict[str, Json]:
        text = conversation.NO_CONTENT if conversation.is_blank(result.text) else result.text
        content = f"ERROR: {text}" if result.is_error else text
        return {"role": "tool", "tool_call_id": self._id(result.call_id), "content": content}

    def _id(self, id: str) -> str:
        """An id as the server takes it; the same id always becomes the same."""
        digest = sha256(id.encode()).hexdigest()
        if self.short_ids:
            return id if _NINE.fullmatch(id) else digest[:9]
        return id if len(id) <= _LONGEST_ID else f"{id[: _LONGEST_ID - 13]}-{digest[:12]}"


def _tools(request: ChatRequest) -> dict[str, Json]:
    if not request.tools:
        return {}
    tools: list[Json] = []
    for tool in request.tools:
        schema = tool.input_schema if "type" in tool.input_schema else {"type": "object", **tool.input_schema}
        told = {} if conversation.is_blank(tool.description) else {"description": tool.description}
        tools.append({"type": "function", "function": {"name": tool.name, **told, "parameters": schema}})
    match request.tool_choice:
        case "auto":
            return {"tools": tools}
        case "any":
            return {"tools": tools, "tool_choice": "required"}
        case "none":
            return {"tools": tools, "tool_choice": "none"}
        case NamedTool(name):
            return {"tools": tools, "tool_choice": {"type": "function", "function": {"name": name}}}


def _answer_form(request: ChatRequest, model: str) -> dict[str, Json]:
    """The schema that the answer has to follow; Claude models have it as a tool instead."""
    schema = request.output_schema
    if not isinstance(schema, dict) or not schema.get("properties") or facts.is_claude(model):
        return {}
    form = {"name": _OUTPUT, "schema": schemas.strict(schema), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


# ---------------------------------------------------------------- answer

_FAILED: Final = frozenset({"error", "insufficient_system_resource"})
"""Reasons to stop that are none: the answer was given up."""
_CUT_OFF: Final = frozenset({"length", "model_length"})


_GROWING: Final = frozenset({"text", "summary", "data"})
"""The keys of a block of reasoning that come in fragments."""


class _Fragments(list[str]):
    """The fragments of a text."""


def _joined(detail: dict[str, Json]) -> dict[str, Json]:
    return {key: "".join(value) if isinstance(value, _Fragments) else value for key, value in detail.items()}


@dataclass(slots=True)
class _Call:
    """A call while it comes in."""

    index: int
    id: str = ""
    own_id: str = ""
    """The id that the provider gave, also when it came too late to be used."""
    name: str = ""
    fragments: list[str] = field(default_factory=list)
    extra: Json = None

    @property
    def text(self) -> str:
        return "".join(self.fragments)

    @property
    def is_whole(self) -> bool:
        """Whether its arguments are an object, to which nothing can be added."""
        return conversation.arguments(self.text) is not None


class Decoder:
    """Gathers the chunks of one answer, or takes it whole."""

    def __init__(self, wire: ChatCompletions) -> None:
        self.complete = False
        self._wire = wire
        self.ended = False
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._thoughts = Thoughts()
        self._refusal: list[str] = []
        self._details: list[dict[str, Json]] = []
        self._files: list[File] = []
        self._slots: dict[int, _Call] = {}
        """The call that fragments of a slot belong to now."""
        self._calls: list[_Call] = []
        self._finish_reason = ""
        self._model = ""
        self._usage: Json = None

    def feed(self, event: Json) -> list[Delta]:
        match event:
            case str() if event == DONE:
                self.complete = True
                return self._end()
            case {"error": error} if error:
                raise faults.from_event(error)
            case {"object": "error"}:
                raise faults.from_event(event)
            case {}:
                self._model = self._model or text_of(event.get("model"))
                self._usage = event.get("usage") or self._usage
                return self._take(event.get("choices"))
            case _:
                raise Unreadable(f"expected a chunk with `choices`, found {shown(event)}")

    def finish(self) -> ChatResponse:
        if not self.ended:
            raise Truncated(BROKE_OFF, retryable=True)
        calls = [call for call in self._calls if call.name]
        text = clean_text("".join(self._text))
        refusal = clean_text("".join(self._refusal))
        parts: list[Part] = [*self._reasoning()]
        if text or refusal:
            parts.append(Text(text or refusal))
        parts += self._files
        parts += map(self._tool_call, calls)
        return ChatResponse(
            message=ChatMessage("assistant", tuple(parts)),
            stop_reason=_stop_reason(self._finish_reason, bool(refusal), bool(calls)),
            model=self._model,
            usage=_usage(self._usage, costs=self._wire.usage_accounting),
        )

    def _reasoning(self) -> Iterator[Reasoning]:
        text = clean_text("".join(self._thinking))
        if text or self._details:
            details = {"details": list(map(_joined, self._details))} if self._details else {}
            yield Reasoning(text, {"wire": NAME, "dialect": self._wire.dialect, **details})

    def _tool_call(self, call: _Call) -> ToolCall:
        arguments = "{}" if conversation.is_blank(call.text) else clean_text(call.text)
        replay = {"wire": NAME, "dialect": self._wire.dialect, "extra_content": call.extra} if call.extra else None
        return ToolCall(call.id, call.name, arguments, replay)

    # ------------------------------------------------------------ one event

    def _take(self, choices: Json) -> list[Delta]:
        if choices is None or choices == []:
            return []
        choice = choices[0] if isinstance(choices, list) else None
        if not isinstance(choice, dict):
            raise Unreadable(f"expected `choices` to be a list of mappings, found {shown(choices)}")
        reason = text_of(choice.get("finish_reason"))
        if reason in _FAILED:
            raise _given_up(choice.get("error"), reason)
        whole = choice.get("message")
        deltas = self._extend(choice.get("delta") if whole is None else whole, whole=whole is not None)
        if whole is not None:
            self.complete = True
        self._finish_reason = reason or self._finish_reason
        return [*deltas, *self._end()] if reason or self.complete else deltas

    def _extend(self, delta: Json, *, whole: bool) -> list[Delta]:
        """Add what a delta, or a whole message, brings."""
        if delta is None:
            return []
        if not isinstance(delta, dict):
            raise Unreadable(f"expected a message as a mapping, found {shown(delta)}")
        thought, text = _content(delta.get("content"))
        written, text = self._thoughts.feed(text)
        thought = text_of(delta.get("reasoning_content")) or text_of(delta.get("reasoning")) or thought
        calls = _mappings("tool_calls", delta.get("tool_calls"))
        refusal = text_of(delta.get("refusal"))
        self._add_details(_mappings("reasoning_details", delta.get("reasoning_details")), whole=whole)
        self._files += _images(delta.get("images"))
        deltas = self._say(thought + written, text)
        if refusal:
            self._refusal.append(refusal)
            deltas.append(CustomDelta("refusal", refusal))
        for place, call in enumerate(calls):
            deltas += self._extend_call(place, call)
        return deltas

    def _say(self, thought: str, text: str) -> list[Delta]:
        deltas: list[Delta] = []
        if thought:
            self._thinking.append(thought)
            deltas.append(ThinkingDelta(thought))
        if text:
            self._text.append(text)
            deltas.append(TextDelta(text))
        return deltas

    def _extend_call(self, place: int, delta: dict[str, Json]) -> list[Delta]:
        """Add a fragment of a call to the call of its slot, or begin one."""
        function = delta.get("function")
        function = function if isinstance(function, dict) else {}
        id, name, fragment = (
            text_of(delta.get("id")),
            text_of(function.get("name")),
            _arguments(function.get("arguments")),
        )
        index = delta.get("index")
        slot = index if isinstance(index, int) else place
        call = self._slots.get(slot)
        if call is None or _begins_another(call, id, name, fragment, numbered=isinstance(index, int)):
            call = self._slots[slot] = _Call(len(self._calls))
            self._calls.append(call)
        call.extra = delta.get("extra_content") or call.extra
        call.own_id = call.own_id or id
        call.id = call.id or id
        deltas: list[Delta] = []
        if name and not call.name:
            call.name, call.id = name, call.id or self._wire.new_id()
            deltas.append(ToolStart(call.id, name, call.index))
            if call.text:
                deltas.append(ToolInput(call.text, call.id, name, call.index))
        if fragment:
            call.fragments.append(fragment)
            if call.name:
                deltas.append(ToolInput(fragment, call.id, call.name, call.index))
        return deltas

    def _add_details(self, details: Iterable[dict[str, Json]], *, whole: bool) -> None:
        """Gather the blocks of reasoning, those of a stream from their fragments, to what they would be without one."""
        for detail in details:
            last = self._details[-1] if self._details else None
            if whole or last is None or any(last.get(key) != detail.get(key) for key in ("type", "index")):
                last = {}
                self._details.append(last)
            for key, value in detail.items():
                if key in _GROWING and isinstance(value, str):
                    fragments = last.get(key)
                    last[key] = fragments if isinstance(fragments, _Fragments) else _Fragments()
                    last[key].append(value)
                elif value is not None or key not in last:
                    last[key] = value

    def _end(self) -> list[Delta]:
        """The end mark came: each call is whole. There may be more than one mark."""
        if self.ended:
            return []
        self.ended = True
        rest = self._say(*self._thoughts.finish())
        return [*rest, *(ToolReady(self._tool_call(call)) for call in self._calls if call.name)]


def _begins_another(call: _Call, id: str, name: str, fragment: str, *, numbered: bool) -> bool:
    """Whether a fragment for the slot of a call is the first of the next one.

    Some servers give all calls one number, or none: a new id with a name tells them apart, and without ids a name. A
    server may also give each fragment an id of its own, or repeat the name: while arguments are open, they go on.
    """
    if id:
        return bool(call.own_id) and id != call.own_id and (bool(name) or call.is_whole)
    if not (name and call.name):
        return False
    if call.own_id and name == call.name and not fragment:
        return False
    return call.is_whole or not (numbered or call.own_id)


def _content(content: Json) -> tuple[str, str]:
    """Reasoning and text of a content, which is text or a list of chunks."""
    if content is None or isinstance(content, str):
        return "", content or ""
    thought, text = "", ""
    for chunk in _mappings("content", content):
        match chunk:
            case {"type": "text", "text": str() as more}:
                text += more
            case {"type": "thinking", "thinking": inner}:
                thought += inner if isinstance(inner, str) else _content(inner)[1]
    return thought, text


def _mappings(key: str, value: Json) -> list[dict[str, Json]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Unreadable(f"expected `{key}` to be a list of mappings, found {shown(value)}")
    return value


def _arguments(value: Json) -> str:
    """Argument text; some servers give the object itself."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if isinstance(value, dict) else text_of(value)


def _images(images: Json) -> Iterator[File]:
    """The pictures that a model made, which come as data URLs."""
    for image in images if isinstance(images, list) else ():
        match image:
            case {"image_url": {"url": str() as url}} if url.startswith("data:"):
                head, _, data = url.removeprefix("data:").partition(",")
                try:
                    content = b64decode(data, validate=True)
                except ValueError:
                    continue
                yield File(media.sniff(content) or media.plain_type(head), content)


def _given_up(error: Json, reason: str) -> ProviderError:
    return faults.from_event(error or {"code": 503, "message": f"the model gave up (`{reason}`)"})


def _stop_reason(reason: str, refused: bool, calls: bool) -> StopReason:
    if refused or (reason == "content_filter" and not calls):
        return "refusal"
    if reason in _CUT_OFF:
        return "max_tokens"
    return "tool_use" if calls else "end_turn"


def _usage(usage: Json, *, costs: bool) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    prompt, completion = (
        details if isinstance(details, dict) else {}
        for details in (usage.get("prompt_tokens_details"), usage.get("completion_tokens_details"))
    )
    read = count_of(usage.get("prompt_tokens"))
    cached = count_of(prompt.get("cached_tokens"))
    found = Usage(
        input_tokens=read,
        output_tokens=count_of(usage.get("completion_tokens")),
        thinking_tokens=count_of(completion.get("reasoning_tokens")),
        cached_tokens=count_of(usage.get("prompt_cache_hit_tokens")) if cached is None else cached,
        prompt_tokens=read,
    )
    if not any(getattr(found, name) for name in found.__slots__):
        return None
    cost = usage.get("cost")
    if costs and isinstance(cost, int | float) and 0 <= cost < math.inf:
        return found + Usage(reported_cost_usd=float(cost))
    return found
