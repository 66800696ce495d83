"""JSON Schemas (draft 2020-12) of what octo reads, made from the models that read it.

A schema accepts whatever its model accepts, and refuses as much of the rest as can be said in a schema: unknown keys,
missing keys, values of the wrong kind. What needs the whole config, such as the name of a connector, is left to
`octo validate`.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args, get_origin

from pydantic import BeforeValidator
from pydantic_core import PydanticUndefined

from octo import catalogue, registry
from octo.block import RESERVED, Block
from octo.catalogue import default, description, documentation, extra, given, required_keys
from octo.config.agents import AgentEntry
from octo.config.model import Config, Processor
from octo.connector import Connector, Source
from octo.fields import (
    AnyJson,
    Bool,
    Duration,
    Expression,
    Int,
    JsonSchema,
    LooseText,
    Model,
    Name,
    Number,
    ResourceText,
    Text,
)
from octo.values import Json, Ordered

Schema: TypeAlias = dict[str, Json]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_VARIABLE: Final = r"\$\{[A-Za-z_][A-Za-z0-9_]*\}"
_STEP: Final = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"
_FREE: Final[Schema] = {"^x-": True}
"""Keys that start with `x-` are the author's own, everywhere."""


def _or_variable(kind: str, words: str) -> Schema:
    """A value that is no text, or the `${NAME}` that stands for it."""
    return {
        "type": [kind, "string"],
        "pattern": f"^{_VARIABLE}$",
        "patternErrorMessage": f"expected {words}, or `${{NAME}}` alone",
    }


