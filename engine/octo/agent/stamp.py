"""Which agent it is that works, and in which state: what a record of a run tells of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octo.agent import authored
from octo.config.explain import plain
from octo.observe import AgentStamp

if TYPE_CHECKING:
    from octo.agent.model import Brain


def inline(agent: Brain) -> AgentStamp:
    """The stamp of an agent that is written in its block: its value tells it from others."""
    return AgentStamp(hash=value_hash(agent))


def value_hash(agent: Brain) -> str:
    """Hex digits that change with what makes the agent, and with nothing that its block adds.

    Written in the same words, an agent with a name has the same.
    """
    from octo.agent.value import Agent

    written = authored.in_one_spelling(agent.written)
    value = {key: plain(item) for key, item in written.items() if key in Agent.yaml_keys()}
    if agent.prompt is not None and agent.prompt.resource is not None:
        value["prompt"] = {"resource": agent.prompt.resource, "text": str(agent.prompt)}
    return authored.digest(value)
