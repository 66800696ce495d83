"""octo/llm/faults.py: what a provider answers instead of an answer."""

import json

import pytest

from octo import errors
from octo.llm import faults
from octo.values import Json


def body(error: Json) -> bytes:
    return json.dumps({"type": "error", "error": error}).encode()


@pytest.mark.parametrize(
    ("status", "message", "kind", "retryable"),
    [
        (400, "tools: bad", errors.BadRequest, False),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", errors.ContextTooLong, False),
        (400, "input length and `max_tokens` exceed context limit", errors.ContextTooLong, False),
        (401, "invalid x-api-key", errors.AuthenticationFailed, False),
        (402, "pay first", errors.ProviderError, False),
        (403, "not for you", errors.AuthenticationFailed, False),
        (404, "model: x", errors.BadRequest, False),
        (408, "slow", errors.ProviderError, True),
        (409, "conflict", errors.ProviderError, True),
        (413, "Request exceeds the maximum size", errors.ProviderError, False),
        (422, "no", errors.BadRequest, False),
        (429, "slow down", errors.RateLimited, True),
        (500, "oops", errors.ProviderError, True),
        (529, "Overloaded", errors.ProviderError, True),
    ],
)
def test_the_status_says_what_kind_of_error_it_is(
    status: int, message: str, kind: type[errors.ProviderError], retryable: bool
):
    error = faults.from_answer(status, {}, body({"type": "x", "message": message}))

    assert (type(error), str(error)) == (kind, f"status {status}: {message}")
    assert (error.status, error.retryable) == (status, retryable)


@pytest.mark.parametrize(
    ("status", "headers", "text", "retryable"),
    [
        (500, {"x-should-retry": "false"}, "", False),
        (400, {"x-should-retry": "true"}, "", True),
        (429, {}, '{"error": {"code": "insufficient_quota", "message": "no money"}}', False),
    ],
    ids=["told not to", "told to", "no quota left"],
)
def test_the_answer_may_say_itself_whether_to_try_again(
    status: int, headers: dict[str, str], text: str, retryable: bool
):
    assert faults.from_answer(status, headers, text.encode()).retryable is retryable


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "7", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "0"}, 0),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None):
    assert faults.from_answer(429, headers, b"").retry_after == seconds


@pytest.mark.parametrize(
    ("content_type", "text", "expected"),
    [
        ("application/json", '{"error": "plain text"}', "status 502: plain text"),
        ("application/json", '{"message": "flat"}', "status 502: flat"),
        ("application/json", '{"detail": "as FastAPI says"}', "status 502: as FastAPI says"),
        ("application/json", '{"odd": 1}', 'status 502: `{"odd":1}`'),
        (
            "text/html",
            "<html><head><title>502 Bad\nGateway</title></head></html>",
            "status 502: an HTML page: 502 Bad Gateway",
        ),
        ("", "<!DOCTYPE html><style>p {}</style><h1>Sorry</h1><script>x()</script>", "status 502: an HTML page: Sorry"),
        ("text/html", "<html>no key a&#x2F;b &amp; c", "status 502: an HTML page: no key a/b & c"),
        ("text/html", "<html>", "status 502: an HTML page"),
        ("text/plain", "upstream \x1b[31mfailed\n\n", "status 502: upstream [31mfailed"),
        ("text/plain", "y" * 70_000, f"status 502: {'y' * 200}…"),
        ("", "", "status 502"),
        ("application/json", '{"error": {"message": "cut \\"o\\" \\u0', 'status 502: cut \\"o\\" \\u0'),
        ("application/json", '{"error": {"message": "cut \\"o\\"', 'status 502: cut "o"'),
        ("application/json", '{"error": {"code": 7, "kind', 'status 502: {"error": {"code": 7, "kind'),
        ("application/json", json.dumps({"error": {"message": "z" * 100_000}}), f"status 502: {'z' * 2000}…"),
        ("application/json", f'{{"error": {"[" * 100_000}', f'status 502: {{"error": {"[" * 190}…'),
        ("application/octet-stream", "PK\0\0", "status 502: 4 bytes that are no text"),
    ],
    ids=[
        "error as text",
        "message",
        "detail",
        "unknown shape",
        "title of a page",
        "words of a page",
        "characters of a page",
        "empty page",
        "text",
        "long text",
        "nothing",
        "message cut off in a character",
        "message cut off",
        "JSON without a message cut off",
        "long message",
        "deep JSON",
        "no text",
    ],
)
def test_the_text_is_short_and_in_the_words_of_the_provider(content_type: str, text: str, expected: str):
    assert str(faults.from_answer(502, {"content-type": content_type}, text.encode())) == expected


