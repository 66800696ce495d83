"""What there is to see of a config: flows, their blocks and branches, what they call and what they use."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from octo.block import Block, Branch, Chain, branches_of
from octo.config.address import place_in
from octo.config.address import walk as walk_blocks
from octo.config.explain import plain
from octo.config.model import Config, Flow
from octo.config.names import calls_of, names_in
from octo.connector import Connector, Source
from octo.errors import UsageError, did_you_mean
from octo.fields import ConnectorName, FlowName, Model
from octo.values import Json

Role: TypeAlias = Literal["branch", "tool", "events", "default", "error"]

_ROLES: Final[Mapping[str, Role]] = {
    "tools": "tool",
    "events": "events",
    "default": "default",
    "else": "default",
    "error": "error",
}
"""What the chains under a key are for."""
_TOOLS: Final = ("tools",)
"""Keys with what a model may call; not everything there has blocks of its own."""
_BEHIND: Final = ("process", "flow", "agent")
"""Keys that say what runs when a tool is called."""
_SHOWN: Final = frozenset({*_TOOLS, "agent", "link"})
"""Keys that are shown in another way."""
NO_AGENTS: Final[Mapping[str, Model]] = MappingProxyType({})
_SHORT: Final = 60
"""JSON of this length stands on one line."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting as it was given: text and expressions as they are, anything else as JSON."""

    key: str
    text: str

    @property
    def line(self) -> str:
        """The setting on one line."""
        return f"{self.key}: {' '.join(self.text.split())}"


@dataclass(frozen=True, slots=True)
class Step:
    """A block."""

    id: str
    """Unique in the picture; of letters, digits and dashes."""
    type: str
    name: str
    """What an address calls it, if that is not its type: its own name, or the processor that it refers to."""
    group: str
    address: str
    place: str
    """Where it is written, `file:line:column`."""
    settings: tuple[Setting, ...]
    calls: tuple[str, ...]
    """Names of flows."""
    uses: tuple[str, ...]
    """Names of connectors."""
    lanes: tuple[Lane, ...]
    agent: str = ""
    """The agent that it links, if it does."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A chain inside a block."""

    name: str
    role: Role
    settings: tuple[Setting, ...]
    """Those of a branch that has some, such as the guard of a case or the description of a tool."""
    steps: tuple[Step, ...]
    calls: tuple[str, ...] = ()
    """What runs in place of steps of its own: names of flows."""

    @property
    def about(self) -> str:
        """What sets it apart, on one line."""
        for setting in self.settings:
            return " ".join(setting.text.split()) if setting.key == "description" else setting.line
        return ""


@dataclass(frozen=True, slots=True)
class Inlet:
    """Where a flow takes its messages from."""

    type: str
    connector: str
    """The name of the connector; empty when none is declared."""
    settings: tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class Stream:
    """A flow."""

    id: str
    name: str
    description: str
    place: str
    steps: tuple[Step, ...]
    error: tuple[Step, ...]
    called_by: tuple[str, ...]
    """Names of flows."""
    source: Inlet | None = None


@dataclass(frozen=True, slots=True)
class Outlet:
    """A connector."""

    id: str
    name: str
    type: str
    place: str
    users: tuple[Step, ...]
    feeds: tuple[str, ...] = ()
    """Names of the flows that take messages from it."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A config, or one flow of it with the connectors that it uses. Holds no secret value."""

    title: str
    file: str
    flows: tuple[Stream, ...]
    connectors: tuple[Outlet, ...]


def draw(config: Config, flow: str | None = None, agents: Mapping[str, Model] = NO_AGENTS) -> Picture:
    """The picture of a config, or of one flow. Raises UsageError for a flow that it has not.

    `agents` are those that links lead to, each by its link as it is written, `NAME` or `NAME@7`. For links without a
    version, the agents that the config declares stand in for those that are not given.
    """
    declared = {agent.name: agent.agent for agent in config.declared_agents if agent.agent is not None}
    painter = _Painter(config, {**declared, **agents})
    flows = [painter.stream(index, given) for index, given in enumerate(config.flows)]
    if flow is not None:
        if config.flow(flow) is None:
            names = [stream.name for stream in flows]
            raise UsageError(f'flow "{flow}" is not registered', hint=did_you_mean(flow, names))
        flows = [stream for stream in flows if stream.name == flow]
    steps = [step for stream in flows for step in walk((*stream.steps, *stream.error))]
    outlets = [painter.outlet(index, given, steps, flows) for index, given in enumerate(config.connectors)]
    if flow is not None:
        outlets = [outlet for outlet in outlets if outlet.users or outlet.feeds]
    file = str(config.origin.path)
    return Picture(painter.mask(config.service.name or file), file, tuple(flows), tuple(outlets))


def walk(steps: tuple[Step, ...]) -> Iterator[Step]:
    """The steps and those inside them, in the order in which they are written."""
    for step in steps:
        yield step
        for lane in step.lanes:
            yield from walk(lane.steps)


