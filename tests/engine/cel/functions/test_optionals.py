"""octo/cel/functions/optionals.py: values that may be absent."""

import pytest

from octo.cel import compile as compile_expression
from octo.errors import ExpressionError


def evaluate(source):
    return compile_expression(source, ["body"]).evaluate({"body": {"a": 1.0, "list": [1.0]}})


@pytest.mark.parametrize(
    "source",
    [
        "optional.of(null).hasValue() && !optional.none().hasValue()",
        "[null, false, 0, 0.0, '', b'', [], {}, duration('0s')].all(v, !optional.ofNonZeroValue(v).hasValue())",
        "optional.ofNonZeroValue(0.5).value() == 0.5",
        "optional.none().or(optional.of(2)).value() == 2",
        "body.?a.orValue(7) == 1 && body.?b.orValue(7) == 7",
        "optional.unwrap([body.?a, body.?b]) == [1] && [body.?b].unwrapOpt() == []",
        "[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && !body.list.filter(x, false).first().hasValue()",
        "body[?'a'].value() == 1 && !body.list[?5].hasValue() && !body.?b.c.hasValue()",
    ],
)
def test_an_optional_value_works_as_told(source):
    assert evaluate(source) is True


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("body.?b.value()", "optional value is absent"),
        ("optional.unwrap([1])", "`unwrap` needs a list of optional values"),
        ("body.a.orValue(1)", "no such overload: double.orValue(int)"),
        ("body.?b.or(body.a)", "no such overload: optional_type.or(double)"),
    ],
)
def test_a_wrong_use_is_refused(source, message):
    with pytest.raises(ExpressionError) as caught:
        evaluate(source)

    assert caught.value.message == message
