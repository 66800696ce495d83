"""From what validation finds to what a user reads: where, what is wrong, and what to do."""

from __future__ import annotations

import types
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic_core import ErrorDetails, ValidationError

from octo import registry
from octo.block import RESERVED, Block
from octo.config.agents import AgentEntry
from octo.config.document import Path
from octo.config.merge import Merged
from octo.config.model import Processor
from octo.config.parser import MAX_PROBLEMS
from octo.connector import ENTRY_KEYS, SOURCE_KEYS, Connector, Source, source_class
from octo.errors import Location, OctoError, Problem, did_you_mean, near, shortened
from octo.fields import Model
from octo.refusals import LoadContext
from octo.values import Json, kind_of

_SHAPES: Final = {
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dict_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
    "string_type": "text",
}

UNKNOWN: Final = 'unknown field "{}"'
"""What is said of a key that nobody reads."""


_HINTS: Final = {
    "a list": "in a list, each entry stands after `- `",
    "a mapping": "a mapping has a `key: value` on each line",
}


@dataclass(frozen=True, slots=True)
class Level:
    """A mapping of the config and the model that reads it."""

    model: type[Model]
    node: Mapping[str, Json]
    step: str | int = ""
    """The key that it stands under; in a list, its index."""
    above: str = ""
    """The key of the list that it stands in; of the root, what a user calls the file."""

    @property
    def keys(self) -> list[str]:
        """What may stand at this level."""
        own = list(self.model.yaml_keys())
        if issubclass(self.model, Block):
            return [*own, *sorted(RESERVED - {"settings"} if self.model.composite else RESERVED)]
        return own

    @property
    def title(self) -> str:
        """What a user calls this level."""
        if issubclass(self.model, Block):
            return f"block `{self.model.type}`"
        if issubclass(self.model, Connector):
            return f"connector `{self.model.type}`"
        if issubclass(self.model, Source):
            return f"source `{self.model.type}`"
        if self.above == "agents" and self.node.get("name"):
            return f"agent `{self.node['name']}`"
        if isinstance(self.step, int):
            return f"an entry of `{self.above}`"
        return f"`{self.step}`" if self.step else self.above


