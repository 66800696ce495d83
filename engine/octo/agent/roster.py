"""The tools of an agent together: what is wrong with them, how a block changes and narrows them, what is offered."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from octo.agent.entry import WEB_SEARCH, PlainEntry
from octo.agent.skills import Skill, loader
from octo.agent.tools import RESERVED, Tool
from octo.block import Finding
from octo.chat_connector import ChatConnector
from octo.config.explain import CallableTool, Parameter
from octo.errors import OctoError, did_you_mean, near
from octo.refusals import Refusals
from octo.values import Json, kind_of

if TYPE_CHECKING:
    from octo.agent.bindings import Binding
    from octo.agent.inputs import BlockInput
    from octo.agent.model import Brain
    from octo.config.model import Config
    from octo.run import Run

E = TypeVar("E", bound=PlainEntry)

Overlay: TypeAlias = Mapping[str, Mapping[str, "Binding"]]
"""Names of tools, each with parameters that are bound in another way."""
NOTHING_LAID_OVER: Final[Overlay] = MappingProxyType({})

_NAME: Final = re.compile("[A-Za-z0-9_]{1,64}")
"""Names of the tools of an agent that is used in more than one place."""


@dataclass(frozen=True, slots=True)
class Roster:
    """What the model may call in one run."""

    tools: tuple[Tool, ...] = ()
    web_search: bool = False

    def with_tools(self, tools: tuple[Tool, ...]) -> Roster:
        """The same with some more, last in the list."""
        return Roster((*self.tools, *tools), self.web_search)


def offered(entries: Sequence[PlainEntry], skills: Sequence[Skill]) -> Roster:
    """What is offered to the model: the tools in their order, then the one that loads skills."""
    tools: list[Tool] = [entry for entry in entries if not entry.web_search]
    if skills:
        tools.append(loader(skills))
    return Roster(tuple(tools), any(entry.web_search for entry in entries))


def laid_over(entries: Iterable[E], overlay: Overlay) -> tuple[E, ...]:
    """The tools with some parameters bound in another way; what the overlay does not name stays as it is."""
    return tuple(
        entry.laid_over(overlay[entry.name]) if entry.name in overlay and not entry.web_search else entry
        for entry in entries
    )


async def described(entries: tuple[E, ...], run: Run) -> tuple[E, ...]:
    """The tools, each with words for the model: those that only name an agent have the words of that."""
    if not any(entry.link and not entry.description.strip() for entry in entries):
        return entries
    from octo.agent import linked  # which knows all kinds of tools

    return tuple(
        [
            entry.model_copy(update={"description": await linked.description(entry.link, run) or entry.name})
            if entry.link and not entry.description.strip()
            else entry
            for entry in entries
        ]
    )


def unmatched(entries: Iterable[PlainEntry], overlay: Overlay) -> int:
    """How many names of an overlay no tool has."""
    return len(overlay.keys() - {entry.name for entry in entries if not entry.web_search})


def narrowed(entries: tuple[E, ...], enabled: Json, run: Run) -> tuple[E, ...]:
    """The tools that `enabledTools` names, in their own order; all of them when it is null. Raises OctoError."""
    if enabled is None:
        return entries
    if fault := _no_names(enabled):
        raise OctoError(fault)
    unknown = set(enabled) - {entry.enable_name for entry in entries}
    if unknown:  # never which ones, for a name may come from a secret
        run.log("info", "names in enabledTools that no tool has", count=float(len(unknown)))
    return tuple(entry for entry in entries if entry.enable_name in enabled)


def _no_names(enabled: Json) -> str:
    """What is wrong with a value of `enabledTools` that is no list of names."""
    if isinstance(enabled, list) and all(isinstance(name, str) for name in enabled):
        return ""
    found = "a list with other things in it" if isinstance(enabled, list) else kind_of(enabled)
    return f"ai-agent: `enabledTools` must be a list of names, got {found}"


def explained(
    entries: Sequence[PlainEntry], overlay: Overlay, config: Config, agent: str = ""
) -> Iterator[CallableTool]:
    """The tools with their parameters, each with the binding that fills it in and where that is written.

    `agent` is the name of the one that they belong to, if it is not written in the block.
    """
    for index, entry in enumerate(laid_over(entries, overlay)):
        if entry.web_search:
            yield CallableTool(WEB_SEARCH, "webSearch", ())
            continue
        properties = entry.definition(config).input_schema.get("properties")
        found = [Parameter(name, None, ()) for name in (properties if isinstance(properties, dict) else ())]
        for name, binding in entry.filled.items():
            own = agent or ("tools", index, "inputs", name)
            over = name in overlay.get(entry.name, {})
            found.append(Parameter(name, binding, ("toolInputs", entry.name, name) if over else own))
        yield CallableTool(entry.name, entry.shown_kind, tuple(found))


# ---------------------------------------------------------------- what is wrong


def sound(entries: tuple[E, ...], skills: Sequence[Skill], *, shared: bool = False) -> tuple[E, ...]:
    """The tools of an agent, with nothing wrong with them. Raises ValidationError with all that is."""
    refusals = Refusals()
    for text, path, hint in faults(entries, {skill.name for skill in skills}, shared=shared):
        refusals.add(text, *path, hint=hint)
    refusals.raise_if_any()
    return entries


def faults(
    entries: Sequence[PlainEntry], skills: Collection[str] = (), *, shared: bool = False
) -> Iterator[tuple[str, tuple[int | str, ...], str | None]]:
    """What is wrong with the tools of an agent: texts, where below `tools`, and what to do.

    Tools that are `shared`, those of an agent which is no block, have narrower names and need no description.
    """
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        if entry.web_search:
            yield from _faults_of_search(index, entry, WEB_SEARCH in seen)
            seen.add(WEB_SEARCH)
            continue
        if not entry.name.strip():
            yield f"ai-agent requires a name for tool {index}", (index,), None
            continue
        tool = f"ai-agent tool `{entry.name}`"
        if entry.name in RESERVED or entry.name == WEB_SEARCH:
            yield f"{tool}: the name is reserved", (index, "name"), None
        elif entry.name in seen:
            yield f"{tool} is declared twice", (index, "name"), None
        elif entry.name in skills:
            yield f"{tool}: a skill has the same name", (index, "name"), None
        elif shared and not _NAME.fullmatch(entry.name):
            yield f"{tool}: a name has 1 to 64 letters, digits and `_`", (index, "name"), None
        seen.add(entry.name)
        yield from _faults_of_kind(index, entry, tool)
        if not (entry.description.strip() or shared) and entry.kinds in ([], ["process"]):
            yield f"{tool} requires a description", (index, "description"), None


def _faults_of_kind(
    index: int, entry: PlainEntry, tool: str
) -> Iterator[tuple[str, tuple[int | str, ...], str | None]]:
    match entry.kinds:
        case []:
            others = " or ".join(f"`{key}`" for key in entry.kind_keys if key != "process")
            yield f"{tool} requires `process`", (index,), f"or {others}"
        case [key]:
            for useless in entry.useless:
                yield f"{tool}: `{useless}` has no effect beside `{key}`", (index, useless), "remove it"
            if twice := entry.spelled_twice(entry.inputs):
                yield f"{tool}: {_two_spellings(*twice)}", (index, "inputs", twice[1]), "keep one of them"
        case keys:
            yield f"{tool}: {' and '.join(f'`{key}`' for key in keys)} exclude each other", (index,), "keep one of them"


def _two_spellings(one: str, other: str) -> str:
    return f"`{one}` and `{other}` are two spellings of one key"


def _faults_of_search(
    index: int, entry: PlainEntry, again: bool
) -> Iterator[tuple[str, tuple[int | str, ...], str | None]]:
    if again:
        yield "ai-agent: `webSearch` is declared twice", (index,), None
    for name in sorted(entry.model_fields_set - {"web_search"}):
        key = next(key for key, attribute in entry.yaml_keys().items() if attribute == name)
        yield f"ai-agent tool {index}: `{key}` has no effect beside `webSearch`", (index, key), "remove it"


@runtime_checkable
class KnowsPartOfSchemas(Protocol):
    """A connector whose API knows a part of JSON Schema only."""

    def weakened(self, schema: Json) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """What the schema of a tool says that the model is not told: where, and what became of it."""


def check(entries: Sequence[PlainEntry], agent: Brain, config: Config) -> Iterator[Finding]:
    """What is wrong with the tools once the whole config is known; paths are below the agent."""
    provider: object = config.connector(agent.connector or "")
    for index, entry in enumerate(entries):
        for finding in entry.check(config):
            yield Finding(finding.message, ("tools", index, *finding.path), finding.hint, finding.warning)
        if entry.web_search:
            if isinstance(provider, ChatConnector) and not provider.knows_web_search((agent.model or "").strip()):
                yield Finding(
                    f'ai-agent: connector "{agent.connector}" reaches no model that searches the web',
                    ("tools", index, "webSearch"),
                    "give the agent a tool that searches, or another connector",
                )
        elif isinstance(provider, KnowsPartOfSchemas):
            for path, text in provider.weakened(entry.definition(config).input_schema):
                yield Finding(
                    f'ai-agent tool `{entry.name}`: connector "{agent.connector}" cannot tell the model all of its '
                    f"schema: {text}",
                    ("tools", index, "inputSchema", *path),
                    "arguments are checked against the whole schema all the same" if entry.validate_input else None,
                    warning=True,
                )


def check_enabled(entries: Sequence[PlainEntry], enabled: BlockInput) -> Iterator[Finding]:
    """What is wrong with `enabledTools`, as far as it is the same for all messages."""
    names = enabled.fixed
    if names is None:
        return
    if fault := _no_names(names):
        yield Finding(fault, ("enabledTools",), "for example `[search, order]`")
        return
    known = [entry.enable_name for entry in entries]
    for index, name in enumerate(names):
        if name not in known:
            text = f"ai-agent: no tool `{name}` is there to enable"
            yield Finding(text, ("enabledTools", index), did_you_mean(name, known), warning=True)


def check_overlay(entries: Sequence[PlainEntry], overlay: Overlay) -> Iterator[Finding]:
    """What an overlay says that has no effect, or that may be a slip."""
    known = {entry.name: entry for entry in entries if not entry.web_search}
    for name, inputs in overlay.items():
        entry = known.get(name)
        if entry is None and name == WEB_SEARCH and any(entry.web_search for entry in entries):
            text = "ai-agent: the search of the web takes no inputs, so none is bound"
            yield Finding(text, ("toolInputs", name), "remove it", warning=True)
            continue
        if entry is None:
            hint = did_you_mean(name, known)
            yield Finding(f"ai-agent: no tool `{name}` is there to bind", ("toolInputs", name), hint, warning=True)
            continue
        if twice := entry.spelled_twice(inputs):
            text = f"ai-agent tool `{name}`: {_two_spellings(*twice)}"
            yield Finding(text, ("toolInputs", name, twice[1]), "keep one of them")
        yield from _check_parameters(entry, inputs, ("toolInputs", name))


def check_inputs(entries: Sequence[PlainEntry]) -> Iterator[Finding]:
    """What the tools themselves bind that may be a slip."""
    for index, entry in enumerate(entries):
        yield from _check_parameters(entry, entry.inputs, ("tools", index, "inputs"))


def _check_parameters(entry: PlainEntry, inputs: Iterable[str], path: tuple[str | int, ...]) -> Iterator[Finding]:
    parameters = entry.parameters
    for parameter in inputs:
        if parameters is not None and parameter not in parameters:
            match = near(parameter, parameters)
            hint = f"did you mean `{match}`?" if match else "it is passed on all the same"
            text = f"ai-agent tool `{entry.name}` has no parameter `{parameter}`"
            yield Finding(text, (*path, parameter), hint, warning=True)
