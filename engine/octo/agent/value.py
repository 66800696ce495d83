"""The agent value: how a model is asked (the brain), and the tools that it may call (the roster)."""

from __future__ import annotations

from pydantic import ConfigDict

from octo.agent import roster
from octo.agent.model import Brain
from octo.agent.nested import Entry
from octo.fields import Refusals


class Agent(Brain):
    """A prompt, a model and tools."""

    model_config = ConfigDict(json_schema_extra={"required": ["connector", "prompt", "tools"]})

    tools: tuple[Entry, ...] = ()
    """What the model may call."""

    def required(self) -> dict[str, tuple[str, bool]]:
        tools = ("at least one tool", bool(self.tools) or self.output_type == "image")
        return {**super().required(), "tools": tools}

    def refuse(self, refusals: Refusals) -> None:
        super().refuse(refusals)
        for text, path, hint in roster.faults(self.tools, {skill.name for skill in self.skills}):
            refusals.add(text, "tools", *path, hint=hint)