class Describer:
    """Turns the findings of one validation into problems."""

    def __init__(
        self,
        root: type[Model],
        merged: Merged,
        context: LoadContext,
        *,
        title: str = "the config",
        unknown: str = UNKNOWN,
    ) -> None:
        self._root = root
        self._title = title
        self._unknown_field = unknown
        self._merged = merged
        self._context = context

    def problems(
        self, error: ValidationError, *, below: Path = (), unresolved: Container[Path] = ()
    ) -> Iterator[Problem]:
        """The findings of a validation; of very many, one more than are shown.

        What was validated may stand `below` a path, and hold places in its file that are reported already.
        """
        return islice(self._problems(error, below, unresolved), MAX_PROBLEMS + 1)

    def _problems(self, error: ValidationError, below: Path, unresolved: Container[Path]) -> Iterator[Problem]:
        for details in error.errors(include_url=False):
            details["loc"] = (*below, *details["loc"])
            if details["type"] == "echo" or _counts_faulty_items(details) or self._is_misspelt(details):
                continue
            path: Path = tuple(details["loc"])
            if self.is_unresolved(path) or self._merged.origin(self.written(path))[1] in unresolved:
                continue
            yield self._problem(details)

    def is_unresolved(self, path: Path) -> bool:
        """Whether a reference such as `${NAME}` stands there that leads nowhere, which is reported already."""
        document, origin = self._merged.origin(self.written(path))
        return origin in document.unresolved

    def at(
        self, path: Path, message: str, hint: str | None = None, *, key: bool = False, warning: bool = False
    ) -> Problem:
        """A problem at a path of the merged config."""
        document, origin = self._merged.origin(self.written(path))
        problem = document.problem(message, origin, key=key, hint=hint)
        return replace(problem, severity="warning") if warning else problem

    def locate(self, path: Path) -> Location:
        """The place in the user's files of a path of keys."""
        document, origin = self._merged.origin(self.written(path))
        return document.location(origin)

    def written(self, path: Path) -> Path:
        """The path as it is written: through `settings:`, other spellings, and the processor of a `ref`."""
        found: list[str | int] = []
        node: Json = self._merged.data
        for step in path:
            for way in self._ways(node, step):
                try:
                    target: Any = node if way and way[0] != "processors" else self._merged.data
                    for key in way:
                        target = target[key]
                except (KeyError, IndexError, TypeError):
                    continue
                found = [*way] if way[0] == "processors" else [*found, *way]
                node = target
                break
        return tuple(found)

    def _ways(self, node: Json, step: str | int) -> Iterator[tuple[str | int, ...]]:
        if isinstance(node, list):
            yield (step,)
        if not isinstance(node, dict) or not isinstance(step, str):
            return
        yield (step,)
        yield ("settings", step)
        yield (_snake(step),)
        yield ("settings", _snake(step))
        ref = node.get("ref")
        for index, processor in enumerate(self._merged.data.get("processors") or ()):
            if ref is not None and isinstance(processor, dict) and processor.get("name") == ref:
                yield ("processors", index, "settings", step)

    # ------------------------------------------------------------ one finding

    def _problem(self, details: ErrorDetails) -> Problem:
        path: Path = tuple(details["loc"])
        context = details.get("ctx") or {}
        match details["type"]:
            case "refused":
                return self._refused(path, context)
            case "elsewhere":
                elsewhere: Problem = context["problem"]
                return replace(elsewhere, severity="warning") if _is_asked_later(path) else elsewhere
            case "expression":
                source = context["error"].source.strip()
                document, origin = self._merged.origin(self.written(path))
                return document.expression_problem(
                    context["error"], f'compile expression "{source}": {context["message"]}', origin
                )
            case "missing":
                return self._missing(path)
            case "extra_forbidden":
                return self._unknown(path)
            case "too_short":
                return self.at(path, f"`{path[-1]}` needs at least {_count(context['min_length'])}")
        expected = _SHAPES.get(details["type"])
        if expected is not None:
            if path == ("agents",):
                text = f"`agents`: expected a list or a mapping, found {kind_of(details['input'])}"
                return self.at(path, text, "in a mapping, each agent stands under its name")
            hint = "write `{process: [...]}`" if context.get("class_name") == "SubFlow" else _HINTS.get(expected)
            return self.at(path, _named(path, f"expected {expected}, found {kind_of(details['input'])}"), hint)
        message = details["msg"]
        return self.at(path, message[0].lower() + message[1:])

    def _refused(self, path: Path, context: Mapping[str, Any]) -> Problem:
        at: str = context["at"]
        message, hint = context["message"], context["hint"]
        if context.get("owned"):
            message = self._owned(path, message)
        warning = bool(context.get("refers")) and _is_asked_later(path)
        if at == "value":
            return self.at(path, _named(path, message) if context.get("named") else message, hint, warning=warning)
        if at == "key":
            return self.at(path, message, hint, key=True, warning=warning)
        keys = at.removeprefix("key:").split("/")
        return self.at((*path, *keys), message, hint, key=at.startswith("key:"), warning=warning)

    def _owned(self, path: Path, message: str) -> str:
        """The message after the type and the name of the block around it, if there is one."""
        for level in reversed(self._levels(path[:-1])):
            if issubclass(level.model, Block):
                name = level.node.get("name")
                return f'{level.model.type} "{name}": {message}' if name else f"{level.model.type}: {message}"
        return message

    def _is_misspelt(self, details: ErrorDetails) -> bool:
        """A missing key that stands there misspelt is reported where it stands."""
        if details["type"] != "missing":
            return False
        *path, key = details["loc"]
        owner = self._levels(tuple(path))[-1]
        known = set(owner.keys)
        settings = owner.node.get("settings")
        written = [*owner.node, *(settings if isinstance(settings, dict) else ())]
        return any(near(name, owner.keys) in (key, "settings") for name in written if name not in known)

    def _missing(self, path: Path) -> Problem:
        levels = self._levels(path[:-1])
        key = path[-1]
        owner = levels[-1] if levels else None
        hint = f"add `{key}:`"
        if owner is not None and key in RESERVED and key in owner.node:
            hint = f"`{key}` beside `type` is the block's label; put this one under `settings:`"
        if owner is not None and issubclass(owner.model, Block):
            return self.at(path[:-1], f"{owner.model.type} requires `{key}`", hint)
        if owner is not None and issubclass(owner.model, Connector):
            return self.at(path[:-1], f"connector of type `{owner.model.type}` requires `{key}`", hint)
        if owner is not None and issubclass(owner.model, Source):
            return self.at(path[:-1], f"source of type `{owner.model.type}` requires `{key}`", hint)
        return self.at(path[:-1], f"missing key `{key}`", hint)

    def _unknown(self, path: Path) -> Problem:
        key = str(path[-1])
        levels = self._levels(path[:-1])
        if not levels:
            return self.at(path, self._unknown_field.format(shortened(key)), key=True)
        owner = levels[-1]
        return self.at(
            path,
            f"{self._unknown_field.format(shortened(key))} in {owner.title}",
            self._place_of(key, levels),
            key=True,
        )

    def _place_of(self, key: str, levels: list[Level]) -> str | None:
        """Where an unknown key belongs: its exact home above or below, else the nearest name around."""
        owner = levels[-1]
        around = [
            *self._children(owner, depth=1, blocks=False),
            *self._ancestors(levels[:-1]),
            *self._children(owner, depth=2, blocks=True),
        ]
        for close in (False, True):
            if close and (match := near(key, owner.keys)):
                return f"did you mean `{match}`?"
            for names, where in around:
                match = near(key, names, cutoff=0.9) if close else (key if key in names else None)
                if match is not None:
                    return f"`{match}` belongs {where}"
        return did_you_mean(key, owner.keys)

    def _ancestors(self, levels: list[Level]) -> Iterator[tuple[list[str], str]]:
        for level in reversed(levels):
            if issubclass(level.model, Block):
                yield level.keys, f"further up, beside `type: {level.model.type}`"
            elif level.model is not self._root:
                yield level.keys, f"further up, in {level.title}"
            else:
                yield level.keys, "at the top level"

    def _children(self, owner: Level, *, depth: int, blocks: bool) -> Iterator[tuple[list[str], str]]:
        if issubclass(owner.model, Processor) and (block := self._resolve(Block, owner.node)):
            yield list(block.yaml_keys()), "under `settings:`"
        if issubclass(owner.model, Connector | Source):
            keys = ENTRY_KEYS if issubclass(owner.model, Connector) else SOURCE_KEYS
            yield list(keys), "one level up, beside `settings:`"
        for key, name in owner.model.yaml_keys().items():
            node = owner.node.get(
                key,
                (owner.node.get("settings") or {}).get(key) if isinstance(owner.node.get("settings"), dict) else None,
            )
            for item in node if isinstance(node, list) else [node]:
                child = self._level(owner.model.model_fields[name].annotation, item, key, "")
                if child is None:
                    continue
                where = f"inside `{key}`" if child.node is node else f"inside an entry of `{key}`"
                if issubclass(child.model, Block):
                    if not blocks:
                        continue
                    where = f"in the block `{child.model.type}` of `{key}`"
                yield child.keys, where
                if depth > 1:
                    yield from self._children(child, depth=depth - 1, blocks=blocks)

    # ------------------------------------------------------------ models along a path

    def _levels(self, path: Path) -> list[Level]:
        """The models that read the mappings along a path, outermost first."""
        levels = [Level(self._root, self._merged.data, above=self._title)]
        annotation: Any = None
        node: Json = self._merged.data
        above = ""
        for step in path:
            if isinstance(step, int):
                node = node[step] if isinstance(node, list) and step < len(node) else None
            elif isinstance(node, dict):
                model = levels[-1].model if levels[-1].node is node else None
                name = model.yaml_keys().get(step) if model else None
                annotation = model.model_fields[name].annotation if model and name else annotation
                settings = node.get("settings")
                node = node.get(step, settings.get(step) if isinstance(settings, dict) else node.get(_snake(step)))
            owner = levels[-1]
            if owner.model is Processor and step == "settings" and isinstance(node, dict):
                block = self._resolve(Block, owner.node)
                level = Level(block, node, step, above) if block else None
            else:
                level = self._level(annotation, node, step, above)
            if level is not None:
                levels.append(level)
            above = step if isinstance(step, str) else above
        return levels

    def _level(self, annotation: Any, node: Json, step: str | int, above: str) -> Level | None:
        if not isinstance(node, dict):
            return None
        for candidate in _classes(annotation):
            if candidate is AgentEntry:
                return Level(registry.named_agent(), node, step, above)
            if candidate in (Block, Connector, Source):
                resolved = self._resolve(candidate, node)
                return Level(resolved, node, step, above) if resolved else None
            if issubclass(candidate, Model):
                return Level(candidate, node, step, above)
        return None

    def _resolve(self, base: type[Model], node: Mapping[str, Json]) -> type[Model] | None:
        if base is Source:
            return source_class(node, self._context)
        type_name = node.get("type") or (self._context.processors.get(str(node.get("ref"))) or {}).get("type")
        if not isinstance(type_name, str):
            return None
        try:
            return self._context.block(type_name) if base is Block else self._context.connector(type_name)
        except OctoError:
            return None


