"""A tool as the config declares it: what the model sees of it, and one call of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from pydantic import ConfigDict, Field, model_validator

from octo.agent.arguments import Checker, Fault
from octo.agent.bindings import Binding, bound, lay_over, shown_schema
from octo.agent.kinds import Branch, CalledFlow, Kind
from octo.agent.tools import PORTABLE, Outcome, Surroundings, read_arguments
from octo.block import Chain, Finding
from octo.errors import OctoError, did_you_mean
from octo.fields import Bool, FlowName, JsonSchema, Model, Text
from octo.llm.chat import ToolCall, ToolDefinition
from octo.message import Dropped
from octo.refusals import Refusals
from octo.values import Json, clean_text, dumps

if TYPE_CHECKING:
    from octo.agent.link import Link
    from octo.config.model import Config
    from octo.message import Message
    from octo.run import Run

WEB_SEARCH: Final = "__octo_web_search"
"""What `enabledTools` calls the search of the web."""

_OF_SERVERS: Final = ("title", "annotations", "outputSchema")
"""What tools say that are offered to others."""


class PlainEntry(Model):
    """Something that the model may call: blocks, or a flow."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["name", "process"]},
                {"required": ["name", "flow"]},
                {"required": ["webSearch"]},
            ]
        }
    )

    name: Text = ""
    """What the model calls it; unique in the block."""

    description: Text = ""
    """Tells the model what the tool does; shown as it is. Without it a flow is known by its own description."""

    input_schema: JsonSchema | None = None
    """JSON Schema of the arguments, as a mapping or as text that holds JSON; without it any object."""

    validate_input: Bool = True
    """Check the arguments against the schema before the tool runs."""

    idempotent: Bool = False
    """A call that was in flight when the process died may be run again."""

    inputs: dict[str, Binding] = Field(default_factory=dict)
    """Parameters that the config fills in instead of the model: `{value: X}` or `{expr: TEXT}`."""

    process: Chain | None = None
    """The blocks that run, in order: the arguments are their body, and the body that they leave is the result."""

    flow: FlowName | None = None
    """The flow that is called, in place of `process`."""

    web_search: Bool = False
    """Let the model search the web by itself, where its provider can. Stands alone."""

    kind_keys: ClassVar[tuple[str, ...]] = ("process", "flow")
    """The keys that say what stands behind it."""

    @model_validator(mode="before")
    @classmethod
    def _is_no_tool_of_a_server(cls, data: Any) -> Any:
        refusals = Refusals()
        for key in _OF_SERVERS:
            if isinstance(data, dict) and data.get(key) is not None:
                refusals.add(
                    f"ai-agent tool `{data.get('name', '')}`: `{key}` belongs to the tools of an `mcp-router`",
                    key,
                    hint="remove it",
                    at="key",
                )
        refusals.raise_if_any()
        return data

    # ------------------------------------------------------------ what it is

    @cached_property
    def kind(self) -> Kind:
        """What runs when it is called."""
        return Branch(self.process or ()) if self.flow is None else CalledFlow(self.flow)

    @property
    def kinds(self) -> list[str]:
        """Those of them that are given; one, if it is sound."""
        return [key for key in self.kind_keys if self.yaml_keys()[key] in self.model_fields_set]

    @property
    def shown_kind(self) -> str:
        """What stands behind it, in a word or two."""
        return f"flow {self.flow}" if self.flow is not None else next(iter(self.kinds), "process")

    @property
    def useless(self) -> list[str]:
        """The keys that are given and have no effect on a tool of its kind."""
        return []

    @property
    def parameters(self) -> Collection[str] | None:
        """What it takes; None when that is not said."""
        properties = self.schema_of_all.get("properties")
        return properties if isinstance(properties, dict) else None

    @property
    def enable_name(self) -> str:
        """What `enabledTools` calls it."""
        return WEB_SEARCH if self.web_search else self.name

    @cached_property
    def filled(self) -> Mapping[str, Binding]:
        """The bindings that take a parameter out of the model's hands."""
        return bound(self.inputs)

    @property
    def schema_of_all(self) -> dict[str, Json]:
        """The schema of the arguments, those included that the model does not see."""
        return {"type": "object"} if self.input_schema is None else self.input_schema

    @property
    def link(self) -> Link | None:
        """The agent that it names, if it does."""
        return None

    def about(self, config: Config) -> str:
        """What the thing behind it says that it is there for."""
        return self.kind.about(config)

    def definition(self, config: Config) -> ToolDefinition:
        about = (self.description, self.about(config), self.name)
        described = next(text for text in about if text.strip())
        return ToolDefinition(self.name, described, shown_schema(self.schema_of_all, self.filled))

    def spelled(self, name: str) -> str:
        """A parameter in the spelling that stands for all spellings of it."""
        return name

    def spelled_twice(self, inputs: Iterable[str]) -> tuple[str, str] | None:
        """Two names that are spellings of one parameter, if there are such."""
        seen: dict[str, str] = {}
        for name in inputs:
            other = seen.setdefault(self.spelled(name), name)
            if other != name:
                return other, name
        return None

    def laid_over(self, inputs: Mapping[str, Binding]) -> Self:
        """The same tool with some of its parameters bound in another way."""
        over = {self.spelled(name) for name in inputs}
        kept = {name: one for name, one in self.inputs.items() if name in inputs or self.spelled(name) not in over}
        changed = self.model_copy(update={"inputs": {**kept, **inputs}})
        for worked_out in ("filled", "checker"):  # from the bindings before
            changed.__dict__.pop(worked_out, None)
        return changed

    @cached_property
    def checker(self) -> Checker:
        return Checker(self.schema_of_all)

    # ------------------------------------------------------------ one call

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
        text, is_error = await self._result(message, around.run)
        return Outcome(text, is_error, ran=True, on_message=True)

    def arguments(self, text: str, message: Message, around: Surroundings) -> Json:
        """The arguments of a call with bindings laid over them. Raises ValueError when they are not acceptable."""
        sent = read_arguments(text)
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

    async def _result(self, message: Message, run: Run) -> tuple[str, bool]:
        """Run what stands behind it. Its failure is a result for the model and never ends the agent."""
        message.stopped = False
        try:
            await self.kind.run(message, run)
        except Dropped:
            return f'tool "{self.name}" gave no result: it filtered the call out', True
        except OctoError as error:
            return clean_text(error.message), True
        try:
            return dumps(message.body), False
        except (TypeError, RecursionError) as error:
            return f'the output of tool "{self.name}" has no JSON form: {error}', True

    # ------------------------------------------------------------ what is wrong with it

    def check(self, config: Config) -> Iterator[Finding]:
        """What is wrong with it once the whole config is known; paths are below the entry."""
        if self.flow is not None:
            yield from _check_flow(self.flow, self.name, config)
        if self.web_search:
            return
        if not PORTABLE.fullmatch(self.name):
            yield Finding(
                f"ai-agent tool `{self.name}`: providers refuse this name",
                ("name",),
                "use at most 64 letters, digits, `_` and `-`",
                warning=True,
            )
        reason = self.checker.unusable
        if reason is not None:
            yield Finding(
                f"ai-agent tool `{self.name}`: arguments are not checked, since its schema is not usable: {reason}",
                ("inputSchema",),
                warning=True,
            )


def _check_flow(name: str, tool: str, config: Config) -> Iterator[Finding]:
    flow = config.flow(name)
    if flow is None:
        hint = did_you_mean(name, [other.name for other in config.flows if other.name])
        yield Finding(f'ai-agent tool `{tool}`: flow "{name}" is not registered', ("flow",), hint, warning=True)
    elif flow.source is not None:
        yield Finding(
            f"ai-agent tool `{tool}`: `octo run` does not let flow `{name}` be called, for it has a source",
            ("flow",),
            "move its blocks into a flow without a source, and call that one from both",
            warning=True,
        )
