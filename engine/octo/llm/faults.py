"""From what a provider answers instead of an answer to a ProviderError that says why."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from octo.errors import AuthenticationFailed, BadRequest, ContextTooLong, ProviderError, RateLimited
from octo.values import Json

_SHOWN: Final = 2000
"""The most characters of a provider's message that are passed on."""

_CONTEXT = re.compile(
    r"context[ _](length|window|limit)|(prompt|input|request) (is |was )?too (long|large)|maximum context"
    r"|exceeds? the (maximum|limit).*tokens",
    re.IGNORECASE,
)

_WORDS: Final = (
    ("insufficient_quota", 429),
    ("rate_limit", 429),
    ("authentication", 401),
    ("permission", 403),
    ("not_found", 404),
    ("invalid", 400),
    ("bad_request", 400),
    ("context_length", 400),
    ("overload", 503),
    ("timeout", 504),
)
"""The status that a word in the code or type of an error inside a stream stands for; the first one counts."""


def from_answer(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """The error of an answer whose status says that it is none. `body` may have been cut off."""
    text = body.decode("utf-8", errors="replace")
    parsed = _json(text)
    content_type = headers.get("content-type", "")
    message = _message(parsed) if parsed is not None else _page(text, content_type)
    should_retry = headers.get("x-should-retry", "").lower()
    if 300 <= status < 400:
        return BadRequest(
            f"status {status}: redirects are not followed",
            status=status,
            hint="set `baseURL` to the address that the server redirects to",
        )
    return _error(
        status,
        f"status {status}: {message}" if message else f"status {status}",
        retryable=should_retry == "true"
        or (should_retry != "false" and _is_retryable(status) and "insufficient_quota" not in text),
        retry_after=_retry_after(headers),
        request_id=headers.get("request-id") or headers.get("x-request-id"),
        about=message,
    )


def from_event(error: Json, *, retryable: bool | None = None) -> ProviderError:
    """The error that an event inside a stream reports: a mapping with message, type, code, or bare text.

    `retryable` is what the wire knows of the kind of error, None when it knows nothing.
    """
    fields = error if isinstance(error, dict) else {"message": error}
    words = f"{fields.get('code') or ''} {fields.get('type') or ''}".lower().strip()
    status = _numeric(fields.get("code"))
    if status is None:
        status = next((status for word, status in _WORDS if word in words), 500)
    if retryable is None:
        retryable = _is_retryable(status) and "insufficient_quota" not in words
    message = _own_words({"error": error}) or words or "the provider reported an error"
    return _error(
        status,
        f"status {status} in the answer: {message}",
        retryable=retryable,
        about=f"{words} {message}",
    )


def page_summary(body: bytes, content_type: str) -> str:
    """A few words on a body that is not what was asked for."""
    return _page(body.decode("utf-8", errors="replace"), content_type) or "an empty body"


def _error(
    status: int,
    text: str,
    *,
    retryable: bool,
    about: str,
    retry_after: float | None = None,
    request_id: str | None = None,
) -> ProviderError:
    hint = None
    kind: type[ProviderError]
    match status:
        case 401 | 403:
            kind, hint = AuthenticationFailed, "check the connector's `apiKey`"
        case 429:
            kind = RateLimited
        case 400 | 413 if _CONTEXT.search(about):
            kind = ContextTooLong
        case 400 | 404 | 422:
            kind = BadRequest
        case _:
            kind = ProviderError
    return kind(text, status=status, retryable=retryable, retry_after=retry_after, request_id=request_id, hint=hint)


def _is_retryable(status: int) -> bool:
    return status in {408, 409, 429} or status >= 500


def _retry_after(headers: Mapping[str, str]) -> float | None:
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def _numeric(code: Json) -> int | None:
    try:
        number = int(code)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 400 <= number < 600 else None


def _json(text: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _message(parsed: Json) -> str:
    """The provider's own words, else the whole as JSON."""
    return _own_words(parsed) or (_short(json.dumps(parsed, ensure_ascii=False), 200) if parsed else "")


def _own_words(parsed: Json) -> str:
    """The first text among `error.message`, `error.type`, `error`, `message` and `detail`."""
    if isinstance(parsed, dict):
        error = parsed.get("error")
        found = [error.get("message"), error.get("type")] if isinstance(error, dict) else [error]
        for candidate in (*found, parsed.get("message"), parsed.get("detail")):
            if isinstance(candidate, str) and candidate.strip():
                return _short(candidate, _SHOWN)
    return ""


def _page(text: str, content_type: str) -> str:
    """What a body that is not JSON says; of an HTML page its title or first words."""
    start = text.lstrip()[:200].lower()
    if "html" not in content_type and not start.startswith(("<!doctype html", "<html")):
        return _short(text, 200)
    title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    visible = re.sub(r"<(script|style)\b.*?(</\1>|$)", " ", text, flags=re.IGNORECASE | re.DOTALL)
    words = _short(title[1] if title else re.sub(r"<[^>]*>?", " ", visible), 200)
    return f"an HTML page: {words}" if words else "an HTML page"


def _short(text: str, limit: int) -> str:
    words = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return words if len(words) <= limit else f"{words[:limit]}…"
