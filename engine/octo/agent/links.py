"""The links of a config to agents: where they stand, where they lead, and what is wrong with that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from octo.agent import declared, linked, versions
from octo.agent.link import Link
from octo.agent.nested import LinkedTool
from octo.agent.roster import NOTHING_LAID_OVER, explained
from octo.block import Block, Finding, branches_of
from octo.config.address import blocks, tools_of, walk
from octo.config.check import check_tools
from octo.config.environment import NoValue
from octo.errors import ConfigError, OctoError, Problem, StoreError
from octo.store import agents

if TYPE_CHECKING:
    from sqlite3 import Connection

    from octo.agent.model import Brain
    from octo.agent.nested import Entry
    from octo.agent.versions import Resolved
    from octo.config.explain import CallableTool
    from octo.config.model import Config
    from octo.runtime import Runtime
    from octo.store.store import Store
    from octo.values import Json


@runtime_checkable
class Links(Protocol):
    """A block that may link an agent."""

    link: Link | None


@runtime_checkable
class UsesAgent(Protocol):
    """A block whose agent may be written elsewhere."""

    def check_agent(self, brain: Brain, tools: tuple[Entry, ...], config: Config) -> Iterator[Finding]:
        """What is wrong with an agent in this place."""


@dataclass(frozen=True, slots=True)
class Followed:
    """A link, and the agent that it leads to now."""

    block: Block
    link: Link
    found: Resolved | None = None
    agent: linked.LinkedAgent | None = None
    """None when there is none, or none that can be read."""
    tools: tuple[Entry, ...] = ()
    """Its tools, but for those that cannot be read."""
    findings: list[Finding] = field(default_factory=list)
    """What is wrong; paths are below the block."""

    @property
    def title(self) -> str:
        """What the agent is called, with its version."""
        version = f" v{self.found.version}" if self.found and self.found.version is not None else ""
        return f"agent {self.link.name}{version}"

    def settings(self) -> Iterator[tuple[str, Json]]:
        """What the agent says of the model that it uses, and more."""
        for key, value in self.found.value.items() if self.found else ():
            if key != "tools":
                yield key, value

    def callable_tools(self, config: Config) -> Iterator[CallableTool]:
        """Its tools, bound as the block has them."""
        overlay = getattr(self.block, "tool_inputs", NOTHING_LAID_OVER)
        return explained(self.agent.tools if self.agent else (), overlay, config, self.title)

    @property
    def all_tools(self) -> tuple[Entry, ...]:
        """Its tools, with nothing behind those that cannot be read."""
        readable = {entry.name: entry for entry in self.tools}
        behind = {"process": None, "flow": None, "agent": None}
        own = self.agent.tools if self.agent else ()
        return tuple(readable.get(late.name) or late.model_copy(update=behind) for late in own)

    def blocks(self) -> Iterator[Block]:
        """The blocks of its tools, but for those of tools that cannot be read."""
        for entry in self.tools:
            for branch in branches_of(entry, ()):
                yield from walk(branch.chain)


def of(config: Config) -> list[tuple[Block, Link]]:
    """The links of a config: of its blocks, and of tools that are agents."""
    return [(block, block.link) for _, block in blocks(config) if isinstance(block, Links) and block.link is not None]


async def drafts(store: Store, user: str) -> list[tuple[str, int | None]]:
    """The names of the agents of which a user has drafts, each with the version that it was begun from."""
    return await store.read(lambda db: list(agents.drafts(db, user)), [])


async def check_pins(runtime: Runtime) -> None:
    """Raises ConfigError for blocks that link a version which the store does not keep, as far as it can be read.

    One in memory never kept any: there only those blocks fail that run.
    """
    pins = [(block, link) for block, link in of(runtime.config) if link.version and not isinstance(block, LinkedTool)]

    def lost(db: Connection) -> list[Problem]:
        found: list[Problem] = []
        for block, link in pins:
            if agents.agent(db, link.name) and not agents.version(db, link.name, link.version or 0):
                error = versions.no_version(db, link.name, link.version or 0)
                place = runtime.config.origin.locate((*block.place.path, "agent"))
                found.append(Problem(error.message, place, error.hint))
        return found

    if not pins or runtime.store.path is None:
        return
    broken: list[Problem] = []
    try:
        broken = await runtime.store.read(lost, broken)
    except StoreError:
        return  # the block says so when it runs
    if broken:
        raise ConfigError(broken)


async def follow(config: Config, store: Store) -> list[Followed]:
    """All links of a config, followed; nothing is written."""
    pending = await declared.to_come(store, config)
    own = {one.name: one.hash for one in declared.read(config)}
    found = [await _follow(block, link, config, store, pending, own) for block, link in of(config)]
    for block, link in _in_declared_tools(config):
        broken = [_harmless(_broken(block, error)) for error in await _missing(link, store, pending)]
        found += [Followed(block, link, findings=broken)] if broken else []
    return found


def _in_declared_tools(config: Config) -> list[tuple[Block, Link]]:
    """The links in tools of the agents that a config declares."""
    chains = (branch.chain for declared in config.declared_agents for branch in tools_of(declared))
    found = (block for chain in chains for block in walk(chain))
    return [(block, block.link) for block in found if isinstance(block, Links) and block.link is not None]


def _harmless(finding: Finding) -> Finding:
    """The same, as something that harms no more than a call."""
    return replace(finding, warning=True)


async def seen(config: Config, store: Store) -> dict[str, Brain]:
    """The agents that links of a config, and of those agents, lead to: each by its link, as far as there is one."""
    pending = await declared.to_come(store, config)
    found: dict[str, Brain] = {}
    waiting = of(config)
    while waiting:
        block, link = waiting.pop()
        if str(link) in found:
            continue
        followed = await _follow(block, link, config, store, pending, {})
        if followed.agent is None:
            continue
        found[str(link)] = followed.agent.model_copy(update={"tools": followed.all_tools})
        for entry in followed.tools:
            waiting += [(block, entry.link)] if entry.link else []
            inner = walk(entry.process or ())
            waiting += [(one, one.link) for one in inner if isinstance(one, Links) and one.link is not None]
    return found


async def _follow(
    block: Block,
    link: Link,
    config: Config,
    store: Store,
    pending: Mapping[str, dict[str, Json]],
    own: Mapping[str, str],
) -> Followed:
    """`own` are the hashes of values that the config itself declares: what is wrong in one alone is told there."""
    try:
        found = await versions.resolve(store, link.name, link.version, declared=pending)
    except OctoError as error:
        return Followed(block, link, findings=[_broken(block, error)])
    is_own = own.get(link.name) == found.hash
    findings: list[Finding] = []
    try:
        agent = linked.read(found, block, config, lambda keys: None)
    except OctoError as error:
        return Followed(block, link, found, findings=[] if is_own else [_broken(block, error)])
    tools: list[Entry] = []
    for late in agent.tools:
        try:
            tools.append(late.read(config))
        except OctoError as error:
            if not is_own:
                findings.append(_doubt(f'agent "{link.name}": {error.message}', error.hint))
    followed = Followed(block, link, found, agent, tuple(tools), findings)
    findings += _in_place(followed, config, is_own=is_own)
    findings += () if is_own else _in_tools(followed, config)
    for entry in tools:
        if entry.link is not None:
            findings += await _deeper(followed, entry, entry.link, config, store, pending, own, told=is_own)
        for inner in walk(entry.process or ()):
            if not is_own and isinstance(inner, Links) and inner.link is not None:
                for broken in await _missing(inner.link, store, pending):
                    findings.append(_doubt(f'agent "{link.name}": `{inner.address}`: {broken.message}', broken.hint))
    return followed


def _broken(block: Block, error: OctoError) -> Finding:
    """A link that leads nowhere: the end of its block, but of a tool no more than a failed call.

    A variable may have a value in another environment.
    """
    if isinstance(block, LinkedTool):
        return Finding(error.message, (), error.hint, warning=True)
    return Finding(error.message, ("agent",), error.hint, warning=isinstance(error, NoValue))


async def _missing(link: Link, store: Store, pending: Mapping[str, dict[str, Json]]) -> list[OctoError]:
    """Why a link leads nowhere, if it does."""
    try:
        await versions.resolve(store, link.name, link.version, declared=pending)
    except OctoError as error:
        return [error]
    return []


def _doubt(text: str, hint: str | None = None) -> Finding:
    """What harms only those who come across it."""
    return Finding(text, ("agent",), hint, warning=True)


def _in_place(followed: Followed, config: Config, *, is_own: bool) -> Iterator[Finding]:
    """What is wrong with the agent as the block uses it; tools of an own agent are checked where they stand."""
    block, agent = followed.block, followed.agent
    if agent is None or not isinstance(block, UsesAgent):
        return
    written = block.yaml_keys()
    for finding in block.check_agent(agent, followed.tools, config):
        key = str(finding.path[0]) if finding.path else ""
        if is_own and key == "tools":
            continue
        if key in written and written[key] in block.model_fields_set:
            yield finding
        else:
            yield Finding(f'agent "{followed.link.name}": {finding.message}', ("agent",), finding.hint, finding.warning)


def _in_tools(followed: Followed, config: Config) -> Iterator[Finding]:
    """What is wrong with the blocks of the tools."""
    for block in followed.blocks():
        for finding in block.check(config):
            yield _doubt(f'agent "{followed.link.name}": `{block.address}`: {finding.message}', finding.hint)


async def _deeper(
    outer: Followed,
    entry: Entry,
    nested: Link,
    config: Config,
    store: Store,
    pending: Mapping[str, dict[str, Json]],
    own: Mapping[str, str],
    *,
    told: bool,
) -> list[Finding]:
    """What is wrong with an agent that a tool of an agent names; that there is none may be `told` elsewhere."""
    start = f'agent "{outer.link.name}": tool `{entry.name}`'
    try:
        found = await versions.resolve(store, nested.name, nested.version, declared=pending)
    except OctoError as error:
        return [] if told else [_doubt(f"{start}: {error.message}", error.hint)]
    findings: list[Finding] = []
    if own.get(nested.name) != found.hash:
        try:
            linked.read(found, outer.block, config, lambda keys: None)
        except OctoError as error:
            findings.append(_doubt(f"{start}: {error.message}", error.hint))
    tools = found.value.get("tools")
    deep = [tool for tool in tools if isinstance(tool, dict) and tool.get("agent")] if isinstance(tools, list) else []
    if deep:
        names = ", ".join(f"`{tool.get('name')}`" for tool in deep)
        text = f'{start}: tools of agent "{nested.name}" that are agents are not offered: {names}'
        findings.append(_doubt(text, "agents nest one level deep"))
    return findings


def problems(config: Config, followed: Sequence[Followed]) -> list[Problem]:
    """What is wrong with the links of a config, each in its place."""
    return [_problem(config, one.block.place.path, finding) for one in followed for finding in one.findings]


def in_declared(config: Config) -> list[Problem]:
    """What is wrong with the tools of agents that a config declares, which loading it has told already."""
    return [_problem(config, path, finding) for path, finding in check_tools(config)]


def _problem(config: Config, path: tuple[str | int, ...], finding: Finding) -> Problem:
    mask = config.environment.mask
    return Problem(
        mask(finding.message),
        config.origin.locate((*path, *finding.path)),
        finding.hint and mask(finding.hint),
        severity="warning" if finding.warning else "error",
    )


def disabled(followed: Sequence[Followed]) -> Iterator[tuple[str, str]]:
    """Names of agents, each with a tool that none of the blocks which link it lets the model call."""
    offered: dict[str, dict[str, bool]] = {}
    for one in followed:
        if one.agent is None:
            continue
        given = getattr(one.block, "enabled_tools", None)
        given = given if given is not None and given.is_given else one.agent.enabled_tools
        fixed = given.fixed if given is not None else None
        tools = offered.setdefault(one.link.name, {})
        for entry in one.agent.tools:
            name = entry.enable_name
            tools[name] = tools.get(name, False) or not isinstance(fixed, list) or name in fixed
    for agent, tools in offered.items():
        yield from ((agent, name) for name, is_offered in tools.items() if not is_offered)
