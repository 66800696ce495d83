"""From the type name in a config to the class that has it: by file name, then by installed plug-in.

`cache-scope` is the file `cache_scope.py`, `if` is `if_.py`; when there is no such file, last words are dropped,
so that `object-read` and `object-write` can share `object.py`. Nothing is imported that no config names.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from octo.block import Block
from octo.connector import Connector
from octo.errors import ConfigError, OctoError, Problem, did_you_mean
from octo.fields import Model
from octo.values import Json

if TYPE_CHECKING:
    from octo.runtime import Runtime

T = TypeVar("T", Block, Connector)

INTERNAL = frozenset({"breakpoint", "spy", "mock"})
"""Block types of the debugging tools, which no config may name."""


def block(type_name: str) -> type[Block]:
    """The class of a block type; raises OctoError with a near miss."""
    return _find(type_name, Block, "blocks", "block")


def connector(type_name: str) -> type[Connector]:
    """The class of a connector type; raises OctoError with a near miss."""
    return _find(type_name, Connector, "connectors", "connector")


def named_agent() -> type[Model]:
    """The class of an agent that has a name."""
    found: type[Model] = import_module("octo.agent.value").NamedAgent
    return found


def keep_agents() -> Callable[[Runtime], Awaitable[Mapping[str, dict[str, Json]]]]:
    """What brings the agents of a config into the store of its runtime."""
    keep: Callable[[Runtime], Awaitable[Mapping[str, dict[str, Json]]]] = import_module("octo.agent.declared").keep
    return keep


def check_pins() -> Callable[[Runtime], Awaitable[None]]:
    """What refuses links to versions of agents that the store of a runtime does not keep."""
    check: Callable[[Runtime], Awaitable[None]] = import_module("octo.agent.links").check_pins
    return check


@cache
def known(kind: str) -> tuple[str, ...]:
    """Every built-in type name of `blocks` or `connectors`, read from the source without importing it."""
    names: list[str] = []
    for path in sorted((Path(__file__).parent / kind).glob("*.py")):
        names.extend(declared(path))
    return tuple(names)


def offered(kind: str) -> list[str]:
    """Every type name of `blocks` or `connectors`: the built-in ones, and those of installed plug-ins."""
    from importlib.metadata import entry_points

    return sorted({*known(kind), *(point.name for point in entry_points(group=f"octo.{kind}"))})


def declared(path: Path) -> Iterator[str]:
    """The type names that a source file declares (`class Fork(Block, type="fork")`)."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            for word in node.keywords:
                if word.arg == "type" and isinstance(word.value, ast.Constant) and word.value.value:
                    yield str(word.value.value)


def module_names(type_name: str) -> Iterator[str]:
    """The file names that may hold a type, best first."""
    words = type_name.split("-")
    for count in range(len(words), 0, -1):
        name = "_".join(words[:count])
        yield f"{name}_" if keyword.iskeyword(name) else name


def _find(type_name: str, base: type[T], kind: str, word: str) -> type[T]:
    if re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", type_name) and type_name not in INTERNAL:
        for name in module_names(type_name):
            module = _import(f"octo.{kind}.{name}")
            if module is not None:
                found = _declared_in(module, type_name, base)
                if found is not None:
                    return found
        plugin = _plugin(type_name, base, f"octo.{kind}")
        if plugin is not None:
            return plugin
    raise OctoError(f'{word} "{type_name}" not registered', hint=did_you_mean(type_name, known(kind)))


def _import(name: str) -> ModuleType | None:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return None


def _declared_in(module: ModuleType, type_name: str, base: type[T]) -> type[T] | None:
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, base) and value.__dict__.get("type") == type_name:
            return value
    return None


def _plugin(type_name: str, base: type[T], group: str) -> type[T] | None:
    from importlib.metadata import entry_points

    found = entry_points(group=group, name=type_name)
    if not found:
        return None
    if len(found) > 1:
        sources = " and ".join(sorted(point.dist.name if point.dist else "?" for point in found))
        raise ConfigError([Problem(f"`{type_name}` is offered by {sources}", hint="uninstall one of them")])
    cls = next(iter(found)).load()
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise OctoError(f"plug-in `{type_name}` is no {base.__name__.lower()}")
    return cls
