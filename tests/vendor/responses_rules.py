"""What OpenAI asks of a Responses request beyond its shape. One function per rule; each yields refusals.

A docstring says what its rule rests on: a section of the vendor's documentation, or the text of its error.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from vendor.content import is_schema, of_data_url, strict_faults
from vendor.responses_request import (
    AssistantMessage,
    BuiltInChoice,
    FunctionCall,
    FunctionCallOutput,
    FunctionTool,
    InputFile,
    InputImage,
    InputText,
    NamedChoice,
    OutputText,
    ReasoningItem,
    ResponsesRequest,
    SchemaFormat,
    UserMessage,
    WebSearchCall,
)
from vendor.server import Json


class Issued:
    """The reasoning that a server gave out before calls, by the ids of those calls."""

    def __init__(self) -> None:
        self._items: dict[str, Json] = {}

    def remember(self, output: Sequence[Json]) -> None:
        """Keep each item of reasoning under the call that follows it."""
        for before, item in pairwise(output):
            if before["type"] == "reasoning" and item["type"] == "function_call":
                self._items[item["call_id"]] = before

    def before(self, call_id: str) -> Json:
        return self._items.get(call_id)


def encrypt(text: str, organization: str = "") -> str:
    """The encrypted form of a reasoning, which only the organization that got it can send back."""
    digest = hashlib.sha256(f"{organization} {text}".encode()).digest()
    return base64.b64encode(b"gAAAA" + digest).decode() + base64.b64encode(text.encode()).decode()


def refusals(request: ResponsesRequest, issued: Issued, organization: str = "") -> Iterator[str]:
    """Everything that the vendor would refuse; its error is the first."""
    for rule in RULES:
        yield from rule(request)
    yield from reasoning_can_be_decrypted(request, organization)
    yield from reasoning_of_the_open_turn_comes_back(request, issued)


# ---------------------------------------------------------------- items


def there_is_an_item(request: ResponsesRequest) -> Iterator[str]:
    """Error text: `One of "input" or "previous_response_id" or 'prompt' or 'conversation_id' must be provided.`"""
    if not request.input:
        yield "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided."


def text_is_not_blank(request: ResponsesRequest) -> Iterator[str]:
    """OpenAI lets blank text pass, the vendors behind gateways do not; clients that promise never to send it are
    held to it here.
    """
    texts = [request.instructions] if request.instructions is not None else []
    for item in request.input:
        match item:
            case FunctionCallOutput(output=text):
                texts.append(text)
            case UserMessage(content=parts) | AssistantMessage(content=parts):
                texts += [part.text for part in parts if isinstance(part, InputText | OutputText)]
                if not parts:
                    texts.append("")
    if any(not text.strip() for text in texts):
        yield "text content must contain non-whitespace text"


def ids_of_items_are_unique(request: ResponsesRequest) -> Iterator[str]:
    """Error text: `Duplicate item found with id rs_1. Remove duplicate items from your input and try again.`"""
    ids = (getattr(item, "id", None) for item in request.input)
    counted = Counter(id for id in ids if id is not None)
    for id, times in counted.items():
        if times > 1:
            yield f"Duplicate item found with id {id}. Remove duplicate items from your input and try again."


def call_ids_are_unique(request: ResponsesRequest) -> Iterator[str]:
    """OpenAI pairs calls and outputs by their ids; equal ones cannot be told apart."""
    counted = Counter(item.call_id for item in request.input if isinstance(item, FunctionCall))
    if any(times > 1 for times in counted.values()):
        yield "Invalid 'input': ids of function calls must be unique"


def calls_are_answered(request: ResponsesRequest) -> Iterator[str]:
    """Error text: `No tool output found for function call call_1.`

    OpenAI looks anywhere behind the call; clients that promise to answer at once are held to it here.
    """
    open_calls: list[str] = []
    for item in request.input:
        match item:
            case FunctionCall():
                open_calls.append(item.call_id)
            case FunctionCallOutput() if item.call_id in open_calls:
                open_calls.remove(item.call_id)
            case UserMessage() if open_calls:
                break
    if open_calls:
        yield f"No tool output found for function call {open_calls[0]}."


def outputs_answer_a_call(request: ResponsesRequest) -> Iterator[str]:
    """Error text: `No tool call found for function call output with call_id call_1.`; one output a call."""
    called: list[str] = []
    for item in request.input:
        match item:
            case FunctionCall():
                called.append(item.call_id)
            case FunctionCallOutput() if item.call_id in called:
                called.remove(item.call_id)
            case FunctionCallOutput():
                yield f"No tool call found for function call output with call_id {item.call_id}."


def arguments_are_objects(request: ResponsesRequest) -> Iterator[str]:
    """OpenAI takes any text; other servers of the API read it, and refuse what is no object."""
    for number, item in enumerate(request.input):
        if isinstance(item, FunctionCall):
            try:
                value = json.loads(item.arguments, parse_constant=_refuse_constant)
            except (ValueError, RecursionError):
                value = None
            if not isinstance(value, dict):
                yield f"Invalid 'input[{number}].arguments': expected a JSON object"


# ---------------------------------------------------------------- reasoning


_LED_TO = AssistantMessage | FunctionCall | ReasoningItem | WebSearchCall


def reasoning_is_followed_by_what_it_led_to(request: ResponsesRequest) -> Iterator[str]:
    """Error text: `Item 'rs_1' of type 'reasoning' was provided without its required following item.`"""
    items = [*request.input, None]
    for item, after in pairwise(items):
        if isinstance(item, ReasoningItem) and not isinstance(after, _LED_TO):
            yield f"Item '{item.id}' of type 'reasoning' was provided without its required following item."


def reasoning_brings_its_content(request: ResponsesRequest) -> Iterator[str]:
    """Error text: `Item with id 'rs_1' not found. Items are not persisted when `store` is set to false. …`."""
    for item in request.input:
        if isinstance(item, ReasoningItem) and not item.encrypted_content and not item.content:
            yield f"Item with id '{item.id}' not found. Items are not persisted when `store` is set to false."


def reasoning_is_for_models_that_think(request: ResponsesRequest) -> Iterator[str]:
    """Error texts: `Encrypted content is not supported with this model.`, `Reasoning input items can only be provided
    to a reasoning or computer use model. Remove reasoning items from your input and try again.`, `Unsupported
    parameter: 'reasoning.effort' is not supported with this model.`
    """
    if not re.match(r"gpt-4|gpt-3|chatgpt-4|gpt-5(\.\d+)?-chat", request.model):
        return
    if request.include:
        yield "Encrypted content is not supported with this model."
    if any(isinstance(item, ReasoningItem) for item in request.input):
        yield (
            "Reasoning input items can only be provided to a reasoning or computer use model. Remove reasoning items "
            "from your input and try again."
        )
    if request.reasoning is not None and request.reasoning.effort is not None:
        yield "Unsupported parameter: 'reasoning.effort' is not supported with this model."


def thinking_models_take_no_temperature(request: ResponsesRequest) -> Iterator[str]:
    """Error text: `Unsupported parameter: 'temperature' is not supported with this model.`"""
    thinks = request.reasoning is not None and request.reasoning.effort not in (None, "none")
    never = r"o\d|gpt-5(\.\d+)?(-(?!chat)|$)" if thinks else r"o\d|gpt-5(-(?!chat)|$)"
    if re.match(never, request.model) and request.temperature is not None:
        yield "Unsupported parameter: 'temperature' is not supported with this model."


def reasoning_can_be_decrypted(request: ResponsesRequest, organization: str) -> Iterator[str]:
    """Error text: `The encrypted content gAAA... could not be verified. Reason: Encrypted content organization_id did
    not match the target organization.`
    """
    for item in request.input:
        if isinstance(item, ReasoningItem) and item.encrypted_content:
            try:
                text = base64.b64decode(item.encrypted_content[52:]).decode()
            except ValueError:
                text = ""
            if item.encrypted_content != encrypt(text, organization):
                yield f"The encrypted content {item.encrypted_content[:4]}... could not be verified."


def reasoning_of_the_open_turn_comes_back(request: ResponsesRequest, issued: Issued) -> Iterator[str]:
    """Reasoning models, "Keeping reasoning items in context": with function calls they must go back. Error text:
    `Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.`
    """
    items = request.input
    start = max((n for n, item in enumerate(items) if isinstance(item, UserMessage)), default=0)
    for before, item in pairwise(items[start:]):
        given = issued.before(item.call_id) if isinstance(item, FunctionCall) else None
        if given is None:
            continue
        sent = before.model_dump(exclude_none=True) if isinstance(before, ReasoningItem) else None
        if sent != {key: given[key] for key in ("type", "id", "summary", "encrypted_content") if key in given}:
            yield f"Item of type 'function_call' was provided without its required 'reasoning' item: '{given['id']}'."


# ---------------------------------------------------------------- tools and settings


def tool_names_are_unique(request: ResponsesRequest) -> Iterator[str]:
    """Other servers of the API refuse two tools of one name."""
    names = [tool.name for tool in _functions(request)]
    if len(set(names)) < len(names):
        yield "Tool names must be unique."


def parameters_are_a_schema_of_an_object(request: ResponsesRequest) -> Iterator[str]:
    """Error text: `Invalid schema for function 'x': schema must be a JSON Schema of 'type: "object"', got …`; in
    strict mode, which counts where none is named, it must be closed, too.
    """
    for tool in _functions(request):
        schema = tool.parameters
        if schema is None:
            continue
        if schema.get("type") != "object":
            yield f"Invalid schema for function '{tool.name}': schema must be a JSON Schema of 'type: \"object\"'"
        elif not is_schema(schema):
            yield f"Invalid schema for function '{tool.name}'"
        for fault in strict_faults(schema) if tool.strict else ():
            yield f"Invalid schema for function '{tool.name}': In context=(), {fault}"


def tool_choice_can_be_followed(request: ResponsesRequest) -> Iterator[str]:
    """Error texts: `Tool choice 'required' must be specified with 'tools' parameter.`, `Tool choice 'function' not
    found in 'tools' parameter.`
    """
    if request.tool_choice is None or request.tool_choice == "auto":
        return
    if isinstance(request.tool_choice, BuiltInChoice):
        if request.tool_choice.type not in {tool.type for tool in request.tools}:
            yield f"Tool choice '{request.tool_choice.type}' not found in 'tools' parameter."
        return
    if not request.tools:
        yield f"Tool choice '{request.tool_choice}' must be specified with 'tools' parameter."
    elif isinstance(request.tool_choice, NamedChoice) and request.tool_choice.name not in {
        tool.name for tool in _functions(request)
    }:
        yield "Tool choice 'function' not found in 'tools' parameter."


def schemas_of_answers_are_strict(request: ResponsesRequest) -> Iterator[str]:
    """Error text: `Invalid schema for response_format 'x': In context=(), 'additionalProperties' is required …`."""
    form = request.text.format if request.text else None
    if not isinstance(form, SchemaFormat):
        return
    if not is_schema(form.schema_):
        yield f"Invalid schema for response_format '{form.name}'"
    for fault in strict_faults(form.schema_) if form.strict else ():
        yield f"Invalid schema for response_format '{form.name}': In context=(), {fault}"


def encrypted_reasoning_is_for_what_is_not_stored(request: ResponsesRequest) -> Iterator[str]:
    """Clients that promise to leave nothing at the vendor are held to it here."""
    if request.store:
        yield "`store` must be false"


def stream_options_belong_to_a_stream(request: ResponsesRequest) -> Iterator[str]:
    """Error text: `The 'stream_options' parameter is only allowed when 'stream' is enabled.`"""
    if request.stream_options is not None and not request.stream:
        yield "The 'stream_options' parameter is only allowed when 'stream' is enabled."


# ---------------------------------------------------------------- files


def files_are_what_they_claim(request: ResponsesRequest) -> Iterator[str]:
    """Images and vision; PDF files. Error texts: `Invalid 'input[0].content[0].image_url'. Expected a valid URL, but
    got a value with an invalid format.`, `The image data you provided does not represent a valid image.`, `Missing
    required parameter: 'input[0].content[0].filename'.`, `Expected a base64-encoded data URL with an application/pdf
    MIME type`
    """
    for number, item in enumerate(request.input):
        content = item.content if isinstance(item, UserMessage) else ()
        for place, part in enumerate(content):
            where = f"input[{number}].content[{place}]"
            match part:
                case InputImage(image_url=str(url)):
                    kinds = of_data_url(url)
                    if kinds is None:
                        yield f"Invalid '{where}.image_url'. Expected a data URL with an image MIME type."
                    elif kinds[0] != kinds[1] or not kinds[0].startswith("image/"):
                        yield "The image data you provided does not represent a valid image."
                case InputFile(file_data=str(url)):
                    if not part.filename:
                        yield f"Missing required parameter: '{where}.filename'."
                    elif not part.filename.lower().endswith(".pdf"):
                        yield "Expected context stuffing file type to be a supported format: .pdf"
                    if of_data_url(url) != ("application/pdf", "application/pdf"):
                        yield f"Invalid '{where}.file_data'. Expected a data URL with an application/pdf MIME type."


RULES = (
    there_is_an_item,
    text_is_not_blank,
    ids_of_items_are_unique,
    call_ids_are_unique,
    calls_are_answered,
    outputs_answer_a_call,
    arguments_are_objects,
    reasoning_is_followed_by_what_it_led_to,
    reasoning_brings_its_content,
    reasoning_is_for_models_that_think,
    thinking_models_take_no_temperature,
    tool_names_are_unique,
    parameters_are_a_schema_of_an_object,
    tool_choice_can_be_followed,
    schemas_of_answers_are_strict,
    encrypted_reasoning_is_for_what_is_not_stored,
    stream_options_belong_to_a_stream,
    files_are_what_they_claim,
)


def _functions(request: ResponsesRequest) -> list[FunctionTool]:
    return [tool for tool in request.tools if isinstance(tool, FunctionTool)]


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON number")
