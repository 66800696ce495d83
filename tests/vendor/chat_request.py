"""The shape of a Chat Completions request: every key that OpenAI documents, and what other providers add or lack.

Texts of errors are OpenAI's. Rules about several places at once are in `chat_rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError

from vendor.server import Json


@dataclass(frozen=True)
class Dialect:
    """How one provider differs from OpenAI."""

    adds: frozenset[str] = frozenset()
    """Further keys of a request."""
    lacks: frozenset[str] = frozenset()
    """Keys of a request that OpenAI knows and this provider refuses."""
    cache_marks: bool = False
    """Whether texts may be marked for caching."""
    echoes: str = ""
    """The key of an assistant's message that brings reasoning back."""
    text_only: bool = False
    images_only: bool = False
    """Whether text and images are all that is read."""
    nine_letter_ids: bool = False
    user_after_answer: bool = False
    schemas: Literal["always", "alone", "never"] = "always"
    """When a schema of the answer is taken: `alone` is without tools and streams."""


DIALECTS = {
    "openai": Dialect(),
    # vLLM, llama.cpp and Ollama take what OpenAI takes.
    "custom": Dialect(),
    # OpenRouter, "Usage accounting", "Reasoning tokens": `reasoning_details` go back unmodified. "Prompt caching":
    # `cache_control` at texts.
    "openrouter": Dialect(adds=frozenset({"usage", "reasoning"}), echoes="reasoning_details", cache_marks=True),
    # DeepSeek, "Thinking mode": `thinking`, and `reasoning_content` goes back while tools are called. "Create chat
    # completion": `max_tokens` is the only cap, `text` and `json_object` are the only forms of an answer.
    "deepseek": Dialect(
        adds=frozenset({"thinking"}),
        lacks=frozenset({"max_completion_tokens"}),
        echoes="reasoning_content",
        text_only=True,
        schemas="never",
    ),
    # Mistral, "Chat completion": `max_tokens` is the only cap; error texts "Tool call id was ... but must be
    # a-z, A-Z, 0-9, with a length of 9." and "Unexpected role 'user' after role 'tool'".
    "mistral": Dialect(lacks=frozenset({"max_completion_tokens"}), nine_letter_ids=True, user_after_answer=True),
    # Groq, "Structured Outputs": "Streaming and tool use are not currently supported with Structured Outputs".
    # "Images and Vision": text and images are the content that there is.
    "groq": Dialect(schemas="alone", images_only=True),
    # Together AI, "Vision": the same.
    "together": Dialect(images_only=True),
}


class Refused(ValueError):
    """A request of the wrong shape, with the parameter that is to blame."""

    def __init__(self, message: str, parameter: str) -> None:
        super().__init__(message)
        self.parameter = parameter


def read(body: Json, dialect: Dialect) -> ChatRequest:
    """The checked request. Raises Refused with the vendor's text for the first thing that is wrong."""
    if isinstance(body, dict):
        for name in dialect.lacks & body.keys():
            raise Refused(f"Unknown parameter: '{name}'.", name)
    try:
        request = ChatRequest.model_validate(body)
    except ValidationError as error:
        raise _refusal(error) from None
    for name in sorted(_extensions(request) - dialect.adds):
        raise Refused(f"Unknown parameter: '{name}'.", name)
    for number, message in enumerate(request.messages):
        for name in sorted(_extensions(message) - {dialect.echoes}):
            raise Refused(f"Unknown parameter: 'messages[{number}].{name}'.", f"messages[{number}].{name}")
    return request


def _extensions(shape: Shape) -> set[str]:
    """The keys that are there, and are not OpenAI's."""
    fields = type(shape).model_fields
    return {name for name in shape.model_fields_set if fields[name].description == "extension"}


def _refusal(error: ValidationError) -> Refused:
    first = error.errors(include_url=False)[0]
    path = ""
    for step in first["loc"]:
        if isinstance(step, int):
            path += f"[{step}]"
        elif not step.startswith("<"):
            path += f".{step}" if path else step
    match first["type"]:
        case "extra_forbidden":
            return Refused(f"Unknown parameter: '{path}'.", path)
        case "missing":
            return Refused(f"Missing required parameter: '{path}'.", path)
    return Refused(f"Invalid value for '{path}': {first['msg']}.", path)


