"""The shape of a Messages request: every key that the vendor documents, and no other.

The vendor checks the shape with pydantic too, so that texts and paths of errors come out alike
(`messages.0.content.0.text.foo: Extra inputs are not permitted`). Rules about several places at once are in
`anthropic_rules`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, ValidationError

from vendor.server import Json


def read(body: Json) -> MessagesRequest:
    """The checked request. Raises ValueError with the vendor's text for the first thing that is wrong."""
    try:
        return MessagesRequest.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(str(step) for step in first["loc"])
        raise ValueError(f"{path}: {first['msg']}" if path else first["msg"]) from None


class Shape(BaseModel):
    """Keys are exact and kinds are not converted ("Extra inputs are not permitted", "Field required")."""

    model_config = ConfigDict(extra="forbid", strict=True)


class CacheControl(Shape):
    """Prompt caching, "Cache control": `ephemeral` is the only type, `5m` and `1h` the only lifetimes."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] = "5m"


class Cacheable(Shape):
    cache_control: CacheControl | None = None


# ---------------------------------------------------------------- content blocks
# Create a Message, "body messages content": the blocks and their keys.

ToolId = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]+$")]
"""Error text: `messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`."""
ToolName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
"""Define tools, "Specifying client tools": `name` must match `^[a-zA-Z0-9_-]{1,64}$`."""


class Text(Cacheable):
    type: Literal["text"]
    text: str
    citations: list[Json] | None = None


class ImageBytes(Shape):
    """Vision, "FAQ": JPEG, PNG, GIF and WebP are the formats that are read."""

    type: Literal["base64"]
    media_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
    data: str


class DocumentBytes(Shape):
    """PDF support: base64 documents are `application/pdf`."""

    type: Literal["base64"]
    media_type: Literal["application/pdf"]
    data: str


class DocumentText(Shape):
    """Citations, "Plain text documents"."""

    type: Literal["text"]
    media_type: Literal["text/plain"]
    data: str


class Url(Shape):
    type: Literal["url"]
    url: str


class Image(Cacheable):
    type: Literal["image"]
    source: Annotated[ImageBytes | Url, Field(discriminator="type")]


class Document(Cacheable):
    type: Literal["document"]
    source: Annotated[DocumentBytes | DocumentText | Url, Field(discriminator="type")]
    title: str | None = None
    context: str | None = None
    citations: dict[str, Json] | None = None


class ToolUse(Cacheable):
    """Error text of `input`: `messages.1.content.0.tool_use.input: Input should be a valid dictionary`."""

    type: Literal["tool_use"]
    id: ToolId
    name: ToolName
    input: dict[str, Json]


def _as_blocks(content: Any) -> Any:
    """Text content is short for one text block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _as_message_blocks(content: Any) -> Any:
    return [] if content == "" else _as_blocks(content)


ResultBlock = Annotated[Text | Image | Document, Field(discriminator="type")]


class ToolResult(Cacheable):
    type: Literal["tool_result"]
    tool_use_id: ToolId
    content: Annotated[list[ResultBlock], BeforeValidator(_as_blocks)] = []
    is_error: bool = False


class Thinking(Shape):
    """Prompt caching, "What cannot be cached": thinking blocks take no `cache_control`."""

    type: Literal["thinking"]
    thinking: str
    signature: str


class RedactedThinking(Shape):
    type: Literal["redacted_thinking"]
    data: str


class ServerToolUse(Cacheable):
    """Web search tool, "Response": ids of server tools begin with `srvtoolu_`."""

    type: Literal["server_tool_use"]
    id: Annotated[str, Field(pattern=r"^srvtoolu_[a-zA-Z0-9_]+$")]
    name: str
    input: dict[str, Json]


class WebSearchResult(Cacheable):
    type: Literal["web_search_tool_result"]
    tool_use_id: Annotated[str, Field(pattern=r"^srvtoolu_[a-zA-Z0-9_]+$")]
    content: list[Json] | dict[str, Json]


