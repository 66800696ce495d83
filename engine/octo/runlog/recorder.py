"""Makes records of what a run tells while it goes, and writes them down."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO, TypeAlias

from octo.errors import OctoError
from octo.message import HIDDEN_PREFIX
from octo.observe import (
    AgentGaveUp,
    BlockEntered,
    BlockLeft,
    CompactionEnded,
    Event,
    FlowEnded,
    FlowStarted,
    ModelDelta,
    SourceEmitted,
    TextsEmbedded,
    ToolCalled,
    ToolReturned,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from octo.runlog import conversation
from octo.runlog.record import BODY, LIMIT, VARS, Record, instant
from octo.values import Json, dumps

if TYPE_CHECKING:
    from octo.llm.chat import ChatMessage
    from octo.message import Message

Sink: TypeAlias = Callable[[Record], object]
"""Takes a record, at once. It must be quick and must not raise."""

Kind: TypeAlias = Literal["flow", "block", "turn", "tool"]


_LONG: Final = 256
"""JSON of more characters is not written again when it is the same as before."""


@dataclass
class Told:
    """A body or a variable as a record told it."""

    value: Json
    """The very object, by which it is known again."""
    shown: Json
    """As it was told, without secrets."""
    seq: int

    def tells(self, value: Json) -> bool:
        """Whether this is about a value, and shows it."""
        return self.value is value and self.shown is not None

    @cached_property
    def is_long(self) -> bool:
        return isinstance(self.shown, str | list | dict) and len(dumps(self.shown)) > _LONG


@dataclass(slots=True)
class Span:
    """Something that has begun and not ended. What happens meanwhile happens inside it."""

    id: int
    kind: Kind
    name: str
    """Name of the flow, address of the block, or id of the tool call."""
    parent: Span | None
    trace_id: str
    correlation_id: str
    flow: str
    told: tuple[ChatMessage, ...] = ()
    """Of an agent's block: the conversation as far as it was told, for no turn repeats what an earlier one told."""
    calls: dict[str, list[Span]] = field(default_factory=dict)
    """Of an agent's block: the tool calls that wait for their turn, by id, which need not be unique."""
    state: dict[str, Told] = field(default_factory=dict)
    """Body and variables as the last record in here told them."""


