"""Chat Completions as a client speaks them: its requests in neutral form, and neutral answers as it reads them."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final

from octo.errors import BadRequest
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
    Delta,
    File,
    NamedTool,
    Part,
    Reasoning,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolInput,
    ToolReady,
    ToolResult,
    ToolStart,
    Usage,
)
from octo.llm.conversation import arguments, is_blank
from octo.llm.wire import shown
from octo.values import Json

_OUTPUT: Final = "structured_output"
_OWN: Final = "octo"
"""The key of `extra_content` under which what an answer needs to be echoed travels to the client and back."""

# ---------------------------------------------------------------- request


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asks for."""

    request: ChatRequest
    stream: bool = False
    include_usage: bool = False
    ignored: tuple[str, ...] = ()
    """Fields that make no difference."""
    answer_tool: str = ""
    """The tool whose arguments are the answer; empty when the answer is text."""

    def by_tool(self) -> Asked:
        """The same, with the form of the answer asked for as the arguments of a tool.

        Where another tool must be called, the answer has no form.
        """
        request = self.request
        if request.tools and request.tool_choice not in ("auto", "none"):
            ignored = (*self.ignored, "response_format")
            return replace(self, request=replace(request, output_schema=None), ignored=ignored)
        taken = {tool.name for tool in request.tools}
        names = (f"{_OUTPUT}_{number}" if number > 1 else _OUTPUT for number in count(1))
        name = next(name for name in names if name not in taken)
        tool = ToolDefinition(name, "Give the final answer.", request.output_schema)
        choice: ToolChoice = "any" if request.tools and request.tool_choice != "none" else NamedTool(name)
        tools = (tool,) if isinstance(choice, NamedTool) else (*request.tools, tool)
        return replace(
            self, request=replace(request, tools=tools, tool_choice=choice, output_schema=None), answer_tool=name
        )


_KNOWN: Final = frozenset(
    {
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "model",
        "n",
        "parallel_tool_calls",
        "reasoning_effort",
        "response_format",
        "stop",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_p",
        "user",
    }
)


def read(fields: Mapping[str, Json]) -> Asked:
    """What the body of a request asks for. Raises BadRequest."""
    if _field(fields, "n", int, 1) > 1:
        raise BadRequest("`n` can only be 1: this model gives one answer per request")
    messages = _list(fields, "messages")
    names = _names_of_calls(messages)
    form = _mapping(fields, "response_format")
    options = _mapping(fields, "stream_options")
    caps = [_cap(fields, name) for name in ("max_completion_tokens", "max_tokens")]
    ignored = sorted(name for name, value in fields.items() if name not in _KNOWN and value is not None)
    if form.get("type", "text") not in ("text", "json_schema"):
        ignored.append("response_format")
    turns = tuple(turn for message in messages for turn in _turn(message, names))
    calls = (part for turn in turns for part in turn.parts if isinstance(part, ToolCall))
    if any(not is_blank(call.arguments) and arguments(call.arguments) is None for call in calls):
        ignored.append("messages.tool_calls.function.arguments")
    return Asked(
        ChatRequest(
            messages=turns,
            system="\n\n".join(_plain_text(message) for message in messages if _is_instruction(message)),
            tools=tuple(map(_tool, _list(fields, "tools", optional=True))),
            tool_choice=_tool_choice(fields.get("tool_choice")),
            model=_field(fields, "model", str, None) or None,
            max_tokens=next((cap for cap in caps if cap is not None), None),
            temperature=_field(fields, "temperature", int | float, None),
            top_p=_field(fields, "top_p", int | float, None),
            stop=_stop(fields.get("stop")),
            parallel_calls=fields.get("parallel_tool_calls") is not False,
            user=_field(fields, "user", str, ""),
            reasoning_effort=_field(fields, "reasoning_effort", str, None) or None,
            output_schema=_schema(form),
        ),
        stream=_field(fields, "stream", bool, False),
        include_usage=options.get("include_usage") is True,
        ignored=tuple(ignored),
    )


def _cap(fields: Mapping[str, Json], name: str) -> int | None:
    cap: int | None = _field(fields, name, int, None)
    if cap is not None and cap < 1:
        raise _unlike(name, cap, "a whole number from 1")
    return cap


