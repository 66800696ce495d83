"""The value of an agent as YAML that people read, and the difference between two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from octo.values import Json, native

_FIRST: Final = ("name", "description", "connector", "model", "reasoningEffort", "prompt")
"""Keys that stand first; the others follow by their letters, the tools last."""
_FIRST_OF_TOOLS: Final = ("name", "description", "agent", "flow", "inputSchema", "inputs", "process")
_FIRST_OF_ENTRIES: Final = ("name", "type", "settings")
_FIRST_OF_BLOCKS: Final = ("type", "ref", "name", "settings")
_CONTEXT: Final = 3


def yaml_text(value: Mapping[str, Json]) -> str:
    """A value as YAML: the same for all ways of writing it, texts of several lines as blocks."""
    return _dump(_arranged(native(dict(value)), _FIRST, last=("tools",)))


def yaml_document(document: Mapping[str, Json]) -> str:
    """A config as YAML: its sections in their own order, what is in them as in values of agents."""
    return _dump({key: _section(key, item) for key, item in native(dict(document)).items()})


def _section(key: str, entries: Json) -> Json:
    if key in ("connectors", "processors"):
        return [_arranged(entry, _FIRST_OF_ENTRIES) for entry in entries]
    return _arranged(entries)


def _dump(value: Json) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
            return super().increase_indent(flow, False)

    def text(dumper: Any, words: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", words, style="|" if "\n" in words else None)

    Dumper.add_representer(str, text)
    Dumper.ignore_aliases = lambda self, data: True  # type: ignore[method-assign]  # values stand alone
    return yaml.dump(value, Dumper=Dumper, allow_unicode=True, sort_keys=False, width=float("inf"))


def _arranged(value: Json, first: tuple[str, ...] = (), last: tuple[str, ...] = ()) -> Json:
    if isinstance(value, list):
        return [_arranged(item, _leading(item)) for item in value]
    if not isinstance(value, dict):
        return value
    rank = {key: at - len(first) for at, key in enumerate(first)} | dict.fromkeys(last, 1)
    keys = sorted(value, key=lambda key: (rank.get(key, 0), key))
    return {key: _arranged(value[key], _leading(value[key])) for key in keys}


def _leading(value: Json) -> tuple[str, ...]:
    if isinstance(value, dict) and ("type" in value or "ref" in value):
        return _FIRST_OF_BLOCKS
    if isinstance(value, dict) and "name" in value:
        return _FIRST_OF_TOOLS
    return _FIRST if isinstance(value, dict) and "prompt" in value else ()


def difference(old: Mapping[str, Json], new: Mapping[str, Json], names: tuple[str, str]) -> list[str]:
    """The unified difference of two values as YAML, line by line; empty when they are equal."""
    from difflib import unified_diff

    return list(unified_diff(yaml_text(old).splitlines(), yaml_text(new).splitlines(), *names, lineterm="", n=_CONTEXT))


def changed_paths(old: Json, new: Json, path: str = "") -> Iterator[str]:
    """Where two values differ, as deep as they have the same shape."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            below = f"{path}.{key}" if path else key
            if key in old and key in new:
                yield from changed_paths(old[key], new[key], below)
            else:
                yield below
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from changed_paths(one, other, f"{path}[{_called(one, other, index)}]")
    elif old != new:
        yield path


def _called(one: Json, other: Json, index: int) -> str:
    """An item by its name, if both have the same."""
    if isinstance(one, dict) and isinstance(other, dict) and one.get("name") and one["name"] == other.get("name"):
        return str(one["name"])
    return str(index)
