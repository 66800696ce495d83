"""octo/llm/hints.py: what to do about a model call that failed."""

import pytest

from octo import errors
from octo.llm.credentials import Credentials
from octo.llm.hints import hint

DEFAULT = Credentials("anthropic", "https://api.anthropic.com/v1", "x-api-key", key_origin="`apiKey` (variable `KEY`)")
OWN = Credentials("anthropic", "http://me:pw@localhost:8080", "x-api-key", url_origin="`baseURL`")
LATER = "try again later, or ask the provider for a higher limit"
LESS = "send less: a shorter input, fewer or smaller files, shorter results of tools"
THEIRS = "the fault is on the side of the provider; try again later"


@pytest.mark.parametrize(
    ("error", "credentials", "expected"),
    [
        (
            errors.AuthenticationFailed("", status=401),
            DEFAULT,
            "check the key, which comes from `apiKey` (variable `KEY`)",
        ),
        (
            errors.AuthenticationFailed("", status=403),
            DEFAULT,
            "check whether the key may use the model `m-1`; it comes from `apiKey` (variable `KEY`)",
        ),
        (errors.BadRequest("", status=404), DEFAULT, "check `model`, which is `m-1`"),
        (
            errors.BadRequest("", status=404),
            OWN,
            "check `model`, which is `m-1`, and `baseURL`, which is `http://localhost:8080`",
        ),
        (errors.BadRequest("", status=400), OWN, None),
        (errors.ContextTooLong("", status=400), DEFAULT, LESS),
        (errors.ProviderError("", status=413), DEFAULT, LESS),
        (errors.ProviderError("", status=402), DEFAULT, "check the plan and the balance of the account"),
        (errors.RateLimited("", status=429, retryable=True), DEFAULT, LATER),
        (errors.RateLimited("", status=429), DEFAULT, "check the plan and the balance of the account"),
        (errors.ProviderError("", status=529, retryable=True), DEFAULT, THEIRS),
        (errors.ProviderError("", status=408), DEFAULT, None),
        (
            errors.Unreachable(""),
            DEFAULT,
            "check whether this machine reaches the Internet, and whether it needs a proxy (`HTTPS_PROXY`)",
        ),
        (
            errors.Unreachable(""),
            OWN,
            "check whether the server is running, and `baseURL`, which says where it is",
        ),
        (
            errors.NotAnAnswer("", status=200),
            DEFAULT,
            "a proxy between this machine and the provider may have answered in its place",
        ),
        (
            errors.NotAnAnswer("", status=200),
            OWN,
            "check whether `baseURL` is the address of the API; a web page, or a proxy in between, may have answered "
            "in its place",
        ),
        (
            errors.OutOfTime(""),
            DEFAULT,
            "`OCTO_AI_TIMEOUT_SECONDS` says how many seconds one call may take, its retries included; at most 86400",
        ),
        (errors.Truncated("", status=200), DEFAULT, None),
    ],
    ids=[
        "key",
        "right",
        "model",
        "model or address",
        "malformed request",
        "context",
        "request too large",
        "billing",
        "too many requests",
        "no quota",
        "overloaded",
        "request timeout",
        "no network",
        "no server",
        "something in between",
        "another server",
        "time",
        "cut off",
    ],
)
def test_what_to_do(error: errors.ProviderError, credentials: Credentials, expected: str | None):
    assert hint(error, credentials, "m-1") == expected
