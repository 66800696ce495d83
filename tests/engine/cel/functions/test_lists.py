"""octo/cel/functions/lists.py and octo/cel/functions/sets.py: lists, also as sets."""

import pytest

from octo.cel import compile as compile_expression
from octo.errors import ExpressionError


def evaluate(source):
    return compile_expression(source, ()).evaluate({})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("lists.range(3)", [0, 1, 2]),
        ("[1, 2, 3, 4].slice(1, 3)", [2, 3]),
        ("[1, [2, [3]]].flatten()", [1, 2, [3]]),
        ("[1, [2, [3]]].flatten(2)", [1, 2, 3]),
        ("[1, [2]].flatten(1000000)", [1, 2]),
        ("[1, [2]].flatten(0)", [1, [2]]),
        ("[3, 1.5, 2u].sort()", [1.5, 2, 3]),
        ("['b', 'a'].sort()", ["a", "b"]),
        ("[].sort()", []),
        ("[{'n': 2}, {'n': 1}].sortBy(x, x.n)", [{"n": 1}, {"n": 2}]),
        ("[2, 1, 2.0, 'a', 'a', true, 1, [1], [1.0]].distinct()", [2, 1, "a", True, [1]]),
        ("[1, 2].reverse()", [2, 1]),
        ("sets.contains([1, 2, 3], [2.0, 3])", True),
        ("sets.contains([1], [2])", False),
        ("sets.equivalent([1, 2, 2], [2u, 1])", True),
        ("sets.intersects([1, 2], [3])", False),
        ("sets.intersects([[1], 2], [[1.0]])", True),
    ],
)
def test_a_function_of_lists_has_its_value(source, expected):
    assert evaluate(source) == expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("[1].slice(0, 2)", "index out of range: 0 to 2 of 1 elements"),
        ("[1].slice(-1, 1)", "index out of range: -1 to 1 of 1 elements"),
        ("[1].flatten(-1)", "depth of `flatten` must not be negative, got -1"),
        ("[1, 'a'].sort()", "values of kinds int and string cannot be sorted"),
        ("[[1]].sort()", "values of kinds list and list cannot be sorted"),
    ],
)
def test_a_wrong_list_is_refused(source, message):
    with pytest.raises(ExpressionError) as caught:
        evaluate(source)

    assert caught.value.message == message
