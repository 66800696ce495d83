"""What the observers of a run are told of an agent: its start and end, model calls, tool calls, that it gives up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from octo.observe import (
    AgentEnded,
    AgentGaveUp,
    AgentStarted,
    CompactionEnded,
    CompactionStarted,
    ModelDelta,
    ToolCalled,
    ToolReturned,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)

if TYPE_CHECKING:
    from octo.agent.model import Brain
    from octo.agent.tools import Outcome
    from octo.errors import OctoError
    from octo.llm.chat import ChatRequest, ChatResponse, Delta, ToolCall, Usage
    from octo.observe import AgentStamp
    from octo.run import Run

_SHOWN: Final = 2000
"""How many characters of a prompt or reply go to the debug log."""


class Telling:
    """Tells the observers of a run what an agent does. What nobody wants to know is not even built."""

    def __init__(self, run: Run, address: str, event_id: str) -> None:
        self._run = run
        self._address = address
        self._event_id = event_id
        self._began = time.perf_counter()

    def started(self, agent: Brain, stamp: AgentStamp | None, prompt: str) -> None:
        self._began = time.perf_counter()
        if self._run.listens(AgentStarted):
            connector = str(agent.connector)
            self._run.emit(
                AgentStarted(self._address, self._event_id, connector, agent.turns, stamp or agent.inline_stamp)
            )
        self._run.log("debug", "agent prompt", block=self._address, prompt=_cut(prompt))

    def turn_started(self, iteration: int, purpose: str = "") -> None:
        if not purpose and self._run.listens(TurnStarted):
            self._run.emit(TurnStarted(self._address, self._event_id, iteration))

    def turn_ended(
        self,
        iteration: int,
        seconds: float,
        request: ChatRequest,
        response: ChatResponse | None = None,
        error: OctoError | None = None,
        purpose: str = "",
        stop_reason: str = "",
        paid: Usage | None = None,
    ) -> None:
        """`paid` is what the call used up, with the attempts that came to nothing."""
        text = response.text if response else ""
        if self._run.listens(TurnEnded):
            self._run.emit(
                TurnEnded(
                    self._address,
                    self._event_id,
                    iteration,
                    seconds,
                    model=response.model if response else "",
                    stop_reason=response.stop_reason if response else stop_reason,
                    text=text,
                    tool_calls=len(response.calls) if response else 0,
                    usage=paid,
                    error=error,
                    request=request,
                    response=response,
                    purpose=purpose,
                )
            )
        self._run.log("debug", "agent reply", block=self._address, reply=_cut(text))

    def piece(self, iteration: int, delta: Delta) -> None:
        if self._run.listens(ModelDelta):
            self._run.emit(ModelDelta(self._address, self._event_id, iteration, delta))

    def tool_called(self, iteration: int, call: ToolCall) -> None:
        if self._run.listens(ToolCalled):
            self._run.emit(ToolCalled(self._address, self._event_id, iteration, call.name, call.id, call.arguments))

    def tool_started(self, iteration: int, call: ToolCall) -> None:
        if self._run.listens(ToolStarted):
            self._run.emit(ToolStarted(self._address, self._event_id, iteration, call.name, call.id))

    def tool_returned(self, iteration: int, call: ToolCall, outcome: Outcome, seconds: float) -> None:
        if self._run.listens(ToolReturned):
            told = (call.name, call.id, outcome.text, outcome.is_error, seconds)
            self._run.emit(ToolReturned(self._address, self._event_id, iteration, *told))

    def compaction_started(self, strategy: str, before: int, most: int) -> None:
        if self._run.listens(CompactionStarted):
            self._run.emit(CompactionStarted(self._address, self._event_id, strategy, before, most))

    def compaction_ended(self, strategy: str, before: int, after: int, most: int, dropped: int) -> None:
        if self._run.listens(CompactionEnded):
            self._run.emit(CompactionEnded(self._address, self._event_id, strategy, before, after, most, dropped))

    def gave_up(self, iteration: int, reason: str, detail: str) -> None:
        if self._run.listens(AgentGaveUp):
            self._run.emit(AgentGaveUp(self._address, self._event_id, iteration, reason, detail))

    def ended(
        self,
        turns: int,
        tool_calls: int,
        usage: Usage | None,
        *,
        reason: str | None = None,
        error: OctoError | None = None,
    ) -> None:
        if self._run.listens(AgentEnded):
            seconds = time.perf_counter() - self._began
            self._run.emit(
                AgentEnded(self._address, self._event_id, turns, tool_calls, seconds, usage, reason=reason, error=error)
            )


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
