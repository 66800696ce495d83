"""What a model may call: the one shape of a tool, what a call gives, and the tools that octo itself serves."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from octo.agent.arguments import Checker
from octo.errors import OctoError
from octo.llm.chat import ToolCall, ToolDefinition
from octo.values import Json, clean_text, parse

if TYPE_CHECKING:
    from octo.config.model import Config
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

LOAD_SKILL: Final = "load_skill"

RESERVED: Final = frozenset({LOAD_SKILL, GIVE_UP.name})
"""Names that no tool may have, because a call of them never reaches it."""

PORTABLE: Final = re.compile("[A-Za-z0-9_-]{1,64}")
"""Tool names that every provider takes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool call gave."""

    text: str
    """What the model reads."""
    is_error: bool = False
    ran: bool = False
    """Whether the tool did its work, or began to."""
    on_message: bool = False
    """Whether it worked on the message, which goes on as the tool left it."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the calls of one agent run have in common."""

    run: Run
    received: Json
    """The body that the agent received; bindings see it."""
    scope: str
    """Stands before the tool's name in `vars.toolScope`."""


class Tool(Protocol):
    """Something that the model may call by its name."""

    @property
    def name(self) -> str: ...

    @property
    def idempotent(self) -> bool:
        """Whether a call may be made twice."""

    def definition(self, config: Config) -> ToolDefinition:
        """The tool as the model sees it; the same at every call."""

    async def call(self, call: ToolCall, message: Message, around: Surroundings) -> Outcome:
        """Run one call, on the message if the tool works on it. What goes wrong is an outcome as well."""


Serve: TypeAlias = Callable[[dict[str, Json], "Message", "Run"], Awaitable[str]]
"""Does what a call with these arguments asks for; the text is the result. Raises OctoError to say why it cannot."""


class BuiltIn:
    """A tool that octo itself serves. It works beside the message, which it may read.

    One that is idempotent only looks something up: a run that did nothing else has not acted yet.
    """

    def __init__(self, definition: ToolDefinition, serve: Serve, *, idempotent: bool = False) -> None:
        self.name = definition.name
        self.idempotent = idempotent
        self._definition = definition
        self._serve = serve

    def definition(self, config: Config) -> ToolDefinition:
        return self._definition

    async def call(self, call: ToolCall, message: Message, around: Surroundings) -> Outcome:
        try:
            arguments = self._arguments(call.arguments)
        except (ValueError, RecursionError) as error:
            return Outcome(f"invalid arguments: {error}", is_error=True)
        try:
            text, is_error = await self._serve(arguments, message, around.run), False
        except OctoError as error:
            text, is_error = error.message, True
        return Outcome(clean_text(text), is_error, ran=not self.idempotent)

    def _arguments(self, text: str) -> dict[str, Json]:
        arguments = read_arguments(text)
        faults = self._checker.faults(arguments)
        if faults or not isinstance(arguments, dict):
            raise ValueError("; ".join(map(str, faults)))
        return arguments

    @cached_property
    def _checker(self) -> Checker:
        return Checker(self._definition.input_schema)


def read_arguments(text: str) -> Json:
    """The arguments of a call; none are an empty object. Raises ValueError for text that is not JSON."""
    try:
        return parse(text) if text.strip() else {}
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
