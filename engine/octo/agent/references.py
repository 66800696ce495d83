"""What the value of an agent refers to by name: connectors, variables, flows, processors, agents, files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from octo.config.resources import is_file
from octo.values import Json

if TYPE_CHECKING:
    from sqlite3 import Connection

    from octo.config.model import Config

Kind: TypeAlias = Literal["connector", "variable", "flow", "processor", "agent", "skill", "template", "file"]

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_READ: Final = re.compile(r"""(?<![\w.])env(?:\.\??([A-Za-z_]\w*)|\[\??\s*["']([A-Za-z_]\w*)["']\s*\])""")
"""A variable in an expression."""
_CONNECTORS: Final = ("connector", "logger", "mcp")
_ASKED: Final = "llm-"
"""How the types of connectors begin that models are asked through."""
_OF_KINDS: Final[tuple[tuple[str, tuple[str, ...], Kind], ...]] = (
    ("file", ("python", "ref"), "file"),
    ("id", ("template-resource", "ref"), "template"),
    ("script", ("llm-scripted",), "file"),
)
"""Keys that name a file or a template, each with the types of blocks and connectors whose key it is."""
_PROMPTS: Final = ("prompt", "system_prompt")
_RENDERED: Final = re.compile(r"""\btemplateResource\(\s*(?:"([^"\\]+)"|'([^'\\]+)')\s*\)""")
"""The name of a template in an expression, where it is written out."""


class Reference(NamedTuple):
    """A name in a value that leads to something outside of it."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} `{self.name}`"


def references(value: Mapping[str, Json]) -> list[Reference]:
    """What a value refers to, each once, in the order in which it stands there."""
    return list(dict.fromkeys(_found(value)))


def users(db: Connection, name: str) -> list[str]:
    """The other agents that refer to an agent, as they are deployed or in drafts."""
    from octo.agent.versions import decoded
    from octo.store import agents

    wanted = Reference("agent", name)
    found = {other for other, text in agents.values_with(db, name) if wanted in references(decoded(text, other))}
    return sorted(found - {name})


def missing(value: Mapping[str, Json], config: Config, known: Collection[str]) -> list[Reference]:
    """The references that lead nowhere; `known` are the names of the agents that there are."""
    there: dict[Kind, Collection[str]] = {
        "connector": {connector.instance for connector in config.connectors},
        "variable": config.environment.values,
        "flow": {flow.name for flow in config.flows if flow.name},
        "processor": {processor.name for processor in config.processors},
        "agent": known,
    }

    def is_there(reference: Reference) -> bool:
        match reference.kind:
            case "skill" | "template":
                return config.templates.fault(reference.name) is None
            case "file":
                return is_file(config.root, reference.name)
        return reference.name in there[reference.kind]

    return [reference for reference in references(value) if not is_there(reference)]


def variables_in(value: Json) -> Iterator[Reference]:
    """Variables that expressions in a value may read, such as `env.NAME`; any other text may say that, too."""
    match value:
        case str():
            yield from (Reference("variable", one or other) for one, other in _READ.findall(value))
        case list():
            for item in value:
                yield from variables_in(item)
        case dict():
            for item in value.values():
                yield from variables_in(item)


def templates_in(text: str) -> Iterator[Reference]:
    """The templates that the expressions in a text render, as far as their names are written out."""
    yield from (Reference("template", one or other) for one, other in _RENDERED.findall(text))


def _found(value: Json) -> Iterator[Reference]:
    match value:
        case {"resource": str(), "text": str()}:  # a prompt with the text of its file
            return
        case str():
            yield from (Reference("variable", name) for name in _VARIABLE.findall(value))
            yield from templates_in(value)
        case list():
            for item in value:
                yield from _found(item)
        case dict():
            yield from _named_in(value)
            for item in value.values():
                yield from _found(item)


def _named_in(value: Mapping[str, Json]) -> Iterator[Reference]:
    """What the keys of one mapping name."""
    for key in _CONNECTORS:
        if _is_name(value.get(key)):
            yield Reference("connector", value[key])
    yield from (Reference("connector", name) for name in _standing_in(value) if _is_name(name))
    if _is_name(value.get("ref")):
        yield Reference("processor", value["ref"])
    if _is_name(value.get("flow")):
        yield Reference("flow", value["flow"])
    agent = value.get("agent")
    linked = agent.get("name") if isinstance(agent, dict) else agent
    if isinstance(linked, str) and _is_name(linked):
        yield Reference("agent", linked.partition("@")[0])
    skills = value.get("skills")
    for skill in skills if isinstance(skills, list) else ():
        if isinstance(skill, dict) and _is_name(skill.get("resource")):
            yield Reference("skill", skill["resource"])
    for key in _PROMPTS:
        prompt = value.get(key)
        if isinstance(prompt, dict) and prompt.keys() == {"resource"} and _is_name(prompt["resource"]):
            yield Reference("file", prompt["resource"])
    yield from _files_in(value)


def _standing_in(value: Mapping[str, Json]) -> list[Json]:
    """The connectors that stand in for one that is asked models, as they are written: one, or a list."""
    settings = value.get("settings")
    if not str(value.get("type")).startswith(_ASKED) or not isinstance(settings, dict):
        return []
    names = settings.get("fallback")
    return names if isinstance(names, list) else [names]


def _files_in(value: Mapping[str, Json]) -> Iterator[Reference]:
    """The files that a block or a connector names; of one that refers to a processor the type is not seen."""
    settings = value.get("settings")
    given = {**settings, **value} if isinstance(settings, dict) else value
    kind = given.get("type") or ("ref" if "ref" in given else None)
    for key, kinds, found in _OF_KINDS:
        if kind in kinds and _is_name(given.get(key)):
            yield Reference(found, given[key])


def _is_name(value: Json) -> bool:
    return isinstance(value, str) and bool(value) and "${" not in value
