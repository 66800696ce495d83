"""An agent as a tool of another agent: it is given a task in words, and its answer is the result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, assert_never

from pydantic import ConfigDict, ValidationInfo, field_validator
from pydantic_core import CoreSchema, core_schema

from octo.agent import answer, attachments, roster
from octo.agent.ending import Answered, Drawn, GaveUp, Halted
from octo.agent.entry import PlainEntry
from octo.agent.kinds import CalledAgent, Kind
from octo.agent.link import Link, is_link
from octo.agent.loop import AgentLoop, Task
from octo.agent.memory.keyed import nested_history, useless
from octo.agent.misplaced import OF_BLOCKS, OF_CONNECTORS
from octo.agent.model import Brain
from octo.agent.working import Working
from octo.block import Block, Finding, Place
from octo.errors import OctoError
from octo.fields import Text
from octo.llm.chat import ChatMessage, user
from octo.message import Message
from octo.refusals import refusal
from octo.values import Json, clean_text

if TYPE_CHECKING:
    from octo.agent.bindings import Binding
    from octo.agent.memory.history import History
    from octo.config.explain import CallableTool
    from octo.config.model import Config
    from octo.run import Run

TASK: Final = "user_message"
"""The one parameter that the model fills in."""

_SCHEMA: Final[dict[str, Json]] = {
    "type": "object",
    "required": [TASK],
    "additionalProperties": False,
    "properties": {TASK: {"type": "string", "description": "What is to be done, with all that one must know for it."}},
}
_FILES: Final = ("attachments", "user_attachments", "user_images")
_NARROWING: Final = ("enabledTools", "enabled_tools")
_MEMORY: Final = ("memoryId", "memory_id")
_HISTORY: Final = ("previousMessages", "previous_messages")
_INPUTS: Final = frozenset({TASK, *_FILES, *_NARROWING, *_MEMORY, *_HISTORY})
"""What a nested agent takes; all but the task come from bindings."""
_SPELLINGS: Final = {name: names[0] for names in (_FILES, _NARROWING, _MEMORY, _HISTORY) for name in names}
"""Each of them by its spellings."""

_MISPLACED: Final[Mapping[str, str]] = {
    **OF_BLOCKS,
    **OF_CONNECTORS,
    **dict.fromkeys(
        ("input", "attachments", "enabledTools", "memoryId", "previousMessages", "toolInputs"),
        "what a nested agent is given stands under `inputs` of the tool",
    ),
    **dict.fromkeys(("type", "ref", "settings"), "it is no block; its keys stand right here"),
    "name": "the name is that of the tool",
}
"""Keys that have no place in a nested agent, each with the reason."""


class NestedAgent(Block, Brain, type="ai-agent", group="ai", composite=True):
    """An agent that works for another one: a brain, and tools that are no agents."""

    model_config = ConfigDict(json_schema_extra={"required": ["connector", "prompt"]})

    description: Text = ""
    """What it is good for; tells the model when the tool does not."""

    tools: tuple[PlainEntry, ...] = ()
    """What it may call."""

    place: ClassVar[Place] = Place("", "ai-agent", "ai-agent")
    shorthand: ClassVar[Any] = Link

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        def read(value: Any, validate: Callable[[Any], NestedAgent], info: ValidationInfo) -> Block:
            """A mock may stand in for it, or a name."""
            if isinstance(value, Block):
                return value
            if is_link(value):
                return LinkedTool(link=Link.model_validate(value, context=info.context))
            return validate(_mapping(value))

        return core_schema.with_info_wrap_validator_function(read, handler(source))

    @field_validator("tools")
    @classmethod
    def _can_be_told_apart(cls, tools: tuple[PlainEntry, ...], info: ValidationInfo) -> tuple[PlainEntry, ...]:
        return roster.sound(tools, info.data.get("skills", ()), shared=True)

    def check(self, config: Config) -> Iterator[Finding]:
        yield from self.check_brain(config)
        yield from roster.check(self.tools, self, config)

    def callable_tools(self, config: Config) -> Iterator[CallableTool]:
        return roster.explained(self.tools, {}, config)

    async def execute(self, message: Message, run: Run) -> Message:
        return await _work(Working(self, self.tools), self, message, run)


class LinkedTool(Block, type="ai-agent", group="ai", composite=True):
    """An agent with a name that works for another one: what it is, is looked up when the tool is called."""

    link: Link
    """Which agent it is."""

    place: ClassVar[Place] = Place("", "ai-agent", "ai-agent")

    async def execute(self, message: Message, run: Run) -> Message:
        from octo.agent.linked import resolved  # which knows agents with tools that are agents

        working = await resolved(self.link, self, run)
        tools = tuple(
            tool for tool in working.tools if getattr(tool, "agent", None) is None
        )  # they nest one level deep
        return await _work(replace(working, tools=tools), self, message, run)


async def _work(working: Working, block: Block, message: Message, run: Run) -> Message:
    """Let an agent do what the body asks of it, and leave its answer there."""
    brain = working.brain
    given = message.body if isinstance(message.body, dict) else {}
    history = _history(brain, given, block, run)
    enabled = _first(given, _NARROWING)
    task = Task(
        address=block.address,
        json_only=brain.form is not None,
        opening=_opening(given, block, run, history),
        roster=roster.offered(roster.narrowed(await roster.described(working.tools, run), enabled, run), brain.skills),
        memory=history.memory,
        keeps_all=history.keeps_all,
        bounds=brain.bounds,
        stamp=working.stamp,
    )
    ending = await AgentLoop(brain, task, message, run).work()
    match ending:
        case Answered(text):
            if answer.is_empty(text):
                run.log("warn", "the final answer is empty, the body stays as it is", block=block.address)
            else:
                message.body = answer.fold(text)
        case Drawn(file):
            message.body = attachments.as_value(file)
        case Halted():
            message.stop()
        case GaveUp(reason, detail):
            raise OctoError(f"ai-agent: {reason}{f' ({detail})' if detail else ''}")
        case _:
            assert_never(ending)
    return message


def _history(brain: Brain, given: Mapping[str, Json], block: Block, run: Run) -> History:
    """What it remembers, by its own policy and inputs, in the memory of the run: under the address of the tool."""
    return nested_history(
        brain.policy,
        run,
        block=block.address.removesuffix(f".{block.place.selector}"),
        makes_image=brain.output_type == "image",
        ids=[given[name] for name in _MEMORY if name in given],
        messages=[given[name] for name in _HISTORY if name in given],
    )


def _opening(given: Mapping[str, Json], block: Block, run: Run, history: History) -> ChatMessage | None:
    """The first user turn; none when the history ends with what is asked."""
    task = given.get(TASK)
    if not isinstance(task, str) or not task:
        if history.lacking:
            raise OctoError(f"ai-agent: {history.lacking.replace('`input`', f'`{TASK}`')}")
        return None
    try:
        files = attachments.read(_first(given, _FILES), lambda text: run.log("warn", text, block=block.address))
    except OctoError as error:
        raise OctoError(f"ai-agent: {error.message}", hint=error.hint) from None
    return user(clean_text(task), *files)


def _first(given: Mapping[str, Json], names: Iterable[str]) -> Json:
    return next((given[name] for name in names if name in given), None)


def _is_blank(id: Binding) -> bool:
    """Whether what is written names no memory, as in a block."""
    return id.expr is None and isinstance(id.value, str) and not id.value.strip()


def _mapping(value: Json) -> Json:
    """The mapping of an agent, but for one that holds what has no place there."""
    if isinstance(value, dict):
        for key in filter(_MISPLACED.__contains__, value):
            raise refusal(f"`{key}` does not belong to an agent: {_MISPLACED[key]}", "remove it", at=f"key:{key}")
        for tool in value["tools"] if isinstance(value.get("tools"), list) else ():
            if isinstance(tool, dict) and tool.get("agent") is not None:
                raise refusal(
                    f"tool `{tool.get('name', '')}` of a nested agent is an agent: agents nest one level deep",
                    "give the tool to the outer agent",
                    at="tools",
                )
    return value


class Entry(PlainEntry):
    """Something that the model may call: blocks, a flow, or another agent."""

    model_config = ConfigDict(
        title="Tool",
        json_schema_extra={
            "anyOf": [
                {"required": ["name", "process"]},
                {"required": ["name", "flow"]},
                {"required": ["name", "agent"]},
                {"required": ["webSearch"]},
            ]
        },
    )

    agent: NestedAgent | None = None
    """Another agent, in place of `process`: it is given a task in words, and its answer is the result.

    It is a mapping, or the name of an agent, which is looked up when the tool is called.
    """

    kind_keys: ClassVar[tuple[str, ...]] = ("process", "flow", "agent")

    @cached_property
    def kind(self) -> Kind:
        return super().kind if self.agent is None else CalledAgent(self.agent)

    @cached_property
    def filled(self) -> Mapping[str, Binding]:
        found = super().filled
        if self.agent is None:
            return found
        return {name: binding for name, binding in found.items() if name not in _MEMORY or not _is_blank(binding)}

    @property
    def link(self) -> Link | None:
        """The agent that it names, if it does."""
        return self.agent.link if isinstance(self.agent, LinkedTool) else None

    def spelled(self, name: str) -> str:
        return name if self.agent is None else _SPELLINGS.get(name, name)

    def check(self, config: Config) -> Iterator[Finding]:
        yield from super().check(config)
        if isinstance(self.agent, NestedAgent):
            mode = self.agent.policy.mode
            for key in self.filled:
                if (key in _MEMORY and mode != "managed") or (key in _HISTORY and mode != "off"):
                    yield replace(useless(key, self.agent.policy), path=("inputs", key))

    @property
    def useless(self) -> list[str]:
        keys = ("inputSchema", "validateInput") if self.agent is not None else ()
        return [key for key in keys if self.yaml_keys()[key] in self.model_fields_set]

    @property
    def schema_of_all(self) -> dict[str, Json]:
        if self.agent is None:
            return super().schema_of_all
        bound_ones: dict[str, Json] = {name: {} for name in self.filled}
        return {**_SCHEMA, "properties": {**bound_ones, **_SCHEMA["properties"]}}

    @property
    def parameters(self) -> Collection[str] | None:
        return super().parameters if self.agent is None else _INPUTS
