"""What validation may ask of the config that it is part of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from octo import registry
from octo.config import environment, resources
from octo.config.templates import Templates
from octo.errors import OctoError
from octo.values import Json

if TYPE_CHECKING:
    from octo.config.model import Config


class Context:
    """What there is to refer to: connectors, processors, files, types."""

    natural = staticmethod(environment.natural)

    def __init__(self, root: Path, data: Mapping[str, Json], read: set[Path], *, mocked: bool) -> None:
        self.root = root
        self.mocked = mocked
        self._read = read
        self.shared: dict[object, Any] = {}
        self.refs: list[str] = []
        self._types: dict[object, type[Any] | OctoError] = {}
        self.templates = Templates(root)
        self.processors: Mapping[str, Mapping[str, Json]] = {
            str(entry["name"]): entry for entry in _named(data.get("processors"))
        }
        self.connectors: Mapping[str, str] = {
            str(entry["name"]): str(entry.get("type")) for entry in _named(data.get("connectors"))
        }

    @classmethod
    def of(cls, config: Config) -> Self:
        """For what is read when the config has been loaded, such as agents that blocks link."""
        processors: list[Json] = [
            {"name": named.name, "type": named.type, "settings": named.settings} for named in config.processors
        ]
        connectors: list[Json] = [{"name": found.instance, "type": found.type} for found in config.connectors]
        context = cls(config.root, {"processors": processors, "connectors": connectors}, set(), mocked=False)
        context.templates = config.templates
        return context

    def block(self, type: str) -> type[Any]:
        return self._remembered(registry.block, type)

    def connector(self, type: str) -> type[Any]:
        return self._remembered(registry.connector, type)

    def _remembered(self, find: Callable[[str], type[Any]], type_name: str) -> type[Any]:
        """What a type name leads to; looking for one that leads nowhere takes long."""
        key = (find, type_name)
        if key not in self._types:
            try:
                self._types[key] = find(type_name)
            except OctoError as error:
                self._types[key] = error
        found = self._types[key]
        if isinstance(found, OctoError):
            raise found
        return found

    def read(self, resource: str) -> str:
        self._read.add(self.root / resource)
        return resources.read_text(self.root, resource)

    def declare(self, template: str, alias: str | None) -> None:
        self._read.add(self.root / template)
        self.templates.declare(template, alias)


def _named(entries: Json) -> Iterator[dict[str, Json]]:
    """The entries that have a name; what is wrong with the others is reported by the models."""
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name"):
            yield entry
