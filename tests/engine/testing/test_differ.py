"""octo/testing/differ.py: what is different between two values, in words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octo.testing.differ import differences, only_kinds, told
from octo.values import clone

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3).map(float) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", min_size=1, max_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("want", "got", "lines"),
    [
        ({"a": 1.0}, {"a": 1.0}, []),
        (
            {"a": 1.0, "b": 2.0},
            {"b": 3.0, "c": 4.0},
            ["a: want 1, which is missing", "b: want 2, got 3", "c: got 4, which is one too many"],
        ),
        (
            [1.0, {"a": [True]}],
            [1.0, {"a": [1.0]}, None],
            ["[1].a[0]: want true, got 1", "[2]: got null, which is one too many"],
        ),
        (["x"] * 13, ["y"] * 13, [*(f'[{number}]: want "x", got "y"' for number in range(10)), "and 3 more"]),
        (
            {"a": "abcd" * 20 + "one" + "efgh" * 20},
            {"a": "abcd" * 20 + "two" + "efgh" * 20},
            [
                'a: from character 81 on: want …"abcdabcdabcdabcdabcdoneefghefghefghefghe"…, '
                'got …"abcdabcdabcdabcdabcdtwoefghefghefghefghe"…'
            ],
        ),
        (1.0, 2.0, []),
    ],
    ids=["equal", "keys", "lists", "many", "texts", "both are shown anyway"],
)
def test_differences_are_told_by_their_place(want, got, lines):
    assert told(list(differences(want, got))) == lines


@pytest.mark.parametrize(
    ("want", "got", "text"),
    [
        ("30", 30.0, " (only the kind differs: text against number)"),
        (True, "true", " (only the kind differs: boolean against text)"),
        ("null", None, " (only the kind differs: text against null)"),
        (1.0, True, ""),
        ("31", 30.0, ""),
        ([1.0], "[1]", ""),
    ],
)
def test_a_difference_of_kinds_only_is_said_to_be_one(want, got, text):
    assert only_kinds(want, got) == text


@given(JSON, JSON)
@settings(max_examples=200)
def test_values_are_different_exactly_when_their_json_is(a, b):
    same = json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)

    assert (not list(differences(a, b))) == same
    assert not list(differences(a, clone(a)))
