"""The Responses wire of OpenAI. The provider keeps nothing: the whole conversation is sent, reasoning encrypted."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Final

from octo.errors import BadRequest
from octo.llm import conversation, facts, media, schemas
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
from octo.llm.credentials import join_url
from octo.llm.wire import Endpoint, HttpCall, shortened, to_bytes
from octo.llm.wires.responses_answer import NAME, Decoder
from octo.values import Json

MEDIA_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf"})

_LONGEST_ID: Final = 64
_OUTPUT: Final = "structured_output"
_DRAW: Final = "image_generation"
_ENCRYPTED: Final = "reasoning.encrypted_content"


@dataclass(frozen=True, slots=True)
class Responses:
    """The wire as one provider speaks it."""

    dialect: str
    """The provider, which is the only one that can read its own reasoning."""

    def decoder(self, _: ChatRequest | None = None) -> Decoder:
        return Decoder(self.dialect)

    def encode(self, request: ChatRequest, endpoint: Endpoint, *, stream: bool) -> HttpCall:
        """The call of `responses`; whatever the conversation holds, the vendor finds it well-formed."""
        credentials = endpoint.credentials
        model = request.model or endpoint.model
        if not model:
            raise BadRequest("no model is named", hint="set `model` on the connector or on the agent")
        thinks = facts.reasons(model) and "include" not in endpoint.refused
        body: dict[str, Json] = {"model": model, "store": False}
        if thinks:
            body["include"] = [_ENCRYPTED]
        if not conversation.is_blank(request.system):
            body["instructions"] = request.system
        body |= _tools(request)
        body["input"] = self._input(request, thinks=thinks)
        body |= _settings(request, endpoint)
        if credentials.user:
            body["user"] = credentials.user
        if "prompt_cache_key" not in endpoint.refused and (key := endpoint.cache_key(request)):
            body["prompt_cache_key"] = key
        stream = stream and request.output_type == "text"
        if stream:
            body["stream"] = True
        return HttpCall(join_url(credentials.base_url, "responses"), credentials.headers({}), to_bytes(body), stream)

    # ------------------------------------------------------------ the conversation as items

    def _input(self, request: ChatRequest, *, thinks: bool) -> list[dict[str, Json]]:
        turns = conversation.valid(request.messages, user_first=False)
        if not turns:
            raise BadRequest("the conversation has no user turn")
        items: list[dict[str, Json]] = []
        for turn in turns:
            match turn.role:
                case "user":
                    items.append(_user(turn))
                case "assistant":
                    given = {item["id"] for item in items if item["type"] in ("reasoning", "web_search_call")}
                    items += self._assistant(turn, len(items), given if thinks else None, search=request.web_search)
                case "tool":
                    items += map(_result, turn.parts)
        return items

    def _assistant(
        self, turn: ChatMessage, place: int, given: set[str] | None, *, search: bool
    ) -> list[dict[str, Json]]:
        """The items of a turn in the order in which they came; something follows each item of reasoning.

        `given` are the ids of reasoning that was sent already, None where none is to be sent, nor what it searched for.
        """
        items: list[dict[str, Json]] = []
        for part in conversation.without_blank_text(turn.parts):
            match part:
                case Text():
                    items.append(_answer(place + len(items), part.text, self._own(part.replay)))
                case ToolCall():
                    items.append(_call(part))
                case Reasoning() | Search() if given is not None and (search or isinstance(part, Reasoning)):
                    item = self._own(part.replay).get("item")
                    if item and item["id"] not in given:
                        given.add(item["id"])
                        items.append(item)
        if not items or items[-1]["type"] == "reasoning":
            items.append(_answer(place + len(items), conversation.NO_CONTENT, {}))
        return items

    def _own(self, replay: Json) -> dict[str, Json]:
        """Replay data, if it is of this wire and provider."""
        is_own = isinstance(replay, dict) and (replay.get("wire"), replay.get("dialect")) == (NAME, self.dialect)
        return replay if is_own else {}


def _user(turn: ChatMessage) -> dict[str, Json]:
    content: list[Json] = []
    for part in conversation.without_blank_text(turn.parts):
        match part:
            case File():
                content.append(_file(part))
            case Text(text):
                content.append({"type": "input_text", "text": text})
    if not content:
        content.append({"type": "input_text", "text": conversation.NO_CONTENT})
    return {"type": "message", "role": "user", "content": content}


def _file(file: File) -> dict[str, Json]:
    url = f"data:{file.mime_type};base64,{b64encode(file.data).decode('ascii')}"
    if file.mime_type != "application/pdf":
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    return {"type": "input_file", "filename": media.pdf_name(file.name), "file_data": url}


def _answer(number: int, text: str, replay: dict[str, Json]) -> dict[str, Json]:
    """Text of the model. Its id is made here: the vendor's own would call for the reasoning that belonged to it."""
    phase = {"phase": replay["phase"]} if replay.get("phase") else {}
    content = [{"type": "output_text", "text": text, "annotations": []}]
    id = f"msg_{number}"
    return {"type": "message", "id": id, "status": "completed", "role": "assistant", **phase, "content": content}


