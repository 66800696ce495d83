"""The agents that a config declares: under `agents`, and in files of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import CoreSchema, ValidationError, core_schema

from octo import registry
from octo.config import environment, literal
from octo.config.document import Document, parse
from octo.errors import ConfigError, Excerpt, Location, Problem, did_you_mean
from octo.fields import Model
from octo.refusals import refusal
from octo.values import Json, kind_of

if TYPE_CHECKING:
    from octo.config.context import Context
    from octo.config.environment import Environment
    from octo.config.merge import Merged
    from octo.config.problems import Describer

FOLDER: Final = "agents"
"""Where agent files are looked for, beside the config, when it does not say where."""
SUFFIX: Final = ".agent.yaml"


LITERAL: Final = "this looks like a secret, and agents are kept with all their versions"
LITERAL_HINT: Final = "declare a variable under `env:` with `secret: true`, and write `${NAME}`"


class AgentEntry:
    """An agent under `agents`, as it is written; it is checked apart from the rest."""

    def __init__(self, written: dict[str, Json]) -> None:
        self.written = written

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        def read(value: Any) -> AgentEntry:
            if not isinstance(value, dict):
                raise refusal(f"expected an agent, found {kind_of(value)}", "an agent is a mapping")
            return cls(value)

        return core_schema.no_info_plain_validator_function(read)


@dataclass(frozen=True, slots=True)
class DeclaredAgent:
    """An agent that the config declares, checked."""

    name: str
    written: Mapping[str, Json]
    """What stands there: references such as `${NAME}` are in it as they are written."""
    source: Path
    """The file, by its absolute path."""
    path: tuple[str | int, ...]
    """Where it stands in the config."""
    location: Location
    """Where it begins, in its file."""
    agent: Model | None
    """The same, with references filled in; None where names in it lead nowhere, which matters when it works."""


@dataclass(frozen=True, slots=True)
class AgentFile:
    """A file that holds one agent."""

    name: str
    path: Path
    document: Document


def files(documents: Sequence[Document], root: Path) -> tuple[list[AgentFile], list[Path], list[Problem]]:
    """The agent files of the directories that the documents list, what was looked at, and what is wrong with it."""
    found: list[AgentFile] = []
    looked: list[Path] = []
    problems: list[Problem] = []
    for directory in _directories(documents, root, problems):
        looked.append(directory)
        for path in sorted(directory.rglob("*")):
            if path in looked:
                continue
            if not path.name.endswith(SUFFIX):
                if path.name.lower().endswith((SUFFIX, ".agent.yml")):
                    message = f"`{path}` is not read: the name of an agent file ends with `{SUFFIX}`"
                    problems.append(Problem(message, hint="rename it", severity="warning"))
                continue
            looked.append(path)
            try:
                document = parse(path.read_bytes(), str(path), what="agent file")
            except ConfigError as error:
                problems += error.problems
            except OSError as error:
                problems.append(
                    Problem(f"agent file `{path}` cannot be read: {(error.strerror or str(error)).lower()}")
                )
            else:
                name = path.relative_to(directory).as_posix().removesuffix(SUFFIX)
                found.append(AgentFile(name, path, document))
    return found, looked, problems


def _directories(documents: Sequence[Document], root: Path, problems: list[Problem]) -> Iterator[Path]:
    listed = False
    for document in documents:
        folders = document.data.get("agentDirs") if isinstance(document.data, dict) else None
        for index, folder in enumerate(folders if isinstance(folders, list) else ()):
            listed = True
            if not isinstance(folder, str):
                continue  # the config model says so
            if (root / folder).is_dir():
                yield root / folder
            else:
                known = [path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")]
                hint = did_you_mean(folder, known) or "make it, or take it off the list"
                problems.append(
                    document.problem(f"there is no directory `{folder}` of agents", ("agentDirs", index), hint=hint)
                )
    if not listed and (root / FOLDER).is_dir():
        yield root / FOLDER


def check(
    merged: Merged, context: Context, describer: Describer, values: Environment
) -> tuple[list[DeclaredAgent], list[Problem]]:
    """The declared agents, and what is wrong with them. What they refer to may be missing until they work."""
    declared: list[DeclaredAgent] = []
    problems: list[Problem] = []
    entries = merged.data.get("agents")
    for index, written in enumerate(entries if isinstance(entries, list) else ()):
        if not isinstance(written, dict):
            continue
        document, place = merged.origin(("agents", index))
        filled, unresolved, found = environment.filled_in_part(written, document, place, values)
        problems += found
        agent: Model | None = None
        try:
            agent = registry.named_agent().model_validate(filled, context=context)
        except ValidationError as error:
            faults = list(describer.problems(error, below=("agents", index), unresolved=unresolved))
            problems += faults
            if all(fault.severity == "warning" for fault in faults) and not _has_prompt(written):
                problems.append(describer.at(("agents", index), "ai-agent requires a prompt", "add `prompt:`"))
        for path in literal.secrets(written):
            problem = describer.at(("agents", index, *path), LITERAL, LITERAL_HINT, warning=True)
            problems.append(replace(problem, excerpt=Excerpt("***", 1, 3)))
        name = written.get("name")
        if not isinstance(name, str) or not name:
            if name in (None, ""):
                problems.append(describer.at(("agents", index), "an agent requires a `name`", "add `name:`"))
            continue
        source = Path(document.file).absolute()
        declared.append(DeclaredAgent(name, written, source, ("agents", index), document.location(place), agent))
    return declared, problems


def _has_prompt(written: Mapping[str, Json]) -> bool:
    """Whether it says what to do; what the model of an agent says of that is not asked where a name leads nowhere."""
    prompt = written.get("prompt", written.get("system_prompt"))
    return bool(prompt.strip()) if isinstance(prompt, str) else prompt is not None
