"""Skills: instructions that the model knows by a line each, and loads when it needs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from octo.agent.tools import LOAD_SKILL, BuiltIn
from octo.block import Finding
from octo.config.templates import NOT_FOUND
from octo.errors import OctoError, did_you_mean
from octo.fields import Model, Text
from octo.llm.chat import ToolDefinition
from octo.values import Json

if TYPE_CHECKING:
    from octo.config.templates import Templates
    from octo.message import Message
    from octo.run import Run


class Skill(Model):
    """Instructions in a text template."""

    name: Text = ""
    """What the model loads it by."""

    description: Text = ""
    """Tells the model when to load it."""

    resource: Text = ""
    """The template: its alias, or its path below the config directory."""

    def check(self, templates: Templates) -> Iterator[Finding]:
        """What is wrong with the template."""
        fault = templates.fault(self.resource)
        if fault == NOT_FOUND:
            text = f"there is no template `{self.resource}`"
            hint = did_you_mean(self.resource, templates) or "write the file, below the config directory"
        elif fault:
            text = f"template `{self.resource}` cannot be read: {fault.removeprefix('resource: ')}"
            hint = "name a file, below the config directory"
        else:
            return
        yield Finding(f"ai-agent skill `{self.name}`: {text}", ("resource",), hint, warning=True)


def skill_faults(skills: Sequence[Skill]) -> Iterator[tuple[str, tuple[int | str, ...]]]:
    """What is wrong with the skills of an agent: texts, and where below `skills`."""
    seen: set[str] = set()
    for index, skill in enumerate(skills):
        called = f"`{skill.name}`" if skill.name.strip() else str(index)
        for key, value in (("name", skill.name), ("description", skill.description), ("resource", skill.resource)):
            if not value.strip():
                yield f"ai-agent skill {called} requires `{key}`", (index, key) if value else (index,)
        if skill.name == LOAD_SKILL:
            yield f"ai-agent skill {called}: the name is reserved", (index, "name")
        elif skill.name in seen and skill.name.strip():
            yield f"ai-agent skill {called} is declared twice", (index, "name")
        seen.add(skill.name)


def advertised(skills: Sequence[Skill]) -> str:
    """What the system prompt says of skills."""
    lines = [f"- {skill.name}: {skill.description}" for skill in skills]
    return "\n".join(
        [f"There are skills. Before you act on what one is about, load it with {LOAD_SKILL}(name):", *lines]
    )


def loader(skills: Sequence[Skill]) -> BuiltIn:
    """The tool by which the model loads a skill. It is rendered anew each time, on the message of the moment."""
    by_name = {skill.name: skill for skill in skills}
    definition = ToolDefinition(
        name=LOAD_SKILL,
        description="Load the instructions of a skill. Do so before you act on what it is about.",
        input_schema={
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string", "enum": list(by_name)}},
        },
    )

    async def load(arguments: dict[str, Json], message: Message, run: Run) -> str:
        skill = by_name[arguments["name"]]
        try:
            return run.render(skill.resource, message)
        except OctoError as error:
            raise OctoError(f'skill "{skill.name}": {error.message}') from error

    return BuiltIn(definition, load, idempotent=True)
