"""Agents that are looked up by their name when a block starts: live, pinned to a version, or as a draft."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import Field, ValidationError

from octo.agent import authored, versions
from octo.agent.bindings import Binding
from octo.agent.link import Link, is_link
from octo.agent.nested import Entry
from octo.agent.roster import NOTHING_LAID_OVER, Overlay, laid_over
from octo.agent.tools import Outcome, Surroundings
from octo.agent.value import NamedAgent, without_unknown
from octo.agent.working import Working
from octo.block import Block
from octo.config import problems
from octo.config.address import place_in
from octo.config.context import Context
from octo.config.environment import NoValue, filled_in
from octo.errors import OctoError
from octo.fields import Text
from octo.observe import AgentStamp
from octo.values import Json, clean_text

if TYPE_CHECKING:
    from octo.agent.versions import Resolved
    from octo.config.model import Config
    from octo.llm.chat import ToolCall
    from octo.message import Message
    from octo.run import Run
    from octo.runtime import Runtime

_READ_LATER: Final = frozenset({"description", "input", "attachments", "enabledTools", "tools"})
"""Keys in which `${NAME}` is no reference, or none that the agent as a whole depends on."""


async def resolved(link: Link, block: Block, run: Run, overlay: Overlay = NOTHING_LAID_OVER) -> Working:
    """The agent that a link leads to at this moment, with its tools as the block binds them.

    Raises OctoError that names it.
    """
    runtime = run.runtime
    found = await look_up(link, runtime)
    place = (LinkedAgent, block.place.path, block.address, found.name)
    kept: tuple[str, Working] | None = runtime.kept.get(place)
    if kept is not None and kept[0] == found.hash:
        working = kept[1]
    else:

        def leave_out(keys: str) -> None:
            run.log("info", "keys that this octo does not know are left out", agent=found.name, keys=keys)

        agent = read(found, block, runtime.config, leave_out)
        working = Working(agent, laid_over(agent.tools, overlay))
        runtime.kept[place] = found.hash, working
    value = ""
    if found.source == "draft":
        value = authored.text(found.value)
        base = f"v{found.version}" if found.version is not None else None
        run.log("info", "a draft of an agent is used", agent=found.name, base=base, block=block.address)
    return replace(working, stamp=AgentStamp(found.name, found.source, found.version, found.hash, value))


async def look_up(link: Link, runtime: Runtime) -> Resolved:
    """The value that a link leads to at this moment: in the store, or as the config declares it. Raises OctoError."""
    return await versions.resolve(
        runtime.store, link.name, link.version, runtime.drafts_of or None, declared=runtime.declared_agents
    )


async def description(link: Link, run: Run) -> str:
    """What an agent says that it is good for; empty when there is no such agent."""
    try:
        found = await look_up(link, run.runtime)
    except OctoError:
        return ""
    said = found.value.get("description")
    return said if isinstance(said, str) else ""


def read(found: Resolved, block: Block, config: Config, leave_out: Callable[[str], object]) -> LinkedAgent:
    """The agent of a value, with what its brain refers to. Keys that nobody knows are told.

    Raises OctoError that names it.
    """
    name = found.name
    known, unknown = without_unknown(found.value)
    if unknown:
        leave_out(", ".join(unknown))
    given: dict[str, Json] = {}
    for key, item in known.items():
        try:
            given[key] = item if key in _READ_LATER else filled_in(item, config.environment)
        except NoValue as error:
            raise NoValue(f'agent "{name}": `{key}`: {error.message}', hint=error.hint) from None
    try:
        agent = LinkedAgent.model_validate(given, context=Context.of(config))
    except ValidationError as error:
        raise _fault(f'agent "{name}"', error) from None
    written = given.get("tools") or ()
    for entry, data in zip(agent.tools, written, strict=True):
        entry.put_in(data, block)
    return agent


def _fault(what: str, error: ValidationError) -> OctoError:
    path, message, hint = problems.first(error)
    where = f"`{'.'.join(map(str, path))}`: " if path else ""
    return OctoError(f"{what}: {where}{message}", hint=hint)


class LateBinding(Binding):
    """A binding whose expression is read when the tool is called."""

    expr: Text | None = None  # type: ignore[assignment]  # it is never evaluated
    """As it is written."""


class LateEntry(Entry):
    """A tool of an agent with a name. What the model sees of it is read with the agent, the rest when it is called.

    So a tool that refers to something which is not there harms nobody who does not call it.
    """

    inputs: dict[str, LateBinding] = Field(default_factory=dict)  # type: ignore[assignment]  # or with what is laid over
    """Bindings, not read yet."""

    process: tuple[Any, ...] | None = None
    """Blocks, not read yet."""

    flow: Text | None = None  # type: ignore[assignment]
    """The name of a flow, before `${NAME}` in it is replaced."""

    agent: Any = None
    """An agent, not read yet."""

    written: ClassVar[Mapping[str, Json]] = {}
    """The tool as it is stored."""
    block: ClassVar[Block]
    """The block that has the tool."""
    overlay: ClassVar[Mapping[str, Binding]] = {}
    """The bindings of that block."""

    def put_in(self, written: Mapping[str, Json], block: Block) -> None:
        """Say what the tool is made of, and where."""
        self.__dict__.update(written=written, block=block)

    def laid_over(self, inputs: Mapping[str, Binding]) -> LateEntry:
        changed = super().laid_over(inputs)
        changed.__dict__.update(overlay={**self.overlay, **inputs})
        changed.__dict__.pop("_whole", None)
        return changed

    @property
    def link(self) -> Link | None:
        if not is_link(self.agent):
            return None
        try:
            return Link.model_validate(self.agent)
        except ValidationError:
            return None

    def about(self, config: Config) -> str:
        if self.flow is not None:
            return super().about(config)
        said = self.agent.get("description") if isinstance(self.agent, dict) else None
        return said if isinstance(said, str) else ""

    async def call(self, call: ToolCall, message: Message, around: Surroundings) -> Outcome:
        try:
            entry = self.read(around.run.runtime.config)
        except OctoError as error:
            return Outcome(clean_text(error.message), is_error=True)
        return await entry.call(call, message, around)

    def read(self, config: Config) -> Entry:
        """The tool with what it refers to. Raises OctoError that names it."""
        found = self.__dict__.get("_whole")
        if found is None:
            found = self.__dict__["_whole"] = self._read(config)
        assert isinstance(found, Entry)
        return found

    def _read(self, config: Config) -> Entry:
        written = self.written.items()
        try:
            whole = {
                key: item if key == "description" else filled_in(item, config.environment) for key, item in written
            }
            entry = Entry.model_validate(whole, context=Context.of(config))
        except ValidationError as error:
            raise _fault(f"tool `{self.name}`", error) from None
        except NoValue as error:
            raise OctoError(f"tool `{self.name}`: {error.message}", hint=error.hint) from None
        place_in(self.block, entry, ("tools", self.name))
        return entry.laid_over(self.overlay) if self.overlay else entry


class LinkedAgent(NamedAgent):
    """An agent that was looked up."""

    tools: tuple[LateEntry, ...] = ()
    """What it may call."""
