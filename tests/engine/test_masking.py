"""octo/masking.py: the forms in which a secret is found."""

import json
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus

import pytest

from octo import masking
from octo.masking import forms

SECRET = "sk-Ab/12+x?>~ü"


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
    ],
    ids=["plain", "JSON", "base64", "unpadded", "base64 for URLs", "hex", "HEX", "path", "query", "small escapes"],
)
def test_a_secret_is_hidden_however_it_is_written(written: str):
    assert hidden(f"<{written}>") == "<***>"


@pytest.mark.parametrize("user", ["", "a", "ab", "abc", "abcd"])
def test_a_secret_is_hidden_inside_of_something_longer_in_base64(user: str):
    text = b64encode(f"{user}:{SECRET}@".encode()).decode()

    assert "***" in hidden(text)
    assert len(hidden(text).replace("***", "")) <= len(user) * 2 + 8


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
