"""Agents with all that they need, as one file that can be carried elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from octo.agent import authored, files
from octo.agent.declared import Declared
from octo.agent.references import Reference, references, variables_in
from octo.config import literal
from octo.config.resources import read_text
from octo.errors import ConfigError, OctoError, Problem
from octo.values import Json

if TYPE_CHECKING:
    from octo.config.model import Config

ValueOf = Callable[[str], dict[str, Json] | None]
"""The value of an agent that is deployed."""

FILES: Final = "x-files"
"""Where the texts of files stand, by their paths below the config."""

_SECRET: Final = re.compile("key|token|secret|password|passwd|credential|authorization", re.IGNORECASE)
_USER: Final = re.compile(r"(\b[a-z][a-z0-9+.-]*://)(?![^/?#\s@]*\$\{[^}]*\}@)[^/?#\s@]+@", re.IGNORECASE)
"""The name and the password in an address, unless a variable holds the password."""
_SECTIONS: Final = {"connector": "connectors", "flow": "flows", "processor": "processors"}
_ORDER: Final = ("env", "resources", "connectors", "agents", "processors", "flows", FILES)


def bundle(wanted: Iterable[Reference], value_of: ValueOf, config: Config | None) -> tuple[dict[str, Json], list[str]]:
    """What was wanted with all that it needs, each once, as a config; and a line on each thing that is left out.

    Without a config it holds the agents alone. No credential is in it: where a connector has one written out, a
    variable takes its place.
    """
    written = _Written(config) if config is not None else None
    parts: dict[str, list[Json]] = {}
    texts: dict[str, Json] = {}
    left: list[str] = []
    queue = list(dict.fromkeys(wanted))
    for reference in queue:
        needed: list[Reference] = []
        if reference.kind == "file" and config is not None:
            try:
                texts[reference.name] = text = read_text(config.root, reference.name)
                needed = [*files.needs(reference.name, text, config.root)]
            except OctoError as error:
                left.append(f"{reference} is needed, and cannot be carried: {error.message}")
        elif found := _entry(reference, value_of, written):
            section, entry = found
            if entry not in parts.setdefault(section, []):
                parts[section].append(entry)
            needed = [Reference("file", entry["resource"])] if section == "resources" else references(entry)
            needed += [one for one in variables_in(entry) if written is not None and written.entry(one)]
        elif reference.kind in ("skill", "template"):  # by its path, without a declaration
            needed = [Reference("file", reference.name)]
        else:
            left.append(f"{reference} is needed, and is not there")
        for other in needed:
            if other not in queue and _is_carried(other, written):
                queue.append(other)
    document: dict[str, Json] = {key: parts[key] for key in _ORDER if key in parts}
    if "resources" in document:
        document["resources"] = {"templates": document["resources"]}
    if texts:
        document[FILES] = texts
    return document, left


def unpack(data: Mapping[str, Json], file: str) -> tuple[list[Declared], list[Problem]]:
    """The agents of a bundle, and warnings. Raises ConfigError with all that is wrong with them."""
    from octo.config import agents, merge
    from octo.config.context import Context
    from octo.config.document import parse
    from octo.config.environment import Environment
    from octo.config.model import Config
    from octo.config.problems import Describer

    document = parse(Path(file).read_bytes(), file, what="bundle").with_data(data)
    merged, problems = merge.merge([document])
    context = Context(Path(file).parent, merged.data, set(), mocked=False)
    found, more = agents.check(merged, context, Describer(Config, merged, context), Environment())
    errors = [problem for problem in (*problems, *more) if problem.severity == "error"]
    if errors:
        raise ConfigError(errors)
    texts = files.of_bundle(data.get(FILES), Path(file).parent)

    def read(resource: str) -> str:
        if resource not in texts:
            raise OctoError(f"the bundle does not hold the file `{resource}`")
        return texts[resource]

    declared: list[Declared] = []
    for one in found:
        try:
            value = authored.authored(one.written, read)
        except OctoError as error:
            raise ConfigError([Problem(f'agent "{one.name}": {error.message}', one.location, error.hint)]) from error
        declared.append(Declared(one.name, value, authored.digest(value), str(one.source), one.location))
    return declared, [problem for problem in more if problem.message == agents.LITERAL]


def _entry(reference: Reference, value_of: ValueOf, written: _Written | None) -> tuple[str, Json] | None:
    """The section that holds what is referred to, and how it is written there; None when it is not there."""
    if reference.kind == "agent":
        value = value_of(reference.name)
        return None if value is None else ("agents", {"name": reference.name, **value})
    return written.entry(reference) if written is not None else None


def _is_carried(reference: Reference, written: _Written | None) -> bool:
    return reference.kind == "agent" or written is not None


class _Written:
    """A config as it is written, references such as `${NAME}` left alone."""

    def __init__(self, config: Config) -> None:
        from octo.config import merge

        self._config = config
        self._data = merge.merge(merge.read(config.origin.path))[0].data
        self._made: dict[str, Json] = {}
        """Variables that take the place of what was written out."""

    def entry(self, reference: Reference) -> tuple[str, Json] | None:
        match reference.kind:
            case "variable":
                return self._variable(reference.name)
            case "skill" | "template":
                return self._template(reference.name)
        section = _SECTIONS[reference.kind]
        for entry in self._entries(section):
            if entry.get("name") == reference.name:
                return section, self._without_credentials(entry) if section == "connectors" else entry
        return None

    def _template(self, name: str) -> tuple[str, Json] | None:
        resources = self._data.get("resources")
        templates = resources.get("templates") if isinstance(resources, dict) else None
        for entry in templates if isinstance(templates, list) else ():
            if isinstance(entry, dict) and name in (entry.get("as"), entry.get("resource")):
                return "resources", entry
        return None

    def _variable(self, name: str) -> tuple[str, Json] | None:
        if name in self._made:
            return "env", self._made[name]
        for entry in self._entries("env"):
            if entry.get("name") == name:
                is_secret = entry.get("secret") is True or _SECRET.search(name)
                return "env", {key: item for key, item in entry.items() if key != "default" or not is_secret}
        return None

    def _entries(self, section: str) -> Iterator[dict[str, Json]]:
        entries = self._data.get(section)
        yield from (entry for entry in entries or () if isinstance(entry, dict)) if isinstance(entries, list) else ()

    def _without_credentials(self, connector: dict[str, Json]) -> dict[str, Json]:
        settings = connector.get("settings")
        if not isinstance(settings, dict):
            return connector
        return {**connector, "settings": self._referring(settings, str(connector["name"]))}

    def _referring(self, settings: Mapping[str, Json], prefix: str) -> dict[str, Json]:
        return {key: self._reference(item, key, f"{prefix}_{key}") for key, item in settings.items()}

    def _reference(self, item: Json, key: str, prefix: str) -> Json:
        """What is written below a key, with variables in the place of credentials."""
        if isinstance(item, dict):
            return self._referring(item, prefix)
        if isinstance(item, list):
            return [self._reference(one, key, f"{prefix}_{index}") for index, one in enumerate(item)]
        if not isinstance(item, str) or not item:
            return item
        if "${" not in item and (_SECRET.search(key) or literal.is_secret(item)):
            return self._variable_of(prefix)
        return _USER.sub(lambda found: f"{found[1]}{self._variable_of(prefix + '_user')}@", item)

    def _variable_of(self, prefix: str) -> str:
        """A reference to a variable that holds a credential from now on."""
        name = re.sub(r"\W", "_", prefix).upper()
        self._made[name] = {"name": name, "required": True, "secret": True}
        return f"${{{name}}}"
