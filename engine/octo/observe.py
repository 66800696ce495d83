"""What a run tells while it goes: event kinds, and the observers that are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from octo.frozen import frozen

if TYPE_CHECKING:
    from octo.errors import OctoError
    from octo.llm.chat import ChatRequest, ChatResponse, Delta, Usage
    from octo.message import Message
    from octo.values import Json

Outcome: TypeAlias = Literal["completed", "dropped", "failed"]
AgentSource: TypeAlias = Literal["inline", "deployed", "pinned", "draft"]


@frozen
class Event:
    """Base of all events. `address` is the block's, or the flow's name; empty for a run's own events."""

    address: str
    event_id: str


@frozen
class SourceEmitted(Event):
    """A source made a message of its own accord. `address` is the name of the flow."""

    type: str
    message: Message


@frozen
class FlowStarted(Event):
    """A flow received a message."""

    message: Message
    handed_on: bool = False
    """Whether it goes on with something that another run made, and has an outcome of its own."""


@frozen
class FlowEnded(Event):
    """A flow is done with a message."""

    outcome: Outcome
    seconds: float
    message: Message | None = None
    error: OctoError | None = None


@frozen
class BlockEntered(Event):
    """A block is about to run."""

    type: str
    message: Message


@frozen
class BlockLeft(Event):
    """A block ran, failed or dropped its message."""

    type: str
    outcome: Outcome
    seconds: float
    message: Message | None = None
    error: OctoError | None = None


@dataclass(frozen=True, slots=True)
class AgentStamp:
    """Which agent it is that works, and in which state."""

    name: str = ""
    """Empty for an agent that is written in its block."""
    source: AgentSource = "inline"
    version: int | None = None
    hash: str = ""
    """Of the agent's value."""
    value: str = ""
    """Of a draft, which may be another one before anybody looks: its value, as JSON."""


@frozen
class AgentStarted(Event):
    """An agent begins to work on a message."""

    connector: str
    max_iterations: int
    stamp: AgentStamp = AgentStamp()


@frozen
class AgentEnded(Event):
    """An agent is done; `reason` says why it took its default path, if it did."""

    turns: int
    tool_calls: int
    seconds: float
    usage: Usage | None
    reason: str | None = None
    error: OctoError | None = None


@frozen
class TurnStarted(Event):
    """A model call is about to be made. `iteration` counts from 1."""

    iteration: int


@frozen
class TurnEnded(Event):
    """A model call is over."""

    iteration: int
    seconds: float
    model: str = ""
    stop_reason: str = ""
    text: str = ""
    tool_calls: int = 0
    usage: Usage | None = None
    error: OctoError | None = None
    request: ChatRequest | None = field(default=None, compare=False, repr=False)
    response: ChatResponse | None = field(default=None, compare=False, repr=False)
    purpose: str = ""
    """What the call is for, when it is no turn of the agent."""


@frozen
class CompactionStarted(Event):
    """The next prompt of an agent would have `before` tokens, and `most` are allowed; it is made shorter."""

    strategy: str
    before: int
    most: int


@frozen
class CompactionEnded(Event):
    """The conversation of an agent was made shorter by so many turns, if that was possible."""

    strategy: str
    before: int
    after: int
    most: int
    dropped: int


@frozen
class TextsEmbedded(Event):
    """A block asked a model for the vectors of some texts."""

    seconds: float
    connector: str
    model: str
    texts: int
    """How many there were."""
    dimensions: int
    """Length of the vectors; 0 when there are none."""
    usage: Usage | None = None
    error: OctoError | None = None


@frozen
class ModelDelta(Event):
    """A fragment of an answer that is being streamed."""

    iteration: int
    delta: Delta


@frozen
class ToolCalled(Event):
    """The model asked for a tool, which is about to run."""

    iteration: int
    tool: str
    call_id: str
    arguments: str


@frozen
class ToolStarted(Event):
    """A tool call has its turn; what happens from now on in the same task is its doing."""

    iteration: int
    tool: str
    call_id: str


@frozen
class ToolReturned(Event):
    """A tool call is over; `text` is what the model will read."""

    iteration: int
    tool: str
    call_id: str
    text: str
    is_error: bool
    seconds: float


@frozen
class AgentGaveUp(Event):
    """An agent gave up and takes its default path, if it has one; `detail` is the model's own reason, if any."""

    iteration: int
    reason: str
    detail: str = ""


@frozen
class LogLine(Event):
    """A flow wrote a line to the process log."""

    level: str
    text: str
    fields: dict[str, Json]


class Observer(Protocol):
    """Watches a run. It is told inline and in order, and cannot change the run.

    One that is an async context manager as well is open as long as the runtime is.
    """

    kinds: Sequence[type[Event]]
    """The events it wants; an event that nobody wants is not even built."""

    def notify(self, event: Event) -> None:
        """Take note of an event; must be quick and must not raise."""
