"""octo/llm/schemas.py: the part of JSON Schema that Gemini knows, and the strict form."""

import json

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octo.llm.schemas import GeminiForm, Weakening, strict
from octo.values import Json
from soaking import examples
from vendor.gemini_request import read
from vendor.gemini_rules import parameters_are_objects, response_schemas_are_known

EXAMPLES = examples(few=150, all=2000)
ANYTHING = {
    "anyOf": [
        {"type": "string"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "object"},
        {"type": "array", "items": {"type": "string"}},
    ]
}


def reduced(schema: Json) -> tuple[Json, list[str]]:
    """The reduced form of a schema, and what is lost: where, and in what way."""
    form = GeminiForm(schema)
    return form.of_value(), [f"{'/'.join(map(str, path))}: {text}" for path, text in form.weakened]


TEXT = {"type": "string"}

KEPT = {
    "all that is known": (
        {
            "type": "object",
            "title": "t",
            "description": "d",
            "required": ["a"],
            "minProperties": 1,
            "maxProperties": 2,
            "propertyOrdering": ["b", "a"],
            "properties": {
                "a": {"type": "string", "format": "date-time", "minLength": 1, "maxLength": 9, "pattern": "x"},
                "b": {"type": "array", "items": {"type": "integer", "format": "int32"}, "minItems": 1, "maxItems": 2},
            },
        },
        None,
    ),
    "null beside a type": ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
    "null as an alternative": ({"anyOf": [TEXT, {"type": "null"}]}, {"type": "string", "nullable": True}),
    "nullable as it is": ({"type": "string", "nullable": True}, None),
    "several types": (
        {"type": ["string", "integer"], "minLength": 2, "minimum": 3, "description": "d"},
        {
            "anyOf": [
                {"type": "string", "description": "d", "minLength": 2},
                {"type": "integer", "description": "d", "minimum": 3},
            ]
        },
    ),
    "a text that is fixed": ({"const": "x"}, {"type": "string", "enum": ["x"]}),
    "texts to choose, or null": ({"enum": ["a", None]}, {"type": "string", "enum": ["a"], "nullable": True}),
    "a list of anything": ({"type": "array"}, {"type": "array", "items": TEXT}),
    "anything": ({}, ANYTHING),
    "anything, said shortly": (True, ANYTHING),
    "a type that is told by keywords": ({"minimum": 1}, {"type": "number", "minimum": 1}),
    "an object without its type": ({"properties": {"a": TEXT}}, {"type": "object", "properties": {"a": TEXT}}),
    "parts that hold at once": (
        {"allOf": [{"type": "string"}, {"minLength": 2}], "description": "d"},
        {"type": "string", "description": "d", "minLength": 2},
    ),
    "a reference": (
        {"properties": {"a": {"$ref": "#/$defs/t", "description": "own"}}, "$defs": {"t": {"type": "number"}}},
        {"type": "object", "properties": {"a": {"type": "number", "description": "own"}}},
    ),
    "a reference to a reference, with letters of its own": (
        {"$ref": "#/$defs/a%20b", "$defs": {"a b": {"$ref": "#/$defs/x~1y"}, "x/y": TEXT}},
        TEXT,
    ),
    "one reference in two places": (
        {"properties": {"a": {"$ref": "#/$defs/t"}, "b": {"$ref": "#/$defs/t"}}, "$defs": {"t": TEXT}},
        {"type": "object", "properties": {"a": TEXT, "b": TEXT}},
    ),
    "what refuses no value": (
        {"type": "string", "$schema": "x", "$id": "x", "default": "x", "examples": ["x"], "deprecated": True},
        TEXT,
    ),
    "names of properties that look like keywords": (
        {"type": "object", "properties": {"default": TEXT, "$ref": TEXT, "not": TEXT}, "required": ["default"]},
        None,
    ),
    "objects that are closed": ({"properties": {"a": TEXT}, "additionalProperties": False}, None),
    "a property that must not be": (
        {"properties": {"a": TEXT, "b": False}},
        {"type": "object", "properties": {"a": TEXT}},
    ),
    "one alternative": ({"oneOf": [TEXT]}, TEXT),
    "alternatives within alternatives": (
        {"anyOf": [{"anyOf": [TEXT, {"type": "integer"}]}, {"type": "boolean"}]},
        {"anyOf": [TEXT, {"type": "integer"}, {"type": "boolean"}]},
    ),
    "what stands beside alternatives": (
        {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {
            "anyOf": [
                {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["a"]},
                {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["b"]},
            ]
        },
    ),
}


@pytest.mark.parametrize(("schema", "expected"), KEPT.values(), ids=KEPT)
def test_what_gemini_can_be_told(schema: Json, expected: Json):
    if expected is None:
        expected = {key: value for key, value in schema.items() if key != "additionalProperties"}
        expected = {"type": "object", **expected} if "properties" in expected else expected

    assert reduced(schema) == (expected, [])


LOST = {
    "bounds that are left out": (
        {"type": "integer", "exclusiveMinimum": 1, "multipleOf": 2},
        {"type": "integer"},
        ["exclusiveMinimum: `exclusiveMinimum` is left out", "multipleOf: `multipleOf` is left out"],
    ),
    "a number that is fixed": (
        {"const": 5},
        {"type": "integer"},
        ["const: `const` is left out, as only text can be enumerated"],
    ),
    "numbers to choose": (
        {"type": "number", "enum": [1, 2]},
        {"type": "number"},
        ["enum: `enum` is left out, as only text can be enumerated"],
    ),
    "texts and numbers to choose": (
        {"enum": ["a", 1.5]},
        {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "number"}]},
        ["enum: `enum` is left out, as only text can be enumerated"],
    ),
    "an empty text to choose": (
        {"enum": ["", "a"]},
        {"type": "string", "enum": ["a"]},
        ["enum: the empty text in `enum` is left out"],
    ),
    "a format": (
        {"type": "string", "format": "email"},
        TEXT,
        ["format: `format: email` is left out"],
    ),
    "a format of another type": (
        {"type": "integer", "format": "double"},
        {"type": "integer"},
        ["format: `format: double` is left out"],
    ),
    "exactly one of several": (
        {"oneOf": [TEXT, {"type": "integer"}]},
        {"anyOf": [TEXT, {"type": "integer"}]},
        ["oneOf: `oneOf` is sent as `anyOf`"],
    ),
    "two kinds of alternatives": (
        {"oneOf": [TEXT, {"type": "null"}], "anyOf": [{"minLength": 1}]},
        {"type": "string", "nullable": True},
        ["anyOf: `anyOf` beside `oneOf` is left out"],
    ),
    "names by a pattern": (
        {"patternProperties": {"^x": TEXT}},
        {"type": "object"},
        ["patternProperties: `patternProperties` is left out"],
    ),
    "further properties of a kind": (
        {"type": "object", "additionalProperties": TEXT},
        {"type": "object"},
        ["additionalProperties: `additionalProperties` is left out"],
    ),
    "items in an order": (
        {"prefixItems": [TEXT, {"type": "integer"}]},
        {"type": "array", "items": {"anyOf": [TEXT, {"type": "integer"}]}},
        ["prefixItems: the order in `prefixItems` is left out"],
    ),
    "required without a property": (
        {"type": "object", "properties": {"a": TEXT}, "required": ["a", "b"]},
        {"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
        ["required: `b` of `required` is left out, as no property describes it"],
    ),
    "a reference to itself": (
        {"$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n", "description": "d"}}}}, "$ref": "#/$defs/n"},
        {"type": "object", "properties": {"next": {"type": "object", "description": "d"}}},
        ["$defs/n/properties/next/$ref: a schema inside itself is sent as an open object"],
    ),
    "a reference to the whole": (
        {"properties": {"next": {"$ref": "#"}}},
        {"type": "object", "properties": {"next": {"type": "object"}}},
        ["properties/next/$ref: a schema inside itself is sent as an open object"],
    ),
    "a reference to nothing": (
        {"type": "string", "$ref": "https://example.com/schema"},
        TEXT,
        ["$ref: `$ref` leads nowhere and is left out"],
    ),
    "one fault that is reached twice": (
        {
            "properties": {"a": {"$ref": "#/$defs/t"}, "b": {"$ref": "#/$defs/t"}},
            "$defs": {"t": {"type": "string", "format": "uri"}},
        },
        {"type": "object", "properties": {"a": TEXT, "b": TEXT}},
        ["$defs/t/format: `format: uri` is left out"],
    ),
}


