"""The agent value: how a model is asked (the brain), and the tools that it may call (the roster)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import ConfigDict, ValidationInfo, field_validator, model_validator

from octo.agent import authored, roster
from octo.agent.inputs import BlockInput
from octo.agent.misplaced import OF_NAMED_AGENTS
from octo.agent.model import Brain
from octo.agent.nested import Entry, NestedAgent
from octo.fields import Model, Text
from octo.refusals import Refusals, refusal
from octo.values import Json

if TYPE_CHECKING:
    from octo.block import Finding
    from octo.config.model import Config


class Agent(Brain):
    """A prompt, a model and tools."""

    model_config = ConfigDict(json_schema_extra={"required": ["connector", "prompt", "tools"]})

    tools: tuple[Entry, ...] = ()
    """What the model may call."""

    def required(self) -> dict[str, tuple[str, bool]]:
        tools = ("at least one tool", bool(self.tools) or self.output_type == "image")
        return {**super().required(), "tools": tools}

    @field_validator("tools")
    @classmethod
    def _can_be_told_apart(cls, tools: tuple[Entry, ...], info: ValidationInfo) -> tuple[Entry, ...]:
        return roster.sound(tools, info.data.get("skills", ()))


class NamedAgent(Brain):
    """An agent that has a name: blocks of any flow link it, and an edit of it reaches all of them."""

    model_config = ConfigDict(json_schema_extra={"required": ["connector", "prompt"]})

    name: Text = ""
    """What blocks call it by: segments of letters, digits, `_`, `.` and `-`, with `/` between them."""

    description: Text = ""
    """What it is good for; `octo agents list` shows it, and a model that has the agent as a tool."""

    tools: tuple[Entry, ...] = ()
    """What the model may call; an agent without tools is sound."""

    input: BlockInput | None = None
    """What the model is asked, for blocks that do not say so themselves."""

    attachments: BlockInput | None = None
    """Files of the question, for blocks that do not say so themselves."""

    enabled_tools: BlockInput | None = None
    """The names of the tools that the model is offered, for blocks that do not say so themselves."""

    spellings: ClassVar[Mapping[str, str]] = authored.OF_AGENTS

    def check_tools(self, config: Config) -> Iterator[Finding]:
        """What is wrong with its tools once the whole config is known; paths are below the agent."""
        yield from roster.check(self.tools, self, config)
        yield from roster.check_inputs(self.tools)

    @model_validator(mode="before")
    @classmethod
    def _holds_nothing_of_others(cls, data: Any) -> Any:
        refusals = Refusals()
        for key in data if isinstance(data, dict) else ():
            if key in OF_NAMED_AGENTS:
                refusals.add(
                    f"`{key}` does not belong to an agent: {OF_NAMED_AGENTS[key]}", key, hint="remove it", at="key"
                )
        refusals.raise_if_any()
        return data

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if name and (fault := authored.name_fault(name)):
            raise refusal(f"`{name}` is no name of an agent", fault)
        return name

    @field_validator("tools")
    @classmethod
    def _can_be_told_apart(cls, tools: tuple[Entry, ...], info: ValidationInfo) -> tuple[Entry, ...]:
        return roster.sound(tools, info.data.get("skills", ()), shared=True)


def without_unknown(value: Mapping[str, Json]) -> tuple[dict[str, Json], list[str]]:
    """A stored value without keys that this octo does not know, and those keys: a newer one may have written it.

    A tool of which nothing is known that could run is left out.
    """
    unknown: list[str] = []
    known = dict(_known_part(value, NamedAgent, (), unknown))
    for key in ("memoryId", "previousMessages"):  # an older octo may have written them
        known.pop(key, None)
    tools = known.get("tools")
    if isinstance(tools, list):
        parts = [_known_tool(tool, index, unknown) for index, tool in enumerate(tools)]
        known["tools"] = [part for part, tool in zip(parts, tools, strict=True) if part == tool or _runs(part)]
    return known, unknown


def _runs(tool: Json) -> bool:
    return not isinstance(tool, dict) or not tool.keys().isdisjoint((*Entry.kind_keys, "webSearch"))


def _known_tool(tool: Json, index: int, unknown: list[str]) -> Json:
    if not isinstance(tool, dict):
        return tool
    part = dict(_known_part(tool, Entry, ("tools", index), unknown))
    if isinstance(part.get("agent"), dict):
        part["agent"] = dict(_known_part(part["agent"], NestedAgent, ("tools", index, "agent"), unknown))
    return part


def _known_part(
    value: Mapping[str, Json], model: type[Model], path: tuple[str | int, ...], unknown: list[str]
) -> Iterator[tuple[str, Json]]:
    keys = {*model.yaml_keys(), *model.spellings}
    for key, item in value.items():
        if key in keys or key.startswith("x-") or (model is NamedAgent and key in OF_NAMED_AGENTS):
            yield key, item
        else:
            unknown.append(".".join(map(str, (*path, key))))
