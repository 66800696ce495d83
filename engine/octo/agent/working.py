"""An agent as one run of it has it, wherever it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from octo.agent.entry import PlainEntry
    from octo.agent.model import Brain
    from octo.observe import AgentStamp


@dataclass(frozen=True, slots=True)
class Working:
    """What does the work of a block: fixed for one run."""

    brain: Brain
    """How the model is asked."""
    tools: tuple[PlainEntry, ...]
    """What it may call, before the block narrows it."""
    stamp: AgentStamp | None = None
    """Which agent it is, if it is not written in its block."""
