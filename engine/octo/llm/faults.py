"""From what a provider answers instead of an answer to a ProviderError that says why."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from octo.errors import AuthenticationFailed, BadRequest, ContextTooLong, NotAnAnswer, ProviderError, RateLimited
from octo.llm.credentials import shown_url
from octo.llm.wire import shown
from octo.values import Json

_SHOWN: Final = 2000
"""The most characters of a provider's message that are passed on."""

_CONTEXT = re.compile(
    r"context[ _](length|window|limit)|(prompt|input|request) (is |was )?too (long|large)|maximum context"
    r"|exceeds? the (maximum|limit).*tokens",
    re.IGNORECASE,
)

_PER_DAY: Final = re.compile(r'"quotaId"\s*:\s*"[^"]*PerDay')
_RETRY_DELAY: Final = re.compile(r'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"')
"""What Google tells in the details of an error: a quota that only the next day renews, and when to try again."""

_CALLED_OFF: Final = re.compile(r"\bcancell?ed\b", re.IGNORECASE)
"""What an error says of an answer that somebody did not want any more."""

_REQUEST_IDS: Final = ("request-id", "x-request-id", "x-amzn-requestid")

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
    ("billing", 402),
    ("request_too_large", 413),
    ("image_too_large", 400),
    ("api_error", 500),
    ("server_error", 500),
)
"""The status that a word in the code or type of an error inside a stream stands for; the first one counts."""


