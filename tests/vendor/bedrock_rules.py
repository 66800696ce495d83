"""What the vendor asks of a Converse request beyond its shape. One function per rule; each yields refusals.

A docstring says what its rule rests on: a section of the vendor's documentation ("API" is the reference of Converse),
or the text of its error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Literal

import jsonschema_rs
from pydantic import Field, ValidationError

from vendor import anthropic_rules
from vendor.anthropic_request import OutputConfig, Shape, ThinkingAdaptive, ThinkingBudget, ThinkingOff
from vendor.bedrock_request import Converse, decoded
from vendor.server import Json


class Issued:
    """The reasoning that a server gave out, under the ids of the calls of its turn."""

    def __init__(self) -> None:
        self._turns: dict[str, list[Json]] = {}

    def remember(self, content: list[Json]) -> None:
        reasoning = [block for block in content if "reasoningContent" in block]
        self._turns |= {block["toolUse"]["toolUseId"]: reasoning for block in content if "toolUse" in block}

    def reasoning_of(self, id: str) -> list[Json] | None:
        return self._turns.get(id)


def sign(text: str, nonce: int = 0) -> str:
    """The signature of a reasoning text; those of the same model elsewhere are others."""
    return anthropic_rules.sign(f"bedrock {text}", nonce)


def redact(nonce: int = 0) -> str:
    """The data of redacted reasoning."""
    return sign("redacted", nonce)


def _is_signed(text: str, signature: str) -> bool:
    return anthropic_rules.is_signed(f"bedrock {text}", signature)


def refusals(request: Converse, issued: Issued) -> Iterator[str]:
    """Everything that the vendor would refuse; its error is the first."""
    for rule in RULES:
        yield from rule(request)
    yield from reasoning_of_the_open_turn_is_untouched(request, issued)


# ---------------------------------------------------------------- roles and content


def first_message_is_of_the_user(request: Converse) -> Iterator[str]:
    """Error text: `A conversation must start with a user message. Try again with a conversation that starts ...`."""
    if not request.messages or request.messages[0]["role"] != "user":
        yield (
            "A conversation must start with a user message. Try again with a conversation that starts with a user "
            "message."
        )


def roles_alternate(request: Converse) -> Iterator[str]:
    """Error text: `A conversation must alternate between user and assistant roles. ...`."""
    roles = [message["role"] for message in request.messages]
    if "system" in roles or any(a == b for a, b in pairwise(roles)):
        yield (
            "A conversation must alternate between user and assistant roles. Make sure the conversation alternates "
            "between user and assistant roles and try again."
        )


def content_is_not_empty(request: Converse) -> Iterator[str]:
    """Error text: `The content field in the Message object at messages.0 is empty. ...`."""
    for number, message in enumerate(request.messages):
        if not message["content"]:
            yield (
                f"The content field in the Message object at messages.{number} is empty. Add a ContentBlock object to "
                "the content field and try again."
            )


def text_is_not_blank(request: Converse) -> Iterator[str]:
    """Error text: `The text field in the ContentBlock object at messages.0.content.0 is blank. Add text ...`.

    The vendor says so of messages; clients that promise it of system texts and tool results are held to it here.
    """
    for place, block in _blocks(request):
        texts = [block.get("text"), *(inner.get("text") for inner in block.get("toolResult", {}).get("content", ()))]
        if any(text is not None and not text.strip() for text in texts):
            yield (
                f"The text field in the ContentBlock object at {place} is blank. Add text to the text field, and try "
                "again."
            )
    if any("text" in block and not block["text"].strip() for block in request.system):
        yield "The text field in the SystemContentBlock object at system.0 is blank."


def tool_results_say_something(request: Converse) -> Iterator[str]:
    """Clients that promise never to send an empty result are held to it here."""
    for place, result in _of_kind(request, "toolResult"):
        if not result["content"]:
            yield f"The content field in the ToolResultBlock object at {place} is empty."


def last_answer_has_no_trailing_space(request: Converse) -> Iterator[str]:
    """Error text: `messages: final assistant content cannot end with trailing whitespace`."""
    last = request.messages[-1] if request.messages else None
    texts = [block["text"] for block in last["content"] if "text" in block] if last else []
    if last and last["role"] == "assistant" and texts and texts[-1] != texts[-1].rstrip():
        yield "messages: final assistant content cannot end with trailing whitespace"


def blocks_stand_in_the_right_role(request: Converse) -> Iterator[str]:
    """API, "Message": images and documents only if the role is `user`; the same holds for results, and for calls
    and reasoning of the assistant.
    """
    homes = {
        **dict.fromkeys(("image", "document", "toolResult"), "user"),
        **dict.fromkeys(("toolUse", "reasoningContent"), "assistant"),
    }
    for number, message in enumerate(request.messages):
        for block in message["content"]:
            (kind,) = block
            if homes.get(kind, message["role"]) != message["role"]:
                yield f"messages.{number}.content: {kind} blocks can only be in {homes[kind]} messages"


# ---------------------------------------------------------------- tool calls and results


def call_ids_are_unique(request: Converse) -> Iterator[str]:
    """Error text: ``messages: `tool_use` ids must be unique``."""
    counted = Counter(call["toolUseId"] for _, call in _of_kind(request, "toolUse"))
    if any(times > 1 for times in counted.values()):
        yield "messages: `tool_use` ids must be unique"


def calls_are_answered_at_once(request: Converse) -> Iterator[str]:
    """Error text: `Expected toolResult blocks at messages.2.content for the following Ids: tooluse_1`."""
    for number, message in enumerate(request.messages):
        called = [block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block]
        answered = _results(request, number + 1)
        lacking = [id for id in called if id not in answered]
        if lacking:
            yield (
                f"Expected toolResult blocks at messages.{number + 1}.content for the following Ids: "
                f"{', '.join(lacking)}"
            )


def results_answer_a_call(request: Converse) -> Iterator[str]:
    """Error text: `The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of
    previous turn.`
    """
    called: list[str] = []
    for number, message in enumerate(request.messages):
        answered = _results(request, number)
        if len(answered) > len(called) or set(answered) - set(called):
            yield (
                f"The number of toolResult blocks at messages.{number}.content exceeds the number of toolUse blocks "
                "of previous turn."
            )
        called = [block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block]


def results_come_first(request: Converse) -> Iterator[str]:
    """As Claude models want it: text comes after all tool results of a message."""
    for number, message in enumerate(request.messages):
        results = ["toolResult" in block for block in message["content"]]
        if results != sorted(results, reverse=True):
            yield f"messages.{number}: `tool_result` blocks must come first in the content of a message"


# ---------------------------------------------------------------- tools


def tools_are_defined_where_they_are_used(request: Converse) -> Iterator[str]:
    """Error text: `The toolConfig field must be defined when using toolUse and toolResult content blocks.`"""
    used = [*_of_kind(request, "toolUse"), *_of_kind(request, "toolResult")]
    if used and not request.specs:
        yield "The toolConfig field must be defined when using toolUse and toolResult content blocks."


def tool_names_are_unique(request: Converse) -> Iterator[str]:
    """Error text: `tools: Tool names must be unique.`"""
    if any(times > 1 for times in Counter(spec["name"] for spec in request.specs).values()):
        yield "tools: Tool names must be unique."


def input_schemas_are_schemas(request: Converse) -> Iterator[str]:
    """Error text: `The value at toolConfig.tools.0.toolSpec.inputSchema.json.type must be one of the following:
    object.`
    """
    for number, spec in enumerate(request.specs):
        schema, place = spec["inputSchema"].get("json"), f"toolConfig.tools.{number}.toolSpec.inputSchema.json"
        if not isinstance(schema, dict) or schema.get("type") != "object":
            yield f"The value at {place}.type must be one of the following: object."
        elif not jsonschema_rs.meta.is_valid(schema):
            yield f"{place}: JSON schema is invalid. It must match JSON Schema draft 2020-12"


def tool_choice_can_be_followed(request: Converse) -> Iterator[str]:
    """Error text: `The provided tool name at toolConfig.toolChoice.tool.name is not defined in toolConfig.tools`."""
    name = request.choice.get("tool", {}).get("name")
    if name is not None and name not in {spec["name"] for spec in request.specs}:
        yield f"toolConfig.toolChoice.tool.name: the tool `{name}` is not defined in toolConfig.tools"


def tools_can_be_forced(request: Converse) -> Iterator[str]:
    """`ToolChoice`, "supported by". Error text: `This model doesn't support the toolConfig.toolChoice.any field. Remove
    toolConfig.toolChoice.any and try again.`
    """
    for way in request.choice.keys() & {"any", "tool"}:
        if re.search(r"(^|[./])(meta|cohere|ai21)\.", request.model):
            field = f"toolConfig.toolChoice.{way}"
            yield f"This model doesn't support the {field} field. Remove {field} and try again."


# ---------------------------------------------------------------- files

_IMAGES = {
    "jpeg": (b"\xff\xd8\xff",),
    "png": (b"\x89PNG\r\n\x1a\n",),
    "gif": (b"GIF87a", b"GIF89a"),
    "webp": (b"RIFF",),
}
_DOCUMENTS = {"pdf": b"%PDF-", "docx": b"PK", "xlsx": b"PK"}
_NAME = re.compile(r"[a-zA-Z0-9\s\-()\[\]]+")


def files_are_what_they_claim(request: Converse) -> Iterator[str]:
    """Error texts: `The provided image does not match the specified image format.`, `The PDF specified was not
    valid.`
    """
    for place, image in _of_kind(request, "image"):
        data = decoded(image["source"].get("bytes", "")) or b""
        if not data.startswith(_IMAGES[image["format"]]):
            yield f"{place}: The provided image does not match the specified image format."
    for place, document in _of_kind(request, "document"):
        data = decoded(document["source"].get("bytes", "")) or b""
        if not data.startswith(_DOCUMENTS.get(document.get("format"), b"")):
            yield f"{place}: The {document['format'].upper()} specified was not valid."


def document_names_are_plain(request: Converse) -> Iterator[str]:
    """API, "DocumentBlock": letters, digits, hyphens, parentheses, square brackets, and no more than one white space
    in a row.
    """
    for place, document in _of_kind(request, "document"):
        if not _NAME.fullmatch(document["name"]) or re.search(r"\s\s", document["name"]):
            yield (
                f"The format of the document file name at {place} is invalid. File names can only contain alphanumeric "
                "characters, whitespace characters, hyphens, parentheses, and square brackets. The name can't contain "
                "more than one consecutive whitespace character."
            )


def document_names_are_unique(request: Converse) -> Iterator[str]:
    """Error text: `Messages contains duplicate document names. ...`."""
    counted = Counter(document["name"] for _, document in _of_kind(request, "document"))
    if any(times > 1 for times in counted.values()):
        yield "Messages contains duplicate document names. Provide unique document names and try again."


def documents_have_text_beside_them(request: Converse) -> Iterator[str]:
    """API, "Message": with a document you must also include a ContentBlock with a `text` field."""
    for number, message in enumerate(request.messages):
        kinds = {kind for block in message["content"] for kind in block}
        if "document" in kinds and "text" not in kinds:
            yield f"messages.{number}: A text block must be included when using documents."


# ---------------------------------------------------------------- caching

_CACHING = {
    "anthropic.claude-(3-5-haiku|3-5-sonnet-20241022|3-7|haiku|sonnet|opus)": {"system", "tools", "messages"},
    "amazon.nova-(micro|lite|pro|premier|2-lite)": {"system", "messages"},
}
"""Prompt caching, "Supported models, Regions, and limits": where each family takes cache points."""
_PLACE = re.compile(r"^(arn:.*/)?((us|eu|apac|au|global)\.)?")


def cache_points_suit_the_model(request: Converse) -> Iterator[str]:
    """Error text: `You invoked an unsupported model or your request did not allow prompt caching.`"""
    name = _PLACE.sub("", request.model)
    taken = next((places for family, places in _CACHING.items() if re.match(family, name)), set())
    for place, blocks in _cacheable(request):
        if place not in taken and any("cachePoint" in block for block in blocks):
            yield (
                "You invoked an unsupported model or your request did not allow prompt caching. See the documentation "
                f"for more information. ({place})"
            )


def cache_points_follow_what_they_cache(request: Converse) -> Iterator[str]:
    """Prompt caching, "How it works": at most four, each after some content, which reasoning is not."""
    count = 0
    for place, blocks in _cacheable(request):
        for before, block in zip([{"cachePoint": {}}, *blocks], blocks, strict=False):
            if "cachePoint" in block:
                count += 1
                if before.keys() & {"cachePoint", "reasoningContent"}:
                    yield f"{place}: a cache point must follow content"
    if count > 4:
        yield f"A maximum of 4 cache points may be provided. Found {count}."


# ---------------------------------------------------------------- what goes to the model itself


class ClaudeFields(Shape):
    """Claude, "Extended thinking", "Adaptive thinking": in `additionalModelRequestFields`, as the model has them."""

    thinking: Annotated[ThinkingOff | ThinkingBudget | ThinkingAdaptive, Field(discriminator="type")] | None = None
    output_config: OutputConfig | None = None
    top_k: int | None = None
    anthropic_beta: list[str] = []


class OpenAiFields(Shape):
    """OpenAI models: `reasoning_effort`."""

    reasoning_effort: Literal["low", "medium", "high"] | None = None


def further_fields_are_known_to_the_model(request: Converse) -> Iterator[str]:
    """Error texts: `The model returned the following errors: thinking: ...`, `Malformed input request: extraneous key
    [thinking] is not permitted`.
    """
    shape = ClaudeFields if request.is_claude else OpenAiFields if "openai." in request.model else Shape
    try:
        shape.model_validate(request.more)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(str(step) for step in first["loc"])
        yield f"The model returned the following errors: {path}: {first['msg']}"


def thinking_fits_the_other_parameters(request: Converse) -> Iterator[str]:
    """As Claude models want it: ``max_tokens` must be greater than `thinking.budget_tokens```, `` `temperature` may
    only be set to 1 when thinking is enabled``, `Thinking may not be enabled when tool_choice forces tool use.`
    """
    thinking = request.more.get("thinking") if isinstance(request.more, dict) else None
    if not isinstance(thinking, dict) or thinking.get("type") not in ("enabled", "adaptive"):
        return
    if thinking.get("budget_tokens", 0) >= request.inference.get("maxTokens", 10**9):
        yield "`max_tokens` must be greater than `thinking.budget_tokens`"
    if request.inference.get("temperature") not in (None, 1):
        yield "`temperature` may only be set to 1 when thinking is enabled"
    if "auto" not in request.choice:
        yield "Thinking may not be enabled when tool_choice forces tool use."


def thinking_suits_the_model(request: Converse) -> Iterator[str]:
    """Claude, "Extended thinking", "Adaptive thinking". Error texts: those of Anthropic, after `The model returned the
    following errors:`.
    """
    told = request.more.get("thinking") if isinstance(request.more, dict) and request.is_claude else None
    kind = told.get("type") if isinstance(told, dict) else None
    if kind == "adaptive" and re.search(r"claude-(3|(opus|sonnet|haiku)-4(-[0-5])?(-\d{8}|-v\d|$))", request.model):
        yield "The model returned the following errors: adaptive thinking is not supported on this model"
    if kind == "enabled" and re.search(r"opus-4-[7-9]|(opus|sonnet|haiku)-[5-9]", request.model):
        yield (
            'The model returned the following errors: "thinking.type.enabled" is not supported for this model. Use '
            '"thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
        )


def sampling_is_known_to_the_model(request: Converse) -> Iterator[str]:
    """Error text: `The model returned the following errors: `temperature` is deprecated for this model.`"""
    if re.search(r"claude-(opus-4-[789]|(opus|sonnet|haiku)-[5-9])", request.model) and request.inference.keys() & {
        "temperature",
        "topP",
    }:
        yield "The model returned the following errors: `temperature` is deprecated for this model."


def reasoning_is_signed(request: Converse) -> Iterator[str]:
    """Error texts: ``messages.1.content.0: Invalid `signature` in `thinking` block``, ``Invalid `data` in
    `redacted_thinking` block``.
    """
    for place, block in _of_kind(request, "reasoningContent"):
        match block:
            case {"reasoningText": {"text": text, **more}}:
                if not _is_signed(text, more.get("signature", "")):
                    yield f"{place}: Invalid `signature` in `thinking` block"
            case {"redactedContent": data}:
                if not _is_signed("redacted", data):
                    yield f"{place}: Invalid `data` in `redacted_thinking` block"


def reasoning_comes_first(request: Converse) -> Iterator[str]:
    """As Claude models want it; an answer does not end with its reasoning either: `The final block in an assistant
    message cannot be thinking.`
    """
    for number, message in enumerate(request.messages):
        kinds = ["reasoningContent" in block for block in message["content"]]
        if kinds != sorted(kinds, reverse=True):
            yield f"messages.{number}.content.0: If an assistant message contains any thinking blocks, they come first"
        if kinds and kinds[-1]:
            yield f"messages.{number}: The final block in an assistant message cannot be thinking."


def reasoning_of_the_open_turn_is_untouched(request: Converse, issued: Issued) -> Iterator[str]:
    """As Claude models want it: while tools run, reasoning goes back whole and unmodified, and it does not begin with
    a budget half-way. Turns before the open one may leave their reasoning out.
    """
    thinking = request.more.get("thinking")
    budgeted = isinstance(thinking, dict) and thinking.get("type") == "enabled"
    for number in range(_start_of_open_turn(request), len(request.messages)):
        content = request.messages[number]["content"]
        call = next((block["toolUse"] for block in content if "toolUse" in block), None)
        if call is None:
            continue
        given = issued.reasoning_of(call["toolUseId"])
        sent = [block for block in content if "reasoningContent" in block]
        if given is None and not sent and budgeted:
            yield f"messages.{number}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`"
        if given is not None and sent != given:
            yield (
                f"messages.{number}.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant "
                "message cannot be modified. These blocks must remain as they were in the original response."
            )


