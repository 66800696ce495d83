"""JSON Schemas in the forms that APIs take: the part that Gemini knows, and the strict form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import unquote

from octo.values import Json

Path = tuple[str | int, ...]

# ---------------------------------------------------------------- Gemini

_OF_TYPE: Final[dict[str, frozenset[str]]] = {
    "object": frozenset({"properties", "required", "propertyOrdering", "minProperties", "maxProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"enum", "format", "minLength", "maxLength", "pattern"}),
    "number": frozenset({"format", "minimum", "maximum"}),
    "integer": frozenset({"format", "minimum", "maximum"}),
    "boolean": frozenset(),
    "null": frozenset(),
}
"""The keywords that the API takes for each type, beside `type`, `title`, `description` and `nullable`."""

_TELLING: Final = {
    "object": frozenset({"additionalProperties", "patternProperties", "propertyNames", "dependentRequired"}),
    "array": frozenset({"prefixItems", "contains", "uniqueItems"}),
    "number": frozenset({"exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
}
"""Further keywords that tell the type of a schema that does not say it."""

_FORMATS: Final = {
    "string": frozenset({"enum", "date-time"}),
    "integer": frozenset({"int32", "int64"}),
    "number": frozenset({"float", "double"}),
}

_OPEN: Final[dict[str, Json]] = {"type": "object"}
_ANYTHING: Final = ("string", "number", "boolean", "object", "array")
"""The types of a value that may be any: the API wants each schema to name its type."""

_HANDLED: Final = frozenset().union(*_OF_TYPE.values()) | {
    "type", "title", "description", "nullable", "const", "prefixItems", "anyOf", "oneOf", "allOf", "$ref",
}  # fmt: skip
_SAYS_NOTHING: Final = frozenset(
    {
        "$schema", "$id", "id", "$anchor", "$comment", "$vocabulary", "$defs", "definitions",
        "default", "example", "examples", "deprecated", "readOnly", "writeOnly",
    }
)  # fmt: skip
"""Keywords that refuse no value: leaving them out loses nothing."""

_MOST_SCHEMAS: Final = 2000
"""So many schemas a reduced one may hold: references that are put in place could make it grow without end."""


class Weakening(NamedTuple):
    """Something that a schema says and its reduced form does not: where, and what became of it."""

    path: Path
    text: str


@dataclass
class GeminiForm:
    """A schema reduced to what Gemini's API documents; `weakened` fills as that is done."""

    root: Json
    weakened: list[Weakening] = field(default_factory=list)
    _left: int = _MOST_SCHEMAS

    def of_value(self) -> dict[str, Json]:
        """The reduced schema."""
        return self._reduce(self.root, (), ("#",))

    def of_arguments(self) -> dict[str, Json] | None:
        """The reduced schema of a tool's arguments, which must be one object; None when it names no argument."""
        root = {"type": "object", **self.root} if isinstance(self.root, dict) else _OPEN
        reduced = self._reduce(root, (), ("#",))
        if "anyOf" in reduced:
            word = next((word for word in ("oneOf", "anyOf") if word in root), "type")
            self._lose((word,), f"`{word}` around all arguments is left out")
            reduced = _one_object(reduced["anyOf"])
        return reduced if reduced.get("properties") else None

    def _lose(self, path: Path, text: str) -> None:
        if Weakening(path, text) not in self.weakened:
            self.weakened.append(Weakening(path, text))

    # ------------------------------------------------------------ one schema

    def _reduce(self, schema: Json, path: Path, refs: tuple[str, ...]) -> dict[str, Json]:
        """`refs` are the references that led here: one that leads to itself has no end."""
        self._left -= 1
        if self._left < 0:
            self._lose((), f"with references in place it is too large; beyond {_MOST_SCHEMAS} parts objects are open")
            return dict(_OPEN)
        if not isinstance(schema, dict):
            schema = {}
        schema, path, refs = self._flat(schema, path, refs)
        for word, value in schema.items():
            is_usual = word == "additionalProperties" and isinstance(value, bool)  # models add none of their own
            if word not in _HANDLED | _SAYS_NOTHING and not is_usual:
                self._lose((*path, word), f"`{word}` is left out")
        for word in ("oneOf", "anyOf"):
            if isinstance(schema.get(word), list) and schema[word]:
                return self._of_branches(word, schema, path, refs)
        types = _types(schema)
        nullable = len(types) > 1 and "null" in types
        branches = [self._of_type(type, schema, path, refs) for type in types if not (nullable and type == "null")]
        return _united(branches, nullable=nullable)

    def _flat(
        self, schema: dict[str, Json], path: Path, refs: tuple[str, ...]
    ) -> tuple[dict[str, Json], Path, tuple[str, ...]]:
        """The schema with its references and its `allOf` in place."""
        flat = {key: value for key, value in schema.items() if key not in {"$ref", "allOf"}}
        if "$ref" in schema:
            ref, target = str(schema["$ref"]), pointed(self.root, schema["$ref"])
            if ref in refs:
                self._lose((*path, "$ref"), "a schema inside itself is sent as an open object")
                flat = _OPEN | flat
            elif target is None:
                self._lose((*path, "$ref"), "`$ref` leads nowhere and is left out")
            else:
                if not flat.keys() - _SAYS_NOTHING - {"title", "description"}:
                    path = tuple(_steps(ref))
                target, path, refs = self._flat(target, path, (*refs, ref))
                flat = merged(flat, target)
        for part in _mappings(schema.get("allOf")):
            part, _, refs = self._flat(part, path, refs)
            flat = merged(flat, part)
        return flat, path, refs

    def _of_branches(self, word: str, schema: dict[str, Json], path: Path, refs: tuple[str, ...]) -> dict[str, Json]:
        """Alternatives. What stands beside them goes into each, since the API wants `anyOf` to stand alone."""
        beside = {key: value for key, value in schema.items() if key not in {"oneOf", "anyOf"} | _SAYS_NOTHING}
        branches = [(index, branch) for index, branch in enumerate(schema[word]) if not _is_null(branch)]
        if word == "oneOf" and len(branches) > 1:
            self._lose((*path, word), "`oneOf` is sent as `anyOf`")
        if word == "oneOf" and "anyOf" in schema:
            self._lose((*path, "anyOf"), "`anyOf` beside `oneOf` is left out")
        reduced = [
            self._reduce(merged(branch, beside) if isinstance(branch, dict) else beside, (*path, word, index), refs)
            for index, branch in branches
        ]
        return _united(reduced or [{"type": "null"}], nullable=0 < len(branches) < len(schema[word]))

    def _of_type(self, type: str, schema: dict[str, Json], path: Path, refs: tuple[str, ...]) -> dict[str, Json]:
        reduced: dict[str, Json] = {"type": type}
        reduced |= {key: schema[key] for key in ("title", "description") if isinstance(schema.get(key), str)}
        if schema.get("nullable") is True:
            reduced["nullable"] = True
        reduced |= {key: value for key, value in schema.items() if key in _OF_TYPE[type]}
        if "format" in reduced and reduced["format"] not in _FORMATS[type]:
            self._lose((*path, "format"), f"`format: {reduced.pop('format')}` is left out")
        match type:
            case "object":
                self._describe_properties(reduced, path, refs)
            case "array":
                reduced["items"] = self._items(schema, path, refs)
            case "string":
                self._enumerate(reduced, schema, path)
            case "integer" | "number" | "boolean":
                for word in schema.keys() & {"enum", "const"}:
                    self._lose((*path, word), f"`{word}` is left out, as only text can be enumerated")
        return reduced

    def _describe_properties(self, reduced: dict[str, Json], path: Path, refs: tuple[str, ...]) -> None:
        properties = reduced.pop("properties", None)
        known = {
            name: self._reduce(schema, (*path, "properties", name), refs)
            for name, schema in (properties if isinstance(properties, dict) else {}).items()
            if schema is not False
        }
        if known:
            reduced["properties"] = known
        for word in ("required", "propertyOrdering"):
            names = _texts(reduced.pop(word, None))
            if kept := [name for name in names if name in known]:
                reduced[word] = kept
            for name in names if word == "required" else ():
                if name not in known:
                    self._lose((*path, word), f"`{name}` of `required` is left out, as no property describes it")

    def _items(self, schema: dict[str, Json], path: Path, refs: tuple[str, ...]) -> dict[str, Json]:
        """What an array holds; the API wants to know, so it is text when nothing is said."""
        word = "prefixItems" if "prefixItems" in schema else "items"
        items = schema.get(word)
        if isinstance(items, list) and items:
            self._lose((*path, word), f"the order in `{word}` is left out")
            return self._reduce({"anyOf": items}, path, refs)
        return self._reduce(items, (*path, word), refs) if isinstance(items, dict) and items else {"type": "string"}

    def _enumerate(self, reduced: dict[str, Json], schema: dict[str, Json], path: Path) -> None:
        word = "const" if "const" in schema else "enum"
        reduced.pop("enum", None)
        values = [schema["const"]] if word == "const" else schema.get("enum")
        texts = _texts(values)
        if "" in texts:
            self._lose((*path, word), f"the empty text in `{word}` is left out")
        if texts := [text for text in texts if text]:
            reduced["enum"] = list(dict.fromkeys(texts))


