"""Writing down a conversation for people to read, beside whatever an agent remembers of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from octo.agent.form import TAKEN
from octo.errors import OctoError
from octo.llm.chat import ChatMessage, Reasoning, ToolResult
from octo.store import transcripts
from octo.store.transcripts import Row

if TYPE_CHECKING:
    from octo.agent.ending import Ending
    from octo.agent.memory.compaction import Context
    from octo.agent.memory.session import Memory, Recalled, Transcript
    from octo.run import Run

_TITLE: Final = 25
"""Characters of the first message that make the title of a conversation."""


def title(first: str) -> str:
    """The title of a conversation that begins with this message."""
    words = " ".join(first.split())
    return words if len(words) <= _TITLE else f"{words[:_TITLE].rstrip()}…"


class WrittenDown:
    """A memory, and the conversation beside it: each turn of the agent becomes rows as soon as it is over."""

    def __init__(self, memory: Memory, conversation: str, run: Run, *, block: str, run_id: str) -> None:
        """Where no such conversation is stored, none is written."""
        self._memory = memory
        self._conversation = conversation
        self._run = run
        self._block = block
        self._run_id = run_id
        self._done = 0
        """So many turns of this run are written."""

    async def load(self) -> Recalled:
        return await self._memory.load()

    async def checkpoint(self, transcript: Transcript, context: Context) -> None:
        await self._memory.checkpoint(transcript, context)
        await self._write(transcript)

    async def save(self, transcript: Transcript, ending: Ending, context: Context) -> None:
        await self._memory.save(transcript, ending, context)
        await self._write(transcript)

    async def _write(self, transcript: Transcript) -> None:
        runtime = self._run.runtime
        try:
            if not await runtime.store.read(lambda db: transcripts.exists(db, self._conversation), False):
                return
            new, self._done = transcript.new[self._done :], len(transcript.new)
            found = [self._masked(row) for row in rows(new, at=runtime.clock(), run=self._run_id, block=self._block)]
            if found:
                await runtime.store.write(lambda db: transcripts.append(db, self._conversation, found))
        except OctoError as error:
            self._run.log("warn", f"could not store the transcript: {error.message}", block=self._block)

    def _masked(self, row: Row) -> Row:
        mask = self._run.runtime.config.environment.mask
        return row._replace(
            text=mask(row.text),
            thinking=mask(row.thinking),
            arguments=mask(row.arguments),
            result=mask(row.result),
        )


def rows(turns: list[ChatMessage], *, at: int, run: str, block: str) -> Iterator[Row]:
    """What the assistant wrote and which tools it used, in order.

    The thinking of a turn stands on its text, or on its first call where it wrote none. What users say is written by
    those who take it from them.
    """
    for turn, following in zip_longest(turns, turns[1:]):
        if turn.role != "assistant":
            continue
        thinking = "".join(part.text for part in turn.parts if isinstance(part, Reasoning))
        if turn.text.strip():
            yield Row("assistant", turn.text, at, run=run, block=block, thinking=thinking)
            thinking = ""
        results = following.parts if following and following.role == "tool" else ()
        for call, result in zip(turn.calls, results, strict=False):
            if isinstance(result, ToolResult) and result.text != TAKEN:
                ok, name = not result.is_error, call.name
                text = f"Used {name} tool" if ok else f"Error executing {name}"
                yield Row("tool", text, at, ok, run, block, thinking, call.arguments, result.text)
                thinking = ""
