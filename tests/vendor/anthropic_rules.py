"""What the vendor asks of a Messages request beyond its shape. One function per rule; each yields refusals.

A docstring says what its rule rests on: a section of the vendor's documentation, or the text of its error.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterator

import jsonschema_rs

from vendor.anthropic_files import documents_are_pdf, images_are_what_they_claim
from vendor.anthropic_request import (
    Block,
    ClientTool,
    Document,
    Image,
    MessagesRequest,
    NamedChoice,
    RedactedThinking,
    ServerToolUse,
    Text,
    Thinking,
    ThinkingAdaptive,
    ThinkingBudget,
    ToolResult,
    ToolUse,
    WebSearchResult,
)
from vendor.server import Json


class Issued:
    """The thinking that a server gave out, and the proof that it did.

    A signature can be checked by any later server, so that a conversation may go on with another one; which
    turn carried which blocks is known only to the server that answered it.
    """

    def __init__(self) -> None:
        self._turns: dict[str, list[Json]] = {}

    def remember(self, content: list[Json]) -> None:
        """Keep the thinking blocks of an answer under the ids of its tool calls."""
        thinking = [block for block in content if block["type"] in ("thinking", "redacted_thinking")]
        self._turns |= {block["id"]: thinking for block in content if block["type"] == "tool_use"}

    def thinking_of(self, call: ToolUse) -> list[Json] | None:
        return self._turns.get(call.id)


def sign(text: str, nonce: int = 0) -> str:
    """The signature of a thinking text; other nonces give other signatures."""
    digest = hashlib.sha256(f"loopback {nonce} {text}".encode()).digest()
    return base64.b64encode(b"%d:" % nonce + digest).decode()


def is_signed(text: str, signature: str) -> bool:
    try:
        nonce = int(base64.b64decode(signature, validate=True).partition(b":")[0])
    except ValueError:
        return False
    return sign(text, nonce) == signature


def redact(nonce: int = 0) -> str:
    """The data of a redacted thinking block."""
    return sign("redacted", nonce)


def refusals(request: MessagesRequest, issued: Issued) -> Iterator[str]:
    """Everything that the vendor would refuse; its error is the first."""
    for rule in RULES:
        yield from rule(request)
    yield from thinking_of_the_open_turn_is_untouched(request, issued)


# ---------------------------------------------------------------- roles and content


def first_message_is_of_the_user(request: MessagesRequest) -> Iterator[str]:
    """Error texts: `at least one message is required`, `first message must use the "user" role`."""
    if not request.messages:
        yield "messages: at least one message is required"
    elif request.messages[0].role != "user":
        yield 'messages: first message must use the "user" role'


def roles_alternate(request: MessagesRequest) -> Iterator[str]:
    """Error text: `messages: roles must alternate between "user" and "assistant", ...`.

    Today the vendor joins neighbours of one role; clients that promise alternation are held to it here.
    """
    for before, message in zip(request.messages, request.messages[1:], strict=False):
        if before.role == message.role:
            yield (
                'messages: roles must alternate between "user" and "assistant", '
                f'but found multiple "{message.role}" roles in a row'
            )


def content_is_not_empty(request: MessagesRequest) -> Iterator[str]:
    """Error text: `messages.0: all messages must have non-empty content ...`."""
    for number, message in enumerate(request.messages):
        if not message.content:
            yield f"messages.{number}: all messages must have non-empty content"


def text_is_not_blank(request: MessagesRequest) -> Iterator[str]:
    """Error texts: `text content blocks must be non-empty`, `... must contain non-whitespace text`.

    The vendor lets an empty tool result pass; clients that promise never to send one are held to it here.
    """
    for place, blocks in (("system", request.system), ("messages", request.blocks)):
        for block in blocks:
            if isinstance(block, Text) and not block.text.strip():
                rest = "must contain non-whitespace text" if block.text else "must be non-empty"
                yield f"{place}: text content blocks {rest}"


def last_answer_has_no_trailing_space(request: MessagesRequest) -> Iterator[str]:
    """Error text: `messages: final assistant content cannot end with trailing whitespace`."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role == "user" or not last.content:
        return
    block = last.content[-1]
    if isinstance(block, Text) and block.text != block.text.rstrip():
        yield "messages: final assistant content cannot end with trailing whitespace"


def blocks_stand_in_the_right_role(request: MessagesRequest) -> Iterator[str]:
    """Error texts: ``messages.0: `tool_use` blocks can only be in `assistant` messages`` and its likes."""
    of_assistant = (ToolUse, Thinking, RedactedThinking, ServerToolUse, WebSearchResult)
    of_user = (ToolResult, Image, Document)
    for number, message in enumerate(request.messages):
        misplaced, home = (of_assistant, "assistant") if message.role == "user" else (of_user, "user")
        for block in message.content:
            if isinstance(block, misplaced):
                yield f"messages.{number}: `{block.type}` blocks can only be in `{home}` messages"