@pytest.mark.parametrize(("schema", "expected", "lost"), LOST.values(), ids=LOST)
def test_what_gemini_cannot_be_told(schema: Json, expected: Json, lost: list[str]):
    assert reduced(schema) == (expected, lost)


ARGUMENTS = {
    "no argument": ({"type": "object"}, None, []),
    "an empty schema": ({}, None, []),
    "no schema": (True, None, []),
    "without a type": ({"properties": {"a": TEXT}}, {"type": "object", "properties": {"a": TEXT}}, []),
    "alternatives around all": (
        {
            "properties": {"a": TEXT},
            "required": ["a"],
            "oneOf": [{"properties": {"b": TEXT}, "required": ["b"]}, {"properties": {"c": TEXT}}],
        },
        {"type": "object", "properties": {"a": TEXT, "c": TEXT, "b": TEXT}, "required": ["a"]},
        [
            Weakening(("oneOf",), "`oneOf` is sent as `anyOf`"),
            Weakening(("oneOf",), "`oneOf` around all arguments is left out"),
        ],
    ),
}


@pytest.mark.parametrize(("schema", "expected", "lost"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_are_one_object_or_none(schema: Json, expected: Json, lost: list[Weakening]):
    form = GeminiForm(schema)

    assert (form.of_arguments(), form.weakened) == (expected, lost)


def test_references_that_multiply_without_end_are_cut_short():
    defs = {f"d{n}": {"properties": {name: {"$ref": f"#/$defs/d{n + 1}"} for name in "ab"}} for n in range(40)} | {
        "d40": TEXT
    }
    form = GeminiForm({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs})

    assert len(json.dumps(form.of_arguments())) < 200_000
    assert form.weakened == [
        Weakening((), "with references in place it is too large; beyond 2000 parts objects are open")
    ]


KEYWORDS = [*KEPT.values(), *LOST.values()]


def test_the_schema_itself_stays_as_it_is():
    for schema, *_ in KEYWORDS:
        before = json.dumps(schema)
        GeminiForm(schema).of_arguments()
        strict(schema)

        assert json.dumps(schema) == before


# ---------------------------------------------------------------- any schema

NAMES = st.sampled_from(["a", "b", "default", "$ref"])
VALUES = st.sampled_from([None, True, 1, 1.5, "", "x", [], {}])
TYPES = st.sampled_from(["string", "number", "integer", "boolean", "array", "object", "null"])


def keywords(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES | VALUES, max_size=3),
            "description": st.just("d") | VALUES,
            "enum": st.lists(VALUES, max_size=3),
            "const": VALUES,
            "format": st.sampled_from(["email", "date-time", "int32", "double"]),
            "minLength": st.just(1),
            "minimum": st.just(0),
            "multipleOf": st.just(2),
            "properties": st.dictionaries(NAMES, inner, max_size=2),
            "required": st.lists(NAMES | VALUES, max_size=2),
            "items": inner | st.lists(inner, max_size=2),
            "prefixItems": st.lists(inner, max_size=2),
            "anyOf": st.lists(inner, max_size=2),
            "oneOf": st.lists(inner, max_size=2),
            "allOf": st.lists(inner, max_size=2),
            "not": inner,
            "additionalProperties": inner,
            "$ref": st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/nowhere"]),
            "$defs": st.dictionaries(NAMES, inner, max_size=2),
        },
    )


