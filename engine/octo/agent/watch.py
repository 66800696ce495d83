"""What one run of an agent tells while it goes: to the observers of the run, and to the agent's own `events` chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from octo.agent import events
from octo.agent.events import Events, EventType
from octo.agent.fragments import Fragments
from octo.agent.telling import Telling
from octo.runlog.conversation import piece

if TYPE_CHECKING:
    from octo.agent.loop import Task
    from octo.agent.tools import Outcome
    from octo.errors import OctoError
    from octo.llm.chat import ChatRequest, ChatResponse, Delta, OnDelta, ToolCall, Usage
    from octo.message import Message
    from octo.run import Run
    from octo.values import Json


class Stopped(Exception):
    """The `events` chain asked to complete the flow, so that there will be no answer."""


class Watch:
    """Tells of one agent run. Observers are told at once; the chain runs before the agent goes on."""

    def __init__(self, task: Task, message: Message, run: Run) -> None:
        self.iteration = 1
        """Which turn it is, from 1."""
        self.telling = Telling(run, task.address, message.event_id)
        self._events = Events(task.events, task.emit, message, run, task.address) if task.events is not None else None
        self._context_max = task.bounds.tokens
        self._streams = task.stream
        self._is_listened_to = run.runtime.streaming
        self._fragments = Fragments(run.runtime.config.environment.secrets)

    @property
    def stop_requested(self) -> bool:
        """Whether the chain asked to complete the flow."""
        return self._events is not None and self._events.stop_requested

    @property
    def on_delta(self) -> OnDelta | None:
        """Takes the pieces of an answer as they come; None when nobody wants them."""
        return self._take if self._streams or self._is_listened_to else None

    async def tell(self, type: EventType, fields: Mapping[str, Json]) -> None:
        """Tell the chain alone."""
        if self._events is not None and self._events.wants(type):
            await self._events.send(type, self.iteration, fields)

    def _wants(self, type: EventType) -> bool:
        return self._events is not None and self._events.wants(type)

    # ------------------------------------------------------------ model calls

    async def turn_started(self, purpose: str = "") -> None:
        """A call that is no turn, which a `purpose` says, is for observers only. Raises Stopped."""
        self.telling.turn_started(self.iteration, purpose)
        if not purpose:
            await self.tell("turn_start", {})
            self._heed()

    async def answered(self) -> None:
        """The answer is whole; what was held back of it is told. Raises Stopped."""
        for rest in self._fragments.rest():
            await self._tell_piece(rest)

    async def turn_ended(
        self, seconds: float, request: ChatRequest, response: ChatResponse, purpose: str, paid: Usage | None
    ) -> None:
        self.telling.turn_ended(self.iteration, seconds, request, response, purpose=purpose, paid=paid)
        if not purpose and self._wants("turn_end"):
            await self.tell("turn_end", events.turn_end(response, self._context_max))

    async def turn_failed(
        self, seconds: float, request: ChatRequest, error: OctoError, purpose: str, paid: Usage | None
    ) -> None:
        self.telling.turn_ended(self.iteration, seconds, request, error=error, purpose=purpose, paid=paid)
        if not purpose:
            await self.tell("error", {"error": error.message})

    def turn_abandoned(self, seconds: float, request: ChatRequest) -> None:
        """The chain wants no answer, or has heard enough of it."""
        self.telling.turn_ended(self.iteration, seconds, request, stop_reason="stopped")

    async def _take(self, delta: Delta) -> None:
        for ready in self._fragments.ready(delta):
            await self._tell_piece(ready)

    async def _tell_piece(self, delta: Delta) -> None:
        self.telling.piece(self.iteration, delta)
        told = piece(delta) if self._streams else None
        if told is not None:
            await self.tell(*told)
            self._heed()

    def _heed(self) -> None:
        if self.stop_requested:
            raise Stopped

    # ------------------------------------------------------------ tool calls

    async def tool_called(self, call: ToolCall) -> None:
        self.telling.tool_called(self.iteration, call)
        if self._wants("tool_call"):
            arguments = events.decoded(call.arguments)
            await self.tell("tool_call", {"tool": call.name, "toolCallId": call.id, "input": arguments})

    def tool_started(self, call: ToolCall) -> None:
        """It has its turn; in what follows in the same task, the call is at work."""
        self.telling.tool_started(self.iteration, call)

    async def tool_returned(self, call: ToolCall, outcome: Outcome, seconds: float) -> None:
        self.telling.tool_returned(self.iteration, call, outcome, seconds)
        if self._wants("tool_result"):
            output = events.decoded(outcome.text)
            fields = {"tool": call.name, "toolCallId": call.id, "output": output, "isError": outcome.is_error}
            await self.tell("tool_result", fields)

    # ------------------------------------------------------------ the conversation, the end

    async def compaction_started(self, strategy: str, before: int, most: int) -> None:
        self.telling.compaction_started(strategy, before, most)
        gauge = {"contextTokens": before, "contextMaxTokens": self._context_max}
        await self.tell("compaction_start", {"strategy": strategy, "before": before, **gauge})

    async def compaction_ended(self, strategy: str, before: int, after: int, most: int, dropped: int) -> None:
        self.telling.compaction_ended(strategy, before, after, most, dropped)
        gauge = {"contextTokens": after, "contextMaxTokens": self._context_max}
        told = {"strategy": strategy, "before": before, "after": after, "dropped": dropped, **gauge}
        await self.tell("compaction_end", told)

    async def thread_named(self, title: str, thread: str) -> None:
        await self.tell("thread_title", {"title": title, "thread": thread})

    async def gave_up(self, reason: str, detail: str) -> None:
        self.telling.gave_up(self.iteration, reason, detail)
        await self.tell("guardrail", {"reason": reason} | ({"detail": detail} if detail else {}))

    async def done(self, text: str, *, is_empty: bool = False) -> None:
        """The answer is in the body."""
        await self.tell("done", {"text": text} | ({"emptyAnswer": True} if is_empty else {}))
