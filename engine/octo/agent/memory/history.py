"""The history of one run of an agent: decided, told to the log, and made ready to be read and written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from octo.agent.memory import choice, keys
from octo.agent.memory.given import read_messages
from octo.agent.memory.managed import GivenMemory, ManagedMemory
from octo.agent.memory.session import Memory, NoMemory, Recalled
from octo.store.memories import Place

if TYPE_CHECKING:
    from octo.agent.memory.choice import Choice, Inputs
    from octo.agent.memory.policy import Policy
    from octo.run import Run


@dataclass(frozen=True, slots=True)
class History:
    """Where an agent's conversation comes from and goes to."""

    memory: Memory
    lacking: str = ""
    """What is wrong when the agent is asked nothing; empty when the history stands for a question."""
    keeps_all: bool = False
    """Whether all of the conversation is kept, its older part as a summary."""


def history_of(policy: Policy, inputs: Inputs, run: Run, *, block: str) -> History:
    """The history of an agent that answers in text. `block` is the address of its block, or of the tool that it is.

    Raises OctoError when messages that are to be replayed are none.
    """

    def key_of(id: str) -> str:
        return keys.key(id, workspace=workspace, flow=run.trail[0])

    workspace = run.runtime.config.service.name or ""
    run_key = key_of(run.memory_id) if run.memory_id else ""
    chosen = choice.choose(policy, inputs, run_key=run_key, key_of=key_of)
    tell(chosen, run, block=block)
    return History(
        _memory(chosen, policy, Place(workspace, chosen.key, block), run),
        choice.lacking(chosen, policy),
        keeps_all=chosen.history == "managed" and policy.bound is None,
    )


def no_history_of_image(policy: Policy, run: Run, *, written: bool, block: str) -> History:
    """The history of an agent that makes an image, which is none. `written` says that the block sets an input."""
    tell(choice.choose_for_image(policy, written=written), run, block=block)
    return History(NoMemory(), "`input` is empty, and it is needed for image output")


def tell(chosen: Choice, run: Run, *, block: str) -> None:
    """Say in the log what was not read, and why nothing is remembered."""
    for line in chosen.lines:
        run.log("info", line, block=block)


def _memory(chosen: Choice, policy: Policy, place: Place, run: Run) -> Memory:
    if chosen.history == "managed":
        limit = run.runtime.config.store.memory_max_bytes
        return ManagedMemory(place, run, bound=policy.bound, most_bytes=limit or 0)
    if chosen.messages is not None:
        given = read_messages(chosen.messages, "ai-agent: previousMessages")
        return GivenMemory(Recalled(given.messages, system=given.system)) if given else NoMemory()
    return NoMemory()
