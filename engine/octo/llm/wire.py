"""What a wire is: the pure translation between the neutral conversation and one vendor's HTTP bodies."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, Literal, Protocol

from typing_extensions import TypeVar

from octo.llm import facts
from octo.llm.chat import ChatRequest, ChatResponse, Delta, Usage
from octo.llm.credentials import Credentials
from octo.llm.framing import EventFraming, Framing
from octo.values import Json, clean, native

Thinking = Literal["off", "adaptive", "budgeted"]
PromptCache = Literal["auto", "on", "off"]

BROKE_OFF: Final = "the answer broke off before its end"
"""What every wire says of an answer whose end mark is missing."""
_LONGEST_KEY: Final = 64

_log: Final = logging.getLogger("octo.llm")

Answer = TypeVar("Answer", covariant=True, default=ChatResponse)


@dataclass(frozen=True, slots=True)
class HttpCall:
    """One HTTP request, ready to send. A secret may stand in the address and the headers, never in the body."""

    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)
    stream: bool = False
    """Whether the answer is asked for as a stream of events."""
    framing: Callable[[], Framing] = EventFraming
    """How that stream is cut into events."""
    method: str = "POST"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One configured connector as a wire sees it: where to send, as whom, the defaults of each request."""

    credentials: Credentials
    model: str
    max_tokens: int | None = None
    thinking: Thinking = "off"
    thinking_budget: int | None = None
    reasoning: str = ""
    """How hard models are to think, in the provider's own word; empty leaves it to the provider."""
    prompt_cache: PromptCache = "auto"
    refused: frozenset[str] = frozenset()
    """Parameters of a request that the endpoint was found to refuse: they are left out, or go by another name."""
    connector: str = ""
    """The name of the connector, for what is logged of its requests."""

    @property
    def who(self) -> str:
        """How a warning about a request begins."""
        return f'connector "{self.connector}": ' if self.connector else ""

    def effort(self, request: ChatRequest) -> str:
        """How hard a model is to think, in the provider's own word; empty for one that never does."""
        effort, model = request.reasoning_effort or self.reasoning, request.model or self.model
        if facts.reasons(model):
            return effort
        if effort not in ("", "none"):
            _log.warning("%sthe reasoning effort is left out: the model `%s` does not think", self.who, model)
        return ""

    def caches(self, request: ChatRequest) -> bool:
        """Whether the prompt of a request is to be marked for caching."""
        return self.prompt_cache == "on" or (self.prompt_cache == "auto" and request.cache)

    def cache_key(self, request: ChatRequest) -> str:
        """The key of a cached prompt, the same in every run; empty when the prompt is not to be cached.

        A key that is too long for the providers keeps its beginning.
        """
        return shortened(request.cache_key, _LONGEST_KEY) if self.caches(request) else ""


def shortened(id: str, limit: int) -> str:
    """An id of at most so many characters: one that is longer keeps its beginning, and stays unlike all others."""
    if len(id) <= limit:
        return id
    digest = sha256(id.encode(errors="replace")).hexdigest()[:16]
    return f"{id[: limit - len(digest) - 1]}-{digest}"


class Unreadable(ValueError):
    """An event of no known shape: what was expected, and what was found. One is skipped; many in a row end the call."""


def shown(value: Json, limit: int = 100) -> str:
    """A value as error texts quote it: the beginning of its JSON."""
    try:
        text = json.dumps(native(value), ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return "a value that is nested too deeply"
    text = "".join(character if character.isprintable() else " " for character in text[: limit + 1])
    return f"`{text if len(text) <= limit else text[:limit] + '…'}`"


class Decoder(Protocol[Answer]):
    """Gathers the events of one answer. An answer that was not streamed is fed whole, as one event."""

    @property
    def complete(self) -> bool:
        """Whether all that matters has come, so that reading may end."""

    @property
    def ended(self) -> bool:
        """Whether the end mark of the answer has come. What it cost may come after it."""

    def feed(self, event: Json) -> Sequence[Delta]:
        """Take the next event, decoded from its JSON or `DONE` as it is; gives what a listener is told.

        Raises Unreadable, or ProviderError when the event reports a failure.
        """

    def finish(self) -> Answer:
        """The answer, once no more events come. Raises Truncated when its end mark is missing."""


class ChatDecoder(Decoder[ChatResponse], Protocol):
    """A decoder of what a model says."""

    @property
    def usage(self) -> Usage | None:
        """The tokens that the provider has told so far, also of an answer that breaks off."""

    @property
    def model(self) -> str:
        """The model that serves, as far as the provider has named it."""


class Wire(Protocol):
    """A module with these functions is a wire."""

    def encode(self, request: ChatRequest, endpoint: Endpoint, *, stream: bool) -> HttpCall:
        """The HTTP call that asks for an answer."""

    def decoder(self, request: ChatRequest) -> ChatDecoder:
        """A decoder for one answer to a request."""


def text_of(value: Json) -> str:
    """A text of an answer; what is none counts as empty."""
    return value if isinstance(value, str) else ""


def count_of(value: Json) -> int | None:
    """A number of tokens of an answer; what is no number of 0 or more is unknown."""
    return int(value) if type(value) in (int, float) and 0 <= value < math.inf else None


def to_bytes(body: Json) -> bytes:
    """The JSON text of a request body: keys in the order given, whole numbers without a fraction."""
    text = json.dumps(_plain(body), ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return to_bytes(clean(body))


def _plain(value: Json) -> Json:
    match value:
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case float():
            if not math.isfinite(value):
                return str(value)
            return int(value) if value.is_integer() and abs(value) < 2**53 else value
    return value
