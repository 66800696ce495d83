"""octo/llm/credentials.py: keys, headers and base URLs."""

import pytest

from octo.llm.credentials import (
    Credentials,
    Headers,
    header_fault,
    join_url,
    shared_headers,
    shared_headers_faults,
    shown_url,
    url_fault,
)

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


def test_a_secret_is_also_taken_out_where_a_text_was_cut_off():
    assert credentials().mask("bad secret-k… and `secret…`, a sec…") == "bad ***… and `***…`, a sec…"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("a: 1", (("a", "1"),)),
        ("a: 1, b:2 ,c: x:y", (("a", "1"), ("b", "2"), ("c", "x:y"))),
        ("a: é, b: x\ty", (("a", "é"), ("b", "x\ty"))),
        (" , a: 1,, ", (("a", "1"),)),
    ],
    ids=["nothing", "one", "several", "letters and tabs", "empty entries"],
)
def test_headers_from_the_environment(text: str, expected: Headers):
    environ = {"OCTO_AI_HTTP_HEADERS": text}
    assert (shared_headers(environ), shared_headers_faults(environ)) == (expected, [])


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("secret", "expected `name: value`, found no colon"),
        (": secret", "expected `name: value`, found no name"),
        ("b:", "expected `name: value`, found no value"),
        ("é: secret", "what stands before the colon is not the name of an HTTP header"),
        ("b c: secret", "what stands before the colon is not the name of an HTTP header"),
        ("b: sec\x01ret", "the value of header `b` holds a line break or another control character"),
        ("b: secret\nd: x", "the value of header `b` holds a line break or another control character"),
        ("b: \udcff", "the value of header `b` holds bytes that are not UTF-8"),
        ("content-length: 5", "the header `content-length` belongs to the connection, which octo manages"),
        ("Connection: close", "the header `Connection` belongs to the connection, which octo manages"),
    ],
)
def test_an_entry_that_cannot_be_sent_is_skipped_with_a_warning_that_does_not_quote_it(entry: str, reason: str):
    environ = {"OCTO_AI_HTTP_HEADERS": f"a: 1, {entry}, z: 2"}

    assert shared_headers(environ) == (("a", "1"), ("z", "2"))
    assert shared_headers_faults(environ) == [f"OCTO_AI_HTTP_HEADERS: entry 2 is skipped: {reason}"]


@pytest.mark.parametrize(
    "name",
    [
        "Content-Length",
        "transfer-encoding",
        "content-encoding",
        "connection",
        "keep-alive",
        "proxy-authorization",
        "proxy-authenticate",
        "proxy-connection",
        "te",
        "trailer",
        "upgrade",
        "expect",
    ],
)
def test_headers_of_the_connection_cannot_be_configured(name: str):
    assert header_fault(name, "1") == f"the header `{name}` belongs to the connection, which octo manages"


@pytest.mark.parametrize(
    "name", ["host", "accept", "accept-encoding", "content-type", "user-agent", "x-content-length"]
)
def test_all_other_headers_can(name: str):
    assert header_fault(name, "1") is None


@pytest.mark.parametrize(
    ("given", "source"),
    [
        (credentials(), "`apiKey`"),
        (credentials(shared=(("x-team", "a"),)), "`apiKey`"),
        (credentials(own=(("X-Api-Key", "other"),)), "the header `X-Api-Key` in `headers`"),
        (credentials(own=(("authorization", "t"),)), "the header `authorization` in `headers`"),
        (credentials(shared=(("Authorization", "t"),)), "the header `Authorization` in `OCTO_AI_HTTP_HEADERS`"),
        (
            credentials(shared=(("authorization", "t"),), own=(("authorization", "u"),)),
            "the header `authorization` in `headers`",
        ),
        (credentials(header="authorization", own=(("x-api-key", "other"),)), "`apiKey`"),
    ],
)
def test_what_carries_the_key(given: Credentials, source: str):
    assert given.key_source == source


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
        ("https://h/#/v1", "it holds a `#`, after which nothing is sent"),
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


# ---------------------------------------------------------------- tokens and organizations


def sent(credentials: Credentials) -> list[tuple[str, str]]:
    return [pair for pair in credentials.headers({"anthropic-version": "1"}) if pair[0] != "content-type"]


def test_a_token_goes_out_as_bearer_whatever_header_the_key_has():
    for key_header in ("authorization", "api-key", "x-api-key"):
        credentials = Credentials("p", "http://x", key_header, api_key="key", access_token="token")

        assert sent(credentials) == [("authorization", "Bearer token"), ("anthropic-version", "1")]


@pytest.mark.parametrize("name", ["Authorization", "API-Key"])
def test_a_configured_credential_goes_out_alone(name: str):
    credentials = Credentials("p", "http://x", "api-key", access_token="token", custom_headers=((name, "own"),))

    assert sent(credentials) == [("anthropic-version", "1"), (name, "own")]


def test_the_organization_stands_after_what_the_wire_fixes_and_before_what_is_configured():
    credentials = Credentials(
        "p", "http://x", "authorization", "k", organization_id="org", shared_headers=(("x", "1"),)
    )

    assert sent(credentials) == [
        ("authorization", "Bearer k"),
        ("anthropic-version", "1"),
        ("openai-organization", "org"),
        ("x", "1"),
    ]


def test_a_token_is_never_shown():
    credentials = Credentials("p", "http://x", "api-key", access_token="token-0123456789")

    assert "token-0123456789" not in repr(credentials)
    assert credentials.mask("bad token-0123456789 and token-012…") == "bad *** and ***…"


# ---------------------------------------------------------------- masking


@pytest.mark.parametrize(
    "text",
    ["bad url-key-1", "bad /v1?api_key=url-key-1&api-version=2024-10-21", "bad cGFzczp3b3Jk", "bad pass:word"],
    ids=["value", "query", "password in base64", "password"],
)
def test_what_is_secret_in_a_base_url_is_masked(text: str):
    who = Credentials("p", "https://me:pass%3Aword@h/v1?api_key=url-key-1&api-version=2024-10-21", "x-api-key")
    expected = {"value": "bad ***", "query": "bad /v1?api_key=***&api-version=2024-10-21"}

    assert who.mask(text) == (expected["query"] if "?" in text else expected["value"])


@pytest.mark.parametrize(
    ("name", "value", "echoed", "expected"),
    [
        ("Authorization", "Bearer abcdefgh", "abcdefgh", "***"),
        ("X-Gateway-Key", "gateway-word", "gateway-word", "***"),
        ("Cookie", "session=abc", "session=abc", "***"),
        ("X-Proxy-Auth", "Basic dXNlcjpw", "dXNlcjpw", "***"),
        ("X-Tenant", "tenant-0123456789-abcdef", "tenant-0123456789-abcdef", "***"),
        ("X-Team", "platform", "platform", "platform"),
        ("Content-Type", "application/json", "application/json", "application/json"),
        ("anthropic-beta", "context-1m-2025-08-07", "context-1m-2025-08-07", "context-1m-2025-08-07"),
    ],
)
def test_configured_headers_that_look_like_credentials_are_masked(name: str, value: str, echoed: str, expected: str):
    assert credentials(own=((name, value),)).mask(f"bad {echoed}!") == f"bad {expected}!"


def test_a_key_is_masked_in_other_forms_also_where_it_was_cut_off():
    assert credentials().mask("c2VjcmV0LWtleQ== 7365637265742d6b6579 secret-k… c2VjcmV0LWtl…") == "*** *** ***… ***…"