def _types(schema: dict[str, Json]) -> list[str]:
    """The types of a schema's values: as it says, else what its values are, else what its keywords are for."""
    types = [type for type in _texts(_listed(schema.get("type"))) if type in _OF_TYPE]
    if not types:
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        types = [_type_of(value) for value in values] if isinstance(values, list) else []
    if not types:
        told = ((type, words - {"format"} | _TELLING.get(type, frozenset())) for type, words in _OF_TYPE.items())
        types = [type for type, words in told if schema.keys() & words][:1]
    return list(dict.fromkeys(types or _ANYTHING))


def _type_of(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int() | float():
            return "integer" if float(value).is_integer() else "number"
        case list():
            return "array"
    return "object"


def _is_null(schema: Json) -> bool:
    return isinstance(schema, dict) and "type" in schema and schema["type"] in ("null", ["null"])


def _united(schemas: Iterable[dict[str, Json]], *, nullable: bool) -> dict[str, Json]:
    """One schema for several, of which some may be alternatives already."""
    branches: list[dict[str, Json]] = []
    for schema in schemas:
        branches += (branch for branch in schema.get("anyOf", [schema]) if branch not in branches)
    if nullable:
        branches = [{**branch, "nullable": True} for branch in branches]
    return branches[0] if len(branches) == 1 else {"anyOf": branches}


def _one_object(branches: Iterable[dict[str, Json]]) -> dict[str, Json]:
    """An object with the properties of several; required is what all of them require."""
    objects = [branch for branch in branches if branch["type"] == "object"]
    properties = {name: schema for one in reversed(objects) for name, schema in one.get("properties", {}).items()}
    required = [name for name in properties if all(name in one.get("required", ()) for one in objects)]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


# ---------------------------------------------------------------- the strict form


def strict(schema: Json) -> Json:
    """The form that OpenAI's strict mode wants: objects are closed, and all their properties are required.

    A property that was not required may be null instead, if the schema required any.
    """
    return _strict(schema, schema, frozenset())


def _strict(schema: Json, root: Json, refs: frozenset[str]) -> Json:
    """`refs` are the references whose schemas were put in place around this one."""
    if not isinstance(schema, dict):
        return schema
    schema, refs = _with_all_of(schema, root, refs)
    for word in _BY_NAME:
        if isinstance(schema.get(word), dict):
            schema[word] = {name: _strict(inner, root, refs) for name, inner in schema[word].items()}
    for word in ("items", "oneOf", "anyOf"):
        inner = schema.get(word)
        if isinstance(inner, list):
            schema[word] = [_strict(one, root, refs) for one in inner]
        elif inner is not None:
            schema[word] = _strict(inner, root, refs)
    if "properties" in schema or "object" in _listed(schema.get("type")):
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        if properties and isinstance(schema.get("required"), list):
            optional = properties.keys() - set(_texts(schema["required"]))
            schema["properties"] = {
                name: _or_null(inner) if name in optional else inner for name, inner in properties.items()
            }
        schema.setdefault("additionalProperties", False)
        schema["required"] = list(properties)
    return schema


def _with_all_of(schema: dict[str, Json], root: Json, refs: frozenset[str]) -> tuple[dict[str, Json], frozenset[str]]:
    """The schema with its `allOf` merged in, parts that are references included; one without end stays one."""
    whole = {key: value for key, value in schema.items() if key != "allOf"}
    for part in _mappings(schema.get("allOf")):
        target = pointed(root, part.get("$ref"))
        if target is not None and part["$ref"] not in refs:
            refs = refs | {part["$ref"]}
            part = merged({key: value for key, value in part.items() if key != "$ref"}, target)
        part, refs = _with_all_of(part, root, refs)
        whole = merged(whole, part)
    return whole, refs


def _or_null(schema: Json) -> Json:
    if not isinstance(schema, dict) or schema.get("nullable") is True or "null" in _listed(schema.get("type")):
        return schema
    if "type" in schema and "const" not in schema:
        more = {"enum": [*schema["enum"], None]} if isinstance(schema.get("enum"), list) else {}
        return {**schema, "type": [*_listed(schema["type"]), "null"], **more}
    if isinstance(schema.get("anyOf"), list):
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    return {"anyOf": [schema, {"type": "null"}]}


# ---------------------------------------------------------------- both


_BY_NAME: Final = ("properties", "$defs", "definitions")
"""Keywords that hold schemas by name."""


def merged(own: dict[str, Json], other: dict[str, Json]) -> dict[str, Json]:
    """Two schemas that hold at once as one. Own fields win; what is required and what is enumerated adds up."""
    whole = {**other, **own}
    for word in own.keys() & other.keys():
        mine, theirs = own[word], other[word]
        if word in _BY_NAME and isinstance(mine, dict) and isinstance(theirs, dict):
            whole[word] = {**theirs, **mine}
            for name in mine.keys() & theirs.keys():
                if isinstance(mine[name], dict) and isinstance(theirs[name], dict):
                    whole[word][name] = merged(mine[name], theirs[name])
        elif word in {"required", "enum", "allOf"} and isinstance(mine, list) and isinstance(theirs, list):
            whole[word] = [*mine, *(item for item in theirs if item not in mine)]
    return whole


def pointed(root: Json, ref: Json) -> dict[str, Json] | None:
    """The schema that a reference inside the same document leads to; None when it leads to none."""
    if not isinstance(ref, str) or not ref.startswith("#"):
        return None
    target = root
    for step in _steps(ref):
        if isinstance(target, list) and step.isdecimal() and int(step) < len(target):
            target = target[int(step)]
        elif isinstance(target, dict) and step in target:
            target = target[step]
        else:
            return None
    return target if isinstance(target, dict) else None


def _steps(ref: str) -> Iterator[str]:
    """The steps of a JSON pointer in a URL fragment."""
    for step in unquote(ref).removeprefix("#").split("/")[1:]:
        yield step.replace("~1", "/").replace("~0", "~")


def _mappings(value: Json) -> list[dict[str, Json]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _texts(value: Json) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [] if value is None else [value]
