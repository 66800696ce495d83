"""Keeping a whole conversation: its older part becomes a summary before it fills the window of the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from octo.agent.memory.compaction import SUMMARY, Bounds, Context, Watcher, exchanges
from octo.agent.memory.per_turn import PerTurn
from octo.llm.chat import ChatMessage, File, Reasoning, Text, ToolCall, ToolResult, Usage, user

if TYPE_CHECKING:
    from octo.agent.memory.session import Transcript

_FULL: Final = 0.8
"""How much of the window a prompt may fill."""
_KEPT: Final = 0.7
"""How much of it what stays may fill, with the summary, the system text and the tools."""
_LEAST, _MOST = 2_000, 8_000
"""Between these is the room for a summary, in tokens; else it is a tenth of the window."""
_FEWEST: Final = 4
"""Fewer turns are not summed up, unless they fill a quarter of the window."""
_ATTEMPTS: Final = 3
"""So many summaries in a row may fail; after that the run goes on without."""
_FILE: Final = 1_500
"""Tokens of an attachment."""


class WholeConversation(Context):
    """What the prompt of a run holds, with the newest exchanges as they were and all before them summed up."""

    def __init__(
        self,
        bounds: Bounds,
        *,
        window: int,
        beside: int,
        summarize: Callable[[Sequence[ChatMessage]], Awaitable[str]],
        warn: Callable[[str], None],
        watcher: Watcher,
    ) -> None:
        """`window` is what the model reads at once, 0 where that is not known; `beside` what its system text and its
        tools take of it, both in tokens.
        """
        super().__init__(bounds, summarize=summarize, warn=warn, watcher=watcher)
        self._window = min(window or bounds.tokens, bounds.tokens)
        self._beside = beside
        self._counted = 0
        """What the provider counted in the last prompt; 0 when it did not tell."""
        self._scale = 1.0
        """How many tokens the provider counts for one of the estimate, by what it counted last."""
        self._sizes = PerTurn(_characters)
        self._sent: frozenset[int] = frozenset()
        """The turns of that prompt."""
        self._may_try = True
        self._failed = 0

    def measured(self, sent: Sequence[ChatMessage], usage: Usage | None) -> None:
        super().measured(sent, usage)
        self._counted = (usage.prompt_tokens or 0) if usage is not None else 0
        if self._counted:
            self._scale = self._counted / max(1, self._beside + self._estimated(sent))
        self._sent = frozenset(map(id, sent))
        self._may_try = True

    async def make_room(self, transcript: Transcript) -> None:
        """Sum the older part up when the next prompt would nearly fill the window; at most once per answer."""
        before = self._size(transcript)
        if before >= _FULL * self._window and self._may_try and self._failed < _ATTEMPTS:
            older, newer = self._parted(transcript.turns)
            if len(older) >= _FEWEST or self._estimated(older) * self._scale >= self._window / 4:
                self._may_try = False
                await self._sum_up(transcript, older, newer, before)
        await super().make_room(transcript)

    async def _sum_up(
        self, transcript: Transcript, older: list[ChatMessage], newer: list[ChatMessage], before: int
    ) -> None:
        most = int(_FULL * self._window)
        await self.watcher.compaction_started("summarize", before, most)
        summary = (await self._summarize(older)).strip()
        if not summary:
            self._failed += 1
            await self.watcher.compaction_ended("summarize", before, before, most, 0)
            return
        self._failed = 0
        transcript.replace([user(f"{SUMMARY}\n{summary}"), *newer])
        self._counted = 0
        await self.watcher.compaction_ended("summarize", before, self._size(transcript), most, len(older))

    def _size(self, transcript: Transcript) -> int:
        """Tokens of the next prompt, as far as they are known: what was counted, and an estimate of what came since."""
        if not self._counted:
            return self._beside + self._estimated(transcript.turns)
        return self._counted + self._estimated([turn for turn in transcript.turns if id(turn) not in self._sent])

    def _parted(self, turns: Sequence[ChatMessage]) -> tuple[list[ChatMessage], list[ChatMessage]]:
        """What may be summed up, and what stays: as many of the newest exchanges as fit, one of them in any case."""
        room = (_KEPT * self._window - min(max(self._window / 10, _LEAST), _MOST)) / self._scale - self._beside
        pieces = exchanges(turns)
        first = len(pieces) - 1
        room -= self._estimated(pieces[first]) if pieces else 0
        while first > 0 and (size := self._estimated(pieces[first - 1])) <= room:
            room -= size
            first -= 1
        return (
            [turn for piece in pieces[:first] for turn in piece],
            [turn for piece in pieces[first:] for turn in piece],
        )

    def _estimated(self, turns: Sequence[ChatMessage]) -> int:
        """About how many tokens turns have: a quarter of their characters, and the same for every attachment."""
        return sum(self._sizes.of(turns)) // 4


def _characters(turn: ChatMessage) -> int:
    """How many characters a turn has or stands for."""
    size = 0
    for part in turn.parts:
        match part:
            case Text() | Reasoning() | ToolResult():
                size += len(part.text)
            case ToolCall():
                size += len(part.arguments)
            case File():
                size += 4 * _FILE
    return size
