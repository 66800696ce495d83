"""What there is to write in a config: the blocks and connectors of octo and of plug-ins, with their documentation."""

from __future__ import annotations

import ast
import inspect
import sys
import types
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from octo import registry
from octo.block import Block, SubFlow
from octo.connector import Connector, Source
from octo.fields import (
    AnyJson,
    Bool,
    ConnectorName,
    Duration,
    Expression,
    FlowName,
    Int,
    JsonSchema,
    Model,
    Number,
    ResourceText,
)
from octo.values import Json

T = TypeVar("T", Block, Connector)

_ACRONYMS: Final = frozenset({"ai", "cli", "http", "jwt", "llm", "mcp", "sql"})
_ICONS: Final = {
    "ai": "sparkles",
    "control": "git-branch",
    "data": "braces",
    "integration": "plug",
    "llm": "sparkles",
    "storage": "database",
}
"""The picture of a group of blocks, or of a category of connectors."""
_PLAIN_KINDS: Final[Mapping[Any, str]] = {
    get_args(Int)[1]: "number",
    get_args(Number)[1]: "number",
    get_args(Bool)[1]: "boolean",
    get_args(JsonSchema)[1]: "json-schema",
    get_args(AnyJson)[1]: "json",
}


def blocks() -> list[type[Block]]:
    """The classes of all block types, by group and type."""
    return sorted(map(registry.block, registry.offered("blocks")), key=lambda cls: (cls.group, cls.type))


def connectors() -> list[type[Connector]]:
    """The classes of all connector types."""
    return sorted(map(registry.connector, registry.offered("connectors")), key=lambda cls: cls.type)


def sources() -> list[type[Source]]:
    """The classes of all source types."""
    return [source for connector in connectors() for source in connector.sources]


def capabilities() -> dict[str, Json]:
    """The catalogue: every type of block and connector with its fields."""
    return {
        "blocks": [_block(cls) for cls in blocks()],
        "connectors": [_connector(cls) for cls in connectors()],
    }


def _block(cls: type[Block]) -> dict[str, Json]:
    return {
        "type": cls.type,
        "label": label(cls.type),
        "category": "control-flow" if cls.group == "control" else "processor",
        "group": cls.group,
        "icon": _ICONS.get(cls.group, "box"),
        "description": description(cls),
        "fields": [_field(cls, key) for key in cls.yaml_keys()],
    }


def _connector(cls: type[Connector]) -> dict[str, Json]:
    return {
        "type": cls.type,
        "label": label(cls.type),
        "icon": _ICONS.get(cls.category, "plug"),
        "description": description(cls),
        "settings": [_field(cls, key) for key in cls.yaml_keys()],
        "sources": [_source(source) for source in cls.sources],
    }


def _source(cls: type[Source]) -> dict[str, Json]:
    return {
        "type": cls.type,
        "label": label(cls.type),
        "description": description(cls),
        "settings": [_field(cls, key) for key in cls.yaml_keys()],
    }


def _field(cls: type[Model], key: str) -> dict[str, Json]:
    name = cls.yaml_keys()[key]
    field = cls.model_fields[name]
    shown: dict[str, Json] = {"name": key, "label": label(name.rstrip("_").replace("_", "-")), "type": kind(field)}
    if words := choices(field):
        shown["choices"] = words
    shown["required"] = key in {keys[0] for keys in required_keys(cls)}
    shown["default"] = default(field)
    shown["description"] = documentation(cls).get(name, "")
    return shown


def label(name: str) -> str:
    """A type as a title: `Set payload`, `AI agent`."""
    words = [word.upper() if word in _ACRONYMS else word for word in name.split("-")]
    return words[0][:1].upper() + " ".join(words)[1:]


# ---------------------------------------------------------------- fields


def given(field: FieldInfo) -> tuple[Any, tuple[Any, ...]]:
    """What a value of a field must be when it is given, with the annotations that go with it."""
    return unwrapped(field.annotation, tuple(field.metadata))


