"""What can go wrong, where it is, and what to do about it.

OctoError
├─ ConfigError         every problem found in one load step
├─ ExpressionError     an expression that does not compile, or failed on a message
├─ BlockError          a block failed; nests when composites nest
├─ ConnectorError      a connector could not open, or lost what it stands on
├─ ProviderError       an LLM API refused, failed, or answered nonsense
│    ├─ AuthenticationFailed
│    ├─ RateLimited
│    ├─ ContextTooLong
│    ├─ BadRequest
│    ├─ NotAnAnswer
│    ├─ Truncated
│    ├─ Unreachable
│    └─ OutOfTime
├─ StoreError          the store cannot be opened, is newer, or is locked
└─ UsageError          a command line that cannot be carried out
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from octo.llm.chat import Spent


class Location(NamedTuple):
    """A place in a text file. Line and column count from 1; columns are characters."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A line to show when the file's own line does not show the fault, with the column of the caret."""

    text: str
    column: int
    length: int = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a file: where, what, and what to do."""

    message: str
    location: Location | None = None
    hint: str | None = None
    length: int = 1
    """How many columns the caret marks."""
    severity: Literal["error", "warning"] = "error"
    excerpt: Excerpt | None = None
    """Set when the place lies inside a folded or escaped scalar, whose columns are not columns of the file."""

    def __str__(self) -> str:
        return f"{self.location}: {self.message}" if self.location else self.message


class OctoError(Exception):
    """Base of everything that octo raises on purpose."""

    detail: str = ""
    """More than the text tells, as recovery chains read it: an answer that cannot be used, as it came."""
    is_logged: bool = False
    """Whether a flow that took a message failed with it, which stands in the process log."""

    def __init__(self, message: str, *, hint: str | None = None, location: Location | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.location = location

    def __str__(self) -> str:
        return self.message

    def fields(self) -> dict[str, str | int]:
        """Where it is and what to do, as a log record tells it beside the text."""
        found: dict[str, str | int] = dict(self.location._asdict()) if self.location else {}
        more = {"address": getattr(self, "address", ""), "hint": self.hint or ""}
        return found | {name: value for name, value in more.items() if value}


class ConfigError(OctoError):
    """A configuration that cannot be used; `problems` holds everything that was found, in file order."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        first = self.problems[0]
        super().__init__("\n".join(str(problem) for problem in self.problems), hint=first.hint, location=first.location)


class ExpressionError(OctoError):
    """An expression that does not compile, or whose evaluation failed. `column` counts from 1 within `source`."""

    def __init__(
        self, message: str, *, source: str = "", column: int = 1, length: int = 1, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.source = source
        self.column = column
        self.length = length


class BlockError(OctoError):
    """A block failed. The text is `block "<label>": <cause>`, nested as the blocks nest."""

    def __init__(self, label: str, cause: OctoError, *, address: str = "", location: Location | None = None) -> None:
        super().__init__(f'block "{label}": {cause.message}', hint=cause.hint, location=cause.location or location)
        self.label = label
        self.cause = cause
        self.detail = cause.detail
        self.address: str = getattr(cause, "address", "") or address
        """The innermost block that failed."""


class ConnectorError(OctoError):
    """A connector could not open, or lost what it stands on."""


class ProviderError(OctoError):
    """An LLM API refused, failed, or answered something that is no answer.

    `status` is the HTTP status, or the one that an error inside a stream stands for; None when nobody tells one.
    `retry_after` is in seconds. `body` is the answer as it came, to be looked into and never shown. `spent` is what the
    attempts used up that came to nothing, as far as it was told.
    """

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
        retryable: bool = False,
        hint: str | None = None,
        body: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.spent: tuple[Spent, ...] = ()
        self.body = body
        self.provider = provider
        self.status = status
        self.retry_after = retry_after
        self.request_id = request_id
        self.retryable = retryable


class AuthenticationFailed(ProviderError):
    """The provider does not accept the credentials (401, 403)."""


class RateLimited(ProviderError):
    """The provider asks to slow down (429)."""


class ContextTooLong(ProviderError):
    """The request does not fit into the model's context."""


class BadRequest(ProviderError):
    """The provider refused the request as malformed (400, 404, 422)."""


class NotAnAnswer(ProviderError):
    """What came is whole, but it is no answer of the API: a web page, data of another kind, nothing."""


class Truncated(ProviderError):
    """The answer broke off before its end mark."""


class Unreachable(ProviderError):
    """There is no connection to the provider, or it broke before the answer was whole."""


class OutOfTime(ProviderError):
    """The time that one model call may take is over."""


class StoreError(OctoError):
    """The store cannot be opened, is of a newer version, or stayed locked."""


class UsageError(OctoError):
    """A command line that cannot be carried out."""


def near(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name that was probably meant, or None. `cutoff` says how alike they must be, up to 1."""
    return _near(name, tuple(known), cutoff)


@lru_cache(256)
def _near(name: str, known: tuple[str, ...], cutoff: float) -> str | None:
    """A generated file has the same slip in many places."""
    from difflib import get_close_matches

    names = {candidate.lower(): candidate for candidate in known}
    matches = get_close_matches(name.lower(), names, n=1, cutoff=cutoff)
    return names[matches[0]] if matches else None


def shortened(name: str, length: int = 80) -> str:
    """A name as error texts show it: of a very long one the beginning."""
    return name if len(name) <= length else f"{name[:length]}…"


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The hint for a misspelt name: the near miss, else the whole list when it is short."""
    candidates = list(known)
    match = near(name, candidates)
    if match is not None:
        return f"did you mean `{match}`?"
    if not candidates:
        return None
    shown = ", ".join(f"`{candidate}`" for candidate in candidates[:60])
    return f"known names: {shown}{', …' if len(candidates) > 60 else ''}"


def missing_extra(package: str, extra: str) -> str | None:
    """The hint that tells how to install an optional package; None when it is there."""
    from importlib.util import find_spec

    try:
        found = find_spec(package)
    except ModuleNotFoundError:  # not even the package around it is there
        found = None
    return None if found else f"install it: pip install 'octo-runner[{extra}]'"