def _call(call: ToolCall) -> dict[str, Json]:
    """A call with its arguments as the model wrote them, if they are an object at all."""
    arguments = "{}" if conversation.arguments(call.arguments) is None else call.arguments
    id = shortened(call.id, _LONGEST_ID)
    return {"type": "function_call", "call_id": id, "name": call.name, "arguments": arguments}


def _result(part: Part) -> dict[str, Json]:
    assert isinstance(part, ToolResult), "a tool turn holds results only"
    text = conversation.NO_CONTENT if conversation.is_blank(part.text) else part.text
    output = f"ERROR: {text}" if part.is_error else text
    return {"type": "function_call_output", "call_id": shortened(part.call_id, _LONGEST_ID), "output": output}


# ---------------------------------------------------------------- what else is asked


def _tools(request: ChatRequest) -> dict[str, Json]:
    """The tools, not in strict mode, which authors' schemas need not fit, and which one is to be called."""
    if request.output_type == "image":
        return {"tools": [{"type": _DRAW, "quality": "low"}], "tool_choice": {"type": _DRAW}}
    tools: list[Json] = []
    for tool in request.tools:
        schema = tool.input_schema if "type" in tool.input_schema else {"type": "object", **tool.input_schema}
        told = {} if conversation.is_blank(tool.description) else {"description": tool.description}
        tools.append({"type": "function", "name": tool.name, **told, "parameters": schema, "strict": False})
    if request.web_search:
        tools.append({"type": "web_search"})
    if not tools:
        return {}
    match request.tool_choice:
        case "auto":
            return {"tools": tools}
        case "any":
            return {"tools": tools, "tool_choice": "required"}
        case "none":
            return {"tools": tools, "tool_choice": "none"}
        case NamedTool(name):
            return {"tools": tools, "tool_choice": {"type": "function", "name": name}}


def _settings(request: ChatRequest, endpoint: Endpoint) -> dict[str, Json]:
    settings: dict[str, Json] = {}
    max_tokens = request.max_tokens or endpoint.max_tokens or 0
    if max_tokens > 0:
        settings["max_output_tokens"] = max_tokens
    effort = endpoint.effort(request)
    takes = "temperature" not in endpoint.refused and facts.takes_temperature(request.model or endpoint.model, effort)
    if request.temperature is not None and takes:
        settings["temperature"] = request.temperature
    if request.output_type == "image":
        return settings
    if effort:
        settings["reasoning"] = {"effort": effort}
        if effort != "none" and "reasoning.summary" not in endpoint.refused:
            settings["reasoning"]["summary"] = "auto"
    schema = request.output_schema
    if schema and schema.get("properties"):
        form = {"type": "json_schema", "name": _OUTPUT, "strict": True, "schema": schemas.strict(schema)}
        settings["text"] = {"format": form}
    return settings
