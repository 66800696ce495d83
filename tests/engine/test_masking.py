"""octo/masking.py: the forms in which a secret is found."""

import json
from base64 import b64encode, urlsafe_b64encode
from html import escape
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octo import masking
from octo.masking import forms
from octo.values import dumps

SECRET = "sk-Ab/12+x?>~ü&\"'"


def hidden(text: str) -> str:
    return masking.hidden(text, forms([SECRET, "short"]))


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        b64encode(SECRET.encode()).decode(),
        b64encode(SECRET.encode()).decode().rstrip("="),
        urlsafe_b64encode(SECRET.encode()).decode(),
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET)
        .replace("%2F", "%2f")
        .replace("%2B", "%2b")
        .replace("%3F", "%3f")
        .replace("%3E", "%3e")
        .replace("%C3%BC", "%c3%bc"),
        escape(SECRET),
        escape(SECRET).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"),
    ],
    ids=[
        "plain",
        "JSON",
        "base64",
        "unpadded",
        "base64 for URLs",
        "hex",
        "HEX",
        "path",
        "query",
        "small escapes",
        "a page",
        "a page of another framework",
    ],
)
def test_a_secret_is_hidden_however_it_is_written(written: str):
    assert hidden(f"<{written}>") == "<***>"


@pytest.mark.parametrize("user", ["", "a", "ab", "abc", "abcd"])
def test_a_secret_is_hidden_inside_of_something_longer_in_base64(user: str):
    text = b64encode(f"{user}:{SECRET}@".encode()).decode()

    assert "***" in hidden(text)
    assert len(hidden(text).replace("***", "")) <= len(user) * 2 + 8


@pytest.mark.parametrize("secret", ["secret", "secret7", "secret-8", "secret--9"])
@pytest.mark.parametrize("user", ["u:", "me:", "you:"])
def test_a_short_secret_is_hidden_in_basic_authentication(user: str, secret: str):
    header = b64encode(f"{user}{secret}".encode()).decode()

    shown = masking.hidden(f"Basic {header}", forms([secret]))

    assert "***" in shown
    assert len(shown.replace("***", "")) <= len("Basic ") + 10


PEM = '-----BEGIN KEY-----\nab"c\\d<é>\nline two\n-----END KEY-----\n'


@pytest.mark.parametrize("ascii_only", [True, False], ids=["ASCII only", "all characters"])
@pytest.mark.parametrize("times", range(1, 6))
def test_a_secret_of_many_lines_is_hidden_in_json_inside_of_json(times: int, ascii_only: bool):
    text = f"[{PEM}]"
    for _ in range(times):
        text = json.dumps({"k": text}, ensure_ascii=ascii_only)

    shown = masking.hidden(text, forms([PEM]))

    assert "***" in shown
    assert "line two" not in shown


@given(st.text(min_size=6).map(str.strip).filter(lambda text: len(text) >= 6), st.lists(st.booleans(), max_size=5))
def test_any_secret_is_hidden_however_often_it_was_written_as_json(secret: str, writers: list[bool]):
    text = secret
    for safe in writers:
        text = dumps(text)[1:-1] if safe else json.dumps(text)[1:-1]

    assert masking.hidden(text, forms([secret])) == "***"


def test_a_secret_of_many_lines_is_hidden_on_one_line():
    assert masking.hidden(f"found `{' '.join(PEM.split())}`", forms([PEM])) == "found `***`"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key sk-1234…", "key ***…"),
        ("key sk-1…", "key ***…"),
        ("key sk-…", "key sk-…"),
        ("…34567890 was it", "…*** was it"),
        ("…7890…sk-12…", "…***…***…"),
        ("…890 was it", "…890 was it"),
        ("is sk-123 … 567890 right", "is *** … *** right"),
        ("so it goes … on", "so it goes … on"),
    ],
    ids=["a beginning", "four characters", "fewer", "an end", "many", "a short end", "with spaces", "none"],
)
def test_what_an_ellipsis_leaves_of_a_secret_is_hidden(text: str, expected: str):
    assert masking.hidden(text, forms(["sk-1234567890"])) == expected


def test_a_secret_that_is_too_short_has_no_forms():
    assert forms(["short", ""]) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("so", 2),
        ("so abc", 3),
        ("cde", 3),
        ("so abcdefg", 3),
        ("abcdef!", 7),
        ("fghij", 5),
        ("xabcdefgh abcde", 10),
    ],
    ids=[
        "nothing",
        "no part",
        "a beginning",
        "an end",
        "one in which another begins",
        "one that is over",
        "one",
        "one, and the beginning of one",
    ],
)
def test_a_text_that_goes_on_can_be_shown_up_to_where_a_secret_may_begin(text: str, expected: int):
    assert masking.whole(text, ["abcdef", "fghij"]) == expected
