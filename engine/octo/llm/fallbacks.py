"""What an endpoint refuses, so that a call can be made once more in a shape that it takes, or by another route."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Final

from octo.errors import ContextTooLong, ProviderError
from octo.llm.wire import HttpCall
from octo.values import Json


@dataclass(slots=True)
class Learnt:
    """What one session has found out about one model."""

    refused: set[str] = field(default_factory=set)
    """Parameters that the endpoint does not take."""
    on_chat: bool = False
    """Whether it answers on Chat Completions only."""
    lacks_route: bool = False
    """Whether it said that it does not have another API, and that is still to be noted for other sessions."""
    answered: bool = False

    def moves_to_chat(self, error: ProviderError) -> bool:
        """Go over to Chat Completions if a refusal may mean that the endpoint has no other API; whether that is so.

        Where a call was answered before, the API is there.
        """
        if self.answered or self.on_chat or error.status not in {400, 404} or isinstance(error, ContextTooLong):
            return False
        self.on_chat, self.lacks_route = True, error.status == 404
        return True


@dataclass(frozen=True, slots=True)
class Fallback:
    """Parameters of a request body that can do without, or go by another name, and how a refusal tells of them."""

    parameters: tuple[str, ...]
    words: re.Pattern[str]
    statuses: frozenset[int] = frozenset({400, 422})
    words_suffice: bool = False
    """Whether the words are those of a refusal; others only mention a parameter."""

    def is_meant_by(self, error: ProviderError) -> bool:
        """Whether an error refuses the parameters as such, and not a value that another one could replace."""
        if error.status not in self.statuses or not self.words.search(error.body):
            return False
        if self.words_suffice:
            return True
        refuses = _REFUSES.search(error.body) or self.words.fullmatch(_parameter(error.body))
        return bool(refuses) and not _OF_A_VALUE.search(error.body)


_REFUSES: Final = re.compile(
    r"unsupported|unknown|unrecogni[sz]ed|unexpected|deprecated|incompatible|no longer|forbidden"
    r"|(not|n't) (be )?(currently )?(support|allowed|permitted|available|accept|recogni[sz]ed|valid|take|implemented)"
    r"|cannot (both )?be (used|set|specified)|invalid (parameter|argument|field|key)|extra (inputs|fields)"
    r"|additional properties are not|\b(only|use)\b",
    re.IGNORECASE,
)
"""How a parameter is refused."""
_OF_A_VALUE: Final = re.compile(
    r"too (large|big|high|long|many|small|low)|at (most|least)|exceed|(greater|less|more|larger|smaller) than"
    r"|out of range|between|maximum|invalid schema",
    re.IGNORECASE,
)
"""How its value is refused, or something else."""


SUMMARY: Final = "reasoning.summary"

FALLBACKS: Final = (
    Fallback(
        ("stream_options", "usage"),
        re.compile(r"\b(stream_options|include_usage)\b|additional properties are not allowed", re.IGNORECASE),
    ),
    Fallback(("prompt_cache_key",), re.compile(r"\bprompt_cache_key\b", re.IGNORECASE)),
    Fallback(("max_tokens", "max_completion_tokens"), re.compile(r"\bmax_(completion_)?tokens\b", re.IGNORECASE)),
    Fallback(("temperature",), re.compile(r"\btemperature\b", re.IGNORECASE)),
    Fallback(
        (SUMMARY,),
        re.compile(
            r"reasoning\.summary|reasoning summar|organi[sz]ation must be verified|verify organi[sz]ation",
            re.IGNORECASE,
        ),
        frozenset({400, 403, 422}),
        words_suffice=True,
    ),
    Fallback(
        ("include",), re.compile(r"encrypted[ _.]content|reasoning (input )?items", re.IGNORECASE), words_suffice=True
    ),
)

LASTING: Final = frozenset({SUMMARY})
"""What an endpoint that refuses it will refuse in other sessions, too: it depends on the account."""


def refused(error: ProviderError, call: HttpCall) -> frozenset[str]:
    """The parameters of a call that its refusal is about; none when it is about something else.

    One refusal may name several. What is too long stays too long in any shape.
    """
    about = [one for one in FALLBACKS if one.is_meant_by(error)]
    if not about or isinstance(error, ContextTooLong):
        return frozenset()
    sent = json.loads(call.body)
    return frozenset(name for one in about for name in one.parameters if _holds(sent, name))


def _parameter(body: str) -> str:
    """The parameter that the body of an error says is to blame; empty when it does not."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    for place in (told.get("error"), told) if isinstance(told, dict) else ():
        if isinstance(place, dict) and isinstance(name := place.get("param"), str):
            return name
    return ""


def _holds(body: Json, name: str) -> bool:
    """Whether a body has a parameter, which may be one inside another (`a.b`)."""
    for step in name.split("."):
        if not isinstance(body, dict) or step not in body:
            return False
        body = body[step]
    return True