def from_answer(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """The error of an answer whose status says that it is none. `body` may have been cut off."""
    text = body.decode("utf-8", errors="replace")
    parsed = _json(text)
    if parsed is not None:
        message = _message(parsed)
    else:
        message = _description(body, headers) or _salvaged(text) or _short(text, 200)
    should_retry = headers.get("x-should-retry", "").lower()
    if 300 <= status < 400:
        onward = _short(shown_url(headers.get("location", "")), 200)
        return NotAnAnswer(
            f"status {status}: redirects are not followed{f', this one leads to {onward}' if onward else ''}",
            status=status,
            hint="set `baseURL` to the address of the API that does not redirect",
        )
    return _error(
        status,
        f"status {status}: {message}" if message else f"status {status}",
        retryable=should_retry == "true"
        or (should_retry != "false" and _is_retryable(status) and not _is_used_up(text)),
        retry_after=_retry_after(headers, text),
        request_id=next((headers[name] for name in _REQUEST_IDS if headers.get(name)), None),
        about=message,
        page=parsed is None and is_page(body, headers),
        body=text,
    )


def from_event(error: Json, *, retryable: bool | None = None) -> ProviderError:
    """The error that an event inside a stream reports: a mapping with message, type, code, or bare text.

    `retryable` is what the wire knows of the kind of error, None when it knows nothing.
    """
    fields = error if isinstance(error, dict) else {"message": error}
    words = " ".join(str(word) for name in ("code", "type") if isinstance(word := fields.get(name), str | int)).lower()
    status = _numeric(fields.get("code"))
    if status is None:
        status = next((status for word, status in _WORDS if word in words), None)
    text = json.dumps(fields)
    if retryable is None:
        again = not _CALLED_OFF.search(text) if status is None else _is_retryable(status)
        retryable = again and not _is_used_up(f"{words} {text}")
    message = (
        _own_words({"error": error})
        or _short(words, 200)
        or (shown(error) if error else "the provider reported an error")
    )
    return _error(
        status,
        f"{'an error' if status is None else f'status {status}'} in the answer: {message}",
        retryable=retryable,
        retry_after=_retry_after({}, text),
        about=f"{words} {message}",
        body=text,
    )


def found(body: bytes, headers: Mapping[str, str]) -> str:
    """A few words on a body that is not what was asked for."""
    words = _short(body.decode("utf-8", errors="replace"), 200)
    return _description(body, headers) or (f"`{words}`" if words else "an empty body")


def _description(body: bytes, headers: Mapping[str, str]) -> str:
    """What a body is that cannot be quoted; of a page its title or first words. Empty for text."""
    encoding = headers.get("content-encoding", "").strip().lower()
    if encoding not in {"", "identity", "gzip", "deflate"}:
        return f"a body in the encoding `{_short(encoding, 40)}`"
    text = body.decode("utf-8", errors="replace")
    if is_page(body, headers):
        from html import unescape

        title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
        visible = re.sub(r"<(script|style)\b.*?(</\1>|$)", " ", text, flags=re.IGNORECASE | re.DOTALL)
        words = _short(unescape(title[1] if title else re.sub(r"<[^>]*>?", " ", visible)), 200)
        return f"an HTML page: {words}" if words else "an HTML page"
    if b"\0" in body or text.count("\ufffd") > len(text) // 10:
        return f"{len(body)} bytes that are no text"
    return ""


def is_page(body: bytes, headers: Mapping[str, str]) -> bool:
    """Whether a body is an HTML page."""
    start = body.removeprefix(b"\xef\xbb\xbf").lstrip()[:200].lower()
    return "html" in headers.get("content-type", "").lower() or start.startswith((b"<!doctype html", b"<html"))


def sign(error: ProviderError, connector: str, instance: str, *, way: str) -> None:
    """Begin the text of an error with whose call failed: the type of the connector, the way of asking, its name."""
    which = f'connector "{instance}": ' if instance else ""
    error.message = f"{connector} {way}: {which}{error.message}"
    error.args = (error.message,)


def _error(
    status: int | None,
    text: str,
    *,
    retryable: bool,
    about: str,
    retry_after: float | None = None,
    request_id: str | None = None,
    page: bool = False,
    body: str = "",
) -> ProviderError:
    kind: type[ProviderError]
    match status:
        case int() if page and not _is_retryable(status):
            kind = NotAnAnswer
        case 401 | 403:
            kind = AuthenticationFailed
        case 400 if '"API_KEY_INVALID"' in body:
            kind = AuthenticationFailed
        case 429:
            kind = RateLimited
        case 400 | 413 if _CONTEXT.search(about):
            kind = ContextTooLong
        case 400 | 404 | 422:
            kind = BadRequest
        case _:
            kind = ProviderError
    return kind(text, status=status, retryable=retryable, retry_after=retry_after, request_id=request_id, body=body)


def _is_retryable(status: int) -> bool:
    return status in {408, 409, 429} or status >= 500


def _is_used_up(text: str) -> bool:
    """Whether a quota is spent that no wait of this call renews."""
    return "insufficient_quota" in text or _PER_DAY.search(text) is not None


def _retry_after(headers: Mapping[str, str], text: str) -> float | None:
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    delay = _RETRY_DELAY.search(text)
    return float(delay[1]) if delay else None


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
    return _own_words(parsed) or (shown(parsed, 200) if parsed else "")


def _salvaged(text: str) -> str:
    """The message of an error whose JSON was cut off."""
    message = re.search(r'"(?:message|detail)"\s*:\s*"([^"\\]*(?:\\.[^"\\]*)*)', text, re.DOTALL)
    if message is None or not text.lstrip().startswith("{"):
        return ""
    try:
        return _short(json.loads(f'"{message[1]}"', strict=False), _SHOWN)
    except ValueError:
        return _short(message[1], _SHOWN)


def _own_words(parsed: Json) -> str:
    """The first text among `error.message`, `error.type`, `error_description`, `error`, `message` and `detail`."""
    if isinstance(parsed, list) and parsed:
        parsed = parsed[0]
    if isinstance(parsed, dict):
        error = parsed.get("error")
        words = parsed.get("error_description")
        found = [error.get("message"), error.get("type")] if isinstance(error, dict) else [words, error]
        for candidate in (*found, parsed.get("message"), parsed.get("Message"), parsed.get("detail")):
            if isinstance(candidate, str) and candidate.strip():
                return _short(candidate, _SHOWN)
    return ""


def _short(text: str, limit: int) -> str:
    words = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return words if len(words) <= limit else f"{words[:limit]}…"
