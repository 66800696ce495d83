"""The shape of a Responses request: every key that OpenAI documents and octo could send, and no other.

Texts of errors are OpenAI's. Rules about several places at once are in `responses_rules`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, ValidationError

from vendor.server import Json


class Refused(ValueError):
    """A request that is refused, and the parameter that it is about."""

    def __init__(self, message: str, parameter: str) -> None:
        super().__init__(message)
        self.parameter = parameter


def read(body: Json) -> ResponsesRequest:
    """The checked request. Raises Refused with the vendor's text for the first thing that is wrong."""
    try:
        return ResponsesRequest.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = _path(first["loc"])
        match first["type"]:
            case "extra_forbidden":
                raise Refused(f"Unknown parameter: '{path}'.", path) from None
            case "missing":
                raise Refused(f"Missing required parameter: '{path}'.", path) from None
            case "literal_error" | "union_tag_invalid":
                raise Refused(f"Invalid value: {first['input']!r}. {first['msg']} ('{path}')", path) from None
            case _:
                raise Refused(f"Invalid type for '{path}': {first['msg']}", path) from None


def _path(steps: tuple[int | str, ...]) -> str:
    """A path as the vendor writes it, without the names of alternatives, which follow a number in pydantic's."""
    path = ""
    for before, step in zip(("", *steps), steps, strict=False):
        if isinstance(step, int):
            path += f"[{step}]"
        elif not (isinstance(before, int) and step in TAGS):
            path += f".{step}"
    return path.removeprefix(".")


class Shape(BaseModel):
    """Keys are exact and kinds are not converted (`Unknown parameter: 'x'.`, `Invalid type for 'x': expected …`)."""

    model_config = ConfigDict(extra="forbid", strict=True)


# ---------------------------------------------------------------- items
# Create a model response, "input": the items and their keys.


class InputText(Shape):
    type: Literal["input_text"]
    text: str


class InputImage(Shape):
    type: Literal["input_image"]
    image_url: str | None = None
    file_id: str | None = None
    detail: Literal["low", "high", "auto", "original"] = "auto"


class InputFile(Shape):
    type: Literal["input_file"]
    filename: str | None = None
    file_data: str | None = None
    file_id: str | None = None
    file_url: str | None = None


class OutputText(Shape):
    type: Literal["output_text"]
    text: str
    annotations: list[Json] = []
    logprobs: list[Json] = []


class Refusal(Shape):
    type: Literal["refusal"]
    refusal: str


def _as_input(content: Any) -> Any:
    """Text content is short for one part."""
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else content


def _as_output(content: Any) -> Any:
    return [{"type": "output_text", "text": content}] if isinstance(content, str) else content


class UserMessage(Shape):
    """Error text: `Invalid value: 'output_text'. Supported values are: 'input_text', 'input_image', …`."""

    type: Literal["message"] = "message"
    role: Literal["user", "system", "developer"]
    content: Annotated[
        list[Annotated[InputText | InputImage | InputFile, Field(discriminator="type")]], BeforeValidator(_as_input)
    ]


class AssistantMessage(Shape):
    """Error texts: `Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.`, `Invalid
    'input[1].id': 'x'. Expected an ID that begins with 'msg'.`
    """

    type: Literal["message"] = "message"
    role: Literal["assistant"]
    id: Annotated[str, Field(pattern="^msg", max_length=64)] | None = None
    status: Literal["in_progress", "completed", "incomplete"] | None = None
    phase: Literal["commentary", "final_answer"] | None = None
    content: Annotated[list[Annotated[OutputText | Refusal, Field(discriminator="type")]], BeforeValidator(_as_output)]


class FunctionCall(Shape):
    """Error text: `Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64 …`."""

    type: Literal["function_call"]
    call_id: Annotated[str, Field(min_length=1, max_length=64)]
    name: Annotated[str, Field(pattern="^[a-zA-Z0-9_-]+$", max_length=64)]
    arguments: str
    id: Annotated[str, Field(pattern="^fc", max_length=64)] | None = None
    status: Literal["in_progress", "completed", "incomplete"] | None = None


class FunctionCallOutput(Shape):
    type: Literal["function_call_output"]
    call_id: Annotated[str, Field(min_length=1, max_length=64)]
    output: str