# ---------------------------------------------------------------- tool calls and results


def call_ids_are_unique(request: MessagesRequest) -> Iterator[str]:
    """Error text: ``messages: `tool_use` ids must be unique``."""
    counted = Counter(block.id for message in request.messages for block in _calls(message.content))
    if any(times > 1 for times in counted.values()):
        yield "messages: `tool_use` ids must be unique"


def calls_are_answered_at_once(request: MessagesRequest) -> Iterator[str]:
    """Handle tool calls, "Formatting requirements": results follow at once and come first in their message.

    Error text: ``messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: ...``.
    """
    for number, message in enumerate(request.messages):
        answered = _leading_results(request, number + 1)
        open_calls = [call.id for call in _calls(message.content) if call.id not in answered]
        if open_calls:
            yield (
                f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately "
                f"after: {', '.join(open_calls)}. Each `tool_use` block must have a corresponding "
                "`tool_result` block in the next message."
            )


def results_answer_a_call(request: MessagesRequest) -> Iterator[str]:
    """Error texts: ``unexpected `tool_use_id` found in `tool_result` blocks: ...``, ``each tool_use must have
    a single result. Found multiple `tool_result` blocks with id: ...``.
    """
    called: set[str] = set()
    for number, message in enumerate(request.messages):
        seen: set[str] = set()
        for place, block in enumerate(message.content):
            if not isinstance(block, ToolResult):
                continue
            if block.tool_use_id not in called:
                yield (
                    f"messages.{number}.content.{place}: unexpected `tool_use_id` found in `tool_result` "
                    f"blocks: {block.tool_use_id}. Each `tool_result` block must have a corresponding "
                    "`tool_use` block in the previous message."
                )
            if block.tool_use_id in seen:
                yield (
                    f"messages.{number}.content.{place}: each tool_use must have a single result. "
                    f"Found multiple `tool_result` blocks with id: {block.tool_use_id}"
                )
            seen.add(block.tool_use_id)
        called = {call.id for call in _calls(message.content)}


def results_come_first(request: MessagesRequest) -> Iterator[str]:
    """Handle tool calls, "Formatting requirements": text comes after all tool results of a message."""
    for number, message in enumerate(request.messages):
        results = [isinstance(block, ToolResult) for block in message.content]
        if results != sorted(results, reverse=True):
            yield f"messages.{number}: `tool_result` blocks must come first in the content of a message"


def searches_are_answered(request: MessagesRequest) -> Iterator[str]:
    """Error text: ``messages.1.content.0: `web_search` tool use with id `srvtoolu_1` was found without a corresponding
    `web_search_tool_result` block``. A turn that the vendor paused, which is the last one, may end with a search.
    """
    for number, message in enumerate(request.messages):
        asked = [block for block in message.content if isinstance(block, ServerToolUse)]
        found = {block.tool_use_id for block in message.content if isinstance(block, WebSearchResult)}
        for block in asked:
            if block.id not in found and number < len(request.messages) - 1:
                yield (
                    f"messages.{number}: `{block.name}` tool use with id `{block.id}` was found without a "
                    "corresponding `web_search_tool_result` block"
                )
        for id in found - {block.id for block in asked}:
            yield f"messages.{number}: unexpected `tool_use_id` found in `web_search_tool_result` blocks: {id}"


# ---------------------------------------------------------------- tools


def tool_names_are_unique(request: MessagesRequest) -> Iterator[str]:
    """Error text: `tools: Tool names must be unique.`"""
    counted = Counter(tool.name for tool in request.tools)
    if any(times > 1 for times in counted.values()):
        yield "tools: Tool names must be unique."


def input_schemas_are_schemas(request: MessagesRequest) -> Iterator[str]:
    """Error texts: `JSON schema is invalid. It must match JSON Schema draft 2020-12 ...`, `input_schema does
    not support oneOf, allOf, or anyOf at the top level`.
    """
    for number, tool in enumerate(request.tools):
        if not isinstance(tool, ClientTool):
            continue
        schema, place = tool.input_schema.model_dump(), f"tools.{number}.custom.input_schema"
        if not jsonschema_rs.meta.is_valid(schema) or not _compiles(schema):
            yield f"{place}: JSON schema is invalid. It must match JSON Schema draft 2020-12"
        if schema.keys() & {"oneOf", "allOf", "anyOf"}:
            yield f"{place}: input_schema does not support oneOf, allOf, or anyOf at the top level"