def test_a_redirect_says_what_to_do():
    error = faults.from_answer(307, {"location": "https://u:p@elsewhere.example/login?token=x"}, b"")

    assert str(error) == ("status 307: redirects are not followed, this one leads to https://elsewhere.example/login")
    assert error.hint == "set `baseURL` to the address of the API that does not redirect"
    assert (type(error), error.retryable) == (errors.NotAnAnswer, False)
    assert str(faults.from_answer(302, {}, b"")) == "status 302: redirects are not followed"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, errors.NotAnAnswer), (404, errors.NotAnAnswer), (429, errors.RateLimited), (502, errors.ProviderError)],
)
def test_a_page_is_no_answer_of_the_api_unless_something_before_it_is_down(
    status: int, kind: type[errors.ProviderError]
):
    error = faults.from_answer(status, {"content-type": "text/html"}, b"<title>Sign in</title>")

    assert (type(error), str(error), error.status) == (kind, f"status {status}: an HTML page: Sign in", status)


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        (b"", {}, "an empty body"),
        (b" \n", {}, "an empty body"),
        (b"hello\nthere", {}, "`hello there`"),
        (b"\xef\xbb\xbf <!DOCTYPE html><p>Hi", {}, "an HTML page: Hi"),
        (b"\xff\xfe\xfd", {}, "3 bytes that are no text"),
        (b"caf\xe9 is closed today", {}, "`caf\ufffd is closed today`"),
        (b"\x0b\x02", {"content-encoding": "br"}, "a body in the encoding `br`"),
        (b"ok", {"content-encoding": "gzip"}, "`ok`"),
    ],
    ids=["nothing", "blank", "text", "page", "bytes", "another alphabet", "another encoding", "decoded"],
)
def test_what_a_body_is_in_a_few_words(body: bytes, headers: dict[str, str], expected: str):
    assert faults.found(body, headers) == expected


@pytest.mark.parametrize(
    ("instance", "streamed", "expected"),
    [
        ("claude", False, 'llm-x complete: connector "claude": no'),
        ("claude", True, 'llm-x stream: connector "claude": no'),
        ("", False, "llm-x complete: no"),
    ],
)
def test_an_error_begins_with_whose_call_failed(instance: str, streamed: bool, expected: str):
    error = errors.ProviderError("no")
    faults.sign(error, "llm-x", instance, way="stream" if streamed else "complete")

    assert (error.message, str(error), error.args) == (expected, expected, (expected,))


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, 503, "status 503 in the answer: Overloaded"),
        ({"type": "rate_limit_error", "message": "slow"}, 429, "status 429 in the answer: slow"),
        ({"type": "authentication_error", "message": "who?"}, 401, "status 401 in the answer: who?"),
        ({"type": "permission_error", "message": "no"}, 403, "status 403 in the answer: no"),
        ({"type": "not_found_error", "message": "model"}, 404, "status 404 in the answer: model"),
        ({"type": "invalid_request_error", "message": "bad"}, 400, "status 400 in the answer: bad"),
        ({"type": "timeout_error", "message": "late"}, 504, "status 504 in the answer: late"),
        ({"type": "api_error", "message": "oops"}, 500, "status 500 in the answer: oops"),
        ({"type": "billing_error", "message": "pay"}, 402, "status 402 in the answer: pay"),
        ({"type": "request_too_large", "message": "big"}, 413, "status 413 in the answer: big"),
        ({"code": "image_too_large", "message": "big"}, 400, "status 400 in the answer: big"),
        ({"code": 502, "message": "upstream"}, 502, "status 502 in the answer: upstream"),
        ({"code": "429", "message": "slow"}, 429, "status 429 in the answer: slow"),
        ({"code": "insufficient_quota", "message": "pay"}, 429, "status 429 in the answer: pay"),
        ({"code": 7}, None, "an error in the answer: 7"),
        ("bare text", None, "an error in the answer: bare text"),
        (None, None, "an error in the answer: the provider reported an error"),
        ({"type": ["x"], "code": {"a": 1}}, None, 'an error in the answer: `{"type":["x"],"code":{"a":1}}`'),
        ({"code": "y" * 9000}, None, f"an error in the answer: {'y' * 200}…"),
    ],
)
def test_an_error_inside_a_stream_stands_for_a_status(error: Json, status: int | None, text: str):
    fault = faults.from_event(error)

    assert (fault.status, str(fault)) == (status, text)
    assert fault.retryable is (status in {None, 429, 500, 502, 503, 504} and "pay" not in text)


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        ({"type": "billing_error"}, False),
        ({"type": "request_too_large"}, False),
        ({"code": "image_too_large"}, False),
        ("the response is cancelled", False),
        ({"code": "canceled", "message": "stopped"}, False),
        ({"code": "server_error"}, True),
        ("something new", True),
    ],
)
def test_an_error_inside_a_stream_is_tried_again_when_another_try_may_end_otherwise(error: Json, retryable: bool):
    assert faults.from_event(error).retryable is retryable