class Shape(BaseModel):
    """Keys are exact and kinds are not converted ("Unknown parameter: 'x'.", "Missing required parameter: 'x'.")."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _told_apart_by(key: str) -> Callable[[Any], str]:
    return lambda value: f"<{value.get(key)}>" if isinstance(value, dict) else f"<{getattr(value, key, None)}>"


def extension(default: Any = None) -> Any:
    """A key of another provider than OpenAI."""
    return Field(default, description="extension")


# ---------------------------------------------------------------- content
# API reference, "Create chat completion", `messages`: the parts of each role.


class CacheControl(Shape):
    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class Text(Shape):
    type: Literal["text"]
    text: str
    cache_control: CacheControl | None = extension()


class ImageUrl(Shape):
    url: str
    detail: Literal["auto", "low", "high"] | None = None


class Image(Shape):
    """Images and vision: a URL or a base64 data URL."""

    type: Literal["image_url"]
    image_url: ImageUrl


class Sound(Shape):
    """Audio: `wav` and `mp3` are the formats that are read."""

    data: str
    format: Literal["wav", "mp3"]


class Audio(Shape):
    """Mistral, "Audio": the bare base64 text."""

    type: Literal["input_audio"]
    input_audio: Sound | str


class FileData(Shape):
    """PDF files: `file_data` comes with a `filename`; `file_id` alone."""

    filename: str | None = None
    file_data: str | None = None
    file_id: str | None = None


class File(Shape):
    type: Literal["file"]
    file: FileData


class DocumentUrl(Shape):
    """Mistral, "Document understanding"."""

    type: Literal["document_url"]
    document_url: str
    document_name: str | None = None


Part = Annotated[
    Annotated[Text, Tag("<text>")]
    | Annotated[Image, Tag("<image_url>")]
    | Annotated[Audio, Tag("<input_audio>")]
    | Annotated[File, Tag("<file>")]
    | Annotated[DocumentUrl, Tag("<document_url>")],
    Discriminator(_told_apart_by("type")),
]


# ---------------------------------------------------------------- messages

_TEXT_OR_LIST = Discriminator(lambda content: "<text>" if isinstance(content, str) else "<list>")
Texts = Annotated[Annotated[str, Tag("<text>")] | Annotated[list[Text], Tag("<list>")], _TEXT_OR_LIST]
Parts = Annotated[Annotated[str, Tag("<text>")] | Annotated[list[Part], Tag("<list>")], _TEXT_OR_LIST]


class Function(Shape):
    name: str
    arguments: str


class Call(Shape):
    id: str
    type: Literal["function"]
    function: Function
    extra_content: dict[str, Json] | None = extension()
    """Gemini, "OpenAI compatibility": the signature of a thought rides on its call."""


class System(Shape):
    role: Literal["system", "developer"]
    content: Texts
    name: str | None = None


class User(Shape):
    role: Literal["user"]
    content: Parts
    name: str | None = None


class Assistant(Shape):
    role: Literal["assistant"]
    content: Texts | None = None
    name: str | None = None
    refusal: str | None = None
    tool_calls: Annotated[list[Call], Field(min_length=1)] | None = None
    reasoning_content: str | None = extension()
    reasoning_details: list[dict[str, Json]] | None = extension()


class Result(Shape):
    role: Literal["tool"]
    content: Texts
    tool_call_id: str


Message = Annotated[
    Annotated[System, Tag("<system>")]
    | Annotated[System, Tag("<developer>")]
    | Annotated[User, Tag("<user>")]
    | Annotated[Assistant, Tag("<assistant>")]
    | Annotated[Result, Tag("<tool>")],
    Discriminator(_told_apart_by("role")),
]


# ---------------------------------------------------------------- tools


class Definition(Shape):
    name: str
    description: str | None = None
    parameters: dict[str, Json] = {}
    strict: bool | None = None


class Tool(Shape):
    type: Literal["function"]
    function: Definition


class Named(Shape):
    name: str


class NamedChoice(Shape):
    type: Literal["function"]
    function: Named


# ---------------------------------------------------------------- the request


class JsonSchema(Shape):
    name: str
    schema_: dict[str, Json] = Field(alias="schema")
    description: str | None = None
    strict: bool | None = None


class SchemaFormat(Shape):
    type: Literal["json_schema"]
    json_schema: JsonSchema


class PlainFormat(Shape):
    type: Literal["text", "json_object"]


class StreamOptions(Shape):
    include_usage: bool = False
    include_obfuscation: bool | None = None


class Accounting(Shape):
    """OpenRouter, "Usage accounting"."""

    include: bool


class Switch(Shape):
    """DeepSeek, "Thinking mode"."""

    type: Literal["enabled", "disabled"]


class ChatRequest(Shape):
    """API reference, "Create chat completion": the body parameters."""

    model: Annotated[str, Field(min_length=1)]
    messages: list[Message]
    tools: Annotated[list[Tool], Field(min_length=1)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedChoice | None = None
    parallel_tool_calls: bool | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    n: int | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    response_format: Annotated[
        Annotated[SchemaFormat, Tag("<json_schema>")]
        | Annotated[PlainFormat, Tag("<text>")]
        | Annotated[PlainFormat, Tag("<json_object>")],
        Discriminator(_told_apart_by("type")),
    ] = PlainFormat(type="text")
    stream: bool = False
    stream_options: StreamOptions | None = None
    prompt_cache_key: Annotated[str, Field(max_length=64)] | None = None
    user: str | None = None
    store: bool | None = None
    metadata: dict[str, str] | None = None
    modalities: list[Literal["text", "audio", "image"]] | None = None
    usage: Accounting | None = extension()
    reasoning: dict[str, Json] | None = extension()
    thinking: Switch | None = extension()

    @property
    def texts(self) -> Iterator[Text]:
        """The parts of all roles that are text."""
        for message in self.messages:
            if isinstance(message.content, list):
                yield from (part for part in message.content if isinstance(part, Text))

    @property
    def parts(self) -> Iterator[Part]:
        """The parts of all that the user says which is no bare text."""
        for message in self.messages:
            if isinstance(message, User) and isinstance(message.content, list):
                yield from message.content
