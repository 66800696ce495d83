"""octo/cel/patterns.py: regular expressions in RE2 syntax."""

import pytest

from octo.cel import compile as compile_expression
from octo.errors import ExpressionError


def matches(pattern, text):
    return compile_expression("body.text.matches(body.pattern)", ["body"]).evaluate(
        {"body": {"text": text, "pattern": pattern}}
    )


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("b+", "abbc", True),
        ("^b", "abc", False),
        ("c$", "abc", True),
        ("c$", "abc\n", False),
        (r"c\z", "abc", True),
        ("(?m)^b$", "a\nb\nc", True),
        ("a.c", "a\nc", False),
        ("(?s)a.c", "a\nc", True),
        ("(?i)ABC", "abc", True),
        ("a(?i)b|c", "aB", True),
        ("a(?i)b|c", "C", True),
        ("a(?i)b|c", "AB", False),
        ("a(?i:b)c", "aBc", True),
        ("a(?i:b)c", "aBC", False),
        ("(?i)a(?-i:b)", "Ab", True),
        ("(?i)a(?-i:b)", "AB", False),
        (r"^\d+$", "12", True),
        (r"^\d+$", "\u0661", False),
        (r"^\w+$", "\u00e9", False),
        (r"^[\w-]+$", "a-b_1", True),
        (r"^[^\W\d]+$", "ab", True),
        (r"^[^\W\d]+$", "a1", False),
        ("^[[:alpha:]_]+$", "ab_", True),
        ("^[[:^alpha:]]+$", "12", True),
        ("^[a[]+$", "a[", True),
        ("^[]a]+$", "a]", True),
        (r"^\pL+$", "\u00e9a", True),
        (r"^\p{Greek}$", "\u03b1", True),
        (r"^\P{Greek}$", "a", True),
        (r"^\Qa.b\E$", "a.b", True),
        (r"^\Qa.b\E$", "axb", False),
        (r"\x41\x{42}\103", "ABC", True),
        ("^a{2,3}$", "aaaa", False),
        ("a{,3}", "a{,3}", True),
        ("(?P<year>[0-9]{4})-(?<month>[0-9]{2})", "2024-05", True),
        ("(?U)a+", "aa", True),
        ("(?i)k", "\u212a", True),
        ("(?i)[a-k]+$", "\u212a", True),
        ("(?i)mas[^s]", "mas\u017f", False),
        ("(?i)i", "\u0131", False),
        ("k", "\u212a", False),
        ("", "a", True),
        ("x*", "", True),
    ],
)
def test_a_pattern_matches_as_in_re2(pattern, text, expected):
    assert matches(pattern, text) is expected


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(?=a)", "`(?=a` opens no group that is known; look-around is not supported"),
        ("(?<!a)b", "`(?<!` opens no group that is known; look-around is not supported"),
        ("(?>a)", "`(?>a` opens no group that is known; look-around is not supported"),
        (r"(a)\1", r"`\1` refers back to a group, which is not supported"),
        ("(a", "`)` is missing"),
        ("a)", "`)` closes no group"),
        ("[a", "`]` is missing"),
        ("[b-a]", "the range `b-a` ends before it begins"),
        ("*a", "nothing to repeat before `*`"),
        ("a**", "`*` is repeated by `*`"),
        ("a*+", "`*` is repeated by `+`"),
        ("a{1001}", "`{1001}` repeats more than 1000 times"),
        ("a{3,2}", "`{3,2}` ends before it begins"),
        (r"\y", r"unknown escape `\y`"),
        (r"\Z", r"unknown escape `\Z`"),
        ("a\\", "it ends with a backslash"),
        ("[[:word1:]]", "unknown class `[:word1:]`"),
    ],
)
def test_what_is_no_pattern_of_re2_is_refused(pattern, reason):
    with pytest.raises(ExpressionError) as caught:
        matches(pattern, "a")

    assert caught.value.message == f"bad pattern `{pattern}`: {reason}"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^(\w|\d|_|1)+[!?]$", "1" * 60),
        (r"(\w+\s?)+(\w+\s?)+(\w+\s?)+[!?]$", "word " * 2000),
    ],
)
def test_a_pattern_that_takes_too_long_is_stopped(pattern, text):
    with pytest.raises(ExpressionError, match=r"^regular expression exceeds its budget of 0.1 s$"):
        matches(pattern, text)
