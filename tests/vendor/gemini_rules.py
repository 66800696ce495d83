"""What the vendor asks of a `generateContent` request beyond its shape. One function per rule; each yields refusals.

A docstring says what its rule rests on: a page of the vendor's documentation, or the text of its error.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from vendor.gemini_request import Content, FunctionCall, GenerateContentRequest, Part, Schema
from vendor.server import Json

SKIP = "skip_thought_signature_validator"
"""Thought signatures, "FAQs": what stands in for the signature of a call that the API did not make."""

THINKS_IN_TOKENS = re.compile(r"gemini-2\.5")


class Issued:
    """The calls that a server gave out, with their signatures."""

    def __init__(self) -> None:
        self._calls: dict[str, Json] = {}

    def remember(self, parts: list[Json]) -> None:
        for part in parts:
            if call := part.get("functionCall"):
                self._calls[_signed_text(call)] = part.get("thoughtSignature")

    def knows(self, call: FunctionCall) -> bool:
        return _signed_text(call.model_dump(by_alias=True)) in self._calls

    def signature_of(self, call: FunctionCall) -> str | None:
        return self._calls.get(_signed_text(call.model_dump(by_alias=True)))


def sign(content: Json, nonce: int = 0) -> str:
    """The signature of a text, or of a call; other nonces give other signatures."""
    digest = hashlib.sha256(f"loopback {nonce} {_signed_text(content)}".encode()).digest()
    return base64.b64encode(b"%d:" % nonce + digest).decode()


def is_signed(content: Json, signature: str) -> bool:
    try:
        nonce = int(base64.b64decode(signature, validate=True).partition(b":")[0])
    except ValueError:
        return False
    return sign(content, nonce) == signature


def _signed_text(content: Json) -> str:
    if isinstance(content, str):
        return content
    return json.dumps([content["name"], content.get("args") or {}, content.get("id")], sort_keys=True)


def refusals(request: GenerateContentRequest, model: str, issued: Issued) -> Iterator[str]:
    """Everything that the vendor would refuse; its error is the first."""
    for rule in RULES:
        yield from rule(request)
    for rule_of_model in RULES_OF_MODELS:
        yield from rule_of_model(request, model)
    yield from signatures_stay_on_their_calls(request, issued)


# ---------------------------------------------------------------- contents


def there_are_contents(request: GenerateContentRequest) -> Iterator[str]:
    """Error text: `* GenerateContentRequest.contents: contents is not specified`."""
    if not request.contents:
        yield "* GenerateContentRequest.contents: contents is not specified"


def contents_begin_with_the_user(request: GenerateContentRequest) -> Iterator[str]:
    """Error text: `Please ensure that multiturn requests start with a user turn`."""
    if request.contents and request.contents[0].role != "user":
        yield "Please ensure that multiturn requests start with a user turn"


def parts_hold_one_thing(request: GenerateContentRequest) -> Iterator[str]:
    """Error texts: `contents.parts must not be empty.`, `required oneof field 'data' must have one initialized
    field`.
    """
    for number, content in enumerate(request.contents):
        if not content.parts:
            yield f"* GenerateContentRequest.contents[{number}].parts: contents.parts must not be empty."
        for place, part in enumerate(content.parts):
            if sum(thing is not None for thing in _things(part)) != 1:
                yield (
                    f"* GenerateContentRequest.contents[{number}].parts[{place}].data: "
                    "required oneof field 'data' must have one initialized field"
                )


def text_is_not_blank(request: GenerateContentRequest) -> Iterator[str]:
    """Error text of Vertex AI: `Unable to submit request because it has an empty text parameter.`

    Thought signatures, "Streaming": a part with a signature may have an empty text.
    """
    system = request.system_instruction.parts if request.system_instruction else []
    for part in (*system, *_parts(request)):
        if part.text is not None and not part.text.strip() and part.thought_signature is None:
            yield "Unable to submit request because it has an empty text parameter."


def parts_stand_in_the_right_role(request: GenerateContentRequest) -> Iterator[str]:
    """Function calling, "Step 4": calls are in contents of the `model`, responses in those of the `user`."""
    for number, content in enumerate(request.contents):
        for part in content.parts:
            if content.role == "user" and (part.function_call or part.thought or part.thought_signature):
                yield f"* GenerateContentRequest.contents[{number}]: a user turn has no calls and no thoughts"
            if content.role == "model" and part.function_response:
                yield f"* GenerateContentRequest.contents[{number}]: a model turn has no function responses"


# ---------------------------------------------------------------- calls and responses


def calls_follow_the_user(request: GenerateContentRequest) -> Iterator[str]:
    """Error text: `Please ensure that function call turn comes immediately after a user turn or after a function
    response turn.`
    """
    for before, content in pairwise(request.contents):
        if _calls(content) and before.role == "model":
            yield (
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )


def responses_answer_all_calls(request: GenerateContentRequest) -> Iterator[str]:
    """Error texts: `Please ensure that the number of function response parts is equal to the number of function
    call parts of the function call turn.`, `... function response turn comes immediately after a function call turn.`
    """
    for number, content in enumerate(request.contents):
        following = request.contents[number + 1] if number + 1 < len(request.contents) else None
        answers = [part.function_response for part in following.parts if part.function_response] if following else []
        if len(_calls(content)) != len(answers):
            yield (
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        for call, answer in zip(_calls(content), answers, strict=False):
            if (call.name, call.id) != (answer.name, answer.id):
                yield (
                    f"The function response `{answer.name}` ({answer.id}) does not match the function call "
                    f"`{call.name}` ({call.id})"
                )
    if request.contents and any(part.function_response for part in request.contents[0].parts):
        yield "Please ensure that function response turn comes immediately after a function call turn."


def responses_are_alone_in_their_turn(request: GenerateContentRequest) -> Iterator[str]:
    """Function calling, "Step 4": the responses of a turn are one content; what the user says is another."""
    for number, content in enumerate(request.contents):
        answers = [part.function_response is not None for part in content.parts]
        if any(answers) and not all(answers):
            yield f"* GenerateContentRequest.contents[{number}]: function responses stand beside other parts"


def responses_are_plain_text(request: GenerateContentRequest) -> Iterator[str]:
    """Function calling, "FunctionResponse": `response` has `result` or `error`; other keys are taken as the result.

    A value with a `$ref` in it is taken for a reference to a part; clients that promise text are held to it here.
    """
    for part in _parts(request):
        answer = part.function_response
        if answer and not (len(answer.response) == 1 and answer.response.keys() <= {"result", "error"}):
            yield f"The response of `{answer.name}` must be a `result` or an `error`"
        elif answer and not all(isinstance(value, str) and value.strip() for value in answer.response.values()):
            yield f"The response of `{answer.name}` must be text that is not blank"


def call_ids_are_unique(request: GenerateContentRequest) -> Iterator[str]:
    """Function calling, "Step 4": the id of a call maps a result back to it."""
    counted = Counter(call.id for content in request.contents for call in _calls(content) if call.id is not None)
    if any(times > 1 for times in counted.values()):
        yield "The ids of function calls must be unique"


# ---------------------------------------------------------------- tools


def declarations_have_names(request: GenerateContentRequest) -> Iterator[str]:
    """Error texts: `Invalid function name. Must start with a letter or an underscore. ...`, `Duplicate function
    declaration found: find`.
    """
    for number, declaration in enumerate(request.declarations):
        if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", declaration.name):
            yield (
                f"* GenerateContentRequest.tools[0].function_declarations[{number}].name: Invalid function name. "
                "Must start with a letter or an underscore."
            )
    for name, times in Counter(declaration.name for declaration in request.declarations).items():
        if times > 1:
            yield f"Duplicate function declaration found: {name}"


def parameters_are_objects(request: GenerateContentRequest) -> Iterator[str]:
    """Error texts: `functionDeclaration parameters schema should be of type OBJECT`, `parameters.properties: should
    be non-empty for OBJECT type`.
    """
    for number, declaration in enumerate(request.declarations):
        schema, place = declaration.parameters, f"tools[0].function_declarations[{number}].parameters"
        if schema is None:
            continue
        if schema.type != "OBJECT":
            yield f"`{declaration.name}` functionDeclaration parameters schema should be of type OBJECT."
        elif not schema.properties:
            yield f"* GenerateContentRequest.{place}.properties: should be non-empty for OBJECT type"
        yield from _faults(schema, place)


def response_schemas_are_known(request: GenerateContentRequest) -> Iterator[str]:
    """Error text: `response_schema is only supported with response_mime_type application/json`."""
    config = request.generation_config
    if config.response_schema is not None:
        yield from _faults(config.response_schema, "generation_config.response_schema")
        if config.response_mime_type == "text/plain":
            yield "* GenerateContentRequest.generation_config.response_mime_type: must be set with response_schema"


_FORMATS = {"STRING": {"enum", "date-time"}, "NUMBER": {"float", "double"}, "INTEGER": {"int32", "int64"}}
_KEYS = {
    "STRING": {"enum", "min_length", "max_length", "pattern"},
    "NUMBER": {"minimum", "maximum"},
    "INTEGER": {"minimum", "maximum"},
    "ARRAY": {"items", "min_items", "max_items"},
    "OBJECT": {"properties", "required", "property_ordering", "min_properties", "max_properties"},
}


def _faults(schema: Schema, place: str) -> Iterator[str]:
    """What is wrong inside a schema. Error texts: `items: missing field.`, `enum: only allowed for STRING type`,
    `enum[0]: cannot be empty`, `required[0]: property is not defined`, `format: only 'enum' and 'date-time' are
    supported for STRING type`; of Vertex AI: `schema didn't specify the schema type field`, `schema specified other
    fields alongside any_of. When using any_of, it must be the only field set.`
    """
    given = schema.model_fields_set
    if schema.any_of is not None:
        if given != {"any_of"}:
            yield f"{place} schema specified other fields alongside any_of."
        if not schema.any_of:
            yield f"{place}.any_of: should be non-empty"
    elif schema.type is None:
        yield f"{place} schema didn't specify the schema type field."
    else:
        for key in sorted(given & set().union(*_KEYS.values()) - _KEYS.get(schema.type, set())):
            yield f"{place}.{key}: not allowed for {schema.type} type"
        if schema.format is not None and schema.format not in _FORMATS.get(schema.type, set()):
            yield f"{place}.format: `{schema.format}` is not supported for {schema.type} type"
    if schema.type == "ARRAY" and schema.items is None:
        yield f"{place}.items: missing field."
    if "" in (schema.enum or ()):
        yield f"{place}.enum: cannot be empty"
    if schema.enum == []:
        yield f"{place}.enum: should be non-empty"
    for key in ("required", "property_ordering"):
        for number, name in enumerate(getattr(schema, key) or ()):
            if name not in (schema.properties or {}):
                yield f"{place}.{key}[{number}]: property is not defined"
    for name, inner in (schema.properties or {}).items():
        yield from _faults(inner, f"{place}.properties[{name}]")
    for number, inner in enumerate(schema.any_of or ()):
        yield from _faults(inner, f"{place}.any_of[{number}]")
    if schema.items is not None:
        yield from _faults(schema.items, f"{place}.items")


def tool_config_can_be_followed(request: GenerateContentRequest) -> Iterator[str]:
    """Error texts: `Function calling config is set without function_declarations.`, `allowed_function_names should
    be set only when the mode is ANY`, `allowed_function_names contains a name that is not declared`.
    """
    if request.tool_config is None:
        return
    config = request.tool_config.function_calling_config
    if config is None:
        return
    if not request.declarations:
        yield "Function calling config is set without function_declarations."
    if config.allowed_function_names and config.mode != "ANY":
        yield "allowed_function_names should be set only when the mode is ANY"
    for name in config.allowed_function_names:
        if name not in {declaration.name for declaration in request.declarations}:
            yield f"allowed_function_names contains `{name}`, which is not declared"


# ---------------------------------------------------------------- files

_MEDIA = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/webp": b"RIFF",
    "image/heic": b"",
    "image/heif": b"",
    "application/pdf": b"%PDF-",
    "text/plain": b"",
    "audio/wav": b"RIFF",
    "audio/mp3": b"",
    "audio/aiff": b"FORM",
    "audio/aac": b"",
    "audio/ogg": b"OggS",
    "audio/flac": b"fLaC",
}
"""Image understanding, audio understanding, document understanding: the types that are read, and how they begin."""


def files_are_what_they_claim(request: GenerateContentRequest) -> Iterator[str]:
    """Error texts: `Base64 decoding failed`, `Unsupported MIME type: image/gif`, `Unable to process input image.`"""
    for part in _parts(request):
        if part.inline_data is None:
            continue
        kind, data = part.inline_data.mime_type, _decoded(part.inline_data.data)
        if data is None:
            yield f'Base64 decoding failed for "{part.inline_data.data[:20]}"'
        elif kind not in _MEDIA:
            yield f"Unsupported MIME type: {kind}"
        elif not data or not data.startswith(_MEDIA[kind]):
            yield "Unable to process input image. Please retry or report in the troubleshooting guide."


def _decoded(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


# ---------------------------------------------------------------- what models take


def thinking_suits_the_model(request: GenerateContentRequest, model: str) -> Iterator[str]:
    """Thinking, "Thinking levels" and "Thinking budgets". Error texts: `You can only set only one of thinking budget
    and thinking level.`, `Thinking level is not supported for this model.`, `Budget 0 is invalid. This model only
    works in thinking mode.`, `Thinking level MINIMAL is not supported for this model.`
    """
    config = request.generation_config.thinking_config
    if config is None:
        return
    budget, level, flash = config.thinking_budget, config.thinking_level, "flash" in model
    if budget is not None and level is not None:
        yield "You can only set only one of thinking budget and thinking level."
    if level is not None and THINKS_IN_TOKENS.search(model):
        yield "Thinking level is not supported for this model."
    if level == "MINIMAL" and not flash:
        yield "Thinking level MINIMAL is not supported for this model."
    if budget == 0 and not flash:
        yield "Budget 0 is invalid. This model only works in thinking mode."
    if budget is not None and not (budget in (-1, 0) or 128 <= budget <= 32768):
        yield f"The thinking budget {budget} is invalid."
    if budget == 0 and config.include_thoughts:
        yield "include_thoughts is only enabled when thinking is enabled."


def a_schema_or_tools(request: GenerateContentRequest, model: str) -> Iterator[str]:
    """Structured outputs, "Structured outputs with tools": from Gemini 3 on. Error text of earlier models: `Function
    calling with a response mime type: 'application/json' is unsupported`.
    """
    wants_json = request.generation_config.response_mime_type == "application/json"
    if wants_json and request.declarations and re.search(r"gemini-[12]\b", model):
        yield "Function calling with a response mime type: 'application/json' is unsupported"


def search_or_functions(request: GenerateContentRequest, model: str) -> Iterator[str]:
    """Combine built-in tools and function calling: from Gemini 3 on, with the invocations included. Error text of
    earlier models: `Tool use with function calling is unsupported`; they give no JSON beside a search, either.
    """
    if not request.searches:
        return
    early = re.search(r"gemini-[12]\b", model)
    included = request.tool_config is not None and request.tool_config.include_server_side_tool_invocations
    if request.declarations and early:
        yield "Tool use with function calling is unsupported"
    elif request.declarations and not included:
        yield (
            "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function "
            "calling."
        )
    if early and request.generation_config.response_mime_type == "application/json":
        yield "Tool use with a response mime type: 'application/json' is unsupported"


def calls_of_the_open_turn_are_signed(request: GenerateContentRequest, model: str) -> Iterator[str]:
    """Thought signatures, "Gemini 3": in each step of the current turn the first call has a signature.

    Error text: `Function call is missing a thought_signature in functionCall parts. This is required for tools to
    work correctly, ...`.
    """
    if re.search(r"gemini-[12]\b", model):
        return
    for content in request.contents[_start_of_open_turn(request) :]:
        first = next((part for part in content.parts if part.function_call), None)
        if first is not None and not first.thought_signature:
            yield (
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                "work correctly"
            )


# ---------------------------------------------------------------- signatures


def signatures_are_genuine(request: GenerateContentRequest) -> Iterator[str]:
    """Error text: `Thought signature is not valid.` Where it stands counts, too: each was made for one part."""
    for part in _parts(request):
        if part.thought_signature is None:
            continue
        if part.function_call is not None:
            call = part.function_call.model_dump(by_alias=True)
            genuine = part.thought_signature == SKIP or is_signed(call, part.thought_signature)
        else:
            step = part.tool_call or part.tool_response
            content = part.text if step is None else json.dumps(step, sort_keys=True)
            genuine = content is not None and is_signed(content, part.thought_signature)
        if not genuine:
            yield "Thought signature is not valid."


def signatures_stay_on_their_calls(request: GenerateContentRequest, issued: Issued) -> Iterator[str]:
    """Thought signatures, "How it works": return each part with its signature, exactly as it came."""
    for content in request.contents:
        for part in content.parts:
            call = part.function_call
            if call is not None and issued.knows(call) and part.thought_signature != issued.signature_of(call):
                yield f"The thought signature of the call of `{call.name}` is not the one that was given"


RULES = (
    there_are_contents,
    contents_begin_with_the_user,
    parts_hold_one_thing,
    text_is_not_blank,
    parts_stand_in_the_right_role,
    calls_follow_the_user,
    responses_answer_all_calls,
    responses_are_alone_in_their_turn,
    responses_are_plain_text,
    call_ids_are_unique,
    declarations_have_names,
    parameters_are_objects,
    response_schemas_are_known,
    tool_config_can_be_followed,
    files_are_what_they_claim,
    signatures_are_genuine,
)
RULES_OF_MODELS = (thinking_suits_the_model, a_schema_or_tools, search_or_functions, calls_of_the_open_turn_are_signed)


def _parts(request: GenerateContentRequest) -> Iterator[Part]:
    for content in request.contents:
        yield from content.parts


def _things(part: Part) -> tuple[object, ...]:
    own = (part.text, part.inline_data, part.function_call, part.function_response)
    return (*own, part.tool_call, part.tool_response)


def _calls(content: Content) -> list[FunctionCall]:
    return [part.function_call for part in content.parts if part.function_call is not None]


def _start_of_open_turn(request: GenerateContentRequest) -> int:
    """Number of the last content in which the user says something: what follows it is one turn of the model."""
    for number in range(len(request.contents) - 1, -1, -1):
        content = request.contents[number]
        if content.role == "user" and not any(part.function_response for part in content.parts):
            return number
    return 0
