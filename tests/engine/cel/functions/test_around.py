"""octo/cel/functions/around.py: templates and randomness, handed in with the activation."""

import re

import pytest

from octo.cel import SURROUNDINGS, Surroundings
from octo.cel import compile as compile_expression
from octo.errors import ExpressionError, OctoError


def evaluate(source, surroundings=None, **variables):
    activation = variables if surroundings is None else {**variables, SURROUNDINGS: surroundings}
    return compile_expression(source, variables)(activation)


def test_a_template_is_rendered_with_the_variables_in_scope():
    around = Surroundings(template=lambda name, scope: f"{name}: {scope['body']}")

    assert evaluate('["a", "b"].map(x, templateResource(x))', around, body="hi") == ["a: hi", "b: hi"]


def test_without_templates_none_is_found():
    with pytest.raises(ExpressionError) as caught:
        evaluate('"- " + templateResource("x")')

    assert (caught.value.message, caught.value.column) == ('load template "x": resource: not found', 8)


def test_what_a_template_runs_into_is_the_error_of_the_expression():
    def render(name, scope):
        raise OctoError("line 1: no such key: a", hint="look there")

    with pytest.raises(ExpressionError) as caught:
        evaluate('templateResource("x")', Surroundings(template=render))

    assert (caught.value.message, caught.value.hint) == ("line 1: no such key: a", "look there")


def test_an_expression_that_renders_a_template_may_read_every_variable():
    names = ["body", "now"]

    assert compile_expression('templateResource("x")', names).names == {"body", "now"}
    assert compile_expression("1 + 1", names).names == set()


def test_an_expression_inside_a_template_spends_the_budget_of_the_one_around_it():
    inner = compile_expression("lists.range(400000).size()", ())
    around = Surroundings(template=lambda name, scope: f"{inner(scope):.0f}")

    assert evaluate('templateResource("x")', around) == "400000"
    with pytest.raises(ExpressionError, match=r"^evaluation exceeds its budget of 1000000 steps$"):
        evaluate('[1, 2, 3].map(i, templateResource("x"))', around)


def test_no_expression_can_name_the_surroundings():
    with pytest.raises(ExpressionError):
        compile_expression(SURROUNDINGS, [SURROUNDINGS])


def test_a_uuid_is_random_and_of_version_4():
    found = evaluate("[uuid(), uuid()]")

    assert all(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", id) for id in found)
    assert found[0] != found[1]


def test_the_random_bytes_of_a_uuid_come_from_outside():
    assert evaluate("uuid()", Surroundings(random=bytes)) == "00000000-0000-4000-8000-000000000000"
