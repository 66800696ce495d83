"""octo/cel/comprehensions.py: the macros over lists, maps and optional values."""

import pytest

from octo.cel import compile as compile_expression
from octo.errors import ExpressionError

BODY = {"files": [{"name": "a", "size": 10.0}, {"name": "b", "size": 200.0}], "map": {"x": 1.0, "y": 2.0}}


def evaluate(source):
    return compile_expression(source, ["body"]).evaluate({"body": BODY})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("body.files.filter(f, f.size > 100).map(f, f.name)", ["b"]),
        ("body.files.map(f, f.size > 100, f.name)", ["b"]),
        ("body.map.map(k, k)", ["x", "y"]),
        ("body.map.filter(k, body.map[k] > 1)", ["y"]),
        ("[1, 2].all(x, x > 0)", True),
        ("[1, 2].exists(x, x > 1)", True),
        ("[1, 2, 3].exists_one(x, x > 2)", True),
        ("[1, 2, 3].existsOne(x, x > 1)", False),
        ("[2, 0].exists(x, 4 / x == 2)", True),
        ("[0, 2].all(x, 4 / x == 1)", False),
        ("[1, 2].map(x, [3, 4].map(y, x * y))", [[3, 4], [6, 8]]),
        ("[1].map(x, [2].map(x, x))", [[2]]),
        ("[3, 1, 2].sortBy(x, -x)", [3, 2, 1]),
        ("['b', 'a'].all(i, v, i >= 0 && v != '')", True),
        ("body.map.exists(k, v, k == 'y' && v == 2)", True),
        ("body.map.existsOne(k, v, v > 0)", False),
        ("['a', 'b'].transformList(i, v, string(i) + v)", ["0a", "1b"]),
        ("['a', 'b'].transformList(i, v, i > 0, v)", ["b"]),
        ("body.map.transformMap(k, v, v + 1)", {"x": 2.0, "y": 3.0}),
        ("body.map.transformMap(k, v, v > 1, v)", {"y": 2.0}),
        ("['a', 'b'].transformMapEntry(i, v, i == 0 ? {v: i} : {})", {"a": 0}),
        ("optional.of(2).optMap(x, x + 1).value()", 3),
        ("optional.of(2).optFlatMap(x, optional.none()).hasValue()", False),
        ("optional.none().optMap(x, x + 1).orValue(7)", 7),
    ],
)
def test_a_macro_has_its_value(source, expected):
    assert evaluate(source) == expected


@pytest.mark.parametrize(
    ("source", "message", "column"),
    [
        ("body.files.map(f, f.nam)", "no such key: nam", 21),
        ("body.files.filter(f, f.size)", "the condition must be a bool, got double", 24),
        ("[0, 2].all(x, 4 / x == 2)", "division by zero", 17),
        ("[1, 0].exists(x, 4 / x == 2)", "division by zero", 20),
        ("body.map.x.all(y, true)", "no such overload: double.all()", 12),
        ("body.map.sortBy(x, x)", "no such overload: map.sortBy()", 10),
        ("body.files.sortBy(f, f)", "values of kinds map and map cannot be sorted", 12),
        ("[1, 2].transformMapEntry(i, v, {'k': v})", "key of a map is repeated: k", 32),
        ("[1].transformMapEntry(i, v, body.files)", "`transformMapEntry` needs a map here, got list", 34),
        ("body.map.optMap(x, x)", "no such overload: map.optMap()", 10),
    ],
)
def test_a_failure_inside_a_macro_is_told_at_its_place(source, message, column):
    with pytest.raises(ExpressionError) as caught:
        evaluate(source)

    assert (caught.value.message, caught.value.column) == (message, column)
