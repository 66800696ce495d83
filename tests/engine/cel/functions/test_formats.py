"""octo/cel/functions/formats.py: JSON, form data and env files."""

import pytest

from octo.cel import compile as compile_expression
from octo.errors import ExpressionError


def evaluate(source, body=None):
    return compile_expression(source, ["body"]).evaluate({"body": body})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": [1.0, 2.5, None], "a": "<\u2028\u00e9"}, '{"a":"\\u003c\\u2028\u00e9","b":[1,2.5,null]}'),
        (1000000.0, "1000000"),
        ("x", '"x"'),
    ],
)
def test_a_value_is_written_as_compact_json(value, expected):
    assert evaluate("toJson(body)", value) == expected


def test_json_text_is_read_with_doubles():
    value = evaluate("fromJson(body)", '{"a": [1, "x"]}')

    assert value == {"a": [1.0, "x"]}
    assert type(value["a"][0]) is float


@pytest.mark.parametrize(
    ("source", "body", "expected"),
    [
        (
            "toFormData(body)",
            {"b": ["x y", "&"], "a": 1000000.0, "n": None, "t": True},
            "a=1000000&b=x+y&b=%26&n=&t=true",
        ),
        ("fromFormData(body)", "a=1&b=x+y%20z&a=%C3%A9&c", {"a": ["1", "\u00e9"], "b": "x y z", "c": ""}),
        ("fromFormData(body)", "", {}),
        (
            "toEnv(body)",
            {"B": "x y", "A": 1000000.0, "N": None, "P": "plain", "Q": 'a"b\n', "H": "a#b"},
            'A=1000000\nB="x y"\nH="a#b"\nN=""\nP=plain\nQ="a\\"b\\n"',
        ),
        (
            "fromEnv(body)",
            '# remark\n\nexport A=1 # x\r\nB = \'a\\n\'\nC="a\\n\\"b"\nA=2\nU=http://x?a=b',
            {"A": "2", "B": "a\\n", "C": 'a\n"b', "U": "http://x?a=b"},
        ),
    ],
)
def test_a_format_is_written_and_read(source, body, expected):
    assert evaluate(source, body) == expected


@pytest.mark.parametrize(
    ("source", "body", "message"),
    [
        ("fromJson(body)", 1.0, "no such overload: fromJson(double)"),
        ("fromJson(body)", "[NaN]", "text is not JSON: `NaN` is not JSON"),
        ("toJson(type(body))", None, "convert expression result: a value of kind `type` has no JSON form"),
        ("toFormData(body)", [1.0], "no such overload: toFormData(list)"),
        ("fromFormData(body)", "a=%zz", "form data has a bad escape `%zz`"),
        ("toEnv(body)", {"A": [1.0]}, "value of `A` is a list, an environment variable holds text"),
        ("fromEnv(body)", "A=1\nB", "line 2 has no `=`"),
    ],
)
def test_what_has_no_such_form_is_refused(source, body, message):
    with pytest.raises(ExpressionError) as caught:
        evaluate(source, body)

    assert caught.value.message == message
