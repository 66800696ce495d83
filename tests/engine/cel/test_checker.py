"""octo/cel/checker.py: what is refused before any value is there."""

import pytest

from octo.cel import compile as compile_expression
from octo.errors import ExpressionError

NAMES = ("body", "vars", "env", "eventID")


@pytest.mark.parametrize(
    ("source", "message", "column", "length"),
    [
        ("hello", "undeclared reference to 'hello'", 1, 5),
        ("body.a + bdy", "undeclared reference to 'bdy'", 10, 3),
        ("[1].map(x, y)", "undeclared reference to 'y'", 12, 1),
        ("foo(1)", "undeclared reference to function 'foo'", 1, 3),
        ("body.sum()", "undeclared reference to function 'sum'", 6, 3),
        ("math.absx(1)", "undeclared reference to function 'math.absx'", 6, 4),
        ("size(1, 2)", "`size` takes 1 argument, got 2", 1, 4),
        ("'a'.substring()", "`substring` takes 1 to 2 arguments, got 0", 5, 9),
        ("math.least()", "`math.least` takes at least 1 argument, got 0", 6, 5),
        ("size(1)", "no such overload: size(int)", 1, 4),
        ("'a'.contains(1)", "no such overload: string.contains(int)", 5, 8),
        ("'1' == 1", "no such overload: string == int", 5, 2),
        ("'a' + 1", "no such overload: string + int", 5, 1),
        ("{} + {}", "no such overload: map + map", 4, 1),
        ("[1] < [2]", "no such overload: list < list", 5, 1),
        ("body in 2", "no such overload: dyn in int", 6, 2),
        ("!1", "no such overload: !int", 1, 1),
        ("-'a'", "no such overload: -string", 1, 1),
        ("1 && true", "`&&` needs bools on both sides, got int", 1, 1),
        ("1 ? 2 : 3", "the condition before `?` must be a bool, got int", 1, 1),
        ("'abc'[0]", "no such overload: string[int]", 7, 1),
        ("[1]['a']", "no such overload: list[string]", 5, 3),
        ("{1.5: 2}", "a value of kind `double` cannot be the key of a map", 2, 3),
        ("'a'.b", "no such key: b", 5, 1),
        ("[1].filter(x, 1)", "the condition of `filter` must be a bool, got int", 15, 1),
        ("1.exists(x, true)", "no such overload: int.exists()", 3, 6),
        ("[?1]", "an entry marked with `?` must be an optional value", 3, 1),
    ],
)
def test_what_cannot_be_right_is_refused_at_its_place(source, message, column, length):
    with pytest.raises(ExpressionError) as caught:
        compile_expression(source, NAMES)

    assert (caught.value.message, caught.value.column, caught.value.length) == (message, column, length)


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("bdy.a", "did you mean `body`?"),
        ("body.map(item, itm)", "did you mean `item`?"),
        ("hello", 'known names: `body`, `env`, `eventID`, `vars`; text stands in quotes: `"hello"`'),
        ("body.cotains('x')", "did you mean `contains`?"),
        ("toJsn(body)", "did you mean `toJson`?"),
        ("body.fliter(x, true)", "did you mean `filter`?"),
        ("contains('ab', 'a')", "it is called behind its value: `x.contains()`"),
        ("'a'.toJson()", "it is called `toJson(x)`"),
        ("'abc'[0]", "a character is read by `charAt`, a part by `substring`"),
    ],
)
def test_a_hint_says_what_was_meant(source, hint):
    with pytest.raises(ExpressionError) as caught:
        compile_expression(source, NAMES)

    assert caught.value.hint == hint


@pytest.mark.parametrize(
    "source",
    ["1 == 1.0", "1 + 1.0 < 3u", "body.a == 1", "null == 1", "body + 1", "type(body) == int", "[1, 'a']"],
)
def test_kinds_that_may_meet_compile(source):
    assert compile_expression(source, NAMES).source == source


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("body.a + vars.b", {"body", "vars"}),
        ("[1].map(body, body)", set()),
        ("[1].map(x, x + body)", {"body"}),
        ("1 + 1", set()),
        ("[env].map(vars, .vars)", {"env", "vars"}),
    ],
)
def test_a_program_knows_which_names_it_reads(source, names):
    assert compile_expression(source, NAMES).names == names


def test_a_variable_hides_a_space_of_functions():
    program = compile_expression("[{'abs': 1}].map(math, math.abs)", ())

    assert program.evaluate({}) == [1]
