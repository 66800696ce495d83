"""The Chat Completions wire, which most servers speak, each in its own way."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Literal

from octo.errors import BadRequest
from octo.llm import conversation, facts, media, schemas, thinking
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
from octo.llm.wire import Endpoint, HttpCall, to_bytes
from octo.llm.wires.chat_completions_answer import NAME, Decoder
from octo.values import Json

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
    marks_cache: bool = False
    """Whether prompts of Claude models are to be marked for caching."""
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
        if request.web_search:
            raise BadRequest("no search of the web can be asked for on Chat Completions")
        if request.output_type == "image":
            body["modalities"] = self._modalities()
        effort = self._effort(request, endpoint, model)
        if self._thinks_unforced(request, model) and effort not in ("", "none"):
            request = replace(request, tool_choice="auto")
        form = _answer_form(request, model)
        body |= _tools(request) | form | self._settings(request, endpoint, model, effort)
        if credentials.user:
            body["user"] = credentials.user
        if self.cache_key and "prompt_cache_key" not in endpoint.refused and (key := endpoint.cache_key(request)):
            body["prompt_cache_key"] = key
        if self.marks_cache and facts.is_claude(model) and endpoint.caches(request):
            _mark_for_caching(body["messages"])
        if self.usage_accounting and "usage" not in endpoint.refused:
            body["usage"] = {"include": True}
        stream = stream and not (form and self.unstreamed_schemas)
        if stream:
            body["stream"] = True
            if "stream_options" not in endpoint.refused:
                body["stream_options"] = {"include_usage": True}
        url = self.address(credentials.base_url, "chat/completions")
        return HttpCall(url, credentials.headers({}), to_bytes(body), stream)

    def _settings(self, request: ChatRequest, endpoint: Endpoint, model: str, effort: str) -> dict[str, Json]:
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
        if request.temperature is not None and not drops and facts.takes_temperature(model, effort):
            settings["temperature"] = request.temperature
        return settings

    def _effort(self, request: ChatRequest, endpoint: Endpoint, model: str) -> str:
        """How hard the model is to think; not at all where that does not go with the tools."""
        if request.output_type == "image":
            return ""
        effort = endpoint.effort(request)
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


def _mark_for_caching(messages: list[dict[str, Json]]) -> None:
    """Set a breakpoint after the system text and after the last message, at text of theirs, which then is a list."""
    for message in (messages[0], messages[-1]) if messages[0]["role"] == "system" else (messages[-1],):
        content = message["content"]
        parts: list[dict[str, Json]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if parts and parts[-1]["type"] == "text":
            parts[-1]["cache_control"] = {"type": "ephemeral"}
            message["content"] = parts


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
