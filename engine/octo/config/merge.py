"""One config from the files of a directory, or from one file; what is written where stays known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from octo.config.agents import AgentFile
from octo.config.document import Document, parse
from octo.config.document import Path as Place
from octo.errors import ConfigError, Problem, near, shortened
from octo.values import Json, kind_of

_NAMED = {"connectors": "connector", "processors": "processor", "flows": "flow", "agents": "agent"}
_ONCE = ("service", "aiPricing", "store")
_EXTENSIONS = (".yaml", ".yml")


def read(path: Path) -> tuple[Document, ...]:
    """Read one file, or every config file of a directory. Raises ConfigError with the problems of all files."""
    try:
        if path.is_dir():
            return _read_directory(path)
        if not path.exists():
            raise ConfigError([no_such_file(path)])
    except OSError as error:  # a name too long, a directory that may not be read
        raise ConfigError([_unreadable(path, error)]) from None
    documents = _parse_all([path])
    if any(_is_agent(document) for document in documents):
        text = f"`{path}` holds an agent, and not a config"
        raise ConfigError([Problem(text, hint="`octo validate` checks it; a config declares it, and links it")])
    return documents


def _is_agent(document: Document) -> bool:
    """Whether a file of which the name says that it holds an agent does so."""
    data = document.data
    return document.file.lower().endswith(".agent.yaml") and isinstance(data, dict) and "flows" not in data


def no_such_file(path: Path) -> Problem:
    """What is wrong with the path of a config where nothing is."""
    siblings: list[str] = []
    if path.parent.is_dir():
        siblings = sorted(file.name for file in path.parent.iterdir() if file.suffix.lower() in _EXTENSIONS)
    match = near(path.name, siblings)
    return Problem(f"config `{path}` does not exist", hint=f"did you mean `{path.parent / match}`?" if match else None)


def _read_directory(directory: Path) -> tuple[Document, ...]:
    found = sorted(
        file
        for file in directory.iterdir()
        if file.suffix.lower() in _EXTENSIONS and (file.is_file() or file.is_symlink())
    )
    files = [file for file in found if not file.stem.endswith("_test")]
    if not files:
        hint = "its only YAML files are test suites" if found else "name a file, or a directory with `.yaml` files"
        raise ConfigError([Problem(f"directory `{directory}` holds no config file", hint=hint)])
    agents = [file for file in files if file.stem.endswith(".agent")]
    if agents:
        others = _parse_all([file for file in files if file not in agents])
        if any(_lists_agents_of(document, directory) for document in others):
            return others
    return _parse_all(files)


def _lists_agents_of(document: Document, directory: Path) -> bool:
    """Whether the directory itself is listed as one that holds agent files."""
    folders = document.data.get("agentDirs") if isinstance(document.data, dict) else None
    here = directory.resolve()
    return isinstance(folders, list) and any(
        isinstance(folder, str) and (here / folder).resolve() == here for folder in folders
    )


def _unreadable(path: Path, error: OSError) -> Problem:
    return Problem(f"config `{path}` cannot be read: {(error.strerror or str(error)).lower()}")


def _parse_all(files: Sequence[Path]) -> tuple[Document, ...]:
    documents: list[Document] = []
    problems: list[Problem] = []
    for file in files:
        try:
            documents.append(_parse(file))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return tuple(documents)


def _parse(file: Path) -> Document:
    try:
        text = file.read_bytes()
    except OSError as error:
        raise ConfigError([_unreadable(file, error)]) from None
    document = parse(text, str(file))
    if document.data is None:
        return document.with_data({})
    if not isinstance(document.data, dict):
        found = kind_of(document.data)
        message = f"parse config: expected a mapping with keys such as `flows`, found {found}"
        raise ConfigError([replace(document.problem(message, ()), length=1)])
    return document


@dataclass(frozen=True)
class Merged:
    """The files as one config."""

    data: dict[str, Json]
    documents: tuple[Document, ...]
    _origins: Mapping[Place, tuple[Document, Place]] = field(repr=False)

    def origin(self, path: Place) -> tuple[Document, Place]:
        """The document in which a path of the merged data was written, and the path there."""
        for length in range(min(len(path), 3), 0, -1):
            if path[:length] in self._origins:
                document, place = self._origins[path[:length]]
                return document, place + path[length:]
        return self.documents[0], path


def merge(documents: Sequence[Document], agent_files: Sequence[AgentFile] = ()) -> tuple[Merged, list[Problem]]:
    """Join the documents in order, and agent files as more entries of `agents`.

    A value of the wrong kind is passed on, for the config model to refuse.
    """
    merging = _Merging()
    for document in documents:
        for key, value in document.data.items():
            if value is not None:
                merging.add(document, key, value)
    for document in documents:
        for key in document.data:
            if key not in merging.data:  # without a value in any document
                merging.put(document, (key,), None)
    for file in agent_files:
        merging.add_agent(file)
    return Merged(merging.data, tuple(documents), merging.origins), merging.problems


class _Merging:
    def __init__(self) -> None:
        self.data: dict[str, Json] = {}
        self.origins: dict[Place, tuple[Document, Place]] = {}
        self.problems: list[Problem] = []
        self.names: dict[tuple[str, str], Problem] = {}
        self.seen: set[tuple[str, str]] = set()

    def add(self, document: Document, key: str, value: Json) -> None:
        if key in _NAMED or key == "agentDirs":
            self.concatenate(document, key, value)
        elif key == "env":
            self.unite(document, (key,), value, lambda entry: entry.get("name"))
        elif key == "resources" and isinstance(value, dict):
            self.add_resources(document, value)
        elif key in _ONCE and key in self.data:
            self.add_again(document, key, value)
        elif key not in self.data or self.data[key] in ({}, []):
            self.put(document, (key,), value)

    def put(self, document: Document, path: Place, value: Json, place: Place | None = None) -> None:
        """Set a value of the merged data, and where it comes from."""
        target: Json = self.data
        for step in path[:-1]:
            target = target[step]
        if isinstance(target, list):
            target.append(value)
        else:
            target[path[-1]] = value
        self.origins[path] = document, path if place is None else place

    def list_at(self, document: Document, path: Place, value: Json) -> list[Json] | None:
        """The merged list that a document's value continues; None when either is no list."""
        target: Json = self.data
        for step in path[:-1]:
            target = target[step]
        if not isinstance(value, list):
            self.put(document, path, value)
            return None
        if path[-1] not in target:
            self.put(document, path, [])
        merged = target[path[-1]]
        return merged if isinstance(merged, list) else None

    def concatenate(self, document: Document, key: str, value: Json) -> None:
        entries = self.entries(document, key, value)
        merged = self.list_at(document, (key,), value if entries is None else [])
        if merged is None or entries is None:
            return
        for place, entry in entries:
            self.put(document, (key, len(merged)), entry, place)
            if key in _NAMED and isinstance(entry, dict):
                self.check_name(document, key, place, entry.get("name"))

    def entries(self, document: Document, key: str, value: Json) -> Iterable[tuple[Place, Json]] | None:
        """The entries of a list, or of the mapping form of `agents`, with their places."""
        if isinstance(value, list):
            return [((key, index), entry) for index, entry in enumerate(value)]
        if key == "agents" and isinstance(value, dict):
            return self.named_agents(document, value)
        return None

    def named_agents(self, document: Document, agents: dict[str, Json]) -> Iterator[tuple[Place, Json]]:
        for name, agent in agents.items():
            place: Place = ("agents", name)
            if not isinstance(agent, dict):
                yield place, agent
                continue
            if agent.get("name", name) != name:
                message = f'agent "{name}" is given another name'
                hint = "leave `name` out; the key is the name"
                self.problems.append(document.problem(message, (*place, "name"), hint=hint))
            yield place, {**agent, "name": name}

    def add_agent(self, file: AgentFile) -> None:
        merged = self.list_at(file.document, ("agents",), [])
        if merged is None:
            return
        data = file.document.data
        if not isinstance(data, dict):
            found = "an empty file" if data is None else kind_of(data)
            self.problems.append(file.document.problem(f"parse agent file: expected an agent, found {found}", ()))
            return
        agent = {**data, "name": data.get("name") or file.name}
        self.put(file.document, ("agents", len(merged)), agent, ())
        self.check_name(file.document, "agents", (), agent["name"])

    def check_name(self, document: Document, key: str, place: Place, name: Json) -> None:
        if not isinstance(name, str) or not name:
            return
        kind = _NAMED[key]
        by_key = bool(place) and isinstance(place[-1], str)
        here = document.problem(
            f'{kind} "{name}" is defined more than once', place if by_key else (*place, "name"), key=by_key
        )
        first = self.names.setdefault((key, str(name)), here)
        if first is not here:
            hint = f"the first one is at {first.location}; rename one of them"
            self.problems.append(replace(here, hint=hint))

    def add_resources(self, document: Document, value: dict[str, Json]) -> None:
        if not isinstance(self.data.get("resources", {}), dict):
            return
        if "resources" not in self.data:
            self.put(document, ("resources",), {})
        for key, entries in value.items():
            if entries is None:
                continue
            if key == "env":
                self.unite(document, ("resources", key), entries, lambda entry: entry)
            elif key == "templates":
                self.unite(
                    document, ("resources", key), entries, lambda entry: entry.get("as") or entry.get("resource")
                )
            elif key not in self.data["resources"]:
                self.put(document, ("resources", key), entries)

    def unite(self, document: Document, path: Place, value: Json, identity: Callable[[Json], Json]) -> None:
        """Concatenate, and leave out what an earlier entry has said already."""
        merged = self.list_at(document, path, value)
        if merged is None:
            return
        for index, entry in enumerate(value):
            name = identity(entry) if isinstance(entry, dict) or path == ("resources", "env") else None
            if isinstance(name, str):
                mark = (str(path[-1]), str(name))
                if mark in self.seen:
                    continue
                self.seen.add(mark)
            self.put(document, (*path, len(merged)), entry, (*path, index))

    def add_again(self, document: Document, key: str, value: Json) -> None:
        """A section that only one file may have. An empty one counts as none."""
        if not value:
            return
        if not self.data[key]:
            self.put(document, (key,), value)
            return
        first, place = self.origins[(key,)]
        hint = f"the first one is at {first.location(place, key=True)}; keep one of them"
        self.problems.append(
            document.problem(f"`{shortened(key)}` is defined more than once", (key,), key=True, hint=hint)
        )
