"""Stored conversations that are not whole: made so that every vendor takes them, whatever broke them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from octo.llm.chat import ChatMessage, Text, ToolCall, ToolResult
from octo.llm.conversation import INTERRUPTED, is_blank


@dataclass(slots=True)
class Faults:
    """What was found to be wrong with a conversation."""

    calls: int = 0
    """Tool calls without a result."""
    results: int = 0
    """Results without a call."""
    blanks: int = 0
    """Texts and turns without content, and parts where no such part can be."""

    def __bool__(self) -> bool:
        return bool(self.calls or self.results or self.blanks)

    def __str__(self) -> str:
        counts = {
            "calls without a result": self.calls,
            "results without a call": self.results,
            "parts that are blank or out of place": self.blanks,
        }
        return ", ".join(f"{what}: {count}" for what, count in counts.items() if count)


def repaired(turns: Sequence[ChatMessage], warn: Callable[[str], None]) -> list[ChatMessage]:
    """The conversation as it can be gone on with. Repairs are told in one warning."""
    whole, faults = settled(turns)
    if faults:
        warn(f"the stored conversation was not whole and has been repaired: {faults}")
    return whole


def settled(turns: Sequence[ChatMessage]) -> tuple[list[ChatMessage], Faults]:
    """The conversation with a result for every call and a call for every result, without blank text.

    A call whose result was lost gets a failed one. A turn that needs no repair stays the object that it was.
    """
    faults = Faults()
    whole: list[ChatMessage] = []
    calls: tuple[ToolCall, ...] = ()
    results: list[ToolResult] = []
    given: ChatMessage | None = None

    def settle() -> None:
        nonlocal calls, results, given
        answers = _in_call_order(calls, results, faults)
        if answers:
            whole.append(given if given is not None and given.parts == answers else ChatMessage("tool", answers))
        calls, results, given = (), [], None

    for turn in turns:
        if turn.role == "tool":
            given = turn if not results else None
            results += [part for part in turn.parts if isinstance(part, ToolResult)]
            continue
        settle()
        kept = _without_blanks(turn, faults)
        if kept is not None:
            whole.append(kept)
            calls = kept.calls if kept.role == "assistant" else ()
    settle()
    return whole, faults


def _in_call_order(calls: Sequence[ToolCall], results: Sequence[ToolResult], faults: Faults) -> tuple[ToolResult, ...]:
    waiting: defaultdict[str, list[ToolResult]] = defaultdict(list)
    for result in results:
        waiting[result.call_id].append(result)
    answers: list[ToolResult] = []
    for call in calls:
        if waiting[call.id]:
            answers.append(waiting[call.id].pop(0))
        else:
            faults.calls += 1
            answers.append(ToolResult(call.id, call.name, INTERRUPTED, is_error=True))
    faults.results += sum(map(len, waiting.values()))
    return tuple(answers)


def _without_blanks(turn: ChatMessage, faults: Faults) -> ChatMessage | None:
    """The turn without parts that have no place in it; None when nothing is left."""
    parts = tuple(
        part
        for part in turn.parts
        if not isinstance(part, ToolResult)
        and not (isinstance(part, Text) and is_blank(part.text))
        and not (turn.role == "user" and isinstance(part, ToolCall))
    )
    if len(parts) == len(turn.parts) and parts:
        return turn
    faults.blanks += max(1, len(turn.parts) - len(parts))
    return replace(turn, parts=parts) if parts else None
