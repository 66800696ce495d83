"""octo/cel/frame.py: the budgets of one evaluation."""

import pytest

from octo.cel import compile as compile_expression
from octo.errors import ExpressionError

STEPS = "evaluation exceeds its budget of 1000000 steps"
SIZE = "evaluation exceeds its budget of 64 MB"


@pytest.mark.parametrize(
    ("source", "message", "column"),
    [
        ("lists.range(1000001)", STEPS, 7),
        ("lists.range(1100).map(x, lists.range(1100).map(y, 0))", STEPS, 44),
        ("lists.range(1000001) == [] || true", STEPS, 7),
        ("sets.contains(lists.range(5000), lists.range(5000))", STEPS, 6),
        ("lists.range(5000).map(x, [x]).distinct()", STEPS, 31),
        ("[lists.range(5000)].all(l, l.all(x, x in l))", STEPS, 39),
        ("[lists.range(1000)].all(l, lists.range(1000).all(x, l == l))", STEPS, 55),
        ("lists.range(20000).all(x, !body.contains('y'))", STEPS, 33),
        ("lists.range(20000).all(x, body.indexOf('y', 1) < 0)", STEPS, 32),
        ("lists.range(1000).map(x, body + body)", SIZE, 31),
        ("body.replace('', body)", SIZE, 6),
        ("lists.range(2000).map(x, body).join(body)", SIZE, 32),
        ("regex.replace(body, 'x', body)", SIZE, 7),
        ("lists.range(1000).map(x, toJson(body))", SIZE, 26),
        ("'%s%s'.format([lists.range(700).map(x, body), 1])", SIZE, 8),
    ],
)
def test_a_budget_ends_an_evaluation(source, message, column):
    with pytest.raises(ExpressionError) as caught:
        compile_expression(source, ["body"]).evaluate({"body": "x" * 100_000})

    assert (caught.value.message, caught.value.column) == (message, column)


def test_the_size_of_a_result_counts_what_it_holds_many_times():
    program = compile_expression("lists.range(1000).map(x, body)", ["body"])

    with pytest.raises(ExpressionError, match=SIZE):
        program({"body": "x" * 100_000})


def test_every_evaluation_has_a_budget_of_its_own():
    program = compile_expression("lists.range(400000).all(x, x >= 0)", ())

    assert [program({}), program({})] == [True, True]
