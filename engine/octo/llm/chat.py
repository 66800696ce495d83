"""The neutral conversation: what every wire encodes and decodes, what agents speak, and who they speak to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from octo.frozen import frozen
from octo.values import Json

if TYPE_CHECKING:
    from octo.llm.embedding import Embedded, EmbedRequest

# ---------------------------------------------------------------- messages


@frozen
class Citation:
    """A page of the web that a text rests on. `start` and `end` are places in that text, where they are known."""

    url: str
    title: str = ""
    start: int | None = None
    end: int | None = None


@frozen
class Text:
    """Plain text of a user, or of the assistant's answer."""

    text: str
    replay: Json = None
    """Opaque data of the wire that made the text, for example a signature."""
    citations: tuple[Citation, ...] = ()


@frozen
class Reasoning:
    """A reasoning block of an assistant turn.

    `replay` belongs to the wire that made it (`replay["wire"]` names it) and is echoed byte for byte by that
    wire only; the others leave the block out.
    """

    text: str
    replay: Json = None


@frozen
class ToolCall:
    """The model asks for a tool. `arguments` is the text as the model produced it, usually JSON."""

    id: str
    name: str
    arguments: str
    replay: Json = None
    """Opaque data of the wire that made the call, for example a signature."""


@frozen
class ToolResult:
    """What a tool call gave."""

    call_id: str
    name: str
    text: str
    is_error: bool = False


@frozen
class File:
    """An attachment of a user turn, or a file that the model produced."""

    mime_type: str
    data: bytes
    name: str = ""


@frozen
class Search:
    """A step of a search of the web that the provider made by itself, within a turn of the assistant.

    `query` is what was searched for, where the step tells it; `replay` is as that of reasoning.
    """

    query: str = ""
    replay: Json = None


Part: TypeAlias = Text | Reasoning | ToolCall | ToolResult | File | Search
Role: TypeAlias = Literal["user", "assistant", "tool"]


@frozen
class ChatMessage:
    """One turn. All results of one assistant turn travel in one message of role `tool`, in call order."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The text of the turn, reasoning excluded."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def files(self) -> tuple[File, ...]:
        return tuple(part for part in self.parts if isinstance(part, File))

    @property
    def citations(self) -> tuple[Citation, ...]:
        """The pages that the text rests on, with their places in the whole text of the turn."""
        found: list[Citation] = []
        length = 0
        for part in self.parts:
            if isinstance(part, Text):
                found += (_further(citation, length) for citation in part.citations)
                length += len(part.text)
        return tuple(found)

    def without_files(self) -> ChatMessage:
        if not self.files:
            return self
        return replace(self, parts=tuple(part for part in self.parts if not isinstance(part, File)))


def _further(citation: Citation, by: int) -> Citation:
    start, end = citation.start, citation.end
    return replace(citation, start=None if start is None else start + by, end=None if end is None else end + by)


def user(text: str, *files: File) -> ChatMessage:
    """A user turn: files first, then the text, which is left out when it is empty."""
    return ChatMessage("user", (*files, Text(text)) if text else files)


# ---------------------------------------------------------------- request


@frozen
class ToolDefinition:
    """A tool as the model sees it. `input_schema` is a JSON Schema."""

    name: str
    description: str
    input_schema: Json = field(default_factory=lambda: {"type": "object"})


@frozen
class NamedTool:
    """The tool choice that forces one tool."""

    name: str


ToolChoice: TypeAlias = Literal["auto", "any", "none"] | NamedTool


@frozen
class ChatRequest:
    """One model call. None means: what the connector says, else nothing is sent."""

    messages: tuple[ChatMessage, ...]
    system: str = ""
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: ToolChoice = "auto"
    model: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    """Texts at which the answer ends."""
    parallel_calls: bool = True
    """Whether the model may ask for several tools at once, where the provider lets one choose."""
    user: str = ""
    """The end user whom the caller names; one that the connector names counts before it."""
    reasoning_effort: str | None = None
    output_schema: Json = None
    """The JSON Schema of the answer; a wire that cannot ask for one leaves it out."""
    output_type: Literal["text", "image"] = "text"
    web_search: bool = False
    """Whether the model may search the web; a provider without that refuses the request."""
    may_think_first: bool = False
    """Whether a tool that is to be called may be just offered, where the vendor does not let the model think else."""
    only: str = ""
    """The name of the connector that is to answer, where others stand in for one; empty for any."""
    cache: bool = False
    """Whether the caller is of a kind for which `promptCache: auto` marks the prompt for caching."""
    cache_key: str = ""
    """Stable name of the caller (workspace, flow and block) for providers that route caches by a key."""


# ---------------------------------------------------------------- response


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call or of several. None is unknown, which is never the same as zero.

    `input_tokens` counts as the provider counts; `prompt_tokens` is everything that was read.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    prompt_tokens: int | None = None
    reported_cost_usd: float | None = None
    """What the provider says that it cost."""
    cost_usd: float | None = None
    """What it cost by the rates of the user, else as the provider says."""

    def __add__(self, other: Usage) -> Usage:
        """Unknown plus a number is that number."""
        return Usage(**{name: _sum(getattr(self, name), getattr(other, name)) for name in self.__slots__})

    def shown(self) -> dict[str, Json]:
        """The fields that events and records carry, in camel case; a cost only when one was reported."""
        named = {
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "thinkingTokens": self.thinking_tokens,
            "cachedTokens": self.cached_tokens,
            "cacheWriteTokens": self.cache_write_tokens,
            "promptTokens": self.prompt_tokens,
        }
        costs = {"reportedCostUSD": self.reported_cost_usd, "costUSD": self.cost_usd}
        named |= {name: cost for name, cost in costs.items() if cost is not None}  # type: ignore[misc]  # numbers, too
        return named


def _sum(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


@frozen
class Spent:
    """What was used up at a connector by attempts that came to nothing, as far as their provider told."""

    connector: str
    model: str
    """The model that was asked for."""
    usage: Usage
    served: str = ""
    """The model that served, as the provider names it."""


WINDOW_FULL: Final = frozenset({"model_context_window_exceeded", "model_length"})
"""Vendors' words for an answer that was cut off because prompt and answer are all that the model holds at once."""