def _compiles(schema: Json) -> bool:
    try:
        jsonschema_rs.Draft202012Validator(schema)
    except (ValueError, jsonschema_rs.ReferencingError):
        return False
    return True


def tool_choice_can_be_followed(request: MessagesRequest) -> Iterator[str]:
    """Error texts: `tool_choice may only be specified while providing tools`, `Tool 'x' not found in provided
    tools`.
    """
    choice = request.tool_choice
    if choice is None:
        return
    if not request.tools:
        yield "tool_choice: tool_choice may only be specified while providing tools"
    elif isinstance(choice, NamedChoice) and choice.name not in {tool.name for tool in request.tools}:
        yield f"tool_choice: Tool '{choice.name}' not found in provided tools"


# ---------------------------------------------------------------- thinking


def budget_is_below_max_tokens(request: MessagesRequest) -> Iterator[str]:
    """Error text: ``max_tokens` must be greater than `thinking.budget_tokens```."""
    if isinstance(request.thinking, ThinkingBudget) and request.thinking.budget_tokens >= request.max_tokens:
        yield "`max_tokens` must be greater than `thinking.budget_tokens`"


_BEFORE_ADAPTIVE = re.compile(r"claude-(3|(opus|sonnet|haiku)-4(-[0-5])?(-\d{8})?$)")
_TAKES_EFFORT = re.compile(r"opus-4-[5-9]|sonnet-4-[6-9]|-[5-9](-|$)")
_WITHOUT_BUDGET = re.compile(r"opus-4-[7-9]|(opus|sonnet|haiku)-[5-9]")


def thinking_suits_the_model(request: MessagesRequest) -> Iterator[str]:
    """Effort, "Supported models"; adaptive thinking, "Supported models". Error texts: `adaptive thinking is not
    supported on this model`, `This model does not support the effort parameter.`, `This model does not support effort
    level 'xhigh'. Supported levels: high, low, max, medium.`, `"thinking.type.enabled" is not supported for this model.
    …`
    """
    model, effort = request.model, request.output_config.effort if request.output_config else None
    if isinstance(request.thinking, ThinkingAdaptive) and _BEFORE_ADAPTIVE.search(model):
        yield "adaptive thinking is not supported on this model"
    if effort and not _TAKES_EFFORT.search(model):
        yield "This model does not support the effort parameter."
    if effort == "xhigh" and not _WITHOUT_BUDGET.search(model):
        yield f"This model does not support effort level '{effort}'. Supported levels: high, low, max, medium."
    if isinstance(request.thinking, ThinkingBudget) and _WITHOUT_BUDGET.search(model):
        yield (
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
            '"output_config.effort" to control thinking behavior.'
        )


def thinking_fits_the_other_parameters(request: MessagesRequest) -> Iterator[str]:
    """Extended thinking, "Feature compatibility". Error texts: `` `temperature` may only be set to 1 when
    thinking is enabled``, `` `top_k` must be unset when thinking is enabled``, `Thinking may not be enabled
    when tool_choice forces tool use.`
    """
    if not isinstance(request.thinking, ThinkingBudget | ThinkingAdaptive):
        return
    if request.temperature not in (None, 1):
        yield "`temperature` may only be set to 1 when thinking is enabled"
    if request.top_k is not None:
        yield "`top_k` must be unset when thinking is enabled"
    if request.top_p is not None and request.top_p < 0.95:
        yield "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled"
    if request.tool_choice is not None and request.tool_choice.type in ("any", "tool"):
        yield "Thinking may not be enabled when tool_choice forces tool use."


_BEFORE_4_1 = re.compile(r"claude-3|(opus|sonnet)-4(-0)?(-\d{8})?$")


def sampling_suits_the_model(request: MessagesRequest) -> Iterator[str]:
    """Error texts: `` `temperature` is deprecated for this model.``, `` `temperature` and `top_p` cannot both be
    specified for this model. Please use only one.``
    """
    given = [name for name in ("temperature", "top_p") if getattr(request, name) is not None]
    if _WITHOUT_BUDGET.search(request.model):
        yield from (f"`{name}` is deprecated for this model." for name in given)
    elif len(given) > 1 and not _BEFORE_4_1.search(request.model):
        yield "`temperature` and `top_p` cannot both be specified for this model. Please use only one."


