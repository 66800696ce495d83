"""The conversation of an agent that has an id: what it goes on with, and every question and answer for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from octo.agent.ending import Answered, Drawn, GaveUp, Halted
from octo.agent.memory import facts, naming
from octo.agent.memory.codec import Writer
from octo.agent.memory.repair import repaired
from octo.agent.memory.session import Recalled
from octo.agent.memory.threads import ThreadMemory, as_payload, payload, saved, unless_forgotten
from octo.errors import OctoError
from octo.message import Message
from octo.store import conversations
from octo.store.conversations import Place, Turn
from octo.values import clean_text, dumps, masked, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from octo.agent.ending import Ending
    from octo.agent.memory.compaction import Context
    from octo.agent.memory.session import Transcript
    from octo.block import Chain
    from octo.llm.chat import ChatMessage
    from octo.run import Run
    from octo.store.facts import Person
    from octo.values import Json

_SHORT: Final = {
    "model refused": "refused",
    "exceeded max iterations": "max iterations",
    "output cap reached": "output cap",
    "context window full": "context window",
    "budget exceeded": "budget",
}
"""What the history calls the reasons for which a run gives up."""


class Conversation(NamedTuple):
    """Which conversation it is, and with whom."""

    agent: str
    thread: str
    user: str
    """Empty for nobody that is known."""


class ConversationMemory:
    """Keeps what an agent goes on with, its history, and the title of a new conversation."""

    def __init__(
        self,
        conversation: Conversation,
        run: Run,
        *,
        block: str,
        volatile: bool,
        keep_files: bool,
        records: bool,
        person: Person | None,
        naming: Chain | None,
        message: Message,
    ) -> None:
        self._conversation = conversation
        self._place = Place(_masked(conversation.agent, run), _masked(conversation.thread, run))
        self._run = run
        self._block = block
        self._writer = Writer(files=keep_files)
        self._records = records
        self._person = person
        self._naming = naming
        self._message = message
        self._older = ThreadMemory(conversation.thread, run, block=block, volatile=volatile, keep_files=keep_files)
        """The thread as it is kept without an id of an agent."""
        self._came_from_older = False
        self._is_new = False
        self._version = 0
        self._may_save = True

    # ------------------------------------------------------------ before the run

    async def load(self) -> Recalled:
        """What the agent goes on with. One that cannot be read is as none, and never fails the run."""
        recalled = await self._load()
        if self._person is None:
            return recalled
        preamble = await facts.preamble(self._person, self._run, self._warn)
        return Recalled(recalled.turns, recalled.tokens, preamble)

    async def _load(self) -> Recalled:
        store = self._run.runtime.store
        try:
            stored = await store.read(lambda db: conversations.working(db, self._place), None)
        except OctoError as error:
            self._may_save = False
            self._warn(f"the conversation cannot be read, so the run begins anew and keeps nothing: {error.message}")
            return Recalled()
        if stored is None:
            return await self._load_older()
        self._version = stored.version
        try:
            turns, tokens = payload(parse(stored.memory))
        except ValueError as error:
            self._warn(f"the stored conversation cannot be read, so the run begins anew: {error}")
            return Recalled()
        return Recalled(repaired(turns, self._warn), tokens)

    async def _load_older(self) -> Recalled:
        """The conversation of the thread as it was kept before the agent had an id."""
        try:
            recalled = await self._older.load()
        except OctoError as error:
            self._warn(error.message)
            return Recalled()
        self._came_from_older = bool(recalled.turns)
        self._is_new = not recalled.turns
        return recalled

    # ------------------------------------------------------------ while it goes on

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

        async def work() -> None:
            if self._records:
                await self._record(transcript, ending, context)
            await unless_forgotten(transcript, shortened, lambda turns: self._write(turns, context))

        await saved(work, self._warn)

    async def _write(self, turns: Sequence[ChatMessage], context: Context) -> bool:
        """Write it over what is there, as any writer does; False when it was forgotten since, and nothing is."""
        if not self._may_save:
            return True
        text = self._text(as_payload(turns, context, self._writer))
        store, user, now = (
            self._run.runtime.store,
            _masked(self._conversation.user, self._run),
            self._run.runtime.clock(),
        )

        async def write(expected: int | None) -> int | None:
            return await store.write(
                lambda db: conversations.save_working(db, self._place, text, expected=expected, user=user, now=now)
            )

        version = await write(self._version)
        if version is None:
            found = await store.read(lambda db: conversations.working(db, self._place), None)
            before, self._version = self._version, found.version if found else 0
            if self._version < before:
                self._is_new = True
                return False
            version = await write(None)  # another run was faster; the later one has its way
        self._version = version or 0
        if self._came_from_older:
            self._came_from_older = False
            await self._older.forget()
        return True

    def _text(self, value: Json) -> str:
        text = dumps(value)
        return (
            text
            if _masked(text, self._run) == text
            else dumps(masked(value, self._run.runtime.config.environment.mask))
        )

    # ------------------------------------------------------------ for good

    async def _record(self, transcript: Transcript, ending: Ending, context: Context) -> None:
        now, question = self._run.runtime.clock(), transcript.new[0].text if transcript.new else ""
        answer, reason = _outcome(ending)
        iterations, unanswered = transcript.iterations, not answer
        turns = [Turn("user", question, now, iterations, unanswered, reason)]
        if answer:
            turns.append(Turn("assistant", answer, now, iterations, unanswered, reason))
        hidden = [turn._replace(text=_masked(clean_text(turn.text), self._run)) for turn in turns]
        user = _masked(self._conversation.user, self._run)
        try:
            await self._run.runtime.store.write(
                lambda db: conversations.append(db, self._place, hidden, user=user, now=now)
            )
        except OctoError as error:
            self._warn(f"the history could not be kept: {error.message}")
            return
        if self._is_new:
            await self._name(question, answer, context)

    async def _name(self, question: str, answer: str, context: Context) -> None:
        """Give a new conversation its title."""
        self._is_new = False
        conversation = self._conversation
        body: Json = {
            "question": question,
            "answer": answer,
            "threadKey": conversation.thread,
            "agentId": conversation.agent,
            "userId": conversation.user,
        }
        run, at_work = self._run, self._message
        message = Message(
            body, dict(at_work.vars), event_id=run.runtime.new_id(), correlation_id=at_work.correlation_id
        )
        title = await naming.title(self._naming, message, _masked(question, run), run, self._warn)
        if not title:
            return
        hidden = _masked(title, self._run)
        try:
            await self._run.runtime.store.write(lambda db: conversations.set_title(db, self._place, hidden))
        except OctoError as error:
            self._warn(f"the title could not be kept: {error.message}")
            return
        await context.watcher.thread_named(title, conversation.thread)

    def _warn(self, text: str) -> None:
        self._run.log("warn", text, block=self._block)


def _outcome(ending: Ending) -> tuple[str, str]:
    """The answer, empty when there is none, and why there is none."""
    match ending:
        case Answered(text):
            return (text if text.strip() else ""), ""
        case Drawn(file):
            return file.name or f"a file of type {file.mime_type}", ""
        case GaveUp(reason):
            return "", _SHORT.get(reason, reason)
        case Halted(reason):
            return "", reason


def _masked(text: str, run: Run) -> str:
    """The text as it may stand in the store."""
    return run.runtime.config.environment.mask(text)
