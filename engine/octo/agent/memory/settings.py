"""What a block says about the thread that its agent works in, and the memory that follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from pydantic import ValidationInfo, field_validator

from octo.agent.memory import keys
from octo.block import Finding, SubFlow
from octo.errors import OctoError
from octo.fields import BLANK_IS_ABSENT, Bool, Expression, Model, Text
from octo.refusals import Refusals, refusal
from octo.values import Json, kind_of

if TYPE_CHECKING:
    from octo.agent.memory.session import Memory
    from octo.agent.tools import Tool
    from octo.message import Message
    from octo.run import Run
    from octo.store.facts import Person

FACT_TOOLS: Final = frozenset({"remember", "forget", "search_memory"})
"""The tools that `userMemory` gives to the model."""
_ID_NOT_READ: Final = "memory: memoryThreadId names the conversation; the memory id of this run is not read"


@dataclass(frozen=True, slots=True)
class InUse:
    """The thread that one run of an agent works in."""

    id: str
    memory: Memory
    person: Person | None = None
    """The one whose facts the agent keeps, as the store knows them; None for nobody."""

    def scope(self, address: str) -> str:
        """What stands before the names of tools in `vars.toolScope`: the same as long as the conversation goes on."""
        return f"{self.id}/{sha256(address.encode()).hexdigest()[:16]}"


class _Need(NamedTuple):
    """A key that another one needs."""

    key: str
    told: str
    hint: str
    only: Json = None
    """The value that has the need; None for every one that says something."""

    def applies(self, value: Any) -> bool:
        if self.only is not None:
            return bool(value == self.only)
        return bool(value.strip()) if isinstance(value, str) else value not in (None, False)

    def lacks(self, others: Mapping[str, Any]) -> bool:
        other = others.get(self.key, True)  # one that is not there could not be read
        return other is None or (isinstance(other, str) and not other.strip())


def _agent_id(what: str, only: Json = None) -> _Need:
    return _Need(
        "agent_id",
        f"ai-agent: `{what}` requires `agentId`",
        "give the agent an id, for example `agentId: support`",
        only,
    )


_NEEDS: Final = {
    "agent_id": [
        _Need(
            "memory_thread_id",
            "ai-agent: `agentId` requires `memoryThreadId`, for memory is per conversation",
            "say which conversation it is, for example `memoryThreadId: body.chat`",
        )
    ],
    "history": [_agent_id("history: record", only="record")],
    "user_memory": [
        _agent_id("userMemory"),
        _Need(
            "user_id",
            "ai-agent: `userMemory` requires `userId`, for facts are about a person",
            "say who it is, for example `userId: vars.sub`",
        ),
    ],
    "forward_context": [_agent_id("forwardContext")],
    "name_thread": [_agent_id("nameThread")],
}


class InThread(Model):
    """The keys of a block whose agent works in a thread."""

    memory_thread_id: Annotated[Expression | None, BLANK_IS_ABSENT] = None
    """Id of the conversation that the agent goes on with and keeps. All that compute the same id share it."""

    memory_volatile: Bool = False
    """Keep the conversation in memory only; it ends with the process."""

    agent_id: Text = ""
    """Whose conversations these are: keeps them with a history that is never cut. Blocks may share one."""

    user_id: Annotated[Expression | None, BLANK_IS_ABSENT] = None
    """The person that the conversation is with."""

    history: Text = ""
    """`record` keeps every question and answer for good, `off` does not. By default `record` with `agentId`."""

    user_memory: Bool = False
    """Give the model tools to remember facts about the person, and tell it those that it knows."""

    forward_context: Annotated[Expression | None, BLANK_IS_ABSENT] = None
    """A mapping of texts that goes along with what is asked of a memory store outside of octo."""

    name_thread: SubFlow | None = None
    """What gives a new conversation its title, from a body `{question, answer, threadKey, agentId, userId}`."""

    @field_validator("history")
    @classmethod
    def _is_kept_or_not(cls, history: str) -> str:
        if history not in ("record", "off", ""):
            raise refusal(f"ai-agent: `history` is `record` or `off`, found `{history}`")
        return history

    @field_validator("agent_id", "history", "user_memory", "forward_context", "name_thread")
    @classmethod
    def _has_what_it_needs(cls, value: Any, info: ValidationInfo) -> Any:
        """What another key must say, too; one that cannot be read at all is told of elsewhere."""
        refusals = Refusals()
        for need in _NEEDS[info.field_name or ""]:
            if need.applies(value) and need.lacks(info.data):
                refusals.add(need.told, hint=need.hint)
        refusals.raise_if_any()
        return value

    def refuse_thread(self, refusals: Refusals, tools: Iterable[str]) -> None:
        """Note names of tools, the agent's own, that are taken by the memory of the block."""
        if self.user_memory:
            for index, name in enumerate(tools):
                if name in FACT_TOOLS:
                    refusals.add(
                        f"ai-agent tool `{name}`: the name is reserved while `userMemory` is on", "tools", index, "name"
                    )

    def check_thread(self) -> Iterator[Finding]:
        """What has no effect without something else."""
        if self.memory_volatile and self.memory_thread_id is None:
            yield Finding(
                "ai-agent: `memoryVolatile` has no effect without `memoryThreadId`",
                ("memoryVolatile",),
                "say which conversation it is, for example `memoryThreadId: body.chat`",
                warning=True,
            )
        if self.user_id is not None and not self.agent:
            yield Finding(
                "ai-agent: `userId` has no effect without `agentId`",
                ("userId",),
                "give the agent an id, for example `agentId: support`",
                warning=True,
            )

    @property
    def agent(self) -> str:
        """The id under which the agent keeps its conversations; empty for none."""
        return self.agent_id.strip()

    @property
    def records(self) -> bool:
        """Whether questions and answers are kept for good."""
        return bool(self.agent) and (self.history or ("off" if self.memory_volatile else "record")) == "record"

    def thread_of(self, message: Message, run: Run, *, block: str, keep_files: bool) -> InUse | None:
        """The thread that a run works in; None when it works in none. Raises OctoError."""
        if self.memory_thread_id is None:
            return None
        thread = keys.as_text(run.evaluate(self.memory_thread_id, message, "ai-agent: memoryThreadId"))
        if not thread:
            run.log("warn", "`memoryThreadId` is empty, so the agent remembers nothing", block=block)
            return None
        if run.memory_id and keys.uuid(run.memory_id) is None:  # a UUID may be that of a transcript
            run.log("info", _ID_NOT_READ, block=block)
        if not self.agent:
            from octo.agent.memory.threads import ThreadMemory

            return InUse(
                thread, ThreadMemory(thread, run, block=block, volatile=self.memory_volatile, keep_files=keep_files)
            )
        from octo.agent.memory.conversations import Conversation, ConversationMemory
        from octo.store.facts import Person

        self._check_context(message, run)
        user = self._user(message, run, block)
        mask = run.runtime.config.environment.mask
        person = Person(mask(self.agent), mask(user)) if user and self.user_memory else None
        return InUse(
            thread,
            ConversationMemory(
                Conversation(self.agent, thread, user),
                run,
                block=block,
                volatile=self.memory_volatile,
                keep_files=keep_files,
                records=self.records,
                person=person,
                naming=self.name_thread.process if self.name_thread else None,
                message=message,
            ),
            person,
        )

    def tools_of_memory(self, thread: InUse | None) -> tuple[Tool, ...]:
        """What the model is given to keep facts by: the same tools in every run."""
        if not self.user_memory:
            return ()
        from octo.agent.memory import facts

        return facts.tools(thread.person if thread else None)

    def _check_context(self, message: Message, run: Run) -> None:
        """The store of octo itself has no use for what is forwarded; what is wrong with it is told all the same."""
        if self.forward_context is None:
            return
        value = run.evaluate(self.forward_context, message, "ai-agent: forwardContext")
        if not isinstance(value, dict):
            raise OctoError(f"ai-agent: `forwardContext` must evaluate to a mapping, got {kind_of(value)}")

    def _user(self, message: Message, run: Run, block: str) -> str:
        """The person; nobody when it is not known who it is."""
        if self.user_id is None:
            return ""
        try:
            return keys.as_text(run.evaluate(self.user_id, message, "ai-agent: userId"))
        except OctoError as error:
            run.log("warn", f"{error.message}; the run goes on without the person", block=block)
            return ""
