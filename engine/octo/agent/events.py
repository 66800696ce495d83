"""The `events` chain of an agent: it is told of each thing that the agent does, on a message of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from octo.message import Dropped
from octo.values import Json, clone, parse

if TYPE_CHECKING:
    from octo.block import Chain
    from octo.llm.chat import ChatResponse, Usage
    from octo.message import Message
    from octo.run import Run

EventType: TypeAlias = Literal[
    "turn_start",
    "text",
    "thinking",
    "tool_input",
    "custom",
    "retry",
    "turn_end",
    "tool_call",
    "tool_authorization",
    "tool_result",
    "signal",
    "compaction_start",
    "compaction_end",
    "thread_title",
    "guardrail",
    "done",
    "error",
]
TYPES: Final[tuple[EventType, ...]] = get_args(EventType)
STREAMED: Final = frozenset({"text", "thinking", "tool_input", "custom", "retry"})
"""What there is only of answers that are streamed."""

_HEEDED: Final = frozenset(TYPES) - {
    *("retry", "signal", "compaction_start", "compaction_end"),
    *("thread_title", "guardrail", "done", "error"),
}
"""Where a stop of the chain reaches the agent; elsewhere there is nothing left to stop."""


class Events:
    """Runs the chain of one agent run, once for each event that is wanted, one after another."""

    def __init__(self, chain: Chain, wanted: Collection[str], message: Message, run: Run, address: str) -> None:
        from asyncio import Lock

        self.stop_requested = False
        """Whether the chain asked to complete the flow."""
        self._chain = chain
        self._wanted = frozenset(wanted or TYPES)
        self._message = message
        self._run = run
        self._address = address
        self._one_at_a_time = Lock()

    def wants(self, type: EventType) -> bool:
        """Whether events of a type are sent; others need not be built."""
        return type in self._wanted

    async def send(self, type: EventType, iteration: int, fields: Mapping[str, Json]) -> None:
        """Run the chain on an event. What it makes of it is ignored, but for a stop."""
        async with self._one_at_a_time:
            body = {"type": type, "iteration": iteration, **fields}
            event = self._run.runtime.message(clone(body), vars=dict(self._message.vars))
            event.correlation_id, event.trace_id = self._message.correlation_id, self._message.trace_id
            try:
                await self._run.chain(self._chain, event)
            except Dropped:
                return
            except Exception as error:  # one who only watches never makes the agent fail
                self._run.log("debug", f"ai-agent: events: {error}", block=self._address, event=type)
                return
            if event.stopped and (type in _HEEDED or self._has_halted()):
                self.stop_requested = True

    def _has_halted(self) -> bool:
        """Whether the breakpoint was reached, after which nothing runs any more."""
        stage = self._run.runtime.stage
        return stage is not None and stage.snapshot is not None


# ---------------------------------------------------------------- what events hold


def turn_end(response: ChatResponse, context_max: int) -> dict[str, Json]:
    """What is told of an answer; of its usage nothing when the provider reports none."""
    told: dict[str, Json] = {"text": response.text, "stopReason": response.stop_reason}
    return told if response.usage is None else told | _gauge(response.usage, context_max)


def _gauge(usage: Usage, context_max: int) -> dict[str, Json]:
    counts = usage.shown()
    counts.pop("costUSD", None)
    told: dict[str, Json] = {"usage": counts, "contextMaxTokens": context_max}
    if usage.prompt_tokens is not None:
        told["contextTokens"] = usage.prompt_tokens + (usage.output_tokens or 0)
    return told


def decoded(text: str) -> Json:
    """What a text means if it is JSON, else the text; null when it is empty."""
    try:
        return parse(text) if text.strip() else None
    except ValueError:
        return text
