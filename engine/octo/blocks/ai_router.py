"""Let a model choose which of several chains a message takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pydantic import ConfigDict, Field, field_validator

from octo.agent.asking import BudgetSpent, Conversation, arguments, said, shown, variables
from octo.agent.reply import cut_off
from octo.block import Block, Chain, SubFlow
from octo.budget import EXCEEDED
from octo.errors import OctoError, shortened
from octo.fields import LlmName, Model, ResourceText, Text
from octo.llm.chat import ToolDefinition, ToolResult, user
from octo.refusals import Refusals

if TYPE_CHECKING:
    from octo.agent.reply import CutOff
    from octo.llm.chat import ToolCall
    from octo.message import Message
    from octo.run import Run

UNSURE: Final = "__guardrail__"
"""What a model chooses when no route is right."""
DECIDE: Final = "select_route"
_MOST_CALLS: Final = 5

_ROLE: Final = (
    f"You decide which route a message takes. Look at the message with the tools as far as you need to, then choose "
    f"exactly one route by calling `{DECIDE}`. Do not carry the message's task out, and answer in no other way."
)
_TASK: Final = "Decide which route the message takes."
_INSPECTION: Final = (
    ToolDefinition("get_body", "Read the body of the message, as JSON.", {"type": "object", "properties": {}}),
    ToolDefinition(
        "list_variables", "List the names of the message's variables.", {"type": "object", "properties": {}}
    ),
    ToolDefinition(
        "get_variable",
        "Read one variable of the message, as JSON.",
        {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
    ),
)


class Undecided(OctoError):
    """The model chooses no route."""

    def __init__(self, message: str, *, level: str = "warn") -> None:
        super().__init__(message)
        self.level = level


class Route(Model):
    """One of the ways that a message can take."""

    model_config = ConfigDict(json_schema_extra={"required": ["name", "description"]})

    name: Text = ""
    """What the model calls it; unique in the block."""

    description: Text = ""
    """Tells the model which messages take it."""

    process: Chain = ()
    """Runs when the model chooses the route; without blocks the message passes unchanged."""


class AiRouter(Block, type="ai-router", group="ai", composite=True):
    """Let a model look at the message and choose which of several chains it takes."""

    connector: LlmName
    """Name of a configured connector of an `llm-*` type."""

    prompt: ResourceText
    """How to choose: text, or `{resource: FILE}` for a file below the config directory."""

    guardrail: Text = ""
    """When not to choose any route."""

    routes: tuple[Route, ...] = Field(min_length=1)
    """The routes to choose from, each with a `name` and a `description`."""

    default: SubFlow | None = None
    """Runs when no route is chosen; without it the message then passes unchanged."""

    @field_validator("prompt")
    @classmethod
    def _says_something(cls, prompt: ResourceText) -> ResourceText:
        return said(prompt, cls.type)

    @field_validator("routes")
    @classmethod
    def _can_be_told_apart(cls, routes: tuple[Route, ...]) -> tuple[Route, ...]:
        refusals = Refusals()
        seen: set[str] = set()
        for index, route in enumerate(routes):
            for text, key in cls._faults(index, route, seen):
                refusals.add(text, index, *key)
            seen.add(route.name)
        refusals.raise_if_any()
        return routes

    @staticmethod
    def _faults(index: int, route: Route, seen: set[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
        """What is wrong with a route: texts, and where below it."""
        if not route.name.strip():
            yield f"ai-router requires a name for route {index}", ()
            return
        if route.name == UNSURE:
            yield f"ai-router route `{route.name}`: the name is reserved", ("name",)
        elif route.name in seen:
            yield f"ai-router route `{route.name}` is declared twice", ("name",)
        if not route.description.strip():
            below = ("description",) if "description" in route.model_fields_set else ()
            yield f"ai-router route `{route.name}` requires a description", below

    async def execute(self, message: Message, run: Run) -> Message:
        route = await self._chosen(message, run)
        if route is None:
            return await run.chain(self.default.process, message) if self.default else message
        return await run.chain(route.process, message)

    async def _chosen(self, message: Message, run: Run) -> Route | None:
        """The route that the model chooses; none when it does not, which the log then tells the reason of."""
        talk = Conversation(
            self,
            self.connector,
            message,
            run,
            most_calls=_MOST_CALLS,
            system=self._system,
            opening=user(_TASK),
            tools=self._tools,
            tool_choice="any",
        )
        try:
            return await self._decided(talk, message)
        except Undecided as error:
            run.log(error.level, f"no route is chosen: {error.message}", block=self.address)
            return None

    async def _decided(self, talk: Conversation, message: Message) -> Route:
        """The route that the model decides for. Raises Undecided, and OctoError when it cannot be asked."""
        while talk.may_ask:
            try:
                response = await talk.ask()
            except BudgetSpent as error:
                raise Undecided(f"{EXCEEDED} ({error.hint})") from error
            if response.stop_reason == "refusal":
                raise Undecided("the model refused to")
            if not response.calls:
                raise Undecided("the model called no tool")
            cut = cut_off(response)
            for call in response.calls:
                if call.name == DECIDE:
                    if cut is not None and call is cut.call:
                        raise Undecided(f"{cut.by} cut the call of `{DECIDE}` off")
                    return self._named(call)
            talk.go_on(response, self._looked(message, response.calls, cut))
        raise Undecided(f"the model came to no decision in {_MOST_CALLS} calls")

    def _named(self, call: ToolCall) -> Route:
        """The route that a call names. Raises Undecided."""
        try:
            name = arguments(call).get("route")
        except ValueError as error:
            raise Undecided(f"the arguments of `{DECIDE}` cannot be used: {error}") from None
        if name == UNSURE:
            raise Undecided("the model is not sure, or finds none right", level="info")
        for route in self.routes:
            if route.name == name:
                return route
        raise Undecided(f"the model names no route that there is: {shortened(shown(name))}")

    def _looked(self, message: Message, calls: Iterable[ToolCall], cut: CutOff | None) -> Iterator[ToolResult]:
        """What the model finds when it looks at the message."""
        for call in calls:
            if cut is not None and call is cut.call:
                text, is_error = f"not read: {cut.by} cut this call off; make it shorter", True
            else:
                text, is_error = _look(message, call)
            yield ToolResult(call.id, call.name, text, is_error)

    @cached_property
    def _system(self) -> str:
        routes = "\n".join(f"- {route.name}: {route.description.strip()}" for route in self.routes)
        parts = [
            _ROLE,
            self.prompt.strip(),
            f"The routes:\n{routes}",
            f"If no route is right, or you are not sure which one is, choose `{UNSURE}`.",
        ]
        guardrail = self.guardrail.strip()
        return "\n\n".join([*parts, f"Guardrail: {guardrail}"] if guardrail else parts)

    @cached_property
    def _tools(self) -> tuple[ToolDefinition, ...]:
        names = [*(route.name for route in self.routes), UNSURE]
        schema = {
            "type": "object",
            "required": ["route"],
            "properties": {
                "route": {"type": "string", "enum": names},
                "reason": {"type": "string", "description": "Why, in one sentence."},
            },
        }
        return (*_INSPECTION, ToolDefinition(DECIDE, "Choose the route. Call this once; it ends your work.", schema))


def _look(message: Message, call: ToolCall) -> tuple[str, bool]:
    """What a tool shows of the message, and whether that is an error."""
    match call.name:
        case "get_body":
            return shown(message.body), False
        case "list_variables":
            return shown(sorted(variables(message))), False
        case "get_variable":
            return _variable(message, call)
    return f'unknown tool "{call.name}"', True


def _variable(message: Message, call: ToolCall) -> tuple[str, bool]:
    try:
        name = arguments(call).get("name")
    except ValueError as error:
        return f"invalid arguments: {error}", True
    if not isinstance(name, str) or not name:
        return "invalid arguments: expected the `name` of a variable", True
    known = variables(message)
    return (shown(known[name]), False) if name in known else (f'variable "{name}" is not set', True)
