"""What to do about a model call that failed: which setting to look at, and what it was."""

from __future__ import annotations

from octo.errors import (
    AuthenticationFailed,
    ContextTooLong,
    NotAnAnswer,
    OutOfTime,
    ProviderError,
    RateLimited,
    Unreachable,
)
from octo.llm.credentials import Credentials, shown_url
from octo.llm.transport import TIME_LIMIT


def hint(error: ProviderError, credentials: Credentials, model: str) -> str | None:
    """What a user can do, if anything can be said. A secret is named by where it was set, never shown."""
    match error:
        case NotAnAnswer():
            return _about_what_answers(credentials)
        case Unreachable():
            return _about_reaching(credentials)
        case OutOfTime():
            return f"`{TIME_LIMIT}` says how many seconds one call may take, its retries included; at most 86400"
        case AuthenticationFailed(status=403):
            return f"check whether the key may use the model `{model}`; it comes from {credentials.key_source}"
        case AuthenticationFailed():
            return f"check the key, which comes from {credentials.key_source}"
        case ContextTooLong() | ProviderError(status=413):
            return "send less: a shorter input, fewer or smaller files, shorter results of tools"
        case RateLimited(retryable=True):
            return "try again later, or ask the provider for a higher limit"
        case RateLimited() | ProviderError(status=402):
            return "check the plan and the balance of the account"
        case ProviderError(status=404):
            return _about_the_address(credentials, model)
        case ProviderError(status=int(status)) if status >= 500:
            return "the fault is on the side of the provider; try again later"
    return None


def _about_the_address(credentials: Credentials, model: str) -> str:
    if credentials.url_origin:
        address = shown_url(credentials.base_url)
        return f"check `model`, which is `{model}`, and {credentials.url_origin}, which is `{address}`"
    return f"check `model`, which is `{model}`"


def _about_what_answers(credentials: Credentials) -> str:
    if credentials.url_origin:
        return (
            f"check whether {credentials.url_origin} is the address of the API; a web page, or a proxy in between, "
            "may have answered in its place"
        )
    return "a proxy between this machine and the provider may have answered in its place"


def _about_reaching(credentials: Credentials) -> str:
    if credentials.url_origin:
        return f"check whether the server is running, and {credentials.url_origin}, which says where it is"
    return "check whether this machine reaches the Internet, and whether it needs a proxy (`HTTPS_PROXY`)"
