"""The memory of one block under one key: read when an agent starts, written when it has answered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from octo.agent.ending import Answered
from octo.agent.memory import codec, window
from octo.agent.memory.repair import repaired, settled
from octo.agent.memory.session import Recalled
from octo.errors import OctoError
from octo.store import memories
from octo.values import Json, clean_text, json_fault, masked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from octo.agent.ending import Ending
    from octo.agent.memory.compaction import Context
    from octo.agent.memory.session import Transcript
    from octo.llm.chat import ChatMessage
    from octo.run import Run
    from octo.store.memories import Place

_READ: Final = "memory: could not read memory: "
_STORE: Final = "memory: could not store memory: "


class ManagedMemory:
    """Keeps the last messages of a conversation, or all of them as far as compaction leaves them."""

    def __init__(self, place: Place, run: Run, *, bound: int | None, most_bytes: int = 0) -> None:
        """`bound` is how many messages are kept, None for all; `most_bytes` how large a row may be, 0 for any size."""
        self._place = place
        self._run = run
        self._bound = bound
        self._most_bytes = most_bytes
        self._recalled: list[ChatMessage] = []
        self._may_save = True

    async def load(self) -> Recalled:
        """What was kept. A memory that cannot be read is as none, and stays as it is."""
        runtime = self._run.runtime
        try:
            stored = await runtime.store.read(lambda db: memories.load(db, self._place), None)
        except OctoError as error:
            self._may_save = False
            self._log("warn", _READ + error.message)
            return Recalled()
        try:
            turns = codec.decode(json.loads(stored)) if stored is not None else []
        except (ValueError, RecursionError) as error:
            self._may_save = False
            self._log("warn", f"{_READ}{json_fault(error)}; `octo memory delete {self._place.key}` forgets it")
            return Recalled()
        self._recalled = repaired(self._cut(turns), lambda text: self._log("warn", f"memory: {text}"))
        return Recalled(self._recalled)

    async def checkpoint(self, transcript: Transcript, context: Context) -> None:
        """Nothing: only exchanges that are finished are kept."""

    async def save(self, transcript: Transcript, ending: Ending, context: Context) -> None:
        """Keep the conversation of a run that came to an answer, in the place of what was kept before."""
        if not isinstance(ending, Answered):
            return
        if not self._may_save:
            self._log("warn", f"{_STORE}what is kept could not be read, and is not written over")
            return
        if self._bound is None:
            await context.make_room(transcript)
        turns = transcript.turns if self._bound is None else [*self._recalled, *transcript.new]
        whole, _ = settled([window.without_bytes(turn) for turn in self._cut(turns)])
        kept = self._fitting(whole)
        if not kept:
            return
        text, now = self._text(kept), self._run.runtime.clock()
        try:
            await self._run.runtime.store.write(lambda db: memories.save(db, self._place, text, len(kept), now=now))
        except OctoError as error:
            self._log("warn", _STORE + error.message)

    def _cut(self, turns: list[ChatMessage]) -> list[ChatMessage]:
        return turns if self._bound is None else window.newest(turns, self._bound)

    def _fitting(self, turns: list[ChatMessage]) -> list[ChatMessage]:
        """The turns without the oldest exchanges, as many as have to go for want of room."""
        size = len(self._text(turns).encode()) if self._most_bytes else 0
        if size <= self._most_bytes:
            return turns
        kept = window.fitting(turns, lambda some: len(self._text(some).encode()) <= self._most_bytes)
        outcome = f"{len(turns) - len(kept)} oldest messages dropped" if kept else "nothing is stored"
        self._log("warn", f"memory: memory of {size} bytes does not fit; {outcome}")
        return kept

    def _text(self, turns: Sequence[ChatMessage]) -> str:
        """The turns as they are stored, secrets masked."""
        stored, mask = codec.encode(turns), self._run.runtime.config.environment.mask
        text = _dumps(stored)
        return text if mask(text) == text else _dumps(masked(stored, mask))

    def _log(self, level: str, text: str) -> None:
        self._run.log(level, text, block=self._place.block)


def _dumps(stored: Json) -> str:
    """Compact JSON by the faster of the two writers, for conversations are long."""
    return clean_text(json.dumps(stored, ensure_ascii=False, separators=(",", ":")))


class GivenMemory:
    """A history that the config or the flow gives; nothing is kept."""

    def __init__(self, recalled: Recalled) -> None:
        self._recalled = recalled

    async def load(self) -> Recalled:
        return self._recalled

    async def checkpoint(self, transcript: Transcript, context: Context) -> None:
        """Nothing."""

    async def save(self, transcript: Transcript, ending: Ending, context: Context) -> None:
        """Nothing."""
