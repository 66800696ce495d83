"""octo/schema.py: a schema accepts what its model accepts, and refuses what a schema can refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import BeforeValidator, ConfigDict, Field

from octo import schema
from octo.fields import AnyJson, Bool, Duration, Expression, Int, LooseText, Model, Name, Number, Text, one_of


@pytest.fixture(scope="module")
def config() -> Draft202012Validator:
    return Draft202012Validator(schema.config())


def flow(block: str) -> dict[str, Any]:
    return {"flows": [{"name": "main", "process": [yaml.safe_load(block)]}]}


def connector(entry: str) -> dict[str, Any]:
    return {"connectors": [yaml.safe_load(entry)]}


ACCEPTED = {
    "settings under settings": "{ type: set-payload, settings: { value: body } }",
    "settings beside type": "{ type: set-payload, name: copy, value: body }",
    "settings in both places": "{ type: set-payload, settings: { value: body }, rawBody: true }",
    "a setting that is called name": "{ type: set-variable, name: label, settings: { name: a, value: body } }",
    "settings that come from a processor": "{ ref: stamp }",
    "settings over those of a processor": "{ ref: stamp, settings: { value: body }, name: label }",
    "a processor and its type": "{ ref: stamp, type: set-variable, value: body }",
    "a composite": "{ type: cache-scope, key: body.id, body: { process: [ { type: log } ] } }",
    "keys of the author": "{ type: log, x-note: 1, settings: { x-more: [] } }",
    "a variable for a word": "{ type: log, level: '${LEVEL}' }",
    "a variable for a number": "{ type: split, items: body, chunkSize: '${SIZE}' }",
    "a variable in a duration": "{ type: cache-scope, key: body, ttl: '${TTL}s', body: { process: [] } }",
    "no time at all": "{ type: cache-scope, key: body, ttl: 0, body: { process: [] } }",
    "null for what may be missing": "{ type: log, level: null, settings: null }",
    "another spelling": "{ type: ai-agent, connector: a, system_prompt: do, tools: [] }",
    "a text from a file": "{ type: ai-agent, connector: a, prompt: { resource: prompt.md }, tools: [] }",
    "a bare value as a binding": "{ type: ai-agent, connector: a, prompt: do, tools: "
    "[ { name: t, description: d, process: [], inputs: { a: 5, b: { expr: body }, c: { any: thing } } } ] }",
    "a type that a variable decides": "{ type: '${KIND}', any: thing }",
}
REFUSED = {
    "no type": "{ value: body }",
    "an unknown type": "{ type: set-paylod, value: body }",
    "a missing setting": "{ type: set-payload, rawBody: true }",
    "a missing setting under settings": "{ type: set-payload, settings: { rawBody: true } }",
    "a label is no setting": "{ type: set-variable, name: a, value: body }",
    "an unknown setting": "{ type: set-payload, value: body, rawbody: true }",
    "an unknown setting under settings": "{ type: set-payload, settings: { value: body, rawbody: true } }",
    "an unknown setting over a processor": "{ ref: stamp, settings: { vale: body } }",
    "settings of a composite": "{ type: cache-scope, settings: { key: body, body: { process: [] } } }",
    "a number for an expression": "{ type: set-payload, value: 1 }",
    "text for a boolean": "{ type: set-payload, value: body, rawBody: 'yes' }",
    "text for a number": "{ type: split, items: body, chunkSize: '5' }",
    "an unknown word": "{ type: log, level: loud }",
    "no duration": "{ type: cache-scope, key: body, ttl: 5, body: { process: [] } }",
    "a duration without a unit": "{ type: cache-scope, key: body, ttl: '5', body: { process: [] } }",
    "null for what is required": "{ type: set-payload, value: null }",
    "an empty list": "{ type: switch, cases: [] }",
    "a block in the place of a chain": "{ type: if, condition: body, then: [ { type: log } ] }",
    "a fault deep inside": "{ type: if, condition: body, then: { process: [ { type: log, lvl: info } ] } }",
    "an agent without a model": "{ type: ai-agent, prompt: do, tools: [] }",
}


@pytest.mark.parametrize("block", ACCEPTED.values(), ids=ACCEPTED)
def test_a_block_that_octo_can_read_is_accepted(block, config):
    assert [error.message for error in config.iter_errors(flow(block))] == []


@pytest.mark.parametrize("block", REFUSED.values(), ids=REFUSED)
def test_a_block_that_no_config_can_have_is_refused(block, config):
    assert not config.is_valid(flow(block))


@pytest.mark.parametrize(
    ("entry", "right"),
    [
        ("{ name: a, type: logger }", True),
        ("{ name: a, type: logger, settings: { output: stderr } }", True),
        ("{ name: a, type: llm-anthropic, settings: { api_key: key } }", True),
        ("{ name: a, type: llm-scripted, settings: { script: replies.yaml } }", True),
        ("{ name: a, type: '${TYPE}', settings: { any: thing } }", True),
        ("{ type: logger }", False),
        ("{ name: a, type: loger }", False),
        ("{ name: a, type: logger, output: stderr }", False),
        ("{ name: a, type: logger, settings: { outpt: stderr } }", False),
        ("{ name: a, type: llm-anthropic }", True),
        ("{ name: a, type: llm-anthropic, settings: { model: m } }", True),
        ("{ name: a, type: llm-scripted, settings: { chunkSize: 3 } }", False),
    ],
)
def test_a_connector_is_checked_by_its_type(entry, right, config):
    assert config.is_valid(connector(entry)) == right


def test_a_processor_has_settings_of_its_type_and_may_leave_some_to_its_blocks(config):
    def processor(settings):
        return {"processors": [{"name": "stamp", "type": "set-variable", "settings": settings}]}

    assert config.is_valid(processor({"name": "stage"}))
    assert not config.is_valid(processor({"nmae": "stage"}))


def test_what_is_wrong_is_said_of_the_type_at_hand(config):
    [error] = config.iter_errors(flow("{ type: log, lvl: info }"))

    assert error.json_path == "$.flows[0].process[0]"
    assert "'lvl'" in error.message


# ---------------------------------------------------------------- any model


class Part(Model):
    """A part."""

    shorthand: ClassVar[Any] = Text

    text: Text
    """What it says."""


PART = f"{Part.__module__}.Part"


class Sheet(Model):
    """A file of some kind."""

    spellings: ClassVar[Mapping[str, str]] = {"the_name": "name"}
    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    name: Name
    """What it is called."""

    many_parts: tuple[Part, ...] = Field((), max_length=3)
    by_key: dict[Name, Part | None] = Field(default_factory=dict)
    count: Int = Field(2, ge=1)
    share: Number | None = None
    loose: LooseText = ""
    on: Bool = True
    mode: Annotated[Literal["a", "b"], one_of("a", "b")] = "a"
    wait: Duration = Duration("5s")
    test: Expression[bool] | None = None
    data: AnyJson = None
    read: Annotated[int, BeforeValidator(len, json_schema_input_type=Text)] = 0


def test_the_schema_of_any_model_comes_from_its_fields_and_docstrings():
    made = schema.of(Sheet, "a sheet")

    variable = {"pattern": r"^\$\{[A-Za-z_][A-Za-z0-9_]*\}$"}
    assert {key: made[key] for key in made if key not in ("properties", "$defs")} == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "a sheet",
        "description": "A file of some kind.",
        "type": "object",
        "patternProperties": {"^x-": True},
        "additionalProperties": False,
        "allOf": [{"anyOf": [{"required": ["name"]}, {"required": ["the_name"]}]}],
        "minProperties": 1,
    }
    properties = made["properties"]
    assert list(properties) == [*Sheet.yaml_keys(), "the_name"]
    assert properties["name"] == {"description": "What it is called.", "type": "string", "pattern": r"\S"}
    assert properties["the_name"]["deprecated"] is True
    part = {"anyOf": [{"$ref": f"#/$defs/{PART}"}, {"type": "string"}]}
    assert properties["manyParts"] == {"type": ["array", "null"], "items": part, "maxItems": 3}
    assert properties["byKey"]["additionalProperties"] == {"anyOf": [part, {"type": "null"}]}
    assert properties["count"] | variable == properties["count"]
    assert properties["count"]["type"] == ["integer", "string", "null"]
    assert (properties["count"]["default"], properties["count"]["minimum"]) == (2, 1)
    assert properties["share"]["type"] == ["number", "string", "null"]
    assert properties["loose"]["type"] == ["string", "number", "boolean", "null"]
    assert properties["on"]["default"] is True
    assert properties["mode"]["anyOf"][0] == {"enum": ["a", "b"]}
    assert properties["wait"]["default"] == "5s"
    assert properties["test"] == {"type": ["string", "null"], "format": "cel"}
    assert properties["data"] == {}
    assert properties["read"]["type"] == ["string", "null"]
    assert made["$defs"][PART]["required"] == ["text"]


def test_a_type_that_nobody_has_thought_of_is_no_silent_gap():
    class Odd(Model):
        when: complex

    with pytest.raises(TypeError, match="complex"):
        schema.of(Odd, "odd")


def test_a_debug_config_is_checked():
    validator = Draft202012Validator(schema.debug_config())
    mock = {"cases": [{"when": "body.a", "error": "no"}], "default": {"body": 1}}

    assert validator.is_valid({"input": {"data": 1}, "breakAt": "a.b", "spies": ["a.c"], "mocks": {"a.d": mock}})
    assert not validator.is_valid({"breakat": "a.b"})
    assert not validator.is_valid({"mocks": {"a.d": {"default": {"boddy": 1}}}})
    assert not validator.is_valid({"mocks": {"a.d": {}}})


def test_a_suite_is_checked():
    validator = Draft202012Validator(schema.suite())
    case = {"name": "a", "input": "pair", "mocks": {"a.d": None}, "spies": {"a.c": {"count": 1}}, "timeout": "5s"}

    assert validator.is_valid({"flow": "a", "cases": [case, {"name": "b", "input": {"data": 1}}]})
    assert not validator.is_valid({"flow": "a"})
    assert not validator.is_valid({"flow": "a", "cases": []})
    assert not validator.is_valid({"flow": "a", "cases": [{"name": "a", "input": {"dta": 1}}]})
    assert not validator.is_valid({"flow": "a", "cases": [{"name": "a", "expect": {"boddy": 1}}]})
