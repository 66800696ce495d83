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
    """Hex digits that change with what makes the agent, and with nothing that its block adds."""
    from octo.agent.value import Agent

    keys = {key: name for key, name in Agent.yaml_keys().items() if name in agent.model_fields_set}
    value = {key: plain(getattr(agent, name)) for key, name in keys.items()}
    return authored.digest(value)
