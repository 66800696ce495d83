"""The conversation of a thread, kept as one entry of the store under the id of the thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from octo.agent.ending import Halted
from octo.agent.memory import codec
from octo.agent.memory.codec import Writer
from octo.agent.memory.repair import repaired
from octo.agent.memory.session import Recalled
from octo.errors import OctoError, StoreError
from octo.services.base import Conflict
from octo.store.threads import NAMESPACE, PREFIX
from octo.values import Written, kind_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from octo.agent.ending import Ending
    from octo.agent.memory.compaction import Context
    from octo.agent.memory.session import Transcript
    from octo.llm.chat import ChatMessage
    from octo.run import Run
    from octo.values import Json

ATTEMPTS: Final = 5
"""How often a write is tried while others write the same thread."""
SECONDS_TO_SAVE: Final = 120
_FORGET: Final = "`octo memory delete` and the block `clear-agent-memory` forget it; then the thread begins anew"


class ThreadMemory:
    """Keeps the conversation of a thread. Whoever computes the same id has the same conversation."""

    def __init__(self, thread: str, run: Run, *, block: str, volatile: bool = False, keep_files: bool = False) -> None:
        self._thread = thread
        self._run = run
        self._block = block
        self._namespace = namespace(volatile=volatile)
        self._writer = Writer(files=keep_files)
        self._version = 0

    async def load(self) -> Recalled:
        """The stored conversation, repaired. One that cannot be read fails the run, for a save would end it."""
        try:
            entry = await self._run.services.entries.get(self._namespace, PREFIX + self._thread)
            if entry is None:
                return Recalled()
            self._version = entry.version
            turns, tokens = payload(entry.value)
        except (OctoError, ValueError) as error:
            text = error.message if isinstance(error, OctoError) else str(error)
            raise OctoError(
                f"ai-agent: the conversation of thread `{self._thread}` cannot be read: {text}",
                hint=error.hint if isinstance(error, StoreError) else _FORGET,
            ) from error
        return Recalled(repaired(turns, self._warn), tokens)

    async def checkpoint(self, transcript: Transcript, context: Context) -> None:
        async def all_turns() -> Sequence[ChatMessage]:
            return transcript.turns

        try:
            await unless_forgotten(transcript, all_turns, lambda turns: self._write(turns, context))
        except OctoError as error:
            self._run.log("debug", f"the conversation could not be kept: {error.message}", block=self._block)

    async def save(self, transcript: Transcript, ending: Ending, context: Context) -> None:
        async def shortened() -> Sequence[ChatMessage]:
            return await context.shortened(transcript.turns, only_prune=isinstance(ending, Halted))

        await saved(
            lambda: unless_forgotten(transcript, shortened, lambda turns: self._write(turns, context)), self._warn
        )

    async def forget(self) -> None:
        """Remove the conversation, because it is kept elsewhere from now on."""
        try:
            await self._run.services.entries.delete(self._namespace, PREFIX + self._thread)
        except OctoError as error:
            self._run.log("debug", f"the older conversation stays: {error.message}", block=self._block)

    async def _write(self, turns: Sequence[ChatMessage], context: Context) -> bool:
        """Write the conversation over what is there: of several writers, the last has its way.

        False when it was forgotten since, and nothing is written.
        """
        key, entries = PREFIX + self._thread, self._run.services.entries
        value = as_payload(turns, context, self._writer)
        for attempt in range(ATTEMPTS):
            try:
                self._version = await entries.put(self._namespace, key, value, expected=self._version)
            except Conflict:
                if attempt == ATTEMPTS - 1:
                    raise
                entry = await entries.get(self._namespace, key)
                before, self._version = self._version, entry.version if entry else 0
                if self._version < before:
                    return False
            else:
                break
        return True

    def _warn(self, text: str) -> None:
        self._run.log("warn", text, block=self._block)


def namespace(*, volatile: bool) -> str:
    """The key space of entries in which conversations stand."""
    return f"{NAMESPACE}_volatile" if volatile else NAMESPACE


def payload(stored: Json) -> tuple[list[ChatMessage], int]:
    """The turns of a stored conversation, and how many tokens were counted in them. Raises ValueError."""
    if isinstance(stored, list):
        return codec.decode(stored), 0
    if not isinstance(stored, dict):
        raise ValueError(f"expected a mapping, found {kind_of(stored)}")
    if stored.get("v") != 1:
        raise ValueError("it was written by another version of octo")
    tokens = stored.get("tokens")
    return codec.decode(stored.get("messages")), int(tokens) if isinstance(tokens, (int, float)) and tokens > 0 else 0


def as_payload(turns: Sequence[ChatMessage], context: Context, writer: Writer) -> Written:
    """A conversation as it is stored."""
    return Written(f'{{"messages":{writer.write(turns)},"tokens":{context.tokens(turns)},"v":1}}')


async def unless_forgotten(
    transcript: Transcript,
    turns: Callable[[], Awaitable[Sequence[ChatMessage]]],
    write: Callable[[Sequence[ChatMessage]], Awaitable[bool]],
) -> None:
    """Write the turns; one that was forgotten while the run was in it goes on with the turns of this run only."""
    if not await write(await turns()):
        transcript.begin_here()
        await write(await turns())


async def saved(
    work: Callable[[], Awaitable[None]], warn: Callable[[str], None], *, within: float = SECONDS_TO_SAVE
) -> None:
    """Do the last writing of a run. What goes wrong is logged: the answer counts all the same."""
    import asyncio

    try:
        async with asyncio.timeout(within):
            await work()
    except TimeoutError:
        warn(f"the conversation could not be kept within {within:g} s")
    except OctoError as error:
        warn(f"the conversation could not be kept: {error.message}")