def _field(fields: Mapping[str, Json], name: str, kind: Any, default: Any) -> Any:
    value = fields.get(name)
    if value is None:
        return default
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _unlike(name, value, {str: "text", int: "a whole number", bool: "true or false"}.get(kind, "a number"))
    return value


def _mapping(fields: Mapping[str, Json], name: str) -> dict[str, Json]:
    value = fields.get(name)
    if value is not None and not isinstance(value, dict):
        raise _unlike(name, value, "an object")
    return value or {}


def _list(fields: Mapping[str, Json], name: str, *, optional: bool = False) -> list[dict[str, Json]]:
    value = fields.get(name)
    if value is None and optional:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise _unlike(name, value, "a list of objects")
    return value


def _unlike(name: str, value: Json, expected: str) -> BadRequest:
    return BadRequest(f"expected {expected} as `{name}`, found {shown(value)}")


def _stop(value: Json) -> tuple[str, ...]:
    found = [value] if isinstance(value, str) else value or []
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise _unlike("stop", value, "text or a list of texts")
    return tuple(found)


def _schema(form: dict[str, Json]) -> Json:
    match form:
        case {"type": "json_schema", "json_schema": {"schema": dict() as schema}}:
            return schema
        case {"type": "json_schema"}:
            raise BadRequest("expected a schema as `response_format.json_schema.schema`")
    return None


def _tool(tool: dict[str, Json]) -> ToolDefinition:
    match tool:
        case {"type": "function", "function": {"name": str() as name} as function}:
            schema = function.get("parameters")
            if schema is not None and not isinstance(schema, dict):
                raise _unlike("parameters", schema, "an object")
            return ToolDefinition(name, str(function.get("description") or ""), schema or {"type": "object"})
    raise _unlike("tools", tool, "functions with a name")


def _tool_choice(choice: Json) -> ToolChoice:
    match choice:
        case None | "auto":
            return "auto"
        case "none":
            return "none"
        case "required":
            return "any"
        case {"type": "function", "function": {"name": str() as name}}:
            return NamedTool(name)
    raise _unlike("tool_choice", choice, "`none`, `auto`, `required` or a function")


# ---------------------------------------------------------------- messages


def _is_instruction(message: dict[str, Json]) -> bool:
    return message.get("role") in {"system", "developer"}


def _names_of_calls(messages: Iterable[dict[str, Json]]) -> dict[str, str]:
    """The tool that each call was of, by the id of the call."""
    calls = (call for message in messages for call in _list(message, "tool_calls", optional=True))
    return {call["id"]: _function(call)[0] for call in calls if isinstance(call.get("id"), str)}


def _turn(message: dict[str, Json], names: Mapping[str, str]) -> Iterator[ChatMessage]:
    match message.get("role"):
        case "system" | "developer":
            return
        case "user":
            yield ChatMessage("user", tuple(_user_parts(message.get("content"))))
        case "assistant":
            yield ChatMessage("assistant", tuple(_assistant_parts(message)))
        case "tool":
            id = _field(message, "tool_call_id", str, "")
            yield ChatMessage("tool", (ToolResult(id, names.get(id, ""), _plain_text(message)),))
        case role:
            raise _unlike("role", role, "`system`, `developer`, `user`, `assistant` or `tool`")


def _plain_text(message: dict[str, Json]) -> str:
    parts = list(_user_parts(message.get("content")))
    if not all(isinstance(part, Text) for part in parts):
        raise BadRequest(f"expected text in a message of role `{message.get('role')}`")
    return "".join(part.text for part in parts if isinstance(part, Text))


def _user_parts(content: Json) -> Iterator[Part]:
    if content is None or isinstance(content, str):
        yield from [Text(content)] if content else []
        return
    if not isinstance(content, list):
        raise _unlike("content", content, "text or a list of parts")
    for part in content:
        match part:
            case {"type": "text" | "refusal" as kind} if isinstance(part.get(kind), str):
                yield Text(part[kind])
            case {"type": "image_url", "image_url": {"url": str() as url}}:
                yield _file(url)
            case {"type": "file", "file": {"file_data": str() as url} as file}:
                yield _file(url, str(file.get("filename") or ""))
            case {"type": "input_audio", "input_audio": {"data": str() as data} as sound}:
                kind = {"mp3": "audio/mpeg"}.get(str(sound.get("format")), f"audio/{sound.get('format')}")
                yield File(kind, _bytes(data))
            case _:
                raise _unlike("content", part, "parts of type `text`, `image_url`, `file` or `input_audio`")


