"""What the loop of an agent asks of its memory, whatever kind it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from octo.llm.chat import ChatMessage

if TYPE_CHECKING:
    from octo.agent.ending import Ending
    from octo.agent.memory.compaction import Context


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a run begins with."""

    turns: Sequence[ChatMessage] = ()
    """Replayed before the opening turn."""
    tokens: int = 0
    """How many tokens providers counted in them; 0 when that is not known."""
    preamble: ChatMessage | None = None
    """Sent in front of every request, and never a part of the transcript."""
    system: str = ""
    """What stands below the system text of the agent."""


class Transcript:
    """The conversation of one run of an agent: what was recalled, the opening turn, and the turns since."""

    __slots__ = ("iterations", "new", "preamble", "start", "turns")

    def __init__(self, recalled: Recalled, opening: ChatMessage | None) -> None:
        self.preamble = recalled.preamble
        self.turns = list(recalled.turns)
        """What the next request holds; made shorter when it no longer fits."""
        self.start = len(self.turns)
        """Where in them this run begins."""
        self.new: list[ChatMessage] = []
        """All turns of this run, the opening one first, whatever became of `turns`."""
        self.iterations = 0
        """How often the model was called in this run."""
        if opening is not None:
            self.append(opening)

    def append(self, turn: ChatMessage) -> None:
        self.turns.append(turn)
        self.new.append(turn)

    def replace(self, turns: list[ChatMessage]) -> None:
        """Go on with a shorter conversation; `new` stays whole."""
        started = {id(turn) for turn in self.new}
        self.start = next((at for at, turn in enumerate(turns) if id(turn) in started), len(turns))
        self.turns = turns

    def begin_here(self) -> None:
        """Go on without what was said before this run."""
        self.replace(list(self.new))

    def drop_files(self) -> None:
        """Take all attachments out, before anything was made shorter."""
        self.new = [turn.without_files() for turn in self.new]
        self.turns = [*(turn.without_files() for turn in self.turns[: self.start]), *self.new]

    def sent(self) -> tuple[ChatMessage, ...]:
        """The messages of a request."""
        return tuple(self.turns) if self.preamble is None else (self.preamble, *self.turns)


class Memory(Protocol):
    """Where the conversation of an agent stays between its runs."""

    async def load(self) -> Recalled:
        """What to begin with; called once, before the first model call. Raises OctoError to fail the run."""

    async def checkpoint(self, transcript: Transcript, context: Context) -> None:
        """Keep what there is so far; called after every tool turn. Must not raise."""

    async def save(self, transcript: Transcript, ending: Ending, context: Context) -> None:
        """Keep the conversation of a run that ended by an answer, by giving up or by a halt. Must not raise.

        It is not called when a model call failed or the run was interrupted.
        """


class NoMemory:
    """Keeps nothing: each run begins afresh."""

    async def load(self) -> Recalled:
        return Recalled()

    async def checkpoint(self, transcript: Transcript, context: Context) -> None:
        pass

    async def save(self, transcript: Transcript, ending: Ending, context: Context) -> None:
        pass
