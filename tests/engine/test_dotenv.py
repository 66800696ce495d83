"""octo/dotenv.py: env files, read and written."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octo import dotenv


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("A=1", "1"),
        ("  A = 1  ", "1"),
        ("export A=1", "1"),
        ("A=b=c", "b=c"),
        ("A=", ""),
        ("A=1 # x", "1 # x"),
        ("A=${B}", "${B}"),
        ("A='a\\n\"b\"'", 'a\\n"b"'),
        ('A="a\\n\\t\\r\\"b\\\\c\\x"', 'a\n\t\r"b\\cx'),
        ("A=\"x'", "\"x'"),
        ("A='", "'"),
        ("A=''x''", "'x'"),
        ("# A=0\nA=1\n\nA=2", "2"),
        ("A=1\rB=2", "1"),
        ("\ufeffA=1", "1"),
        ("export\tA=1", "1"),
    ],
)
def test_a_line_assigns(line, expected):
    assert dotenv.parse(line)["A"] == expected


def test_a_name_may_begin_with_export():
    assert dotenv.parse("exported=1\nexport=2") == {"exported": "1", "export": "2"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A=1\nsecret", "line 2 has no `=`"),
        ("\r\n=secret", "line 2 has no name before `=`"),
        ("export =1", "line 1 has no name before `=`"),
        ("export", "line 1 has no `=`"),
        (
            "A=\"1\nB='x\nline",
            "line 3 has no `=`; the quote in line 2 is not closed there, and a value stands on one line",
        ),
        ("A='\nB=1\nline", "line 3 has no `=`"),
    ],
)
def test_a_line_that_assigns_nothing_is_refused_without_showing_it(text, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        dotenv.parse(text)


def test_only_what_needs_quotes_is_quoted():
    variables = {"B": "x y", "A": 1000000.0, "N": None, "P": "plain=$x", "Q": 'a"b\n', "H": "a#b", "W": "\\", "T": True}

    assert dotenv.dump(variables) == ('A=1000000\nB="x y"\nH="a#b"\nN=""\nP=plain=$x\nQ="a\\"b\\n"\nT=true\nW="\\\\"')


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"A": [1.0]}, "value of `A` is a list, an environment variable holds text"),
        ({"A": {}}, "value of `A` is a mapping, an environment variable holds text"),
        ({"": "x"}, "the name of an environment variable is empty"),
        *[({key: "x"}, f"`{key}` is no name of an environment variable") for key in ("A B", "A=", "#A", "'A", "A\n")],
    ],
)
def test_what_cannot_stand_in_an_env_file_is_refused(variables, message):
    with pytest.raises(ValueError) as caught:
        dotenv.dump(variables)

    assert str(caught.value) == message


@given(st.dictionaries(st.from_regex(r"[A-Za-z_.]+", fullmatch=True), st.text()))
def test_what_is_written_is_read_back(variables):
    text = dotenv.dump(variables)

    assert dotenv.parse(text) == variables
    assert len(text.splitlines()) >= len(variables)