def _file(url: str, name: str = "") -> File:
    head, comma, data = url.partition(",")
    if not head.startswith("data:") or not comma or not head.endswith(";base64"):
        raise BadRequest("expected a file as a `data:` URL in base64; files at other addresses are not fetched")
    return File(head.removeprefix("data:").partition(";")[0], _bytes(data), name)


def _bytes(data: str) -> bytes:
    try:
        return b64decode(data, validate=True)
    except ValueError:
        raise BadRequest("a file is not base64") from None


def _assistant_parts(message: dict[str, Json]) -> Iterator[Part]:
    """The turn as the model gave it, with what it needs to find there again."""
    calls = _list(message, "tool_calls", optional=True)
    own = [_own(call) for call in calls]
    for reasoning in (entry for kept in own for entry in kept.get("reasoning") or ()):
        if isinstance(reasoning, dict):
            yield Reasoning(str(reasoning.get("text") or ""), reasoning.get("replay"))
    yield from (part for part in _user_parts(message.get("content")) if isinstance(part, Text))
    for call, kept in zip(calls, own, strict=True):
        name, arguments = _function(call)
        yield ToolCall(_field(call, "id", str, ""), name, arguments, kept.get("replay"))


def _own(call: dict[str, Json]) -> dict[str, Json]:
    match call:
        case {"extra_content": {"octo": dict() as kept}}:
            return kept
    return {}


def _function(call: dict[str, Json]) -> tuple[str, str]:
    match call:
        case {"function": {"name": str() as name, "arguments": str() as arguments}}:
            return name, arguments
    raise _unlike("tool_calls", call, "calls of functions with `name` and `arguments`")


# ---------------------------------------------------------------- answer

_FINISH: Final = {"tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}


@dataclass(frozen=True, slots=True)
class Head:
    """What every part of an answer tells of it."""

    id: str
    created: int
    model: str


def whole(response: ChatResponse, head: Head, answer_tool: str = "") -> dict[str, Json]:
    """An answer that is not streamed."""
    calls = [call for call in response.calls if call.name != answer_tool]
    text = _text(response, answer_tool)
    message: dict[str, Json] = {"role": "assistant", "content": text if text or not calls else None, "refusal": None}
    if thinking := "".join(part.text for part in response.message.parts if isinstance(part, Reasoning)):
        message["reasoning_content"] = thinking
    if calls:
        kept = _kept(response, calls)
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}} | extra
            for call, extra in zip(calls, kept, strict=True)
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(response, calls)}
    answer = _envelope(replace(head, model=response.model or head.model), "chat.completion", [choice])
    return answer | ({} if response.usage is None else {"usage": usage(response.usage)})


def _text(response: ChatResponse, answer_tool: str) -> str:
    given = [call.arguments for call in response.calls if call.name == answer_tool]
    return given[0] if given else response.text


def _finish(response: ChatResponse, calls: Iterable[ToolCall]) -> str:
    if response.stop_reason == "tool_use" and not list(calls):
        return "stop"
    return _FINISH.get(response.stop_reason, "stop")


def _kept(response: ChatResponse, calls: Iterable[ToolCall]) -> list[dict[str, Json]]:
    """What each call brings along so that its turn can be echoed: its own data, and the first one the reasoning."""
    reasoning = [part for part in response.message.parts if isinstance(part, Reasoning) and part.replay is not None]
    found: list[dict[str, Json]] = []
    for number, call in enumerate(calls):
        kept: dict[str, Json] = {} if call.replay is None else {"replay": call.replay}
        if reasoning and not number:
            kept["reasoning"] = [{"text": part.text, "replay": part.replay} for part in reasoning]
        found.append({"extra_content": {_OWN: kept}} if kept else {})
    return found


def _envelope(head: Head, kind: str, choices: list[Json]) -> dict[str, Json]:
    return {"id": head.id, "object": kind, "created": head.created, "model": head.model, "choices": choices}


