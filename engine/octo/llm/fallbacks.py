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


SUMMARY: Final = "reasoning.summary"

FALLBACKS: Final = (
    Fallback(
        ("stream_options", "usage"),
        re.compile("stream_options|include_usage|additional properties are not allowed", re.IGNORECASE),
    ),
    Fallback(("prompt_cache_key",), re.compile("prompt_cache_key", re.IGNORECASE)),
    Fallback(("max_tokens", "max_completion_tokens"), re.compile("max_(completion_)?tokens", re.IGNORECASE)),
    Fallback(("temperature",), re.compile("temperature", re.IGNORECASE)),
    Fallback(
        (SUMMARY,),
        re.compile(
            r"reasoning\.summary|reasoning summar|organi[sz]ation must be verified|verify organi[sz]ation",
            re.IGNORECASE,
        ),
        frozenset({400, 403, 422}),
    ),
    Fallback(("include",), re.compile(r"encrypted[ _.]content|reasoning (input )?items", re.IGNORECASE)),
)

LASTING: Final = frozenset({SUMMARY})
"""What an endpoint that refuses it will refuse in other sessions, too: it depends on the account."""


def refused(error: ProviderError, call: HttpCall) -> frozenset[str]:
    """The parameters of a call that its refusal is about; none when it is about something else.

    One refusal may name several. What is too long stays too long in any shape.
    """
    about = [one for one in FALLBACKS if error.status in one.statuses and one.words.search(error.body)]
    if not about or isinstance(error, ContextTooLong):
        return frozenset()
    sent = json.loads(call.body)
    return frozenset(name for one in about for name in one.parameters if _holds(sent, name))


def _holds(body: Json, name: str) -> bool:
    """Whether a body has a parameter, which may be one inside another (`a.b`)."""
    for step in name.split("."):
        if not isinstance(body, dict) or step not in body:
            return False
        body = body[step]
    return True