_PLAIN: Final[Mapping[Any, Schema]] = {
    get_args(kind)[1]: schema
    for kind, schema in (
        (Text, {"type": "string"}),
        (Name, {"type": "string", "pattern": r"\S"}),
        (LooseText, {"type": ["string", "number", "boolean"]}),
        (Int, _or_variable("integer", "a whole number")),
        (Number, _or_variable("number", "a number")),
        (Bool, _or_variable("boolean", "`true` or `false`")),
        (AnyJson, {}),
        (JsonSchema, {"type": ["object", "string"]}),
    )
}
"""By the validators of the plain field types."""
_CLASSES: Final[tuple[tuple[type, Schema], ...]] = (
    (Expression, {"type": "string", "format": "cel"}),
    (
        Duration,
        {
            "type": ["string", "integer"],
            "pattern": f"^(0|({_STEP})+)$|{_VARIABLE}",
            "patternErrorMessage": "expected a number and a unit, such as `250ms` or `1m30s`",
            "minimum": 0,
            "maximum": 0,
        },
    ),
    (
        ResourceText,
        {
            "type": ["string", "object"],
            "properties": {"resource": {"type": "string", "description": "A file below the config directory."}},
            "required": ["resource"],
            "additionalProperties": False,
        },
    ),
    (str, {"type": "string"}),
    (bytes, {"type": "string", "contentEncoding": "base64"}),
    (bool, {"type": "boolean"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
)
_LIMITS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_LENGTHS: Final = {"array": ("minItems", "maxItems"), "object": ("minProperties", "maxProperties")}


def of(model: type[Model], title: str) -> Schema:
    """The schema of what a model reads."""
    definitions = Definitions()
    root = definitions.mapping(model)
    made = {name: definitions.made[name] for name in sorted(definitions.made)}
    return {"$schema": DIALECT, "title": title, **root} | ({"$defs": made} if made else {})


def config() -> Schema:
    """The schema of a config file, with all blocks and connectors that are installed."""
    return of(Config, "octo config")


def debug_config() -> Schema:
    """The schema of a debug config."""
    from octo.debug import DebugConfig

    return of(DebugConfig, "octo debug config")


def agent() -> Schema:
    """The schema of an agent file."""
    return of(registry.named_agent(), "octo agent")


def suite() -> Schema:
    """The schema of a suite of test cases."""
    from octo.testing.suite import Suite

    return of(Suite, "octo test suite")


KINDS: Final[Mapping[str, Callable[[], Schema]]] = {
    "capabilities": catalogue.capabilities,
    "config": config,
    "agent": agent,
    "suite": suite,
    "debug-config": debug_config,
}
"""What `octo schema` prints."""


def file_name(kind: str) -> str:
    """The file in which one of the KINDS is kept."""
    return f"{kind}.json" if kind == "capabilities" else f"{kind}.schema.json"


def text(document: Schema) -> str:
    """A schema as it is kept in a file."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def in_order(value: Json) -> Json:
    """The value with mappings that are printed in their own order."""
    match value:
        case dict():
            return Ordered((key, in_order(item)) for key, item in value.items())
        case list():
            return [in_order(item) for item in value]
    return value


class Definitions:
    """Makes schemas of types; what is used more than once, or within itself, becomes a definition."""

    def __init__(self) -> None:
        self.made: dict[str, Schema] = {}

    # ------------------------------------------------------------ types

    def value(self, annotation: Any, metadata: Sequence[Any] = ()) -> Schema:
        """The schema of what a type can be read from. Raises TypeError for a type that nobody has thought of."""
        for marker in metadata:
            if isinstance(marker, BeforeValidator):
                if marker in _PLAIN:
                    return _limited(dict(_PLAIN[marker]), metadata)
                if marker.json_schema_input_type is not PydanticUndefined:
                    return self.value(marker.json_schema_input_type)
        return _limited(self._type(annotation), metadata)

    def _type(self, annotation: Any) -> Schema:
        if annotation is Any or annotation is object:
            return {}
        if annotation is None or annotation is type(None):
            return {"type": "null"}
        origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
        if origin is Annotated:
            return self.value(arguments[0], arguments[1:])
        if origin is Literal:
            return {"anyOf": [{"enum": list(arguments)}, {"type": "string", "pattern": _VARIABLE}]}
        if origin in (Union, types.UnionType):
            return {"anyOf": [self.value(argument) for argument in arguments]}
        if origin is tuple and arguments[0] is AgentEntry:
            return self._agents()
        if origin in (tuple, list) and arguments[1:] in ((), (...,)):
            return {"type": "array", "items": self.value(arguments[0])}
        if origin in (dict, Mapping):
            return {"type": "object", "additionalProperties": self.value(arguments[1])}
        if isinstance(origin, type):
            if issubclass(origin, Model):
                return self._reference(origin)
            for cls, schema in _CLASSES:
                if issubclass(origin, cls):
                    return dict(schema)
        raise TypeError(f"no JSON Schema for {annotation}")

    def _reference(self, cls: type[Model]) -> Schema:
        if cls is Block:
            return self._defined("block", self._block)
        if cls is Connector:
            return self._defined("connector", self._connector)
        if cls is Source:
            return self._defined("source", self._source)
        name = f"{cls.__module__.removeprefix('octo.')}.{cls.__name__}"
        reference = self._defined(name, lambda: self.mapping(cls))
        return {"anyOf": [reference, self.value(cls.shorthand)]} if cls.shorthand is not None else reference

    def _agents(self) -> Schema:
        """Agents by their names: a list of them, or a mapping."""
        agent = self._reference(registry.named_agent())
        listed = {"type": "array", "items": {"allOf": [agent, {"required": ["name"]}]}}
        return {"anyOf": [listed, {"type": "object", "additionalProperties": agent}]}

    def _defined(self, name: str, make: Callable[[], Schema]) -> Schema:
        if name not in self.made:
            self.made[name] = {}  # a definition may refer to itself
            self.made[name] = make()
        return {"$ref": f"#/$defs/{name}"}

    # ------------------------------------------------------------ models

    def mapping(self, cls: type[Model]) -> Schema:
        """The schema of a mapping that a model reads."""
        if cls is Processor:
            return self._processor()
        schema: Schema = {"description": description(cls), "type": "object", **self._properties(cls)}
        keys = required_keys(cls)
        if plain := [key for (key, *others) in keys if not others]:
            schema["required"] = plain
        if spelt := [ways for ways in keys if len(ways) > 1]:
            schema["allOf"] = [{"anyOf": [{"required": [key]} for key in ways]} for ways in spelt]
        return schema | _more(cls)

    def _properties(self, cls: type[Model]) -> Schema:
        docs = documentation(cls)
        required = {keys[0] for keys in required_keys(cls)}
        properties: dict[str, Schema] = {}
        for key, name in cls.yaml_keys().items():
            field = cls.model_fields[name]
            schema = self.value(*given(field))
            if key not in required:
                schema = _nullable(schema)
            properties[key] = ({"description": docs[name]} if name in docs else {}) | schema
            if (preset := default(field)) not in (None, ""):
                properties[key]["default"] = preset
            if docs.get(name, "").startswith("Retired:"):
                properties[key]["deprecated"] = True
        for spelling, key in cls.spellings.items():
            spelt = {"description": f"Another spelling of `{key}`.", "deprecated": True, "doNotSuggest": True}
            properties[spelling] = {**properties[key], **spelt}
        return {"properties": properties, "patternProperties": _FREE, "additionalProperties": False}

    # ------------------------------------------------------------ blocks

    def _block(self) -> Schema:
        classes = catalogue.blocks()
        by_type = {cls.type: self._defined(f"block.{cls.type}", partial(self._block_of, cls)) for cls in classes}
        keys = {key for cls in classes for key in _keys(cls)}
        return {
            "description": "One step of a flow.",
            "type": "object",
            "properties": {
                "type": _one_of_types(classes),
                "name": {"type": ["string", "null"], "description": _NAME},
                "ref": {"type": ["string", "null"], "description": _REF},
                "settings": {"type": ["object", "null"], "description": _SETTINGS},
            },
            "anyOf": [{"required": ["type"]}, {"required": ["ref"]}],
            "allOf": [
                *_if_type(by_type),
                {
                    "if": {"not": {"required": ["type"]}},
                    "then": {
                        "propertyNames": _among([*RESERVED, *keys]),
                        "properties": {"settings": {"propertyNames": _among(keys)}},
                    },
                },
            ],
        }

    def _block_of(self, cls: type[Block]) -> Schema:
        """A block of one type: its settings stand beside `type`, or under `settings`, but for those of composites."""
        settings = self._settings(cls)
        beside = {key: {"$ref": f"{settings['$ref']}/properties/{key}"} for key in _keys(cls) if key not in RESERVED}
        under = {} if cls.composite else {"settings": {"description": _SETTINGS, **settings}}
        schema: Schema = {
            "title": cls.type,
            "description": description(cls),
            "type": "object",
            "properties": {
                "type": {"const": cls.type},
                "name": {"type": ["string", "null"], "description": _NAME},
                "ref": {"type": ["string", "null"], "description": _REF},
                **under,
                **beside,
            },
            "patternProperties": _FREE,
            "additionalProperties": False,
        }
        if required := required_keys(cls):
            schema["allOf"] = [_somewhere(keys, composite=cls.composite) for keys in required]
        return schema | _more(cls)

    def _settings(self, cls: type[Block]) -> Schema:
        return self._defined(f"settings.{cls.type}", lambda: {"type": ["object", "null"], **self._properties(cls)})

    def _processor(self) -> Schema:
        """A processor has all settings of its type under `settings`; those that are missing come from the blocks."""
        classes = catalogue.blocks()
        plain = self._properties(Processor)
        by_type = {cls.type: {"properties": {"settings": self._settings(cls)}} for cls in classes}
        return {
            "description": description(Processor),
            "type": "object",
            **plain,
            "properties": {**plain["properties"], "type": _one_of_types(classes)},
            "required": ["name", "type"],
            "allOf": _if_type(by_type),
        }

    # ------------------------------------------------------------ connectors

    def _connector(self) -> Schema:
        classes = catalogue.connectors()
        return {
            "description": "A named connection to the outside, or a named instance of something that flows use.",
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "What blocks call it.", "minLength": 1},
                "type": _one_of_types(classes),
                "settings": {"type": ["object", "null"], "description": "Settings of the connector, by its type."},
            },
            "patternProperties": _FREE,
            "additionalProperties": False,
            "required": ["name", "type"],
            "allOf": _if_type({cls.type: self._connector_of(cls) for cls in classes}),
        }

    def _connector_of(self, cls: type[Connector]) -> Schema:
        return self._settings_of(cls, f"connector.{cls.type}")

    def _source(self) -> Schema:
        classes = catalogue.sources()
        return {
            "description": description(Source),
            "type": "object",
            "properties": {
                "connector": {"type": ["string", "null"], "description": "Name or type of the connector."},
                "type": _one_of_types(classes),
                "settings": {"type": ["object", "null"], "description": "Settings of the source, by its type."},
            },
            "patternProperties": _FREE,
            "additionalProperties": False,
            "required": ["type"],
            "allOf": _if_type({cls.type: self._settings_of(cls, f"source.{cls.type}") for cls in classes}),
        }

    def _settings_of(self, cls: type[Connector] | type[Source], name: str) -> Schema:
        reference = self._defined(name, lambda: self.mapping(cls))
        if required_keys(cls) or extra(cls):
            return {"properties": {"settings": reference}, "required": ["settings"]}
        return {"properties": {"settings": _nullable(reference)}}


_SETTINGS: Final = "Settings of the block; they may also stand beside `type`."
_NAME: Final = "Label of the block, for addresses and error texts."
_REF: Final = "A processor, whose settings are the base of this block's own."


def _keys(cls: type[Model]) -> list[str]:
    """All keys that a model takes, other spellings included."""
    return [*cls.yaml_keys(), *cls.spellings]


def _more(cls: type[Model]) -> Schema:
    """What a model says of its schema beyond its fields."""
    return {key: value for key, value in extra(cls).items() if key != "required"}


def _somewhere(keys: Iterable[str], *, composite: bool) -> Schema:
    """A setting that stands beside `type`, under `settings`, or in the processor that the block refers to."""
    ways: list[Schema] = []
    for key in keys:
        if key not in RESERVED:
            ways.append({"required": [key]})
        if not composite:
            under = {"type": "object", "required": [key]}
            ways.append({"required": ["settings"], "properties": {"settings": under}})
    return {"anyOf": [*ways, {"required": ["ref"]}]}


def _one_of_types(classes: Sequence[type[Block] | type[Connector] | type[Source]]) -> Schema:
    described = {cls.type: description(cls).partition("\n\n")[0] for cls in sorted(classes, key=lambda cls: cls.type)}
    return {
        "description": "What kind it is of; the settings depend on it.",
        "anyOf": [
            {"enum": list(described), "enumDescriptions": list(described.values())},
            {"type": "string", "pattern": _VARIABLE},
        ],
    }


def _if_type(by_type: Mapping[str, Schema]) -> list[Json]:
    """Exactly one part counts, so that a mistake is reported for the type at hand and no other."""
    return [
        {"if": {"properties": {"type": {"const": name}}, "required": ["type"]}, "then": schema}
        for name, schema in sorted(by_type.items())
    ]


def _among(keys: Iterable[str]) -> Schema:
    return {"anyOf": [{"enum": sorted(keys)}, {"pattern": "^x-"}]}


def _nullable(schema: Schema) -> Schema:
    """A null counts as not given."""
    if "anyOf" in schema and len(schema) == 1:
        return {"anyOf": [*(way for way in schema["anyOf"] if way != {"type": "null"}), {"type": "null"}]}
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]} if schema else schema
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return {**schema, "type": [*kinds, "null"]}


def _limited(schema: Schema, metadata: Sequence[Any]) -> Schema:
    """The schema with the bounds that a field declares."""
    lengths = _LENGTHS.get(str(schema.get("type")), ("minLength", "maxLength"))
    keys = _LIMITS | dict(zip(("min_length", "max_length"), lengths, strict=True))
    for marker in metadata:
        for attribute, key in keys.items():
            if (bound := getattr(marker, attribute, None)) is not None:
                schema[key] = bound
    return schema
