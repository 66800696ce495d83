"""octo/cel/values.py and octo/cel/__init__.py: what a result is as JSON."""

import math

import pytest

from octo.cel import Timestamp
from octo.cel import compile as compile_expression
from octo.errors import ExpressionError

NOW = Timestamp(1_700_000_000_120_000_000)


def result(source, body=None):
    return compile_expression(source, ["body", "now"])({"body": body, "now": NOW})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("null", None),
        ("true", True),
        ("'text'", "text"),
        ("1.5", 1.5),
        ("0.0 / 0.0", "NaN"),
        ("1.0 / 0.0", "Infinity"),
        ("-1.0 / 0.0", "-Infinity"),
        ("5", 5.0),
        ("5u", 5.0),
        ("9007199254740991", 9007199254740991.0),
        ("9007199254740992", "9007199254740992"),
        ("-9007199254740992", "-9007199254740992"),
        ("18446744073709551615u", "18446744073709551615"),
        ("b'abcd'", "YWJjZA=="),
        ("now", "2023-11-14T22:13:20.12Z"),
        ("timestamp('2024-02-03T04:05:06.500+02:00')", "2024-02-03T04:05:06.5+02:00"),
        ("timestamp('2024-02-03T04:05:06Z') + duration('1h')", "2024-02-03T05:05:06Z"),
        ("duration('1h30m')", "5400s"),
        ("duration('-1500ms')", "-1.5s"),
        ("[1, [2u], {'a': b'x'}]", [1.0, [2.0], {"a": "eA=="}]),
        ("optional.of(1)", 1.0),
        ("[optional.none()]", [None]),
    ],
)
def test_a_result_becomes_json(source, expected):
    value = result(source)

    assert (type(value), value) == (type(expected), expected)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("type(1)", "convert expression result: a value of kind `type` has no JSON form"),
        ("[int]", "convert expression result: a value of kind `type` has no JSON form"),
        (
            "{1: 2}",
            "convert expression result: a JSON object has text keys, not keys of kind `int`",
        ),
        (
            "{'a': {true: 2}}",
            "convert expression result: a JSON object has text keys, not keys of kind `bool`",
        ),
    ],
)
def test_a_result_without_json_form_is_refused(source, message):
    with pytest.raises(ExpressionError) as caught:
        result(source)

    assert caught.value.message == message


def test_a_part_of_the_body_is_shared_and_not_copied():
    body = {"a": {"b": [1.0, "x", None, {"c": True}]}}

    assert result("body.a", body) is body["a"]


def test_ints_and_infinities_inside_a_shared_part_are_turned_into_json():
    body = {"a": {"n": 5, "x": math.inf, "s": "t"}}

    assert result("body.a", body) == {"n": 5.0, "x": "Infinity", "s": "t"}
    assert body == {"a": {"n": 5, "x": math.inf, "s": "t"}}


@pytest.mark.parametrize(
    "source",
    [
        "timestamp('2024-01-01T02:00:00+02:00') == timestamp('2024-01-01T00:00:00Z')",
        "duration('60s') == duration('1m')",
        "optional.of(1) == optional.of(1.0) && optional.none() != optional.of(null)",
        "type(1) == int && type(1.0) == double && type(1u) == uint && type(null) == null_type",
        "type(body) == null_type && type([]) == list && type({}) == map && type(int) == type",
        "type(now) == google.protobuf.Timestamp && type(optional.none()) == optional_type",
        "'a' == 'a' && b'a' == b'a' && !(dyn('a') == b'a') && !(dyn(1) == true)",
    ],
)
def test_values_are_equal_within_their_kind(source):
    assert result(source) is True


@pytest.mark.parametrize(
    "source",
    [
        "timestamp('9999-12-31T23:59:59Z') + duration('1s')",
        "timestamp('0001-01-01T00:00:00Z') - duration('1s')",
        "timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z')",
        "duration('315576000000s') + duration('1s')",
    ],
)
def test_time_out_of_range_is_refused(source):
    with pytest.raises(ExpressionError, match=r"^(timestamp|duration) out of range$"):
        result(source)
