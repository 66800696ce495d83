"""octo/cel/parser.py and octo/cel/ast.py: how expressions are read, and where they break off."""

import pytest

from octo.cel import compile as compile_expression
from octo.errors import ExpressionError

NAMES = ("a", "b", "body")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 2 - 3", 5),
        ("-2 * 3", -6),
        ("--2", 2),
        ("!!true", True),
        ("1 + 1 == 2 && 3 > 2", True),
        ("true || false && false", True),
        ("false ? 1 : true ? 2 : 3", 2),
        ("1 in [1] == true", True),
        ("[1, 2,]", [1, 2]),
        ("{'a': 1,}", {"a": 1}),
        ("{'return': 1}.return", 1),
        ("[[1], [2]][1][0]", 2),
        ("-1.5 + 2.0", 0.5),
    ],
)
def test_operators_bind_as_usual(source, expected):
    assert compile_expression(source, ()).evaluate({}) == expected


@pytest.mark.parametrize(
    ("source", "message", "column", "length"),
    [
        ("", "unexpected end of expression", 1, 1),
        ("1 +", "unexpected end of expression", 4, 1),
        ("(1", "expected `)`, found end of expression", 3, 1),
        ("[1 2]", "expected `,` or `]`, found `2`", 4, 1),
        ("{1 2}", "expected `:`, found `2`", 4, 1),
        ("size(1 2)", "expected `,` or `)`, found `2`", 8, 1),
        ("a b", "unexpected `b`", 3, 1),
        ("body.", "expected a name after `.`, found end of expression", 6, 1),
        ("body.true", "expected a name after `.`, found `true`", 6, 4),
        ("a ? b", "expected `:`, found end of expression", 6, 1),
        ("while", "`while` is a reserved word", 1, 5),
        ("has(body)", "`has` needs a field selection, as in `has(body.name)`", 5, 4),
        ("has(body['a'])", "`has` needs a field selection, as in `has(body.name)`", 10, 3),
        ("has(1, 2)", "`has` takes 1 argument, got 2", 1, 3),
        ("[1].map(1, 2)", "`map` needs a name for its variable here", 9, 1),
        ("[1].map(x)", "`map` takes 2 or 3 arguments, got 1", 5, 3),
        ("[1].all(x, x, true)", "`all` needs a second name for its variable here", 12, 1),
    ],
)
def test_a_broken_expression_is_refused_where_it_breaks(source, message, column, length):
    with pytest.raises(ExpressionError) as caught:
        compile_expression(source, NAMES)

    error = caught.value
    assert (error.message, error.column, error.length, error.source) == (message, column, length, source)


@pytest.mark.parametrize(
    "source",
    [
        "(" * 201 + "1" + ")" * 201,
        "[" * 5_000,
        "body" + ".a" * 300,
        "1+(" * 300 + "1" + ")" * 300,
        "!" * 300 + "true",
        "true ? 1 : " * 300 + "2",
        "dyn(" * 300 + "1" + ")" * 300,
    ],
    ids=["brackets", "lists", "fields", "sums", "negations", "conditions", "calls"],
)
def test_deep_nesting_is_refused(source):
    with pytest.raises(ExpressionError, match="expression is nested more than 200 levels deep"):
        compile_expression(source, NAMES)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("(" * 199 + "1" + ")" * 199, 1),
        ("dyn(" * 199 + "1" + ")" * 199, 1),
        ("+".join(["1"] * 5_000), 5_000),
        ("[1, 2].map(x, 90 " + "- x + [1].map(y, y)[0]" * 50 + ")[1]", 40),
        ("1 == 2" + " == false" * 300, False),
        ("||".join(["false"] * 1_000), False),
    ],
    ids=["brackets", "calls", "sum", "operators with others inside", "comparisons", "alternatives"],
)
def test_nesting_within_the_limit_evaluates(source, expected):
    assert compile_expression(source, ()).evaluate({}) == expected