StopReason: TypeAlias = Literal["end_turn", "tool_use", "max_tokens", "refusal", "pause", "malformed"]


@frozen
class ChatResponse:
    """The whole answer of one call; the same whether it was streamed or not."""

    message: ChatMessage
    """The assistant turn, to be echoed untouched on later calls; `message.files` are produced files."""
    stop_reason: StopReason
    model: str = ""
    """The model that served, as the provider names it."""
    usage: Usage | None = None
    """Of the answer alone."""
    lost: tuple[Spent, ...] = ()
    """What attempts before it used up, which broke off or were made elsewhere; it has to be paid as well."""
    asked: str = ""
    """The model that was asked for."""
    connector: str = ""
    """The name of the connector that answered."""
    passed_over: tuple[str, ...] = ()
    """The connectors that it stood in for."""
    stop_detail: str = ""
    """Why the provider says that it stopped, in its own words, where that is not how answers usually end."""

    @property
    def text(self) -> str:
        return self.message.text

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return self.message.calls

    @property
    def citations(self) -> tuple[Citation, ...]:
        return self.message.citations

    @property
    def fills_window(self) -> bool:
        """Whether the context window cut it off, and not the output cap."""
        return self.stop_reason == "max_tokens" and self.stop_detail.partition(":")[0] in WINDOW_FULL

    @property
    def searched(self) -> bool:
        """Whether the provider searched the web for it."""
        return any(isinstance(part, Search) for part in self.message.parts)


# ---------------------------------------------------------------- deltas


@frozen
class TextDelta:
    """A fragment of answer text. `index` tells runs of fragments apart, within one kind of delta."""

    text: str
    index: int = 0


@frozen
class ThinkingDelta:
    """A fragment of reasoning text."""

    text: str
    index: int = 0


@frozen
class ToolStart:
    """The name of a tool call is known."""

    id: str
    name: str
    index: int = 0


@frozen
class ToolInput:
    """A fragment of the argument text of a call; all fragments joined are the arguments."""

    text: str
    id: str
    name: str
    index: int = 0


@frozen
class ToolReady:
    """The arguments of a call are whole."""

    call: ToolCall


@frozen
class CustomDelta:
    """A fragment of a kind that only one provider knows, under the provider's name for it."""

    name: str
    text: str
    index: int = 0


@frozen
class Retry:
    """An attempt broke off and is made again: what it showed so far does not count."""

    attempt: int
    reason: str
    error: Exception | None = field(default=None, compare=False, repr=False)
    """What broke it off."""


Delta: TypeAlias = TextDelta | ThinkingDelta | ToolStart | ToolInput | ToolReady | CustomDelta | Retry
OnDelta: TypeAlias = Callable[[Delta], Awaitable[None]]

# ---------------------------------------------------------------- model


class ChatModel(Protocol):
    """What every LLM connector opens to. Safe for concurrent calls."""

    @property
    def media_types(self) -> frozenset[str] | None:
        """The MIME types that the model reads; empty means text only, None means every type."""

    def answers_by_tool(self, model: str, *, with_tools: bool) -> bool:
        """Whether an answer of a certain form is to be asked for as the arguments of a tool, and not by its schema.

        `model` is the one of the request, empty for the connector's; `with_tools` says whether there are others.
        """

    async def complete(
        self,
        request: ChatRequest,
        *,
        session: MutableMapping[object, Any],
        on_delta: OnDelta | None = None,
    ) -> ChatResponse:
        """Make one model call.

        `session` lives as long as one invocation from outside; the model keeps there, under keys of its own,
        what it has learnt for the rest of that invocation. With `on_delta` the provider is asked to stream
        and each fragment is awaited in order. Raises ProviderError.
        """

    @property
    def embeds(self) -> bool:
        """Whether it gives vectors of texts."""

    async def embed(self, request: EmbedRequest) -> Embedded:
        """Give the vectors of some texts, in one call. Raises ProviderError."""
