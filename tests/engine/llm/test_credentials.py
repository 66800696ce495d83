"""octo/llm/credentials.py: keys, headers and base URLs."""

import pytest

from octo.llm.credentials import Credentials, Headers, header_list, join_url, shown_url, url_fault

FIXED = {"anthropic-version": "1"}
TYPE = ("content-type", "application/json")
VERSION = ("anthropic-version", "1")


def credentials(
    key: str = "secret-key", header: str = "x-api-key", shared: Headers = (), own: Headers = ()
) -> Credentials:
    return Credentials("p", "https://h", header, api_key=key, shared_headers=shared, custom_headers=own)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (credentials(), (TYPE, ("x-api-key", "secret-key"), VERSION)),
        (credentials(header="authorization"), (TYPE, ("authorization", "Bearer secret-key"), VERSION)),
        (credentials(key=""), (TYPE, VERSION)),
        (credentials(own=(("X-Api-Key", "other"),)), (TYPE, VERSION, ("X-Api-Key", "other"))),
        (credentials(own=(("Authorization", "Bearer t"),)), (TYPE, VERSION, ("Authorization", "Bearer t"))),
        (
            credentials(header="authorization", own=(("x-api-key", "other"),)),
            (TYPE, ("authorization", "Bearer secret-key"), VERSION, ("x-api-key", "other")),
        ),
        (
            credentials(shared=(("X-Team", "a"), ("X-Env", "b")), own=(("x-team", "c"),)),
            (TYPE, ("x-api-key", "secret-key"), VERSION, ("x-team", "c"), ("X-Env", "b")),
        ),
        (
            credentials(own=(("Anthropic-Version", "2"),)),
            (TYPE, ("x-api-key", "secret-key"), ("Anthropic-Version", "2")),
        ),
    ],
    ids=[
        "the provider's key header",
        "bearer",
        "no key, no header",
        "replaced key header",
        "replaced by authorization",
        "another credential header is an ordinary one",
        "the connector's headers win over shared ones",
        "a fixed header can be replaced",
    ],
)
def test_which_headers_go_out(given: Credentials, expected: Headers):
    assert given.headers(FIXED) == expected


def test_secrets_are_taken_out_of_texts():
    given = credentials(own=(("Authorization", "Bearer tok-12345"), ("X-Team", "tok-12345-team")))

    assert given.mask("key secret-key, header Bearer tok-12345, bare tok-12345") == "key ***, header ***, bare ***"
    assert credentials(key="ab").mask("about") == "about"
    assert "secret-key" not in repr(given) and "tok" not in repr(given)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("a: 1", (("a", "1"),)),
        ("a: 1, b:2 ,c: x:y", (("a", "1"), ("b", "2"), ("c", "x:y"))),
        ("nothing, : 1, a: , b: 2", (("b", "2"),)),
    ],
    ids=["nothing", "one", "several", "entries without both sides are skipped"],
)
def test_a_list_of_headers(text: str, expected: Headers):
    assert header_list(text) == expected


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("https://api.example.com/v1", None),
        ("http://127.0.0.1:8080", None),
        ("http://[::1]:8080/x", None),
        ("api.example.com", "it must begin with `http://` or `https://`"),
        ("ftp://api.example.com", "it must begin with `http://` or `https://`"),
        ("https://", "it names no host"),
        ("https:///v1", "it names no host"),
        ("http://h:99999", "port out of range 0-65535"),
        ("http://h/a b", "it holds white space"),
        ("http://[::1", "invalid ipv6 url"),
    ],
)
def test_what_is_wrong_with_a_base_url(url: str, fault: str | None):
    assert url_fault(url) == fault


def test_a_path_is_joined_below_the_base_and_its_query_stays():
    assert join_url("https://h/a/", "v1/x") == "https://h/a/v1/x"
    assert join_url("https://h/a?k=1", "v1/x") == "https://h/a/v1/x?k=1"


def test_a_url_is_shown_without_user_password_and_query():
    assert shown_url("https://user:pass@h:1/a/b?key=1#c") == "https://h:1/a/b"
    assert shown_url("https://h") == "https://h"