def usage(found: Usage) -> dict[str, Json]:
    """Tokens as OpenAI counts them. What is unknown counts as none."""
    read, written = found.prompt_tokens or found.input_tokens or 0, found.output_tokens or 0
    shown: dict[str, Json] = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    if found.cached_tokens is not None:
        shown["prompt_tokens_details"] = {"cached_tokens": found.cached_tokens}
    if found.thinking_tokens is not None:
        shown["completion_tokens_details"] = {"reasoning_tokens": found.thinking_tokens}
    return shown


class Chunks:
    """The chunks of an answer that is streamed, from what comes in of it."""

    def __init__(self, head: Head, answer_tool: str = "", *, include_usage: bool = False) -> None:
        self._head = head
        self._answer_tool = answer_tool
        self._include_usage = include_usage
        self._calls: dict[tuple[str, int], int] = {}
        self._written: set[int] = set()
        """The calls whose arguments were told, as far as they have come."""
        self._answered = False
        """Whether text was told."""
        self._given: tuple[str, int] | None = None
        """The call that gives the answer: the first one of its tool."""

    def first(self) -> dict[str, Json]:
        return self._chunk({"role": "assistant", "content": ""})

    def of(self, delta: Delta) -> list[dict[str, Json]]:
        """The chunks that tell of a fragment. Text beside a tool that is the answer waits for the end."""
        match delta:
            case TextDelta(text) if not self._answer_tool:
                return [self._content(text)]
            case ThinkingDelta(text):
                return [self._chunk({"reasoning_content": text})]
            case ToolStart(id, name, index) if name != self._answer_tool:
                return [self._start(id, name, index)]
            case ToolInput(text, id, name, index) if name == self._answer_tool:
                self._given = self._given or (id, index)
                return [self._content(text)] if self._given == (id, index) else []
            case ToolInput(text, id, _, index) if (id, index) in self._calls:
                return [self._arguments(self._calls[id, index], text)]
            case ToolReady(call) if call.name == self._answer_tool and not self._answered:
                return [self._content(call.arguments)]
        return []

    def end(self, response: ChatResponse) -> Iterator[dict[str, Json]]:
        """The last chunks, with what only the whole answer tells."""
        calls = [call for call in response.calls if call.name != self._answer_tool]
        if not self._answered and (text := _text(response, self._answer_tool)):
            yield self._content(text)
        for number, (call, extra) in enumerate(zip(calls, _kept(response, calls), strict=True)):
            if number >= len(self._calls):
                yield self._start(call.id, call.name, -number)
            if number not in self._written:
                yield self._arguments(number, call.arguments)
            if extra:
                yield self._chunk({"tool_calls": [{"index": number, "function": {"arguments": ""}, **extra}]})
        yield self._chunk({}, _finish(response, calls))
        if self._include_usage:
            yield _envelope(self._head, "chat.completion.chunk", []) | {"usage": usage(response.usage or Usage())}

    def _start(self, id: str, name: str, index: int) -> dict[str, Json]:
        number = self._calls[id, index] = len(self._calls)
        function = {"name": name, "arguments": ""}
        return self._chunk({"tool_calls": [{"index": number, "id": id, "type": "function", "function": function}]})

    def _arguments(self, number: int, text: str) -> dict[str, Json]:
        self._written.add(number)
        return self._chunk({"tool_calls": [{"index": number, "function": {"arguments": text}}]})

    def _content(self, text: str) -> dict[str, Json]:
        self._answered = True
        return self._chunk({"content": text})

    def _chunk(self, delta: dict[str, Json], finish_reason: str | None = None) -> dict[str, Json]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        chunk = _envelope(self._head, "chat.completion.chunk", [choice])
        return chunk | {"usage": None} if self._include_usage else chunk


# ---------------------------------------------------------------- errors and events


def error_body(message: str, kind: str, code: int | str | None = None) -> dict[str, Json]:
    """An error as clients of OpenAI read it."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def event(data: Json) -> bytes:
    """A server-sent event that holds JSON."""
    return b"data: %s\n\n" % text(data)


def text(data: Json) -> bytes:
    """The JSON text of an answer."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
