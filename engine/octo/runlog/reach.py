"""Which runs are worth a record: those of flows that may come to an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from octo.config.address import blocks
from octo.config.names import calls_of

if TYPE_CHECKING:
    from octo.config.model import Config

_AGENT: Final = "ai-agent"


def flows_with_agents(config: Config) -> frozenset[str]:
    """What flows are called that hold an agent, or call one that does."""
    found = {flow.title for flow, block in blocks(config) if block.type == _AGENT}
    if not found:
        return frozenset()
    calls = {flow.title: set(calls_of(flow)) for flow in config.flows}
    while more := {title for title, called in calls.items() if title not in found and called & found}:
        found |= more
    return frozenset(found)
