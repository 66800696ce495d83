"""What a block came out as: every setting with its value and the place that it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, runtime_checkable

from octo.block import Block
from octo.config.address import find, linked
from octo.config.model import Config
from octo.errors import UsageError, near
from octo.fields import Duration, Expression, Model
from octo.values import Json


class Parameter(NamedTuple):
    """A parameter of a tool, with what fills it in."""

    name: str
    binding: Model | None
    """None where the model fills it in."""
    path: tuple[str | int, ...] | str
    """Where that is written: the path below the block, or the name of the agent that says so."""


class CallableTool(NamedTuple):
    """Something that a model may call."""

    name: str
    kind: str
    parameters: tuple[Parameter, ...]


class Agent(Protocol):
    """An agent that a block links, as it was looked up."""

    @property
    def title(self) -> str:
        """Its name and version."""

    def settings(self) -> Iterable[tuple[str, Json]]:
        """What it says of the model that it uses."""

    def callable_tools(self, config: Config) -> Iterable[CallableTool]:
        """The tools as the model has them in the block."""

    def blocks(self) -> Iterable[Block]:
        """The blocks of its tools, with their addresses in the block."""


NO_AGENTS: Final[Mapping[str, Agent]] = MappingProxyType({})


@runtime_checkable
class HasTools(Protocol):
    """A block whose model may call tools."""

    def callable_tools(self, config: Config) -> Iterable[CallableTool]:
        """The tools as the model has them, with the parameters that are filled in for it."""


def explain(config: Config, address: str, agents: Mapping[str, Agent] = NO_AGENTS) -> dict[str, Json]:
    """The block at an address, resolved: defaults filled in, `ref` and `${NAME}` replaced.

    `agents` are those that blocks link, by the addresses of the blocks. `from` of a setting is the place in a file
    where it is written, the agent that says so, or `default`; an empty default is left out. Raises UsageError for an
    address that names no block.
    """
    block, title = _found(config, address, agents)
    agent = agents.get(block.address)
    owner = agent or (block if isinstance(block, HasTools) else None)
    places = _Places(config, block, title)
    written = {key: {"value": value, "from": places.of_key(key)} for key, value in _written(block, agent)}
    said = {key: {"value": value, "from": agent.title} for key, value in agent.settings()} if agent else {}
    tools = [_tool(places, tool) for tool in owner.callable_tools(config)] if owner else []
    return {
        "address": block.address,
        "type": block.type,
        "label": block.label,
        "from": places.of(),
        "settings": {**written, **{key: setting for key, setting in said.items() if key not in written}},
        **({"tools": tools} if tools else {}),
    }


class _Places(NamedTuple):
    """Where the parts of a block are written: in a file, or by the agent whose tool has the block."""

    config: Config
    block: Block
    title: str

    def of(self, *path: str | int) -> str:
        return self.title or str(self.config.origin.locate((*self.block.place.path, *path)))

    def of_key(self, key: str) -> str:
        return self.of(key) if _is_written(self.block, key) else "default"


def _found(config: Config, address: str, agents: Mapping[str, Agent]) -> tuple[Block, str]:
    """The block at an address, and the title of the agent that has it in a tool, if one does. Raises UsageError."""
    try:
        return find(config, address), ""
    except UsageError as error:
        inside = (agent for block, agent in agents.items() if address.startswith(f"{block}["))
        known = {block.address: (block, agent.title) for agent in inside for block in agent.blocks()}
        if address in known:
            return known[address]
        text, hint = error.message, error.hint
        if _is_in_agent(config, address):
            text = f"the tools of the agent have no such block (blocks: {', '.join(known) or 'none'})"
            match = near(address, known)
            hint = f"did you mean `{match}`?" if match else None
        raise UsageError(f"`{address}`: {text}", hint=hint or "`octo graph` draws the blocks of a config") from error


def _is_in_agent(config: Config, address: str) -> bool:
    """Whether an address leads into a tool of an agent that a block links."""
    try:
        return linked(config, address)
    except UsageError:  # it does, and nothing is there
        return True


def _written(block: Block, agent: Agent | None) -> Iterator[tuple[str, Json]]:
    """The settings of a block; of one that links an agent only those that are given."""
    for key, value in _fields(block).items():
        if agent is None or (_is_written(block, key) and _says_something(block, key)):
            yield key, value


def _tool(places: _Places, tool: CallableTool) -> dict[str, Json]:
    """A tool, each of its parameters with what fills it in and the place where that is written."""
    parameters: dict[str, Json] = {}
    for name, binding, path in tool.parameters:
        if binding is None:
            parameters[name] = {"value": {"ai": True}, "from": "model"}
        else:
            written = {key: value for key, value in _fields(binding).items() if _is_written(binding, key)}
            place = path if isinstance(path, str) else places.of(*path)
            parameters[name] = {"value": written, "from": place}
    return {"name": tool.name, "kind": tool.kind, "parameters": parameters}


def plain(value: object) -> Json:
    """A setting as JSON: expressions and durations as they are written, blocks as mappings."""
    match value:
        case Expression():
            return value.source
        case Duration():
            return value.text
        case Block():
            label = {} if value.label == value.type else {"label": value.label}
            settings = _fields(value)
            return {"type": value.type, **label, **(settings if value.composite else {"settings": settings})}
        case Model():
            return _fields(value) if value.brief is None else value.brief
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case set() | frozenset():
            return sorted(str(item) for item in value)
        case None | bool() | int() | float():
            return value
    return str(value)


def _fields(model: Model) -> dict[str, Json]:
    """The fields by their keys, without defaults that are empty."""
    values = {key: plain(getattr(model, name)) for key, name in model.yaml_keys().items()}
    return {key: value for key, value in values.items() if _is_written(model, key) or value not in (None, "", [], {})}


def _says_something(block: Block, key: str) -> bool:
    """Whether a setting counts, though an agent may say the same thing."""
    return bool(getattr(getattr(block, block.yaml_keys()[key]), "is_given", True))


def _is_written(model: Model, key: str) -> bool:
    return model.yaml_keys()[key] in model.model_fields_set
