"""What providers ask of a Chat Completions request beyond its shape. One function per rule; each yields refusals.

A docstring says what its rule rests on: a section of a vendor's documentation, or the text of its error.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

import jsonschema_rs

from vendor.chat_files import (
    content_is_text_and_images,
    documents_are_pdf,
    images_are_what_they_claim,
    sounds_are_what_they_claim,
)
from vendor.chat_request import (
    Assistant,
    ChatRequest,
    Dialect,
    NamedChoice,
    Result,
    SchemaFormat,
    Text,
)
from vendor.server import Json


class Issued:
    """The reasoning that a server gave out with calls of tools, by the id of the first call."""

    def __init__(self) -> None:
        self._turns: dict[str, Json] = {}

    def remember(self, id: str, reasoning: Json) -> None:
        self._turns[id] = reasoning

    def of(self, id: str) -> Json:
        return self._turns.get(id)


def refusals(request: ChatRequest, dialect: Dialect, issued: Issued) -> Iterator[str]:
    """Everything that the vendor would refuse; its error is the first."""
    for rule in RULES:
        yield from rule(request)
    if dialect.text_only:
        yield from content_is_text(request)
    if dialect.images_only:
        yield from content_is_text_and_images(request)
    if dialect.nine_letter_ids:
        yield from ids_have_nine_letters(request)
    if dialect.user_after_answer:
        yield from user_waits_for_the_answer(request)
    yield from cache_marks_are_known(request, dialect)
    yield from schemas_are_taken(request, dialect)
    yield from nothing_is_forced_on_a_model_that_thinks(request, dialect)
    if dialect.echoes:
        yield from reasoning_of_the_open_turn_comes_back(request, dialect.echoes, issued)


# ---------------------------------------------------------------- messages


def there_is_a_message(request: ChatRequest) -> Iterator[str]:
    """Error text: `Invalid 'messages': empty array. Expected an array with minimum length 1, ...`."""
    if not any(message.role not in ("system", "developer") for message in request.messages):
        yield (
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."
        )


def system_comes_first(request: ChatRequest) -> Iterator[str]:
    """Templates of local models: `System message must be at the beginning.` OpenAI takes one anywhere."""
    for number, message in enumerate(request.messages):
        if message.role == "system" and number:
            yield "System message must be at the beginning."


def roles_alternate(request: ChatRequest) -> Iterator[str]:
    """Templates of local models: `Conversation roles must alternate user/assistant/user/assistant/...`.

    OpenAI takes neighbours of one role; clients that promise alternation are held to it here.
    """
    for before, message in zip(request.messages, request.messages[1:], strict=False):
        if before.role == message.role != "tool":
            yield "Conversation roles must alternate user/assistant/user/assistant/..."


def content_is_there(request: ChatRequest) -> Iterator[str]:
    """Error text: `Invalid value for 'content': expected a string, got null.`, but beside calls.

    Blank text is refused by the vendors behind gateways (`text content blocks must be non-empty`).
    """
    for number, message in enumerate(request.messages):
        if message.content is None:
            if isinstance(message, Assistant) and not message.tool_calls:
                yield "Invalid value for 'content': expected a string, got null."
            continue
        texts = (
            [message.content]
            if isinstance(message.content, str)
            else [part.text for part in message.content if isinstance(part, Text)]
        )
        if message.content == [] or any(not text.strip() for text in texts):
            yield f"Invalid value for 'messages[{number}].content': text content blocks must be non-empty"


# ---------------------------------------------------------------- calls and results


def calls_are_answered_at_once(request: ChatRequest) -> Iterator[str]:
    """Error text: `An assistant message with 'tool_calls' must be followed by tool messages responding to each
    'tool_call_id'. The following tool_call_ids did not have response messages: ...`.
    """
    for number, message in enumerate(request.messages):
        if isinstance(message, Assistant) and message.tool_calls:
            answered = {result.tool_call_id for result in _results_after(request, number)}
            open_ids = [call.id for call in message.tool_calls if call.id not in answered]
            if open_ids:
                yield (
                    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                    "'tool_call_id'. The following tool_call_ids did not have response messages: "
                    f"{', '.join(open_ids)}"
                )


def results_answer_a_call(request: ChatRequest) -> Iterator[str]:
    """Error text: `Invalid parameter: messages with role 'tool' must be a response to a preceeding message with
    'tool_calls'.` (the vendor's spelling).
    """
    waiting: list[str] = []
    for message in request.messages:
        if isinstance(message, Result):
            if message.tool_call_id not in waiting:
                yield (
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    "'tool_calls'."
                )
            else:
                waiting.remove(message.tool_call_id)
        else:
            waiting = [call.id for call in message.tool_calls or ()] if isinstance(message, Assistant) else []


def call_ids_are_unique(request: ChatRequest) -> Iterator[str]:
    """OpenAI lets equal ids pass, the vendors behind gateways do not (`tool_use` ids must be unique)."""
    counted = Counter(call.id for _, _, call in _calls(request))
    if any(times > 1 for times in counted.values()):
        yield "Invalid 'messages': ids of tool calls must be unique"


def call_ids_are_short(request: ChatRequest) -> Iterator[str]:
    """Error text: `Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length
    40, but got a string with length 41 instead.`
    """
    for message, place, call in _calls(request):
        if len(call.id) > 40:
            yield (
                f"Invalid 'messages[{message}].tool_calls[{place}].id': string too long. Expected a string with "
                f"maximum length 40, but got a string with length {len(call.id)} instead."
            )


def names_are_plain(request: ChatRequest) -> Iterator[str]:
    """Error text: `Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches
    the pattern '^[a-zA-Z0-9_-]+$'.`; 64 characters at most.
    """
    named = {f"messages[{m}].tool_calls[{c}]": call.function.name for m, c, call in _calls(request)}
    named |= {f"tools[{number}]": tool.function.name for number, tool in enumerate(request.tools or ())}
    for path, name in named.items():
        if not re.fullmatch("[a-zA-Z0-9_-]{1,64}", name):
            yield (
                f"Invalid '{path}.function.name': string does not match pattern. Expected a string that matches the "
                "pattern '^[a-zA-Z0-9_-]+$'."
            )


def arguments_are_objects(request: ChatRequest) -> Iterator[str]:
    """OpenAI takes any text; vLLM, llama.cpp and Mistral read it, and refuse what is no object."""
    for message, place, call in _calls(request):
        try:
            value = json.loads(call.function.arguments, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            yield f"Invalid 'messages[{message}].tool_calls[{place}].function.arguments': expected a JSON object"


# ---------------------------------------------------------------- tools and settings


def tool_names_are_unique(request: ChatRequest) -> Iterator[str]:
    """Error text of DeepSeek: `Tool names must be unique.`"""
    names = [tool.function.name for tool in request.tools or ()]
    if len(set(names)) < len(names):
        yield "Tool names must be unique."


def parameters_are_a_schema_of_an_object(request: ChatRequest) -> Iterator[str]:
    """Error text: `Invalid schema for function 'x': schema must be a JSON Schema of 'type: "object"', got ...`."""
    for tool in request.tools or ():
        schema = tool.function.parameters
        if schema and schema.get("type") != "object":
            yield (
                f"Invalid schema for function '{tool.function.name}': schema must be a JSON Schema of "
                f"'type: \"object\"', got 'type: \"{schema.get('type')}\"'."
            )
        elif not _is_schema(schema):
            yield f"Invalid schema for function '{tool.function.name}'"


def tool_choice_can_be_followed(request: ChatRequest) -> Iterator[str]:
    """Error texts: `'tool_choice' is only allowed when 'tools' are specified.`, `Tool choice 'x' not found in 'tools'
    parameter.`
    """
    if request.tool_choice is None:
        return
    if not request.tools:
        yield "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."
    elif isinstance(request.tool_choice, NamedChoice):
        name = request.tool_choice.function.name
        if name not in {tool.function.name for tool in request.tools}:
            yield f"Tool choice '{name}' not found in 'tools' parameter."


def stream_options_belong_to_a_stream(request: ChatRequest) -> Iterator[str]:
    """Error text: `The 'stream_options' parameter is only allowed when 'stream' is enabled.`"""
    if request.stream_options is not None and not request.stream:
        yield "The 'stream_options' parameter is only allowed when 'stream' is enabled."


def there_is_one_cap(request: ChatRequest) -> Iterator[str]:
    """Error text: `Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.`"""
    if request.max_tokens is not None and request.max_completion_tokens is not None:
        yield "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."


def reasoning_models_take_fewer_settings(request: ChatRequest) -> Iterator[str]:
    """Reasoning models of OpenAI. Error texts: `Unsupported parameter: 'max_tokens' is not supported with this model.
    Use 'max_completion_tokens' instead.`, `Unsupported value: 'temperature' does not support 0.5 with this model.
    Only the default (1) value is supported.` (of later ones beside an effort), of the latest `Function tools with
    reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions.`, and of others `Unrecognized request
    argument supplied: reasoning_effort`.
    """
    effort = request.reasoning_effort
    answers_at_once = re.match(r"(chat)?gpt-[34]|gpt-5(\.\d+)?-chat", request.model)
    if effort is not None and answers_at_once:
        yield "Unrecognized request argument supplied: reasoning_effort"
    if answers_at_once or not re.match(r"o\d|gpt-5", request.model):
        return
    if request.max_tokens is not None:
        yield (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
    may_vary = re.match(r"gpt-5\.\d", request.model) and effort in (None, "none")
    if request.temperature not in (None, 1) and not may_vary:
        yield (
            f"Unsupported value: 'temperature' does not support {request.temperature:g} with this model. "
            "Only the default (1) value is supported."
        )
    if re.match(r"gpt-5\.[4-9]", request.model) and request.tools and effort not in (None, "none"):
        yield (
            f"Function tools with reasoning_effort are not supported for {request.model} in /v1/chat/completions. "
            "Please use /v1/responses instead."
        )


def strict_schemas_are_closed(request: ChatRequest) -> Iterator[str]:
    """Structured outputs, "Supported schemas". Error texts: `'additionalProperties' is required to be supplied and to
    be false.`, `'required' is required to be supplied and to be an array including every key in properties.`
    """
    if not isinstance(request.response_format, SchemaFormat):
        return
    given = request.response_format.json_schema
    where = f"Invalid schema for response_format '{given.name}': In context=()"
    if not re.fullmatch("[a-zA-Z0-9_-]{1,64}", given.name):
        yield "Invalid 'response_format.json_schema.name': string does not match pattern."
    if not _is_schema(given.schema_):
        yield f"{where}, it is no JSON Schema."
    for schema in _objects(given.schema_) if given.strict else ():
        if schema.get("additionalProperties") is not False:
            yield f"{where}, 'additionalProperties' is required to be supplied and to be false."
        if set(schema.get("required", ())) != schema.get("properties", {}).keys():
            yield (
                f"{where}, 'required' is required to be supplied and to be an array including every key in properties."
            )


def schemas_are_taken(request: ChatRequest, dialect: Dialect) -> Iterator[str]:
    """Error texts: of DeepSeek `This response_format type is unavailable now`, of Groq `json mode cannot be combined
    with tool/function calling` and `json mode cannot be combined with streaming`.
    """
    if not isinstance(request.response_format, SchemaFormat):
        return
    if dialect.schemas == "never":
        yield "This response_format type is unavailable now"
    elif dialect.schemas == "alone" and request.tools:
        yield "json mode cannot be combined with tool/function calling"
    elif dialect.schemas == "alone" and request.stream:
        yield "json mode cannot be combined with streaming"


def nothing_is_forced_on_a_model_that_thinks(request: ChatRequest, dialect: Dialect) -> Iterator[str]:
    """Error texts: of Anthropic, behind OpenRouter, `Thinking may not be enabled when tool_choice forces tool use.`, of
    DeepSeek `deepseek-reasoner does not support this tool_choice`.
    """
    is_on = request.reasoning_effort not in (None, "none")
    if not is_on or request.tool_choice in (None, "auto", "none"):
        return
    if "claude" in request.model:
        yield "Thinking may not be enabled when tool_choice forces tool use."
    elif "thinking" in dialect.adds:
        yield "deepseek-reasoner does not support this tool_choice"


# ---------------------------------------------------------------- of single providers


def cache_marks_are_known(request: ChatRequest, dialect: Dialect) -> Iterator[str]:
    """OpenRouter, "Anthropic Claude": at most four breakpoints, at texts. Others know no `cache_control`."""
    marks = sum(part.cache_control is not None for part in request.texts)
    if marks > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."
    if marks and not dialect.cache_marks:
        yield "Unknown parameter: 'messages[0].content[0].cache_control'."


def content_is_text(request: ChatRequest) -> Iterator[str]:
    """DeepSeek, "Create chat completion": content is a string. Error text: `invalid type: sequence, expected a
    string`.
    """
    for number, message in enumerate(request.messages):
        if isinstance(message.content, list):
            yield f"messages[{number}]: invalid type: sequence, expected a string"


def ids_have_nine_letters(request: ChatRequest) -> Iterator[str]:
    """Error text of Mistral: `Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.`"""
    for _, _, call in _calls(request):
        if not re.fullmatch("[a-zA-Z0-9]{9}", call.id):
            yield f"Tool call id was {call.id} but must be a-z, A-Z, 0-9, with a length of 9."


def user_waits_for_the_answer(request: ChatRequest) -> Iterator[str]:
    """Error texts of Mistral: `Unexpected role 'user' after role 'tool'`, `Expected last role User or Tool (or
    Assistant with prefix True) for serving but got assistant`.
    """
    for before, message in zip(request.messages, request.messages[1:], strict=False):
        if (before.role, message.role) == ("tool", "user"):
            yield "Unexpected role 'user' after role 'tool'"
    if request.messages[-1].role == "assistant":
        yield "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"


def reasoning_of_the_open_turn_comes_back(request: ChatRequest, key: str, issued: Issued) -> Iterator[str]:
    """OpenRouter, "Preserving reasoning blocks": the sequence must match what the model gave. DeepSeek, "Thinking
    mode": without `reasoning_content` in a round of tool calls the API answers 400.
    """
    for number in range(_start_of_open_turn(request), len(request.messages)):
        message = request.messages[number]
        if isinstance(message, Assistant) and message.tool_calls:
            given = issued.of(message.tool_calls[0].id)
            if given is not None and getattr(message, key) != given:
                yield f"messages[{number}].{key}: reasoning of a turn with tool calls must be passed back unmodified"


RULES = (
    there_is_a_message,
    system_comes_first,
    roles_alternate,
    content_is_there,
    calls_are_answered_at_once,
    results_answer_a_call,
    call_ids_are_unique,
    call_ids_are_short,
    names_are_plain,
    arguments_are_objects,
    tool_names_are_unique,
    parameters_are_a_schema_of_an_object,
    tool_choice_can_be_followed,
    stream_options_belong_to_a_stream,
    there_is_one_cap,
    reasoning_models_take_fewer_settings,
    strict_schemas_are_closed,
    images_are_what_they_claim,
    documents_are_pdf,
    sounds_are_what_they_claim,
)


def _calls(request: ChatRequest) -> Iterator[tuple[int, int, Json]]:
    for number, message in enumerate(request.messages):
        if isinstance(message, Assistant):
            for place, call in enumerate(message.tool_calls or ()):
                yield number, place, call


def _results_after(request: ChatRequest, number: int) -> Iterator[Result]:
    for message in request.messages[number + 1 :]:
        if not isinstance(message, Result):
            return
        yield message


def _start_of_open_turn(request: ChatRequest) -> int:
    users = [number for number, message in enumerate(request.messages) if message.role == "user"]
    return users[-1] if users else 0


def _objects(schema: Json) -> Iterator[dict[str, Json]]:
    """The schemas of objects within a schema."""
    if not isinstance(schema, dict):
        return
    if "object" in (schema.get("type") or ()) and (schema.get("type") == "object" or isinstance(schema["type"], list)):
        yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", ())]
    for below in [*inner, schema.get("items")]:
        yield from _objects(below)


def _is_schema(schema: Json) -> bool:
    try:
        jsonschema_rs.validator_for(schema)
    except (ValueError, jsonschema_rs.ReferencingError):
        return False
    return True


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON number")