SCHEMAS = st.recursive(st.booleans() | keywords(st.just({})), keywords, max_leaves=6)


@given(schema=keywords(SCHEMAS))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_vendor_takes_every_reduced_schema(schema: Json):
    turns = [{"role": "user", "parts": [{"text": "x"}]}]
    declaration = {"name": "t", "parameters": GeminiForm(schema).of_arguments()}
    config = {"responseMimeType": "application/json", "responseSchema": GeminiForm(schema).of_value()}
    request = read({"contents": turns, "tools": [{"functionDeclarations": [declaration]}], "generationConfig": config})

    assert [*parameters_are_objects(request), *response_schemas_are_known(request)] == []


# ---------------------------------------------------------------- the strict form

CLOSED = {"additionalProperties": False}

STRICT = {
    "what was required stays so, the rest may be null": (
        {
            "type": "object",
            "required": ["a"],
            "properties": {
                "a": TEXT,
                "b": TEXT,
                "c": {"type": "string", "enum": ["x"]},
                "d": {"$ref": "#/$defs/t"},
                "e": {"anyOf": [TEXT]},
                "f": {"type": ["string", "null"]},
            },
            "$defs": {"t": TEXT},
        },
        {
            "type": "object",
            "required": ["a", "b", "c", "d", "e", "f"],
            "properties": {
                "a": TEXT,
                "b": {"type": ["string", "null"]},
                "c": {"type": ["string", "null"], "enum": ["x", None]},
                "d": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "null"}]},
                "e": {"anyOf": [TEXT, {"type": "null"}]},
                "f": {"type": ["string", "null"]},
            },
            "$defs": {"t": TEXT},
            **CLOSED,
        },
    ),
    "without a list of what is required nothing may be null": (
        {"properties": {"a": TEXT}},
        {"properties": {"a": TEXT}, "required": ["a"], **CLOSED},
    ),
    "an object that says what else it takes": (
        {"type": "object", "additionalProperties": TEXT},
        {"type": "object", "additionalProperties": TEXT, "required": []},
    ),
    "through all that holds schemas": (
        {
            "type": "array",
            "items": {"anyOf": [{"properties": {}}], "oneOf": [{"properties": {}}]},
            "$defs": {"t": {"properties": {}}},
            "definitions": {"t": {"properties": {}}},
        },
        {
            "type": "array",
            "items": {
                "anyOf": [{"properties": {}, "required": [], **CLOSED}],
                "oneOf": [{"properties": {}, "required": [], **CLOSED}],
            },
            "$defs": {"t": {"properties": {}, "required": [], **CLOSED}},
            "definitions": {"t": {"properties": {}, "required": [], **CLOSED}},
        },
    ),
    "parts that hold at once": (
        {
            "description": "own",
            "required": ["a"],
            "allOf": [
                {"description": "other", "properties": {"a": {"enum": ["x"]}}, "required": ["b"]},
                {"$ref": "#/$defs/t"},
            ],
            "$defs": {"t": {"properties": {"a": {"enum": ["x", "y"]}, "b": TEXT}}},
        },
        {
            "description": "own",
            "properties": {"a": {"enum": ["x", "y"]}, "b": TEXT},
            "required": ["a", "b"],
            "$defs": {"t": {"properties": {"a": {"enum": ["x", "y"]}, "b": TEXT}, "required": ["a", "b"], **CLOSED}},
            **CLOSED,
        },
    ),
}


@pytest.mark.parametrize(("schema", "expected"), STRICT.values(), ids=STRICT)
def test_the_strict_form(schema: Json, expected: Json):
    assert strict(schema) == expected


def test_a_part_that_holds_itself_has_an_end():
    schema = {"$defs": {"n": {"allOf": [{"$ref": "#/$defs/n"}, {"properties": {"a": TEXT}}]}}, "$ref": "#/$defs/n"}

    assert strict(schema)["$defs"]["n"]["properties"] == {"a": TEXT}


@given(schema=keywords(SCHEMAS))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_strict_form_of_a_schema_is_strict_and_a_schema(schema: Json):
    made = strict(schema)

    assert made == strict(made)
    if jsonschema_rs.meta.is_valid(schema) and schema.get("additionalProperties") is None:
        assert jsonschema_rs.meta.is_valid(made)
