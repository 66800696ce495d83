"""The reference of blocks, connectors and functions as Markdown, made from what octo itself reads."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import groupby
from pkgutil import iter_modules
from typing import Any, Final, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from octo import catalogue
from octo.block import Block, SubFlow
from octo.catalogue import documentation, given, required_keys
from octo.cel import functions as functions_of_expressions
from octo.cel.functions import Function
from octo.fields import ConnectorName, Duration, Expression, FlowName, Int, Model, ResourceText, camel

WRITTEN_BY: Final = "<!-- Written by `octo schema --reference docs/reference`. -->"

_GROUPS: Final = {
    "data": "Data",
    "control": "Control flow",
    "ai": "AI",
    "integration": "Integration",
    "storage": "Storage",
}
_BLOCKS: Final = """\
Every type of block with its settings. A setting stands under `settings:` or beside `type`, as you like; one called
`name` only under `settings:`. Where it says so, settings stand beside `type` only. Each block can also have a `name`,
which is its label, and a `ref`, see [named blocks](../flows.md#named-blocks).

A *chain* is `{process: [blocks]}`, with a `name` if it shall have one. An *expression* is text, see
[expressions](../expressions.md). A *duration* is a number and a unit, such as `250ms` or `1m30s`. In the place of a
number, of `true` and of `false` there can be a `${NAME}`, see
[environment variables](../flows.md#environment-variables).
"""
_CONNECTORS: Final = """\
Every type of connector with its settings, which stand under `settings:`. Blocks refer to a connector by its `name`.
Kinds of settings are written as in [blocks](blocks.md). Some connectors give *sources*, which flows take messages from,
see [running](../running.md); their settings stand under `settings:` of the flow's `source`.
"""
_FUNCTIONS: Final = """\
What [expressions](../expressions.md) can call. `string.startsWith(prefix: string)` is called on a text, as
`body.name.startsWith("A")`. An argument in brackets may be left out. Numbers of a message are of kind `double`; where
an `int` is expected, a double without a fraction will do.
"""
_MACROS: Final = (
    (("has",), "has(value.key)", "Whether the map has the key."),
    (("all",), "list.all(x, condition)", "Whether the condition is true of every element."),
    (("exists",), "list.exists(x, condition)", "Whether the condition is true of any element."),
    (("exists_one", "existsOne"), "list.existsOne(x, condition)", "Whether it is true of exactly one element."),
    (("filter",), "list.filter(x, condition)", "The elements of which the condition is true."),
    (("map",), "list.map(x, result)", "The result for each element; `list.map(x, condition, result)` leaves some out."),
    (("sortBy",), "list.sortBy(x, key)", "The elements in the order of their keys."),
    (("transformList",), "list.transformList(i, x, result)", "A list of the result for each position and element."),
    (("transformMap",), "map.transformMap(k, v, result)", "A map with the same keys and the results as its values."),
    (("transformMapEntry",), "map.transformMapEntry(k, v, {key: value})", "A map of the entries that come out."),
    (("optMap",), "optional.optMap(x, result)", "The result for the value, if there is one."),
    (("optFlatMap",), "optional.optFlatMap(x, result)", "The same for a result that is itself optional."),
)
"""Names, an example and an explanation of what is no function, since it evaluates its argument once per element."""


def blocks() -> str:
    """The page of all blocks."""
    by_group = {group: list(members) for group, members in groupby(catalogue.blocks(), lambda cls: cls.group)}
    groups = sorted(by_group, key=lambda group: ([*_GROUPS, group].index(group), group))
    parts = ["# Blocks", WRITTEN_BY, _BLOCKS]
    for group in groups:
        rows = [(f"[`{cls.type}`](#{cls.type})", _sentence(cls)) for cls in by_group[group]]
        parts += [_table((_GROUPS.get(group, group or "Others").lower(), "does"), rows)]
    for group in groups:
        for cls in by_group[group]:
            beside = "The settings stand beside `type`." if cls.composite else ""
            parts += [f"## `{cls.type}`", catalogue.description(cls), beside, *_settings(cls)]
    return _page(parts)


def connectors() -> str:
    """The page of all connectors."""
    classes = catalogue.connectors()
    rows = [(f"[`{cls.type}`](#{cls.type})", _sentence(cls)) for cls in classes]
    parts = ["# Connectors", WRITTEN_BY, _CONNECTORS, _table(("connector", "is"), rows)]
    for cls in classes:
        parts += [f"## `{cls.type}`", catalogue.description(cls), *_settings(cls)]
        for source in cls.sources:
            parts += [f"### Source `{source.type}`", catalogue.description(source), *_settings(source)]
    return _page(parts)


def _sentence(cls: type) -> str:
    return catalogue.description(cls).partition("\n")[0]


def _page(parts: Iterable[str]) -> str:
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


# ---------------------------------------------------------------- keys


def _settings(cls: type[Model]) -> Iterator[str]:
    """The table of a model's keys, and one of each model below it."""
    shown: set[type[Model]] = set()

    def tables(cls: type[Model], title: str) -> Iterator[str]:
        if cls in shown:
            return
        shown.add(cls)
        if title:
            yield title
        yield _keys(cls)
        for key, name in cls.yaml_keys().items():
            annotation, _ = given(cls.model_fields[name])
            for inner, where in _models(annotation, f"`{key}`"):
                yield from tables(inner, f"{where}: {catalogue.description(inner)}")

    yield from tables(cls, "")


def _models(annotation: Any, where: str) -> Iterator[tuple[type[Model], str]]:
    """The models that a value may hold, but for blocks and chains."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (tuple, list):
        yield from _models(arguments[0], f"An entry of {where}")
    elif origin is dict:
        yield from _models(arguments[1], f"A value of {where}")
    elif origin is not None and not isinstance(annotation, type):
        for argument in arguments:
            yield from _models(argument, where)
    elif isinstance(annotation, type) and issubclass(annotation, Model) and annotation not in (Block, SubFlow):
        yield annotation, where


def _keys(cls: type[Model]) -> str:
    docs = documentation(cls)
    required = {keys[0] for keys in required_keys(cls)}
    rows = []
    for key, name in cls.yaml_keys().items():
        field = cls.model_fields[name]
        preset = catalogue.default(field)
        shown = "" if preset in (None, "") else f"`{str(preset).lower() if isinstance(preset, bool) else preset}`"
        rows.append((f"`{key}`", _kind(field), "required" if key in required else shown, docs.get(name, "")))
    if not rows:
        return "It has no settings."
    return _table(("key", "kind", "default", ""), rows)


_WHOLE: Final = get_args(Int)[1]
_PLAIN: Final = {
    "number": "number",
    "boolean": "true or false",
    "json-schema": "JSON Schema",
    "json": "any value",
}


def _kind(field: FieldInfo) -> str:
    return _words(*given(field))


def _words(annotation: Any, metadata: tuple[Any, ...] = ()) -> str:
    """What a table calls the kind of a setting."""
    annotation, metadata = catalogue.unwrapped(annotation, metadata)
    if _WHOLE in metadata:
        return "whole number"
    if (word := catalogue.kind_of(annotation, metadata)) in _PLAIN:
        return _PLAIN[word]
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if origin is Literal:
        return " or ".join(f"`{word}`" for word in arguments if word)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_words(argument) for argument in arguments))
    if origin in (tuple, list):
        return "blocks" if arguments[0] is Block else f"list: {_words(arguments[0])}"
    if origin is dict:
        return f"mapping: {_words(arguments[1])}"
    if not isinstance(origin, type):
        return "any value"
    return _class_words(origin, arguments)


def _class_words(cls: type, arguments: tuple[Any, ...]) -> str:
    if issubclass(cls, Expression):
        result = get_origin(arguments[0]) or arguments[0] if arguments else object
        wanted = {bool: " (true or false)", str: " (text)", list: " (list)", dict: " (map)"}.get(result, "")
        return f"expression{wanted}"
    if issubclass(cls, ConnectorName):
        wanted = f"`{cls.type}`" if cls.type else f"`{cls.category}-…`" if cls.category else ""
        return f"name of a {wanted} connector".replace("  ", " ").replace(" a `llm", " an `llm")
    if issubclass(cls, SubFlow):
        return "chain"
    if issubclass(cls, Model):
        return "mapping"
    if issubclass(cls, Duration):
        return "duration"
    if issubclass(cls, FlowName):
        return "name of a flow"
    if issubclass(cls, ResourceText):
        return "text or `{resource: FILE}`"
    return "base64 text" if issubclass(cls, bytes) else "text"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# ---------------------------------------------------------------- functions

_KIND_NAMES: Final = {
    "Value": "any",
    "str": "string",
    "float": "double",
    "Number": "number",
    "Whole": "int",
    "UInt": "uint",
    "dict": "map",
    "Kind": "type",
    "None": "null",
}
_GENERICS: Final = re.compile(r"\[[^\]]*\]+")


def functions() -> str:
    """The page of all functions of expressions."""
    subjects = []
    modules = [module.name for module in iter_modules(functions_of_expressions.__path__)]
    for module in sorted(modules, key=lambda name: (name != "core", name)):
        subject = import_module(f"{functions_of_expressions.__name__}.{module}")
        members = [member for member in vars(subject).values() if isinstance(member, Function)]
        title = inspect.cleandoc(subject.__doc__ or "").partition("\n")[0].rstrip(".")
        subjects.append((title, [member for member in members if member.implementation.__module__ == subject.__name__]))
    macros = [(f"`{form}`", text) for _, form, text in _MACROS]
    parts = ["# Functions", WRITTEN_BY, _FUNCTIONS, "## Element by element", _table(("form", "gives"), macros)]
    for title, members in subjects:
        rows = [("<br>".join(f"`{form}`" for form in signatures(member)), _told(member)) for member in members]
        parts += [f"## {title}", _table(("function", "gives"), rows)]
    return _page(parts)


def macro_names() -> set[str]:
    """The names of the forms that the page explains beside the functions."""
    return {name for names, *_ in _MACROS for name in names}


def _told(function: Function) -> str:
    text = function.documentation
    if function.extra:
        text += f" Needs `pip install 'octo-runner[{function.extra.name}]'`."
    return text


def signatures(function: Function) -> Iterator[str]:
    """How a function is called, one form for each of its names: `string.charAt(index: int): string`."""
    annotations = function.implementation.__annotations__
    words = [_parameter(word, annotations[word]) for word in function.words]
    optional = [f"[{word}]" if index >= function.required else word for index, word in enumerate(words)]
    if function.rest is not None:
        rest = function.implementation.__code__.co_varnames[function.implementation.__code__.co_argcount]
        optional.append(f"{_parameter(rest, annotations[rest])}, …")
    result = _kinds(annotations["return"])
    for name in function.names:
        if name.startswith("."):
            receiver = _kinds(annotations[function.words[0]])
            receiver = f"({receiver})" if " " in receiver else receiver
            yield f"{receiver}{name}({', '.join(optional[1:])}): {result}"
        else:
            yield f"{name}({', '.join(optional)}): {result}"


def _parameter(word: str, annotation: str) -> str:
    return f"{camel(word)}: {_kinds(annotation)}"


def _kinds(annotation: str) -> str:
    names = [name.strip() for name in _GENERICS.sub("", annotation).split("|")]
    return " or ".join(_KIND_NAMES.get(name, name.lower()) for name in names if name != "None" or len(names) == 1)


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "blocks.md": blocks,
    "connectors.md": connectors,
    "functions.md": functions,
}
"""The pages of the reference, by the names of their files."""
