"""What a block says about the memory of its agent: which one it is, or the history itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octo.agent.inputs import NOT_GIVEN, BlockInput
from octo.agent.memory import keys
from octo.agent.memory.choice import Inputs, memory_id
from octo.agent.memory.given import read_messages
from octo.agent.memory.history import History, history_of, no_history_of_image
from octo.agent.memory.transcript import WrittenDown
from octo.block import Finding
from octo.errors import OctoError
from octo.fields import Bool, Model
from octo.refusals import Refusals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from octo.agent.memory.policy import Policy
    from octo.agent.memory.session import Memory
    from octo.message import Message
    from octo.run import Run
    from octo.values import Json


class Keyed(Model):
    """The keys of a block that name a memory, or give the history in place of one."""

    memory_id: BlockInput | None = None
    """Which memory is read and written, instead of that of the run. Any text, by an expression or as `{value: TEXT}`.

    One id names one memory in each flow of a service; a UUID (32 hex digits are one, too) names the same everywhere.
    White space around an id does not count.
    """

    previous_messages: BlockInput | None = None
    """The history, where `memory` is off: a list of `{role, content}` as the Chat Completions API has them."""

    omit_from_conversation: Bool = False
    """Keep what this block says and which tools it uses out of the transcript of a conversation."""

    def refuse_keys(self, refusals: Refusals, policy: Policy, *, in_thread: bool) -> None:
        """Note what does not go with a thread, which is the other way to remember."""
        if not in_thread:
            return
        if policy.remembers:
            refusals.add(
                "ai-agent: `memory` and `memoryThreadId` are two ways to remember, and a block takes one of them",
                "memoryThreadId",
                hint="remove one of the two",
                at="key",
            )
        for key, given in (("memoryId", self.memory_id), ("previousMessages", self.previous_messages)):
            if given is not None:
                refusals.add(
                    f"ai-agent: `{key}` has no effect in a thread, which `memoryThreadId` names",
                    key,
                    hint="remove one of the two",
                    at="key",
                )

    def check_keys(self, policy: Policy) -> Iterator[Finding]:
        """What the policy of the agent leaves without effect."""
        written = self.memory_id is not None and self.memory_id.is_given
        if written and policy.mode != "managed":
            yield useless("memoryId", policy)
        if self.previous_messages is not None and policy.mode != "off":
            yield useless("previousMessages", policy)
        elif self.previous_messages is not None and (fixed := self.previous_messages.fixed) is not None:
            try:
                read_messages(fixed, "ai-agent: previousMessages")
            except OctoError as error:
                yield Finding(error.message, ("previousMessages",), error.hint)

    def history_for(self, policy: Policy, message: Message, run: Run, *, block: str, makes_image: bool) -> History:
        """The history that the agent starts with. Raises OctoError."""
        ids, messages = self.memory_id or NOT_GIVEN, self.previous_messages or NOT_GIVEN
        if makes_image:
            return no_history_of_image(policy, run, written=ids.is_given or messages.is_given, block=block)
        id = ids.of(message, run, "ai-agent: memoryId")
        previous = messages.of(message, run, "ai-agent: previousMessages")
        if previous is None and messages.is_given:
            previous = []
        return history_of(policy, Inputs(memory_id(id, fixed=ids.expr is None), previous), run, block=block)

    def written_down(self, memory: Memory, message: Message, run: Run, *, block: str) -> Memory:
        """The memory, with the conversation beside it that the run is a turn of, if it is one."""
        conversation = keys.uuid(run.memory_id)
        if conversation is None or self.omit_from_conversation:
            return memory
        return WrittenDown(memory, conversation, run, block=block, run_id=message.trace_id)


def useless(key: str, policy: Policy) -> Finding:
    """What is said of an input that the policy leaves without effect."""
    hint = "remove one of the two"
    match policy.mode:
        case "off":
            why = "while `memory` is off"
            hint = "remove it, or have it remembered: `memory: {kind: window, contextLength: 20}`"
        case "managed":
            why = "while `memory` is on"
        case _:
            why = f"with `memory` of `kind: {policy.kind}`"
    return Finding(f"ai-agent: `{key}` has no effect {why}", (key,), hint, warning=True)


def nested_history(
    policy: Policy, run: Run, *, block: str, makes_image: bool, ids: Sequence[Json], messages: Sequence[Json]
) -> History:
    """The history of an agent that is a tool. `ids` and `messages` hold what is bound in the config, if anything is.

    A model never fills these in, so an empty id is one that an expression gave.
    """
    if makes_image:
        return no_history_of_image(policy, run, written=bool(ids or messages), block=block)
    previous = next(iter(messages), None)
    inputs = Inputs(memory_id(ids[0], fixed=False) if ids else None, [] if previous is None and messages else previous)
    return history_of(policy, inputs, run, block=block)
