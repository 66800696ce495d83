"""A run that goes on, as far as it is known, and what the store does not know of it yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from octo.observe import AgentStarted, Event, FlowStarted, TextsEmbedded, ToolReturned, TurnEnded
from octo.runlog.record import Record
from octo.store.runs import AgentRow, RunRow, Spent

if TYPE_CHECKING:
    from octo.llm.chat import Usage

_Number = TypeVar("_Number", int | None, float | None)


@dataclass(eq=False)
class Live:
    """A run that goes on, and what is not stored of it yet."""

    row: RunRow
    first: FlowStarted
    outer: Live | None
    """The run in which its message came into being, if that is at work in the same task."""
    flows: int = 0
    """How many flows are at work for it."""
    agents: list[AgentRow] = field(default_factory=list)
    works: list[tuple[str, str]] = field(default_factory=list)
    """The address of the block of each agent, and the id of the message that it works on."""
    changed: set[int] = field(default_factory=set)
    """Positions of agents that the store does not know as they are now."""
    waiting: list[str] = field(default_factory=list)
    """Lines of the log."""
    written: int = 0
    """Characters of the log so far."""
    left_out: int = 0
    last: Record | None = None
    """The last record that there was no room for."""

    @property
    def is_over(self) -> bool:
        return self.row.ended is not None

    def add(self, record: Record, longest: int) -> None:
        """Take one more record of the log, which has so many characters at most."""
        self.row.records += 1
        size = len(record.text) + 1
        if self.written + size > longest:
            self.left_out += 1
            self.last = record
            return
        self.written += size
        self.waiting.append(record.text)

    def close(self) -> None:
        """End the log; where records were left out, it says how many, and how the run ended."""
        if self.last is None:
            return
        if self.left_out > 1:
            note = Record(self.last.seq, "trace.dropped", at=self.last.at, attrs={"count": self.left_out - 1})
            self.waiting.append(note.text)
        self.waiting.append(self.last.within(0).text)

    def begin(self, agent: AgentRow, event: AgentStarted) -> None:
        """An agent begins to work."""
        self.changed.add(len(self.agents))
        self.agents.append(agent)
        self.works.append((event.address, event.event_id))

    def working(self, event: Event) -> AgentRow | None:
        """The agent that an event is about, if there is one, which is then to be stored anew."""
        for position in reversed(range(len(self.agents))):
            agent = self.agents[position]
            if agent.seconds is None and self.works[position] == (event.address, event.event_id):
                self.changed.add(position)
                return agent
        return None

    def spend(self, event: TurnEnded | ToolReturned | TextsEmbedded) -> None:
        """Charge a call to the run and to the agent that made it."""
        agent = self.working(event)
        for spent in (self.row.spent, agent.spent) if agent else (self.row.spent,):
            if isinstance(event, ToolReturned):
                spent.tool_calls += 1
            else:
                spent.turns += isinstance(event, TurnEnded) and not event.purpose
                _charge(spent, event.usage)


def _charge(spent: Spent, usage: Usage | None) -> None:
    if usage is None:
        return
    read = usage.input_tokens if usage.prompt_tokens is None else usage.prompt_tokens
    spent.tokens_read = _sum(spent.tokens_read, read)
    spent.tokens_written = _sum(spent.tokens_written, usage.output_tokens)
    spent.cost = _sum(spent.cost, usage.cost_usd)


def _sum(a: _Number, b: _Number) -> _Number:
    """Unknown plus a number is that number."""
    return b if a is None else a if b is None else a + b