class Recorder:
    """Observer that makes a record of what happens and hands it to its sinks.

    `blocks` limits the records of blocks to those with one of these addresses; `bodies` and `vars` say whether records
    hold those of messages; `pieces` whether there are records of answers while they come; `last` is the number of the
    last record in the same log.

    Where a record belongs is known by a context variable, so that branches and tool calls that run at the same time
    find their own places. The variable is this recorder's alone, for several may watch one runtime.
    """

    kinds: Sequence[type[Event]] = (
        SourceEmitted,
        FlowStarted,
        FlowEnded,
        BlockEntered,
        BlockLeft,
        TurnStarted,
        ModelDelta,
        TurnEnded,
        ToolCalled,
        ToolStarted,
        ToolReturned,
        AgentGaveUp,
        CompactionEnded,
        TextsEmbedded,
    )

    def __init__(
        self,
        sinks: Iterable[Sink],
        *,
        mask: Callable[[str], str] = str,
        clock: Callable[[], int] = time.time_ns,
        limit: int = LIMIT,
        blocks: Container[str] | None = None,
        bodies: bool = True,
        vars: bool = True,
        pieces: bool = False,
        last: int = 0,
    ) -> None:
        self.blocks = blocks
        self._sinks = tuple(sinks)
        self._mask = mask
        self._clock = clock
        self._limit = limit
        self._bodies = bodies
        self._vars = vars
        self._pieces = pieces
        self._seq = last
        self._here: ContextVar[Span | None] = ContextVar("octo.runlog.here", default=None)

    def notify(self, event: Event) -> None:
        match event:
            case BlockEntered() | BlockLeft() if self.blocks is not None and event.address not in self.blocks:
                pass
            case BlockEntered():
                self._begin("block", event.address, event, "block.pre-invoke", event.message, block_type=event.type)
            case BlockLeft():
                self._leave("block", event, "block.post-invoke", block_type=event.type)
            case SourceEmitted():
                self._note(event, "source.emit", flow=event.address, path="", attrs={"source": event.type})
            case FlowStarted():
                self._begin("flow", event.address, event, "flow.started", event.message)
            case FlowEnded():
                self._leave("flow", event, f"flow.{event.outcome}")
            case TurnStarted():
                self._begin("turn", event.address, event, "agent.turn_start", attrs={"iteration": event.iteration})
            case ModelDelta():
                self._piece(event)
            case TurnEnded():
                self._turn(event)
            case ToolCalled():
                self._call(event)
            case ToolStarted():
                self._here.set(self._waiting(event.call_id) or self._here.get())
            case ToolReturned():
                self._result(event)
            case AgentGaveUp():
                attrs = {"iteration": event.iteration, "reason": event.reason, "detail": event.detail or None}
                self._note(event, "agent.guardrail", attrs=_known(attrs))
            case CompactionEnded():
                self._compaction(event)
            case TextsEmbedded():
                self._embedding(event)

    # ------------------------------------------------------------ agents

    def _piece(self, event: ModelDelta) -> None:
        told = conversation.piece(event.delta)
        if told is not None and (self._pieces or told[0] == "retry"):
            self._note(event, f"agent.{told[0]}", attrs={"iteration": event.iteration, **told[1]})

    def _turn(self, event: TurnEnded) -> None:
        span = None if event.purpose else self._end("turn", event.address)
        agent = None if event.purpose else self._here.get()
        attrs: dict[str, Json] = {
            "purpose": event.purpose or None,
            "iteration": event.iteration,
            "connector": (event.response.connector or None) if event.response else None,
            "passedOver": list(event.response.passed_over) or None if event.response else None,
            "model": event.model or None,
            "stopReason": event.stop_reason or None,
            "toolCalls": event.tool_calls,
            "usage": _known(event.usage.shown()) if event.usage else None,
        }
        if event.request is not None:
            attrs["input"] = conversation.asked(event.request, agent.told if agent else ())
        if event.response is not None:
            attrs["output"] = conversation.turn(event.response.message)
        if agent is not None and event.request is not None:
            answer = () if event.response is None else (event.response.message,)
            agent.told = (*event.request.messages, *answer)
        error = event.error.message if event.error else ""
        parts: dict[str, Any] = {"duration_ns": _ns(event.seconds), "error": error, "attrs": _known(attrs)}
        if event.purpose:
            self._note(event, "llm.turn", **parts)
        else:
            self._put(event, "llm.turn", span, **parts)

    def _compaction(self, event: CompactionEnded) -> None:
        gauge = {"before": event.before, "after": event.after, "contextMaxTokens": event.most}
        self._note(event, "agent.compaction", attrs={"strategy": event.strategy, "dropped": event.dropped, **gauge})

    def _embedding(self, event: TextsEmbedded) -> None:
        attrs = {
            "connector": event.connector,
            "model": event.model,
            "texts": event.texts,
            "dimensions": event.dimensions or None,
            "usage": _known(event.usage.shown()) if event.usage else None,
        }
        error = event.error.message if event.error else ""
        self._note(event, "llm.embed", duration_ns=_ns(event.seconds), error=error, attrs=_known(attrs))

    def _call(self, event: ToolCalled) -> None:
        """A call is announced before it has its turn, and then begins in a task of its own, maybe."""
        agent = self._here.get()
        attrs = {
            "iteration": event.iteration,
            "tool": event.tool,
            "toolCallId": event.call_id,
            "input": conversation.decoded(event.arguments),
        }
        span = self._begin("tool", event.call_id, event, "agent.tool_call", attrs=attrs)
        self._here.set(agent)
        if agent is not None:
            agent.calls.setdefault(event.call_id, []).append(span)

    def _waiting(self, call_id: str) -> Span | None:
        here = self._here.get()
        waiting = here.calls.get(call_id) if here else None
        return waiting.pop(0) if waiting else None

    def _result(self, event: ToolReturned) -> None:
        attrs = {
            "iteration": event.iteration,
            "tool": event.tool,
            "toolCallId": event.call_id,
            "output": conversation.decoded(event.text),
            "isError": event.is_error,
        }
        span = self._waiting(event.call_id) or self._end("tool", event.call_id)
        self._put(event, "agent.tool_result", span, duration_ns=_ns(event.seconds), attrs=attrs)

    # ------------------------------------------------------------ spans and records

    def _begin(
        self, kind: Kind, name: str, event: Event, record: str, message: Message | None = None, **parts: Any
    ) -> Span:
        parent = self._here.get()
        span = Span(
            self._seq + 1,
            kind,
            name,
            parent,
            parent.trace_id if parent else message.trace_id if message else event.event_id,
            message.correlation_id if message else parent.correlation_id if parent else "",
            event.address if kind == "flow" else parent.flow if parent else "",
            state=dict(parent.state) if parent else {},
        )
        self._here.set(span)
        self._put(event, record, span, message, parent_id=parent.id if parent else 0, **parts)
        return span

    def _end(self, kind: Kind, name: str) -> Span | None:
        """The span that is over, with all that was cancelled inside it."""
        span = self._here.get()
        while span is not None and (span.kind, span.name) != (kind, name):
            span = span.parent
        if span is not None:
            self._here.set(span.parent)
        return span

    def _leave(self, kind: Kind, event: BlockLeft | FlowEnded, record: str, **parts: Any) -> None:
        error = ""
        if event.outcome == "failed":
            error = event.error.message if event.error else "interrupted"
        self._put(
            event,
            record,
            self._end(kind, event.address),
            event.message,
            duration_ns=_ns(event.seconds),
            error=error,
            dropped=event.outcome == "dropped",
            **parts,
        )

    def _note(self, event: Event, kind: str, **parts: Any) -> None:
        """Something that neither begins nor ends anything."""
        here = self._here.get()
        self._put(event, kind, here, span_id=0, parent_id=here.id if here else 0, **parts)

    def _put(self, event: Event, kind: str, span: Span | None, message: Message | None = None, **parts: Any) -> None:
        """Make a record and hand it on."""
        self._seq += 1
        where: dict[str, Any] = {
            "span_id": span.id if span else 0,
            "flow": span.flow if span else "",
            "path": "" if kind.startswith("flow.") else event.address,
        }
        given = self._state(message)
        known = {key: told for key, told in span.state.items() if told.tells(given.get(key))} if given and span else {}
        same = {key: told for key, told in known.items() if told.is_long}
        fresh = {key: value for key, value in given.items() if key not in same}
        record = Record(
            seq=self._seq,
            kind=kind,
            trace_id=span.trace_id if span else event.event_id,
            event_id=event.event_id,
            correlation_id=span.correlation_id if span else "",
            at=instant(self._clock()),
            body=fresh.get(BODY),
            vars=_variables(fresh),
            **(where | parts),
        )
        try:
            record = record.within(self._limit).masked(self._mask)
        except (OctoError, RecursionError, TypeError):  # nested too deeply, or no JSON at all
            record = replace(record, body=None, vars={}, attrs={}, truncated=True).masked(self._mask)
        if span is not None:
            for key in fresh.keys() - known.keys():
                shown = record.body if key == BODY else record.vars.get(key.removeprefix(VARS))
                span.state[key] = Told(fresh[key], shown, self._seq)
            if span.parent is not None:
                span.parent.state = span.state
        if same:
            record = replace(
                record,
                body=same[BODY].shown if BODY in same else record.body,
                vars={**record.vars, **_variables({key: told.shown for key, told in same.items()})},
                same={key: told.seq for key, told in same.items()},
            )
        for sink in self._sinks:
            sink(record)

    def _state(self, message: Message | None) -> dict[str, Json]:
        """Body and variables of a message as they are now, by their names in `same`; nobody edits a body in place."""
        if message is None:
            return {}
        state: dict[str, Json] = {BODY: message.body} if self._bodies else {}
        if self._vars:
            for name, value in message.vars.items():
                if not name.startswith(HIDDEN_PREFIX):
                    state[VARS + name] = value
        return state


class Writer:
    """Sink that writes each record as a line, at once. Once that fails, no more is written; `error` tells."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None

    def __call__(self, record: Record) -> None:
        if self.error is not None:
            return
        try:
            self._stream.write(record.text + "\n")
            self._stream.flush()
        except OSError as error:
            self.error = error


def _variables(parts: Mapping[str, Json]) -> dict[str, Json]:
    return {key.removeprefix(VARS): value for key, value in parts.items() if key != BODY}


def _known(parts: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in parts.items() if value is not None}


def _ns(seconds: float) -> int:
    return round(seconds * 10**9)