class Summary(Shape):
    type: Literal["summary_text"]
    text: str


class ReasoningText(Shape):
    type: Literal["reasoning_text"]
    text: str


class ReasoningItem(Shape):
    """Error text: `Unknown parameter: 'input[1].status'.`"""

    type: Literal["reasoning"]
    id: Annotated[str, Field(pattern="^rs", max_length=64)]
    summary: list[Summary]
    encrypted_content: str | None = None
    content: list[ReasoningText] | None = None


class WebSearchCall(Shape):
    """Web search, "Output and citations"."""

    type: Literal["web_search_call"]
    id: Annotated[str, Field(pattern="^ws", max_length=64)]
    status: Literal["in_progress", "searching", "completed", "failed"]
    action: dict[str, Json]


def _kind_of_item(item: Any) -> str:
    kind = item.get("type", "message") if isinstance(item, dict) else "message"
    return "answer" if kind == "message" and isinstance(item, dict) and item.get("role") == "assistant" else str(kind)


Item = Annotated[
    Annotated[UserMessage, Tag("message")]
    | Annotated[AssistantMessage, Tag("answer")]
    | Annotated[FunctionCall, Tag("function_call")]
    | Annotated[FunctionCallOutput, Tag("function_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")]
    | Annotated[WebSearchCall, Tag("web_search_call")],
    Discriminator(_kind_of_item),
]


def _as_items(input: Any) -> Any:
    return [{"role": "user", "content": input}] if isinstance(input, str) else input


# ---------------------------------------------------------------- the rest


class FunctionTool(Shape):
    type: Literal["function"]
    name: Annotated[str, Field(pattern="^[a-zA-Z0-9_-]+$", max_length=64)]
    description: str | None = None
    parameters: dict[str, Json] | None
    strict: bool | None = True


class ImageTool(Shape):
    """Image generation, "Customize image output"."""

    type: Literal["image_generation"]
    quality: Literal["low", "medium", "high", "auto"] = "auto"
    size: str | None = None


class WebSearchTool(Shape):
    """Web search, "Configure a web search tool"."""

    type: Literal["web_search"]
    search_context_size: Literal["low", "medium", "high"] | None = None
    user_location: dict[str, Json] | None = None
    filters: dict[str, Json] | None = None


class NamedChoice(Shape):
    type: Literal["function"]
    name: str


class BuiltInChoice(Shape):
    type: Literal["image_generation"]


class Reasoning(Shape):
    """Error text: `Invalid value: 'x'. Supported values are: 'none', 'minimal', 'low', …`."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None


class PlainFormat(Shape):
    type: Literal["text", "json_object"]


class SchemaFormat(Shape):
    type: Literal["json_schema"]
    name: Annotated[str, Field(pattern="^[a-zA-Z0-9_-]+$", max_length=64)]
    schema_: Annotated[dict[str, Json], Field(alias="schema")]
    strict: bool | None = None
    description: str | None = None


class TextConfig(Shape):
    format: Annotated[PlainFormat | SchemaFormat, Field(discriminator="type")] | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class StreamOptions(Shape):
    include_obfuscation: bool = True


class ResponsesRequest(Shape):
    """Create a model response: the body parameters. The least `max_output_tokens` is 16."""

    model: Annotated[str, Field(min_length=1)]
    input: Annotated[list[Item], BeforeValidator(_as_items)]
    instructions: str | None = None
    include: list[Literal["reasoning.encrypted_content"]] | None = None
    max_output_tokens: Annotated[int, Field(ge=16)] | None = None
    parallel_tool_calls: bool | None = None
    prompt_cache_key: Annotated[str, Field(max_length=64)] | None = None
    reasoning: Reasoning | None = None
    store: bool = True
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    text: TextConfig | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedChoice | BuiltInChoice | None = None
    tools: list[Annotated[FunctionTool | ImageTool | WebSearchTool, Field(discriminator="type")]] = []
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    user: str | None = None


TAGS = frozenset(
    {
        *("message", "answer", "function_call", "function_call_output", "reasoning", "web_search_call"),
        *(
            "input_text",
            "input_image",
            "input_file",
            "output_text",
            "refusal",
            "function",
            "image_generation",
            "web_search",
        ),
    }
)
"""Steps of pydantic's paths that are names of alternatives, where they follow a number."""
