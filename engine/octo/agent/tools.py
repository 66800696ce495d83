"""The tools of an agent, and one call of a tool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pydantic import ConfigDict, Field, model_validator

from octo.agent.arguments import Checker, Fault
from octo.agent.bindings import Binding, bound, lay_over, shown_schema
from octo.block import Chain
from octo.errors import OctoError
from octo.fields import Bool, JsonSchema, Model, Refusals, Text
from octo.llm.chat import ToolCall, ToolDefinition
from octo.message import Dropped
from octo.values import Json, clean_text, dumps, parse

if TYPE_CHECKING:
    from octo.message import Message
    from octo.run import Run

GIVE_UP: Final = ToolDefinition(
    name="take_default_path",
    description=(
        "Give the task up. Call this when the guardrail tells you to stop trying; "
        "the task is then finished in another way, and no other call is run."
    ),
    input_schema={
        "type": "object",
        "required": ["reason"],
        "properties": {"reason": {"type": "string", "description": "Why the task cannot be done, in one sentence."}},
    },
)
"""How a model takes the default path of its own accord."""

RESERVED: Final = frozenset({"load_skill", GIVE_UP.name})
"""Names that no tool may have, because a call of them never reaches a branch."""

PORTABLE: Final = re.compile("[A-Za-z0-9_-]{1,64}")
"""Tool names that every provider takes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool call gave: the text that the model reads, and whether the branch was entered."""

    text: str
    is_error: bool = False
    ran: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the calls of one agent run have in common."""

    run: Run
    received: Json
    """The body that the agent received; bindings see it."""
    scope: str
    """Stands before the tool's name in `vars.toolScope`."""


class Tool(Model):
    """A chain of blocks that the model may call: its arguments become the body, the body becomes the result."""

    model_config = ConfigDict(json_schema_extra={"required": ["name", "description", "process"]})

    name: Text = ""
    """What the model calls it; unique in the block."""

    description: Text = ""
    """Tells the model what the tool does; shown as it is."""

    input_schema: JsonSchema = Field(default_factory=lambda: {"type": "object"})
    """JSON Schema of the arguments, as a mapping or as text that holds JSON."""

    validate_input: Bool = True
    """Check the arguments against the schema before the blocks run."""

    idempotent: Bool = False
    """A call that was in flight when the process died may be run again."""

    inputs: dict[str, Binding] = Field(default_factory=dict)
    """Parameters that the config fills in instead of the model: `{value: X}` or `{expr: TEXT}`."""

    process: Chain = ()
    """The blocks that run, in order."""

    @model_validator(mode="before")
    @classmethod
    def _no_server_metadata(cls, data: Any) -> Any:
        refusals = Refusals()
        for key in ("title", "annotations", "outputSchema"):
            if isinstance(data, dict) and data.get(key) is not None:
                refusals.add(
                    f"ai-agent tool `{data.get('name', '')}`: `{key}` belongs to the tools of an `mcp-router`",
                    key,
                    hint="remove it",
                    at="key",
                )
        refusals.raise_if_any()
        return data

    @cached_property
    def filled(self) -> Mapping[str, Binding]:
        """The bindings that take a parameter out of the model's hands."""
        return bound(self.inputs)

    @cached_property
    def definition(self) -> ToolDefinition:
        """The tool as the model sees it."""
        return ToolDefinition(self.name, self.description, shown_schema(self.input_schema, self.filled))

    @cached_property
    def checker(self) -> Checker:
        return Checker(self.input_schema)

    async def call(self, call: ToolCall, message: Message, around: Surroundings) -> Outcome:
        """Run the tool on the message, which afterwards is as the tool left it."""
        message.vars["toolScope"] = f"{around.scope}/{self.name}"
        message.vars["toolName"] = self.name
        message.vars["toolCallId"] = call.id
        try:
            arguments = self.arguments(call.arguments, message, around)
        except ValueError as error:
            return Outcome(f"invalid arguments: {error}", is_error=True)
        except RecursionError:
            return Outcome("invalid arguments: nested too deeply", is_error=True)
        except OctoError as error:
            return Outcome(clean_text(error.message), is_error=True)
        message.body = arguments
        return await self.perform(message, around.run)

    def arguments(self, text: str, message: Message, around: Surroundings) -> Json:
        """The arguments of a call with bindings laid over them. Raises ValueError when they are not acceptable."""
        try:
            sent = parse(text) if text.strip() else {}
        except ValueError as error:
            raise ValueError(f"not JSON: {error}") from None
        arguments = lay_over(sent, self.filled, received=around.received, message=message, run=around.run)
        faults = self.checker.faults(arguments) if self.validate_input else []
        if faults:
            raise ValueError("; ".join(str(self._tellable(fault)) for fault in faults))
        return arguments

    def _tellable(self, fault: Fault) -> Fault:
        """The model must not learn a value that was bound out of its sight."""
        if fault.path and fault.path[0] in self.filled:
            return Fault(fault.path, "the value that the configuration gives does not fit the schema")
        return fault

    async def perform(self, message: Message, run: Run) -> Outcome:
        """Run the blocks. Their failure is a result for the model and never ends the agent."""
        message.stopped = False
        try:
            message.adopt(await run.chain(self.process, message))
        except Dropped:
            return Outcome(f'tool "{self.name}" gave no result: it filtered the call out', is_error=True, ran=True)
        except OctoError as error:
            return Outcome(clean_text(error.message), is_error=True, ran=True)
        try:
            return Outcome(dumps(message.body), ran=True)
        except (TypeError, RecursionError) as error:
            return Outcome(f'the output of tool "{self.name}" has no JSON form: {error}', is_error=True, ran=True)


def faults(tools: tuple[Tool, ...]) -> Iterator[tuple[str, tuple[int | str, ...]]]:
    """What is wrong with the tools of an agent: texts, and where below `tools`."""
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        if not tool.name.strip():
            yield f"ai-agent requires a name for tool {index}", (index,)
            continue
        if tool.name in RESERVED:
            yield f"ai-agent tool `{tool.name}`: the name is reserved", (index, "name")
        elif tool.name in seen:
            yield f"ai-agent tool `{tool.name}` is declared twice", (index, "name")
        seen.add(tool.name)
        if not tool.description.strip():
            yield f"ai-agent tool `{tool.name}` requires a description", (index, "description")
        if "process" not in tool.model_fields_set:
            yield f"ai-agent tool `{tool.name}` requires `process`", (index,)