class _Painter:
    def __init__(self, config: Config, agents: Mapping[str, Model]) -> None:
        self.config = config
        self.agents = agents
        self.mask = config.environment.mask

    def stream(self, index: int, flow: Flow) -> Stream:
        callers = (other.title for other in self.config.flows if flow.name in set(calls_of(other)))
        return Stream(
            id=f"flow-{index}",
            name=self.mask(flow.title),
            description=self.mask(flow.description or ""),
            place=self._place(("flows", index)),
            steps=self._steps(flow.process),
            error=self._steps(flow.error or ()),
            called_by=tuple(map(self.mask, callers)),
            source=self._inlet(flow.source) if flow.source else None,
        )

    def _inlet(self, source: Source) -> Inlet:
        connector = "" if source.implied else self.mask(source.instance)
        return Inlet(source.type, connector, self._settings(source))

    def outlet(self, index: int, connector: Connector, steps: list[Step], flows: list[Stream]) -> Outlet:
        name = self.mask(connector.instance)
        return Outlet(
            id=f"connector-{index}",
            name=name,
            type=connector.type,
            place=self._place(("connectors", index)),
            users=tuple(step for step in steps if name in step.uses),
            feeds=tuple(flow.name for flow in flows if flow.source and flow.source.connector == name),
        )

    def _steps(self, chain: Chain) -> tuple[Step, ...]:
        return tuple(map(self._step, chain))

    def _step(self, block: Block) -> Step:
        link = getattr(block, "link", None)
        agent = self.agents.get(str(link or ""))
        lanes = (*self._lanes(block), *(self._of_agent(tool, block) for tool in getattr(agent, "tools", ())))
        of_lanes = {name for lane in lanes for name in lane.calls}
        return Step(
            id="-".join(map(str, block.place.path)),
            type=block.type,
            name=self.mask(block.place.name or block.place.ref),
            group=block.group,
            address=self.mask(block.address),
            place=self._place(block.place.path),
            settings=self._settings(block, frozenset({*_SHOWN, *(str(branch.path[0]) for branch in block.branches())})),
            calls=tuple(name for name in map(self.mask, names_in(block, FlowName)) if name not in of_lanes),
            uses=tuple(map(self.mask, dict.fromkeys(self._connectors(agent or block)))),
            lanes=lanes,
            agent=self.mask(str(link or "")),
        )

    def _connectors(self, model: Model, *, nested: bool = False) -> Iterator[str]:
        """The connectors that a block or an agent uses, with those of the agents that are its tools.

        Blocks of its own tools are drawn, and use theirs themselves; those of a nested agent are not.
        """
        yield from names_in(model, ConnectorName)
        for tool in getattr(model, "tools", ()):
            link = getattr(tool, "link", None)
            inner = self.agents.get(str(link or ""))
            if nested:
                for block in walk_blocks(getattr(tool, "process", None) or ()):
                    yield from names_in(block, ConnectorName)
            elif inner is not None:
                yield from self._connectors(inner, nested=True)

    def _lanes(self, block: Block) -> Iterator[Lane]:
        """The branches of a block, and its tools that have none: in the order in which they are written."""
        branches = {branch.path[:-1]: branch for branch in block.branches() if branch.path[0] in _TOOLS}
        for key in _TOOLS:
            for index, tool in enumerate(getattr(block, key, ())):
                branch = branches.get((key, index))
                yield self._lane(block, branch) if branch else self._called(tool)
        for branch in block.branches():
            if branch.path[0] not in _TOOLS:
                yield self._lane(block, branch)

    def _lane(self, block: Block, branch: Branch) -> Lane:
        owner = _value_at(block, branch.path[:-1])
        shown_elsewhere = frozenset({"name", "process", str(branch.path[-1])})
        given = self._settings(owner, shown_elsewhere) if owner is not block else ()
        role = _ROLES.get(str(branch.path[0]), "branch")
        return Lane(self.mask(branch.name), role, given, self._steps(branch.chain))

    def _of_agent(self, tool: Model, block: Block) -> Lane:
        """A tool of an agent that a block links; its blocks are drawn as if they stood there."""
        name = self.mask(str(getattr(tool, "name", "")))
        place_in(block, tool, (*_TOOLS, name))
        lane = self._called(tool)
        chains = [] if lane.calls else [branch.chain for branch in branches_of(tool, ())]
        return replace(lane, steps=self._steps(chains[0])) if chains else lane

    def _called(self, tool: Model) -> Lane:
        """A tool without blocks of its own."""
        if getattr(tool, "web_search", False):
            return Lane("web search", "tool", (), (), ("the web",))
        link = getattr(tool, "link", None)
        calls = (f"agent {link}",) if link else tuple(names_in(tool, FlowName))
        if not calls and all(getattr(tool, key, None) is None for key in _BEHIND):
            calls = ("what cannot be read",)
        given = self._settings(tool, frozenset({"name", *_BEHIND}))
        return Lane(self.mask(str(getattr(tool, "name", ""))), "tool", given, (), tuple(map(self.mask, calls)))

    def _settings(self, model: Model, without: frozenset[str] = frozenset()) -> tuple[Setting, ...]:
        """The settings that were given and are not shown in another way."""
        found = []
        for key, name in model.yaml_keys().items():
            value = getattr(model, name)
            if name not in model.model_fields_set or key in without or isinstance(value, (ConnectorName, FlowName)):
                continue
            found.append(Setting(key, self.mask(_text(plain(value)))))
        return tuple(found)

    def _place(self, path: tuple[str | int, ...]) -> str:
        return str(self.config.origin.locate(path))


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value.strip()
    line = json.dumps(value, ensure_ascii=False)
    return line if len(line) <= _SHORT else json.dumps(value, ensure_ascii=False, indent=2)


def _value_at(model: Model, path: tuple[str | int, ...]) -> Any:
    """The value at a path of YAML keys below a model."""
    value: Any = model
    for step in path:
        value = getattr(value, value.yaml_keys()[str(step)]) if isinstance(value, Model) else value[step]
    return value
