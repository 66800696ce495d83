"""octo/cel/compiler.py, octo/cel/steps.py: control of evaluation, literals with optional entries, activations."""

from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType

import pytest

from octo.cel import compile as compile_expression
from octo.errors import ExpressionError


def evaluate(source, body=None):
    return compile_expression(source, ["body"]).evaluate({"body": body})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("true || body.x", True),
        ("body.x || true", True),
        ("false && body.x", False),
        ("body.x && false", False),
        ("1 / 0 == 1 || body.x || true", True),
        ("true ? 1 : body.x", 1),
        ("false ? body.x : 2", 2),
        ("optional.of(3).orValue(body.x)", 3),
        ("optional.of(3).or(body.x).value()", 3),
    ],
)
def test_what_decides_is_enough(source, expected):
    assert evaluate(source, {}) is expected or evaluate(source, {}) == expected


@pytest.mark.parametrize(
    ("source", "message", "column"),
    [
        ("body.x || false", "no such key: x", 6),
        ("true && body.x", "no such key: x", 14),
        ("body.x && body.y", "no such key: x", 6),
        ("body.n && true", "`&&` needs bools on both sides, got double", 6),
        ("body.n ? 1 : 2", "the condition before `?` must be a bool, got double", 6),
        ("{'a': 1, 'a': 2}", "key of a map is repeated: a", 10),
        ("{body.n: 1}", "a value of kind `double` cannot be the key of a map", 7),
        ("[?body.n]", "an entry marked with `?` must be an optional value, got double", 8),
    ],
)
def test_an_undecided_failure_stands(source, message, column):
    with pytest.raises(ExpressionError) as caught:
        evaluate(source, {"n": 1.0})

    assert (caught.value.message, caught.value.column) == (message, column)


def test_optional_entries_are_left_out_when_absent():
    source = "[[1, ?body.?a, ?body.?b], {?'x': body.?a, ?'y': body.?b}]"

    assert evaluate(source, {"a": 5.0}) == [[1, 5.0], {"x": 5.0}]


def test_a_name_that_the_activation_lacks_is_told():
    with pytest.raises(ExpressionError, match=r"^undeclared reference to 'body'$"):
        compile_expression("body.a", ["body"]).evaluate({})


def test_subclasses_and_read_only_mappings_in_an_activation_count_as_their_kind():
    class Word(str):
        pass

    body = MappingProxyType({"w": Word("ab"), "pair": (1.0, 2.0)})

    assert evaluate("body.w + 'c' == 'abc' && size(body.w) == 2 && body.pair.map(x, x) == [1, 2]", body) is True


def test_one_program_serves_many_threads():
    program = compile_expression("lists.range(200).filter(x, x % body == 0).map(x, x + body)", ["body"])
    bodies = [1, 2, 3, 4, 5] * 20

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda body: program.evaluate({"body": body}), bodies))

    assert results == [[number + body for number in range(0, 200, body)] for body in bodies]


def test_deeply_nested_values_are_an_ordinary_failure():
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(ExpressionError, match="nested too deeply"):
        compile_expression("body", ["body"])({"body": deep})