def unwrapped(annotation: Any, metadata: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return unwrapped(inner, (*metadata, *more))
    if get_origin(annotation) in (Union, types.UnionType):
        others = [argument for argument in get_args(annotation) if argument is not type(None)]
        if len(others) == 1:
            return unwrapped(others[0], metadata)
    return annotation, metadata


def required_keys(cls: type[Model]) -> list[tuple[str, ...]]:
    """The keys that a mapping cannot do without, each followed by its other spellings.

    A model can name further ones under `required` in its `json_schema_extra`.
    """
    more = extra(cls).get("required") or ()
    keys = [key for key, name in cls.yaml_keys().items() if cls.model_fields[name].is_required() or key in more]
    return [(key, *(spelling for spelling, meant in cls.spellings.items() if meant == key)) for key in keys]


def extra(cls: type[Model]) -> Mapping[str, Any]:
    """What a model says of its schema beyond its fields."""
    found = cls.model_config.get("json_schema_extra")
    return found if isinstance(found, dict) else {}


def default(field: FieldInfo) -> Json:
    """The value that a field has when it is not given, as it would be written; None for none."""
    value = None if field.is_required() else field.get_default(call_default_factory=True, validated_data={})
    match value:
        case Duration():
            return value.text
        case Expression():
            return value.source
        case bool() | int() | float() | str():
            return value
    return None


def choices(field: FieldInfo) -> list[str]:
    """The words that a field is limited to; none when it is free."""
    annotation, _ = given(field)
    return [word for word in get_args(annotation) if word] if get_origin(annotation) is Literal else []


def kind(field: FieldInfo) -> str:
    """What the catalogue calls the type of a field."""
    return kind_of(*given(field))


def kind_of(annotation: Any, metadata: tuple[Any, ...] = ()) -> str:
    annotation, metadata = unwrapped(annotation, metadata)
    for marker in metadata:
        if isinstance(marker, BeforeValidator) and marker in _PLAIN_KINDS:
            return _PLAIN_KINDS[marker]
    origin = get_origin(annotation) or annotation
    match origin:
        case _ if origin is Literal:
            return "enum"
        case _ if origin in (tuple, list):
            return f"{kind_of(get_args(annotation)[0])}-list"
        case _ if origin is dict:
            return f"{kind_of(get_args(annotation)[1])}-map"
        case _ if not isinstance(origin, type):
            return "json"
        case _ if issubclass(origin, SubFlow):
            return "flow"
        case _ if issubclass(origin, Model):
            return "-".join(_words(origin.model_config.get("title") or origin.__name__))
        case _ if issubclass(origin, Expression):
            return "cel"
        case _ if issubclass(origin, Duration):
            return "duration"
        case _ if issubclass(origin, ConnectorName):
            return "connector"
        case _ if issubclass(origin, FlowName):
            return "flow-name"
        case _ if issubclass(origin, ResourceText):
            return "text"
    return "string"


def _words(name: str) -> list[str]:
    """`JsonPath` is `json`, `path`."""
    starts = [index for index, letter in enumerate(name) if letter.isupper()] or [0]
    return [name[start:end].lower() for start, end in zip(starts, [*starts[1:], None], strict=True)]


# ---------------------------------------------------------------- docstrings


def description(cls: type) -> str:
    """The docstring of a class."""
    return inspect.cleandoc(cls.__doc__ or "")


@cache
def documentation(cls: type[Model]) -> Mapping[str, str]:
    """The docstrings below the fields of a model, those that it inherits included, by attribute.

    They are read off the source, since Python does not keep them.
    """
    found: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        if issubclass(owner, Model):
            found |= _documented(owner)
    return {name: found[name] for name in cls.model_fields if name in found}


def _documented(cls: type) -> dict[str, str]:
    for node in _classes(cls.__module__):
        if node.name == cls.__name__:
            return dict(_docstrings(node))
    return {}


@cache
def _classes(module: str) -> list[ast.ClassDef]:
    try:
        source = inspect.getsource(sys.modules[module])
    except (OSError, KeyError):  # a module without a source has no documentation
        return []
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]


def _docstrings(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, after in zip(node.body, node.body[1:], strict=False):
        match statement, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, inspect.cleandoc(text)