Block = Text | Image | Document | ToolUse | ToolResult | Thinking | RedactedThinking | ServerToolUse | WebSearchResult


class Message(Shape):
    """Working with Messages: roles are `user` and `assistant`; the system prompt has a slot of its own."""

    role: Literal["user", "assistant"]
    content: Annotated[list[Annotated[Block, Field(discriminator="type")]], BeforeValidator(_as_message_blocks)]


# ---------------------------------------------------------------- tools


class InputSchema(BaseModel):
    """Error text: `tools.0.custom.input_schema.type: Input should be 'object'`."""

    model_config = ConfigDict(extra="allow", strict=True)

    type: Literal["object"]


class ClientTool(Cacheable):
    """Define tools, "Specifying client tools"."""

    type: Literal["custom"] = "custom"
    name: ToolName
    description: str | None = None
    input_schema: InputSchema
    input_examples: list[dict[str, Json]] | None = None
    strict: bool | None = None
    eager_input_streaming: bool | None = None


class WebSearchTool(Cacheable):
    """Web search tool, "Tool definition"."""

    type: Literal["web_search_20250305"]
    name: Literal["web_search"]
    max_uses: int | None = None
    allowed_domains: list[str] | None = None
    blocked_domains: list[str] | None = None
    user_location: dict[str, Json] | None = None


def _kind_of_tool(tool: Any) -> str:
    return (tool.get("type") or "custom") if isinstance(tool, dict) else "custom"


Tool = Annotated[
    Annotated[ClientTool, Tag("custom")] | Annotated[WebSearchTool, Tag("web_search_20250305")],
    Discriminator(_kind_of_tool),
]


class FreeChoice(Shape):
    type: Literal["auto", "any"]
    disable_parallel_tool_use: bool = False


class NoChoice(Shape):
    type: Literal["none"]


class NamedChoice(Shape):
    type: Literal["tool"]
    name: str
    disable_parallel_tool_use: bool = False


# ---------------------------------------------------------------- the request


class ThinkingOff(Shape):
    type: Literal["disabled"]


class ThinkingBudget(Shape):
    """Extended thinking, "Working with thinking budgets": the minimum budget is 1,024 tokens."""

    type: Literal["enabled"]
    budget_tokens: Annotated[int, Field(ge=1024)]
    display: Literal["summarized", "omitted"] = "summarized"


class ThinkingAdaptive(Shape):
    """Adaptive thinking: the model decides; there is no budget to give."""

    type: Literal["adaptive"]
    display: Literal["summarized", "omitted"] = "summarized"


class OutputConfig(Shape):
    """Effort; structured outputs."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: dict[str, Json] | None = None


class Metadata(Shape):
    user_id: str | None = None


class MessagesRequest(Shape):
    """Create a Message: the body parameters."""

    model: Annotated[str, Field(min_length=1)]
    max_tokens: Annotated[int, Field(ge=1)]
    messages: list[Message]
    system: Annotated[list[Text], BeforeValidator(_as_blocks)] = []
    tools: list[Tool] = []
    tool_choice: Annotated[FreeChoice | NoChoice | NamedChoice, Field(discriminator="type")] | None = None
    thinking: Annotated[ThinkingOff | ThinkingBudget | ThinkingAdaptive, Field(discriminator="type")] | None = None
    temperature: Annotated[float, Field(ge=0, le=1)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0)] | None = None
    stop_sequences: list[str] = []
    stream: bool = False
    output_config: OutputConfig | None = None
    metadata: Metadata | None = None
    service_tier: Literal["auto", "standard_only"] | None = None
    cache_control: CacheControl | None = None
    container: str | None = None
    inference_geo: str | None = None

    @property
    def blocks(self) -> Iterator[Block]:
        """All blocks of all messages, those inside tool results included."""
        for message in self.messages:
            for block in message.content:
                yield block
                if isinstance(block, ToolResult):
                    yield from block.content