RULES = (
    first_message_is_of_the_user,
    roles_alternate,
    content_is_not_empty,
    text_is_not_blank,
    tool_results_say_something,
    last_answer_has_no_trailing_space,
    blocks_stand_in_the_right_role,
    call_ids_are_unique,
    results_come_first,
    calls_are_answered_at_once,
    results_answer_a_call,
    tools_are_defined_where_they_are_used,
    tool_names_are_unique,
    input_schemas_are_schemas,
    tool_choice_can_be_followed,
    tools_can_be_forced,
    files_are_what_they_claim,
    document_names_are_plain,
    document_names_are_unique,
    documents_have_text_beside_them,
    cache_points_suit_the_model,
    cache_points_follow_what_they_cache,
    further_fields_are_known_to_the_model,
    thinking_fits_the_other_parameters,
    thinking_suits_the_model,
    sampling_is_known_to_the_model,
    reasoning_is_signed,
    reasoning_comes_first,
)


def _blocks(request: Converse) -> Iterator[tuple[str, Json]]:
    for number, message in enumerate(request.messages):
        for place, block in enumerate(message["content"]):
            yield f"messages.{number}.content.{place}", block


def _of_kind(request: Converse, kind: str) -> Iterator[tuple[str, Json]]:
    return ((place, block[kind]) for place, block in _blocks(request) if kind in block)


def _results(request: Converse, number: int) -> list[str]:
    """The ids that the results of a message answer."""
    content = request.messages[number]["content"] if number < len(request.messages) else ()
    return [block["toolResult"]["toolUseId"] for block in content if "toolResult" in block]


def _cacheable(request: Converse) -> Iterator[tuple[str, list[Json]]]:
    yield "system", request.system
    yield "tools", request.tools
    for message in request.messages:
        yield "messages", message["content"]


def _start_of_open_turn(request: Converse) -> int:
    """Number of the last user message that brings no results: what follows it is one turn of the model."""
    for number in range(len(request.messages) - 1, -1, -1):
        if request.messages[number]["role"] == "user" and not _results(request, number):
            return number
    return 0