def thinking_is_signed(request: MessagesRequest) -> Iterator[str]:
    """Error texts: ``messages.1.content.0: Invalid `signature` in `thinking` block``, ``Invalid `data` in
    `redacted_thinking` block``.
    """
    for number, message in enumerate(request.messages):
        for place, block in enumerate(message.content):
            if isinstance(block, Thinking) and not is_signed(block.thinking, block.signature):
                yield f"messages.{number}.content.{place}: Invalid `signature` in `thinking` block"
            if isinstance(block, RedactedThinking) and not is_signed("redacted", block.data):
                yield f"messages.{number}.content.{place}: Invalid `data` in `redacted_thinking` block"


def thinking_comes_first(request: MessagesRequest) -> Iterator[str]:
    """Error text: ``If an assistant message contains any thinking blocks, the first block must be `thinking`
    or `redacted_thinking`. Found `text`.`` After a search of the web the model may think again.
    """
    for number, message in enumerate(request.messages):
        content = message.content
        led_to = (True, *(isinstance(block, Thinking | RedactedThinking | WebSearchResult) for block in content[:-1]))
        late = [
            isinstance(block, Thinking | RedactedThinking) and not follows
            for block, follows in zip(content, led_to, strict=bool(content))
        ]
        if any(late):
            found = content[late.index(True) - 1].type
            yield (
                f"messages.{number}.content.0: If an assistant message contains any thinking blocks, the "
                f"first block must be `thinking` or `redacted_thinking`. Found `{found}`."
            )


def thinking_of_the_open_turn_is_untouched(request: MessagesRequest, issued: Issued) -> Iterator[str]:
    """Extended thinking, "Preserving thinking blocks": while tools run, the blocks go back whole, unmodified.

    Error texts: `` `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be
    modified.``, and with a budget ``Expected `thinking` or `redacted_thinking`, but found `tool_use`.`` for a
    turn that came from elsewhere without thinking. Turns before the open one may leave their thinking out.
    """
    for number in range(_start_of_open_turn(request), len(request.messages)):
        content = request.messages[number].content
        calls = _calls(content)
        if not calls:
            continue
        given = issued.thinking_of(calls[0])
        sent = [block.model_dump() for block in content if isinstance(block, Thinking | RedactedThinking)]
        if given is None and not sent and isinstance(request.thinking, ThinkingBudget):
            yield (
                f"messages.{number}.content.0.type: Expected `thinking` or `redacted_thinking`, "
                f"but found `{content[0].type}`"
            )
        if given is not None and sent != given:
            yield (
                f"messages.{number}.content.0: `thinking` or `redacted_thinking` blocks in the latest "
                "assistant message cannot be modified. These blocks must remain as they were in the original "
                "response."
            )


# ---------------------------------------------------------------- the rest


def at_most_four_cache_marks(request: MessagesRequest) -> Iterator[str]:
    """Error text: `A maximum of 4 blocks with cache_control may be provided. Found 5.`"""
    places = (request, *request.system, *request.tools, *request.blocks)
    marks = sum(getattr(place, "cache_control", None) is not None for place in places)
    if marks > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."


def stop_sequences_are_not_blank(request: MessagesRequest) -> Iterator[str]:
    """Error text: `stop_sequences: each stop sequence must contain non-whitespace`."""
    if any(not text.strip() for text in request.stop_sequences):
        yield "stop_sequences: each stop sequence must contain non-whitespace"


RULES = (
    first_message_is_of_the_user,
    roles_alternate,
    content_is_not_empty,
    text_is_not_blank,
    last_answer_has_no_trailing_space,
    blocks_stand_in_the_right_role,
    call_ids_are_unique,
    results_come_first,
    calls_are_answered_at_once,
    results_answer_a_call,
    searches_are_answered,
    tool_names_are_unique,
    input_schemas_are_schemas,
    tool_choice_can_be_followed,
    images_are_what_they_claim,
    documents_are_pdf,
    budget_is_below_max_tokens,
    thinking_suits_the_model,
    thinking_fits_the_other_parameters,
    sampling_suits_the_model,
    thinking_is_signed,
    thinking_comes_first,
    at_most_four_cache_marks,
    stop_sequences_are_not_blank,
)


def _calls(content: list[Block]) -> list[ToolUse]:
    return [block for block in content if isinstance(block, ToolUse)]


def _leading_results(request: MessagesRequest, number: int) -> set[str]:
    """The ids that the results at the head of a message answer."""
    ids: set[str] = set()
    for block in request.messages[number].content if number < len(request.messages) else ():
        if not isinstance(block, ToolResult):
            break
        ids.add(block.tool_use_id)
    return ids


def _start_of_open_turn(request: MessagesRequest) -> int:
    """Number of the last user message that brings no results: what follows it is one turn of the model."""
    for number in range(len(request.messages) - 1, -1, -1):
        message = request.messages[number]
        if message.role == "user" and not any(isinstance(block, ToolResult) for block in message.content):
            return number
    return 0
