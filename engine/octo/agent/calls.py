"""The tool calls of one turn: run one after another or together, their effects on the message in call order."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from octo.agent.tools import Outcome, Surroundings, Tool
from octo.llm.chat import ToolCall, ToolResult
from octo.message import Message
from octo.values import Json

if TYPE_CHECKING:
    from octo.agent.reply import CutOff
    from octo.agent.watch import Watch

_MARKS: Final = frozenset({"toolScope", "toolName", "toolCallId"})
"""Variables that every call writes."""


class Calls:
    """Runs the tool calls of one agent run on its message."""

    def __init__(
        self, tools: Iterable[Tool], message: Message, around: Surroundings, *, at_once: int, watch: Watch
    ) -> None:
        self._tools: Mapping[str, Tool] = {tool.name: tool for tool in tools}
        self._message = message
        self._around = around
        self._run = around.run
        self._at_once = at_once
        self._watch = watch
        self.count = 0
        self.acted = False
        """Whether a call of a tool was made that is not to be made twice."""
        self.any_ran = False
        """Whether a call reached its tool."""
        self.stop_requested = False
        """Whether a tool asked to complete the flow right here."""

    async def run(self, calls: Sequence[ToolCall], *, cut: CutOff | None = None) -> tuple[ToolResult, ...]:
        """Run the calls of one turn; results are in call order. The call that was cut off is not run."""
        self.count += len(calls)
        if self._at_once > 1 and len(calls) > 1:
            outcomes = await self._together(calls, cut)
        else:
            outcomes = [await self._in_turn(call, cut) for call in calls]
        return tuple(
            ToolResult(call.id, call.name, outcome.text, outcome.is_error)
            for call, outcome in zip(calls, outcomes, strict=True)
        )

    async def _in_turn(self, call: ToolCall, cut: CutOff | None) -> Outcome:
        await self._watch.tool_called(call)
        outcome, seconds = await self._one(call, self._message, cut)
        self._settle(outcome, self._message)
        await self._watch.tool_returned(call, outcome, seconds)
        return outcome

    async def _together(self, calls: Sequence[ToolCall], cut: CutOff | None) -> list[Outcome]:
        """Run every call on a copy of the message, then bring the effects together as if run in call order."""
        import asyncio

        copies = [self._message.clone() for _ in calls]
        writes = [_note_writes(copy) for copy in copies]
        slots = asyncio.Semaphore(self._at_once)
        for call in calls:
            await self._watch.tool_called(call)

        async def one(call: ToolCall, copy: Message) -> Outcome:
            async with slots:
                outcome, seconds = await self._one(call, copy, cut)
            await self._watch.tool_returned(call, outcome, seconds)
            return outcome

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(call, copy)) for call, copy in zip(calls, copies, strict=True)]
        outcomes = [task.result() for task in tasks]
        self._merge(outcomes, copies, writes)
        return outcomes

    async def _one(self, call: ToolCall, message: Message, cut: CutOff | None) -> tuple[Outcome, float]:
        """What a call gave, and after how many seconds."""
        started = time.perf_counter()
        self._watch.tool_started(call)
        tool = self._tools.get(call.name)
        if cut is not None and call is cut.call:
            outcome = Outcome(
                f"not run: {cut.by} cut this call off, so its arguments are not complete; "
                "make it shorter, or split it up",
                is_error=True,
            )
        elif tool is None:
            outcome = Outcome(f'unknown tool "{call.name}"', is_error=True)
        else:
            outcome = await tool.call(call, message, self._around)
            self.acted = self.acted or (outcome.ran and not tool.idempotent)
        return outcome, time.perf_counter() - started

    # ------------------------------------------------------------ effects

    def _settle(self, outcome: Outcome, message: Message) -> None:
        self.any_ran = self.any_ran or outcome.ran
        self.stop_requested = self.stop_requested or message.stopped
        message.stopped = False

    def _merge(self, outcomes: Sequence[Outcome], copies: Sequence[Message], writes: Sequence[_Noted]) -> None:
        before = self._message.vars
        merged = dict(before)
        writers: dict[str, int] = {}
        for number, (outcome, copy, written) in enumerate(zip(outcomes, copies, writes, strict=True)):
            self._settle(outcome, copy)
            for name in _changed(before, copy.vars, written.names):
                if writers.setdefault(name, number) != number and name not in _MARKS:
                    self._run.log(
                        "info", "two tool calls of one turn wrote one variable, the later wins", variable=name
                    )
                if name in copy.vars:
                    merged[name] = copy.vars[name]
                else:
                    merged.pop(name, None)
            if outcome.on_message:
                self._message.adopt(copy)
        self._message.vars = merged


class _Noted(dict[str, Json]):
    """Variables that note which names were written, also when a value did not change."""

    names: set[str]

    def __setitem__(self, name: str, value: Json) -> None:
        self.names.add(name)
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        self.names.add(name)
        super().__delitem__(name)

    def pop(self, name: str, *default: Any) -> Json:
        self.names.add(name)
        return super().pop(name, *default)

    def update(self, *others: Any, **named: Json) -> None:
        for name, value in dict(*others, **named).items():
            self[name] = value


def _note_writes(message: Message) -> _Noted:
    noted = _Noted(message.vars)
    noted.names = set()
    message.vars = noted
    return noted


def _changed(before: Mapping[str, Json], after: Mapping[str, Json], written: set[str]) -> set[str]:
    """Names that were written or removed. A block may have replaced the whole mapping, so values are compared too."""
    replaced = {name for name, value in after.items() if name not in before or before[name] is not value}
    return written | replaced | (before.keys() - after.keys())
