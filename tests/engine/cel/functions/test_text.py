"""octo/cel/functions/text.py: `format`."""

import pytest

from octo.cel import compile as compile_expression
from octo.errors import ExpressionError


def evaluate(source):
    return compile_expression(source, ["body"]).evaluate({"body": {"who": "Bo", "cents": 1250.0}})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("'%s owes %.2f'.format([body.who, body.cents / 100.0])", "Bo owes 12.50"),
        ("'%s %s %s %s'.format([null, true, 1.5, b'x'])", "null true 1.5 x"),
        ("'%s'.format([[1, 'a', {'k': 2.0}]])", "[1, a, {k: 2}]"),
        ("'%s %s'.format([int, duration('1m')])", "int 60s"),
        ("'%d %d %d'.format([1, 2u, body.cents])", "1 2 1250"),
        ("'%d %d %d'.format([1e22, -0.0, 0.0 / 0.0])", "10000000000000000000000 0 NaN"),
        ("'%f %.0f %e'.format([1, 2.5, 12345.678])", "1.000000 2 1.234568e+04"),
        ("'%b %o %x %X'.format([5, 8, 255, 255])", "101 10 ff FF"),
        ("'%x %X'.format(['hi', b'\\xff'])", "6869 FF"),
        ("'100%%'.format([])", "100%"),
        ("'%s and more'.format(['a', 'b'])", "a and more"),
    ],
)
def test_a_verb_writes_its_argument(source, expected):
    assert evaluate(source) == expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("'%s %s'.format([1])", "`%s` has no argument: there are only 1"),
        ("'%d'.format([2.5])", "`%d` needs a whole number, got 2.5"),
        ("'%d'.format(['a'])", "`%d` needs a number, got string"),
        ("'%x'.format([1.5])", "`%x` needs a whole number, got 1.5"),
        ("'%q'.format([1])", "`%q` is no verb of `format`"),
        ("'100%'.format([1])", "`%` is no verb of `format`"),
    ],
)
def test_a_wrong_argument_is_refused(source, message):
    with pytest.raises(ExpressionError) as caught:
        evaluate(source)

    assert caught.value.message == message
