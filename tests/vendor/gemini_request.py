"""The shape of a `generateContent` request: every key that the vendor documents and octo may need, and no other.

Errors are worded as the vendor words them
(`Invalid JSON payload received. Unknown name "foo" at 'contents[0].parts[0]': Cannot find field.`). Rules about
several places at once are in `gemini_rules`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from vendor.server import Json


def read(body: Json) -> GenerateContentRequest:
    """The checked request. Raises ValueError with the vendor's text for the first thing that is wrong."""
    try:
        return GenerateContentRequest.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        *path, last = first["loc"] or ("",)
        if first["type"] == "extra_forbidden":
            at = f" at '{_shown(path)}'" if path else ""
            text = f'Invalid JSON payload received. Unknown name "{last}"{at}: Cannot find field.'
        else:
            text = f"Invalid value at '{_shown([*path, last])}': {first['msg']}"
        raise ValueError(text) from None


def _shown(path: list[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


class Shape(BaseModel):
    """Keys are exact and kinds are not converted. The vendor takes snake case too; octo sends camel case only."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


# ---------------------------------------------------------------- schemas


def _in_capitals(value: Json) -> Json:
    """Types are an enumeration in capitals; function calling guide and API reference use both spellings."""
    return value.upper() if isinstance(value, str) else value


Type = Annotated[
    Literal["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"], BeforeValidator(_in_capitals)
]


class Schema(Shape):
    """Caching, "Schema": the part of OpenAPI's schema objects that the API knows. Anything else is an unknown name."""

    type: Type | None = None
    format: str | None = None
    title: str | None = None
    description: str | None = None
    nullable: bool | None = None
    enum: list[str] | None = None
    max_items: int | None = None
    min_items: int | None = None
    properties: dict[str, Schema] | None = None
    required: list[str] | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    any_of: list[Schema] | None = None
    property_ordering: list[str] | None = None
    items: Schema | None = None
    minimum: float | None = None
    maximum: float | None = None


# ---------------------------------------------------------------- contents


class Blob(Shape):
    mime_type: str
    data: str


class FunctionCall(Shape):
    id: str | None = None
    name: str
    args: dict[str, Json] = {}


class FunctionResponse(Shape):
    id: str | None = None
    name: str
    response: dict[str, Json]


class Part(Shape):
    """Caching, "Part": `data` is a union, of which one member is set."""

    text: str | None = None
    inline_data: Blob | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    tool_call: dict[str, Json] | None = None
    tool_response: dict[str, Json] | None = None
    thought: bool = False
    thought_signature: str | None = None


class Content(Shape):
    """Error text: `Please use a valid role: user, model.`"""

    role: Literal["user", "model"]
    parts: list[Part]


class SystemInstruction(Shape):
    parts: list[Part]


# ---------------------------------------------------------------- tools


class FunctionDeclaration(Shape):
    name: str
    description: str = ""
    parameters: Schema | None = None


class GoogleSearch(Shape):
    """Grounding with Google Search: the tool has no settings that octo may need."""


class Tool(Shape):
    function_declarations: list[FunctionDeclaration] = []
    google_search: GoogleSearch | None = None


class FunctionCallingConfig(Shape):
    mode: Literal["AUTO", "ANY", "NONE"] = "AUTO"
    allowed_function_names: list[str] = []


class ToolConfig(Shape):
    function_calling_config: FunctionCallingConfig | None = None
    include_server_side_tool_invocations: bool = False


# ---------------------------------------------------------------- the request


class ThinkingConfig(Shape):
    """Thinking: `thinkingLevel` is an enumeration; the guide writes it in small letters."""

    include_thoughts: bool = False
    thinking_budget: int | None = None
    thinking_level: Annotated[Literal["MINIMAL", "LOW", "MEDIUM", "HIGH"], BeforeValidator(_in_capitals)] | None = None


class GenerationConfig(Shape):
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    stop_sequences: list[str] = []
    thinking_config: ThinkingConfig | None = None
    response_modalities: list[Literal["TEXT", "IMAGE", "AUDIO"]] = []
    response_mime_type: Literal["text/plain", "application/json", "text/x.enum"] = "text/plain"
    response_schema: Schema | None = None


class GenerateContentRequest(Shape):
    """Generating content, "Request body". The model stands in the address."""

    contents: list[Content] = []
    system_instruction: SystemInstruction | None = None
    tools: list[Tool] = []
    tool_config: ToolConfig | None = None
    generation_config: GenerationConfig = Field(default_factory=GenerationConfig)

    @property
    def searches(self) -> bool:
        return any(tool.google_search is not None for tool in self.tools)

    @property
    def declarations(self) -> list[FunctionDeclaration]:
        return [declaration for tool in self.tools for declaration in tool.function_declarations]
