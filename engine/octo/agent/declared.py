"""Agents that a config declares come into the store: once for each change of what is written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from octo.agent import authored
from octo.agent.versions import Change, append
from octo.errors import ConfigError, Location, OctoError, Problem, StoreError, UsageError
from octo.store import agents

if TYPE_CHECKING:
    from sqlite3 import Connection

    from octo.config.model import Config
    from octo.runtime import Runtime
    from octo.store.agents import AgentRow
    from octo.store.store import Store
    from octo.values import Json


@dataclass(frozen=True, slots=True)
class Declared:
    """An agent as a file declares it."""

    name: str
    value: dict[str, Json]
    hash: str
    source: str
    """The file."""
    location: Location


@dataclass(frozen=True, slots=True)
class Pushed:
    """What became of a declared agent."""

    name: str
    version: int
    """The one that is in force now."""
    is_new: bool
    """False when the value was in force already, and only the file is another."""
    before: str = ""
    """The file that it is taken over from, for that does not declare it any more."""


def read(config: Config) -> list[Declared]:
    """The declared agents as they are stored. Raises ConfigError when a file that one names cannot be read."""
    from octo.config.resources import read_text

    found: list[Declared] = []
    problems: list[Problem] = []
    for entry in config.declared_agents:
        try:
            value = authored.authored(entry.written, partial(read_text, config.root))
        except OctoError as error:
            problems.append(Problem(f'agent "{entry.name}": {error.message}', entry.location, error.hint))
        else:
            found.append(Declared(entry.name, value, authored.digest(value), str(entry.source), entry.location))
    if problems:
        raise ConfigError(problems)
    return found


async def keep(runtime: Runtime) -> Mapping[str, dict[str, Json]]:
    """Bring the agents of a config into the store of its runtime; those that it could not take.

    Raises ConfigError when another file has declared one of them in another way.
    """
    config = runtime.config
    if not config.declared_agents:
        return {}
    declared = read(config)
    left: Mapping[str, dict[str, Json]] = _values(declared)
    try:
        left = await to_come(runtime.store, config)
        pushed = await push(runtime.store, declared, Change(user(config.environ), runtime.clock())) if left else []
    except StoreError as error:
        names = ", ".join(f'"{name}"' for name in left)
        which = f"agent {names} runs" if len(left) == 1 else f"agents {names} run"
        runtime.log("warn", f"{which} as declared, and no version is kept: {error.message}")
        return left
    for one in pushed:
        if one.before:
            text = f'agent "{one.name}" is taken over from `{one.before}`, which does not declare it any more'
            runtime.log("info", text)
    if runtime.store.path is None:
        runtime.log("info", "the store is in memory: versions, drafts and memory of agents end with the run")
    return {}


async def push(
    store: Store, declared: Sequence[Declared], change: Change, *, adopt: Collection[str] = ()
) -> list[Pushed]:
    """Store what has changed since it was last taken from the same file, as new versions that are in force.

    What is deployed or restored in the store stays as long as the file says what it said. Agents named by `adopt` are
    taken over from the file that declared them before; else that raises ConfigError.
    """
    news = await store.read(lambda db: _news(db, declared, adopt), list(declared))
    if not news:
        return []
    return await store.write(lambda db: [_take(db, one, change, adopt) for one in _news(db, declared, adopt)])


async def to_come(store: Store, config: Config) -> Mapping[str, dict[str, Json]]:
    """What the next run of a config would bring into the store. Raises ConfigError as that would."""
    declared = read(config)
    return _values(await store.read(lambda db: _news(db, declared, ()), declared))


def _values(declared: Iterable[Declared]) -> dict[str, dict[str, Json]]:
    return {one.name: one.value for one in declared}


def _news(db: Connection, declared: Iterable[Declared], adopt: Collection[str]) -> list[Declared]:
    """Those of which there is something to store. Raises ConfigError for those that belong to another file."""
    news: list[Declared] = []
    problems: list[Problem] = []
    for one in declared:
        row = agents.agent(db, one.name)
        if row is None or not row.source:
            news.append(one)
        elif _is_same(row.source, one.source):
            if row.source_hash != one.hash:
                news.append(one)
        elif one.name in adopt or not _declares(row.source, one.name):
            news.append(one)
        elif one.hash not in (row.hash, row.source_hash):
            problems.append(_belongs_to_another(one, row))
    if problems:
        raise ConfigError(problems)
    return news


def otherwise(db: Connection, name: str, known: Iterable[Declared]) -> str:
    """The file that now declares an agent in another way than it is deployed, if its next run brings that into force.

    `known` are declared agents that have been read; of others, the file that they came from is asked.
    """
    row = agents.agent(db, name)
    if row is None:
        return ""
    one = next((one for one in known if one.name == name), None)
    try:
        if one is None:
            value = source_value(row.source, name)
            one = Declared(name, value, authored.digest(value), row.source, Location(row.source, 1, 1))
        return one.source if _news(db, [one], ()) and one.hash != row.hash else ""
    except OctoError:  # the file is gone, or another one has the agent: nothing comes of it
        return ""


def _take(db: Connection, one: Declared, change: Change, adopt: Collection[str]) -> Pushed:
    row = agents.agent(db, one.name)
    source, taken = (row.source, row.source_hash) if row else ("", "")
    has_moved = bool(source) and one.name not in adopt and not _is_same(source, one.source)
    if row is not None and has_moved and taken == one.hash:  # what was deployed since stays
        version, is_new = row.version, False
    else:
        deployed = append(db, one.name, one.value, change, f"source {one.source}")
        version, is_new = deployed.version, deployed.is_new
    agents.set_source(db, one.name, one.source, one.hash)
    return Pushed(one.name, version, is_new, source if has_moved else "")


def _is_same(one: str, other: str) -> bool:
    """Whether two paths lead to one file."""
    return one == other or Path(one).resolve() == Path(other).resolve()


def _declares(source: str, name: str) -> bool:
    """Whether a file still declares an agent, as far as it can be read."""
    try:
        written = _written(source, name)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ConfigError):
        return True
    return isinstance(written, dict)


def _belongs_to_another(one: Declared, row: AgentRow) -> Problem:
    return Problem(
        f'agent "{one.name}" is declared by `{row.source}`, in another way',
        one.location,
        f"rename one of them, or take it over: `octo agents adopt {one.name} --config PATH`",
    )


def from_text(
    text: bytes | str, file: str, name: str, config: Config | None = None
) -> tuple[dict[str, Json], list[Problem]]:
    """A value out of the text of an agent file, and the warnings that it deserves.

    Without a config nothing is known of what it refers to. Raises ConfigError with all that is wrong.
    """
    from octo.config import agents as config_agents
    from octo.config import merge
    from octo.config.context import Context
    from octo.config.document import parse
    from octo.config.environment import Environment
    from octo.config.load import in_order
    from octo.config.model import Config as Model
    from octo.config.problems import Describer
    from octo.config.resources import read_text

    document = parse(text, file, what="agent file")
    merged, problems = merge.merge([], [config_agents.AgentFile(name, Path(file), document)])
    root = config.root if config else _root(Path(file))
    context = Context.of(config) if config else Context(root, {}, set(), mocked=False)
    environment = config.environment if config else Environment()
    found: list[config_agents.DeclaredAgent] = []
    if not problems:
        found, problems = config_agents.check(merged, context, Describer(Model, merged, context), environment)
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        raise ConfigError(in_order(problems if config else errors))
    try:
        value = authored.authored(found[0].written, partial(read_text, root))
    except OctoError as error:
        raise ConfigError([Problem(error.message, found[0].location, error.hint)]) from error
    if found[0].name != name:
        text = f'this is agent "{found[0].name}", not "{name}"'
        raise ConfigError([Problem(text, document.location(("name",)), f"write `name: {name}`, or leave it out")])
    warnings = [problem for problem in problems if config or problem.message == config_agents.LITERAL]
    return value, in_order([*document.warnings, *warnings])


def source_value(source: str, name: str, config: Config | None = None) -> dict[str, Json]:
    """The value that a file declares at this moment. Raises UsageError when it does not."""
    from octo.config.resources import read_text

    try:
        written = _written(source, name)
    except OSError as error:
        raise UsageError(f"cannot read `{source}`: {(error.strerror or str(error)).lower()}") from error
    if not isinstance(written, dict):
        raise UsageError(f'`{source}` does not declare agent "{name}" any more')
    root = config.root if config else _root(Path(source))
    return authored.authored(written, partial(read_text, root))


def _written(source: str, name: str) -> Json:
    """An agent as it is written in a file; null when it is not there. Raises OSError and ConfigError."""
    from octo.config.agents import SUFFIX
    from octo.config.document import parse

    data = parse(Path(source).read_bytes(), source).data
    if not source.endswith(SUFFIX):
        return _entry(data, name)
    named = data.get("name", name) if isinstance(data, dict) else name
    return data if named == name else None


def _root(file: Path) -> Path:
    """The directory of the config to which a file most likely belongs: agent files lie in `agents` beside it."""
    from octo.config.agents import FOLDER

    folder = next((parent for parent in file.absolute().parents if parent.name == FOLDER), None)
    return folder.parent if folder is not None and file.name.endswith(".agent.yaml") else file.parent


def _entry(data: Json, name: str) -> Json:
    entries = data.get("agents") if isinstance(data, dict) else None
    if isinstance(entries, dict):
        return entries.get(name)
    named = (entry for entry in entries or () if isinstance(entry, dict) and entry.get("name") == name)
    return next(named, None)


def user(environ: Mapping[str, str]) -> str:
    """Who works here: `OCTO_USER`, else the login name."""
    for name in ("OCTO_USER", "LOGNAME", "USER", "LNAME", "USERNAME"):
        if environ.get(name):
            return environ[name]
    return _login()


def _login() -> str:
    import os

    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, AttributeError, KeyError):
        return "unknown"
