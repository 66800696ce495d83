"""octo/agent/arguments.py: arguments of a tool call, checked against a schema."""

import pytest

from octo.agent.arguments import Checker, shown_path

VISIT = {
    "type": "object",
    "required": ["hall"],
    "properties": {
        "hall": {"type": "string"},
        "party": {"type": "array", "items": {"type": "object", "required": ["age"]}},
        "minutes": {"type": "integer", "minimum": 5},
    },
    "additionalProperties": False,
}


def faults(schema, value):
    return [str(fault) for fault in Checker(schema).faults(value)]


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        pytest.param({"hall": "east", "minutes": 5.0}, [], id="a whole double is an integer"),
        pytest.param({}, ["at `hall`: is required, but missing"], id="missing"),
        pytest.param({"hall": 5.0}, ['at `hall`: 5 is not of type "string"'], id="another kind"),
        pytest.param(
            {"hall": "east", "party": [{"age": 3}, {}]},
            ["at `party[1].age`: is required, but missing"],
            id="missing deep inside",
        ),
        pytest.param(
            {"hall": "east", "minutes": 2.0, "x": 1},
            [
                "additional properties are not allowed ('x' was unexpected)",
                "at `minutes`: 2 is less than the minimum of 5",
            ],
            id="two faults",
        ),
        pytest.param([], ['[] is not of type "object"'], id="no object"),
    ],
)
def test_a_fault_names_its_path(value, texts):
    assert sorted(faults(VISIT, value)) == texts


def test_a_long_value_is_not_quoted_whole():
    (text,) = faults({"type": "integer"}, "x" * 10_000_000)

    assert len(text) < 320
    assert text.endswith('is not of type "integer"')


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        pytest.param(
            {"type": "text"}, "\"text\" is not valid under any of the schemas listed in the 'anyOf' keyword", id="type"
        ),
        pytest.param({"pattern": "("}, '"(" is not a "regex"', id="pattern"),
        pytest.param({"required": ["a", "a"]}, '["a","a"] has non-unique elements', id="names twice"),
    ],
)
def test_an_unusable_schema_says_why_and_checks_nothing(schema, reason):
    assert Checker(schema).unusable == reason
    assert faults(schema, {"any": "thing"}) == []


@pytest.mark.parametrize("uri", ["http://example.invalid/schema.json", "file:///etc/hostname"])
def test_a_schema_that_refers_to_another_document_is_unusable(uri):
    assert "a schema must not refer to other documents" in str(Checker({"$ref": uri}).unusable)


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(VISIT, id="ordinary"),
        pytest.param({"type": "object", "properties": {"a": True}}, id="boolean schema inside"),
        pytest.param({"oneOf": [{"type": "string"}, {"type": "null"}]}, id="alternatives"),
        pytest.param({"$defs": {"a": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/a"}}}, id="own parts"),
    ],
)
def test_a_good_schema_is_usable(schema):
    assert Checker(schema).unusable is None


def test_a_path_reads_like_an_expression():
    assert shown_path(("rooms", 0, "hall")) == "rooms[0].hall"
