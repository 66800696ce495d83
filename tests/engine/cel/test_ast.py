"""octo/cel/ast.py: which expressions only take a value out of a variable."""

import pytest

from octo.cel import compile as compile_expression

BODY = {"a": {"list": [1.0, {"x": [2.0]}]}}


def evaluate(source, body):
    return compile_expression(source, ["body", "vars"], json=["body"])({"body": body, "vars": {"group": {"n": 1}}})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("body", BODY),
        ("body.a.list", BODY["a"]["list"]),
        ('body["a"].list[1]', BODY["a"]["list"][1]),
        ("has(body.b) ? body.b : body.a", BODY["a"]),
        ("body.?a.?list.orValue([])", BODY["a"]["list"]),
        ("body[?'b'].orValue(body.a)", BODY["a"]),
    ],
)
def test_a_part_of_a_json_variable_is_the_result_itself(source, expected):
    assert evaluate(source, BODY) is expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("vars.group", {"n": 1.0}),
        ("has(body.b) ? body.b : vars.group", {"n": 1.0}),
        ("has(body.b) ? body.b : {'n': 1}", {"n": 1.0}),
        ("body.?b.orValue([1])", [1.0]),
        ("[body.a.list[0], 1]", [1.0, 1.0]),
        ("body.a.list.map(x, 1)", [1.0, 1.0]),
        ("{'body': 1}.body", 1.0),
    ],
)
def test_what_an_expression_makes_or_takes_elsewhere_becomes_json(source, expected):
    result = evaluate(source, BODY)

    assert repr(result) == repr(expected)