def first(error: ValidationError) -> tuple[Path, str, str | None]:
    """The first thing that is wrong with a value that stands in no file: where, what, and what to do."""
    found = error.errors(include_url=False)
    details = next((one for one in found if one["type"] != "echo"), found[0])
    context = details.get("ctx") or {}
    message = str(context.get("message") or details["msg"])
    match details["type"]:
        case "expression":
            message = f'compile expression "{context["error"].source.strip()}": {message}'
        case "extra_forbidden":
            message = "unknown field"
        case kind if kind in _SHAPES:
            message = f"expected {_SHAPES[kind]}, found {kind_of(details['input'])}"
    return tuple(details["loc"]), message[:1].lower() + message[1:], context.get("hint")


def _is_asked_later(path: Path) -> bool:
    """Whether an agent stands there, which looks for what it names when it works; but its prompt is a part of it."""
    return path[:1] == ("agents",) and path[2:] != ("prompt",)


def _classes(annotation: Any) -> Iterator[type]:
    """The classes that an annotation may stand for, looking through options, lists and annotations."""
    origin = get_origin(annotation)
    if origin is None:
        if isinstance(annotation, type):
            yield annotation
    elif origin is Annotated:
        yield from _classes(get_args(annotation)[0])
    elif origin in (Union, types.UnionType) or origin in (tuple, list):
        for argument in get_args(annotation):
            yield from _classes(argument)
    elif origin is dict:
        yield from _classes(get_args(annotation)[1])


def _named(path: Path, message: str) -> str:
    """What was expected, with the key where it was."""
    key = next((step for step in reversed(path) if isinstance(step, str)), None)
    if key is None:
        return message
    return f"`{shortened(key)}`: {message}" if path[-1] == key else f"an entry of `{shortened(key)}`: {message}"


def _counts_faulty_items(details: ErrorDetails) -> bool:
    """A list of enough items, some of them faulty, is called too short besides."""
    if details["type"] != "too_short":
        return False
    return bool(len(details["input"]) >= details["ctx"]["min_length"])


def _count(number: int) -> str:
    return "one entry" if number == 1 else f"{number} entries"


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
