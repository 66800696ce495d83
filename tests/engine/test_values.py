"""octo/values.py: JSON values: parse, print, clone, render."""

import json
import math
import struct
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octo.errors import OctoError
from octo.values import Ordered, Written, clean, clean_text, clone, dumps, kind_of, masked, number_text, parse, render


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1.0),
        ("-0", -0.0),
        ("1e3", 1000.0),
        ('{"a": [1, true, null, "x"]}', {"a": [1.0, True, None, "x"]}),
        (b"\xef\xbb\xbf[1]", [1.0]),
        (b'"\xff"', "�"),
        ('"\\ud83d\\ude00"', "😀"),
        ('"\\ud83d"', "�"),
        ('{"\\ud83d": 1}', {"�": 1.0}),
    ],
)
def test_every_number_is_a_double_and_every_text_is_valid(text: str | bytes, expected: object) -> None:
    found = parse(text)

    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize("text", ["", "{", "NaN", "Infinity", "-Infinity", "[1,]", "{'a': 1}", "1 2", "[" * 100_000])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-7.0, "-7"),
        (1, "1"),
        (2**70, "1180591620717411303424"),
        (1.5, "1.5"),
        (0.1, "0.1"),
        (1e20, "100000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (1e-6, "0.000001"),
        (1.25e-6, "0.00000125"),
        (1e-7, "1e-7"),
        (5e-324, "5e-324"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
    ],
)
def test_a_number_has_one_text(number: float, expected: str) -> None:
    assert number_text(number) == expected


@settings(max_examples=200, deadline=None)
@given(st.binary(min_size=8, max_size=8))
def test_the_text_of_a_double_is_read_as_the_same_double(raw: bytes) -> None:
    (number,) = struct.unpack("<d", raw)
    if math.isfinite(number):
        assert struct.pack("<d", float(number_text(number))) == raw


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "true"),
        (1.0, "1"),
        ('é\n"\\', '"é\\n\\"\\\\"'),
        ("a<b>&\u2028", '"a\\u003cb\\u003e\\u0026\\u2028"'),
        ({}, "{}"),
        ([], "[]"),
        ({"b": [1, 2.5], "a": {"c": None}}, '{"a":{"c":null},"b":[1,2.5]}'),
        ((1, "x"), '[1,"x"]'),
        (math.nan, '"NaN"'),
        (math.inf, '"Infinity"'),
        ("\ud83d", '"�"'),
        (MappingProxyType({"a": 1}), '{"a":1}'),
    ],
)
def test_json_is_compact_sorted_and_safe_in_html(value: object, expected: str) -> None:
    assert dumps(value) == expected


def test_what_has_no_json_form_is_refused() -> None:
    with pytest.raises(TypeError, match="a value of type `set` has no JSON form"):
        dumps([{1}])


_texts = st.text(max_size=8)
_json = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | _texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=100, deadline=None)
@given(_json)
def test_what_is_printed_is_parsed_the_same(value: object) -> None:
    assert parse(dumps(value)) == value
    assert json.loads(dumps(value), parse_int=float) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [("plain", "plain"), ("\ud83d\ude00", "😀"), ("a\ud83d", "a�"), ("\ude00b", "�b"), ("😀\udcff", "😀�")],
)
def test_surrogates_are_joined_or_replaced(text: str, expected: str) -> None:
    assert clean_text(text) == expected
    assert clean({text: [text, 1, None]}) == {expected: [expected, 1, None]}


def test_a_clone_is_deep_and_its_numbers_are_doubles() -> None:
    value = {"a": [1, 2.5, True, None, "x"], "b": ({"c": 3},)}
    copy = clone(value)
    value["a"].append(9)

    assert copy == {"a": [1.0, 2.5, True, None, "x"], "b": [{"c": 3.0}]}
    assert [type(item) for item in copy["a"]] == [float, float, bool, type(None), str]


@pytest.mark.parametrize(
    ("value", "expected"), [("text", "text"), ("", ""), (None, "null"), (1.0, "1"), ({"a": "x"}, '{"a":"x"}')]
)
def test_text_is_rendered_as_it_is_and_all_else_as_json(value: object, expected: str) -> None:
    assert render(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "a boolean"),
        (1, "a number"),
        (1.5, "a number"),
        ("", "text"),
        ([], "a list"),
        ((), "a list"),
        ({}, "a mapping"),
        (b"", "bytes"),
    ],
)
def test_kinds_have_names(value: object, expected: str) -> None:
    assert kind_of(value) == expected


def test_what_is_nested_beyond_reason_is_an_error_and_no_crash():
    value = []
    for _ in range(5_000):
        value = [value]

    for use in (dumps, clone):
        with pytest.raises(OctoError, match="a value is nested too deeply"):
            use(value)


def test_what_is_written_already_is_printed_as_it_is_and_still_masked():
    value = {"x": Written('{"b":"key","a":[1]}')}

    assert dumps(value) == '{"x":{"b":"key","a":[1]}}'
    assert dumps(masked(value, lambda text: text.replace("key", "***"))) == '{"x":{"a":[1],"b":"***"}}'


def test_an_ordered_mapping_is_printed_in_its_own_order_also_when_masked():
    value = Ordered(z=1, inner=Ordered(y="key", x={"b": 2, "a": "key"}))

    assert dumps([value]) == '[{"z":1,"inner":{"y":"key","x":{"a":"key","b":2}}}]'
    assert dumps(masked(value, lambda text: text.replace("key", "***"))) == (
        '{"z":1,"inner":{"y":"***","x":{"a":"***","b":2}}}'
    )
