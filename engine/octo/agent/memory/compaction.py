"""Keeping a conversation within its budget of tokens, by whole exchanges."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

from octo.agent.memory import meter
from octo.agent.memory.meter import Meter
from octo.agent.memory.per_turn import PerTurn
from octo.llm.chat import ChatMessage, Usage, user

if TYPE_CHECKING:
    from octo.agent.memory.session import Recalled, Transcript

DEFAULT_TOKENS: Final = 200_000
SUMMARY: Final = "Summary of the earlier conversation:"
"""Stands before a summary in the turn that holds it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long the prompt of an agent may be, and what becomes of the conversation when it is longer."""

    tokens: int = DEFAULT_TOKENS
    strategy: Literal["prune", "summarize"] = "prune"


class Watcher(Protocol):
    """Is told what becomes of the conversation of a run."""

    async def compaction_started(self, strategy: str, before: int, most: int) -> None:
        """It is about to be made shorter: the next prompt would have `before` tokens, and `most` are allowed."""

    async def compaction_ended(self, strategy: str, before: int, after: int, most: int, dropped: int) -> None:
        """That is over, and so many turns are gone."""

    async def thread_named(self, title: str, thread: str) -> None:
        """A new conversation has a title."""


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """Turns that stay or go together."""

    turns: Sequence[ChatMessage]
    stays: bool = False
    weight: int = 0


class Context:
    """What the prompt of one run holds: measured, predicted, and made shorter when it would be too long."""

    def __init__(
        self,
        bounds: Bounds,
        *,
        summarize: Callable[[Sequence[ChatMessage]], Awaitable[str]],
        warn: Callable[[str], None],
        watcher: Watcher,
    ) -> None:
        """`summarize` gives the summary of turns, blank when there is none."""
        self.bounds = bounds
        self.meter = Meter()
        self._summarize = summarize
        self._warn = warn
        self.watcher = watcher
        self._weights = PerTurn(meter.weight)

    def recalled(self, recalled: Recalled) -> None:
        """Take over what is known of a stored conversation."""
        self.meter = Meter(self._estimate(recalled.turns), recalled.tokens)

    def measured(self, sent: Sequence[ChatMessage], usage: Usage | None) -> None:
        """Learn from a model call."""
        if usage is not None and usage.prompt_tokens:
            self.meter.learn(self._estimate(sent), usage.prompt_tokens)

    def tokens(self, turns: Sequence[ChatMessage]) -> int:
        """The measured size of a conversation; 0 when no provider has told."""
        return self.meter.size(self._estimate(turns)) if self.meter.knows else 0

    # ------------------------------------------------------------ between model calls

    async def make_room(self, transcript: Transcript) -> None:
        """Shorten the middle of the conversation when the next prompt would be over the budget.

        The first turn, what this run was told and its latest tool results stay. Before the first measurement
        nothing is done.
        """
        if not self.meter.has_measured:
            return
        most = max(1, self.bounds.tokens - self._estimate([transcript.preamble] if transcript.preamble else []))
        before = self.meter.predict(self._estimate(transcript.turns))
        if before <= most:
            return
        pieces = [self._piece(turns, stays=stays) for turns, stays in _open_pieces(transcript)]
        strategy = self.bounds.strategy
        await self.watcher.compaction_started(strategy, before, most)
        kept = [piece for piece in pieces if piece.stays]
        if len(kept) == len(pieces) or self._predict(kept) > most:
            self._warn("the conversation is over `contextMaxTokens`, and nothing of it can be left out")
            await self.watcher.compaction_ended(strategy, before, before, most, 0)
            return
        remaining = await self._compacted(pieces, most, strategy)
        length = len(transcript.turns)
        transcript.replace([turn for piece in remaining for turn in piece.turns])
        dropped = length - len(transcript.turns)
        await self.watcher.compaction_ended(strategy, before, self._predict(remaining), most, dropped)

    # ------------------------------------------------------------ before it is stored

    async def shortened(self, turns: Sequence[ChatMessage], *, only_prune: bool) -> list[ChatMessage]:
        """The conversation as it is stored: within the budget, but for its last exchange, which is always kept."""
        if self.meter.predict(self._estimate(turns)) <= self.bounds.tokens:
            return list(turns)
        pieces = [self._piece(exchange) for exchange in exchanges(turns)]
        strategy = "prune" if only_prune else self.bounds.strategy
        remaining = await self._compacted(pieces, self.bounds.tokens, strategy)
        if self._predict(remaining) > self.bounds.tokens:
            self._warn("the last exchange alone is over `contextMaxTokens`; it is kept all the same")
        return [turn for piece in remaining for turn in piece.turns]

    # ------------------------------------------------------------ how

    async def _compacted(self, pieces: list[_Piece], most: int, strategy: str) -> list[_Piece]:
        if strategy == "summarize":
            older = self._older(pieces, most)
            if not older:
                return pieces
            summary = (await self._summarize([turn for piece in older for turn in piece.turns])).strip()
            if summary:
                at = pieces.index(older[0])
                rest = [piece for piece in pieces if piece not in older]
                return [*rest[:at], self._piece([user(f"{SUMMARY}\n{summary}")]), *rest[at:]]
        return self._pruned(pieces, most)

    def _older(self, pieces: Sequence[_Piece], most: int) -> list[_Piece]:
        """What goes into a summary: all that may go, but for the longest tail that fits half of the room."""
        staying = sum(piece.weight for piece in pieces if piece.stays)
        room = (most - self.meter.overhead - self.meter.size(meter.tokens(staying))) / 2
        loose = [piece for piece in pieces if not piece.stays]
        weight = 0
        while loose:
            weight += loose[-1].weight
            if self.meter.size(meter.tokens(weight)) > room:
                break
            loose.pop()
        return loose

    def _pruned(self, pieces: Sequence[_Piece], most: int) -> list[_Piece]:
        """Without the oldest, as many as it takes; the last one stays."""
        remaining = list(pieces)
        weight = sum(piece.weight for piece in pieces)
        for piece in pieces[:-1]:
            if self.meter.predict(meter.tokens(weight)) <= most:
                break
            if not piece.stays:
                remaining.remove(piece)
                weight -= piece.weight
        return remaining

    def _piece(self, turns: Sequence[ChatMessage], *, stays: bool = False) -> _Piece:
        return _Piece(turns, stays, self._weight(turns))

    def _estimate(self, turns: Sequence[ChatMessage]) -> int:
        return meter.tokens(self._weight(turns))

    def _weight(self, turns: Sequence[ChatMessage]) -> int:
        return sum(self._weights.of(turns))

    def _predict(self, pieces: Sequence[_Piece]) -> int:
        return self.meter.predict(meter.tokens(sum(piece.weight for piece in pieces)))


def exchanges(turns: Sequence[ChatMessage]) -> list[list[ChatMessage]]:
    """The conversation in pieces that can go alone: a user turn and all that follows up to the next one."""
    pieces: list[list[ChatMessage]] = []
    for turn in turns:
        if turn.role == "user" or not pieces:
            pieces.append([])
        pieces[-1].append(turn)
    return pieces


def _open_pieces(transcript: Transcript) -> list[tuple[list[ChatMessage], bool]]:
    """The conversation of a run that goes on: closed exchanges, then the open one by its tool turns.

    With each piece stands whether it stays in any case.
    """
    closed = transcript.turns[: transcript.start]
    pieces = [(exchange, False) for exchange in exchanges(closed)]
    if closed and closed[0].role == "user":
        first, rest = pieces[0][0][:1], pieces[0][0][1:]
        pieces[:1] = [(first, True), (rest, False)] if rest else [(first, True)]
    told = {id(turn) for turn in transcript.new if turn.role == "user"}
    for turn in transcript.turns[transcript.start :]:
        if turn.role == "tool" and pieces and not pieces[-1][1]:
            pieces[-1][0].append(turn)
        else:
            pieces.append(([turn], id(turn) in told))
    pieces[-1] = (pieces[-1][0], True)
    return pieces
