"""Parameters that an endpoint refuses, so that a call can be made once more in a shape that it takes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from octo.errors import ContextTooLong, ProviderError
from octo.llm.wire import HttpCall


@dataclass(frozen=True, slots=True)
class Fallback:
    """Parameters of a request body that can do without, or go by another name, and how a refusal tells of them."""

    parameters: tuple[str, ...]
    words: re.Pattern[str]
    statuses: frozenset[int] = frozenset({400, 422})


FALLBACKS: Final = (
    Fallback(
        ("stream_options", "usage"),
        re.compile("stream_options|include_usage|additional properties are not allowed", re.IGNORECASE),
    ),
    Fallback(("prompt_cache_key",), re.compile("prompt_cache_key", re.IGNORECASE)),
    Fallback(("max_tokens", "max_completion_tokens"), re.compile("max_(completion_)?tokens", re.IGNORECASE)),
    Fallback(("temperature",), re.compile("temperature", re.IGNORECASE)),
)


def refused(error: ProviderError, call: HttpCall) -> frozenset[str]:
    """The parameters of a call that its refusal is about; none when it is about something else.

    One refusal may name several. What is too long stays too long in any shape.
    """
    about = [one for one in FALLBACKS if error.status in one.statuses and one.words.search(error.body)]
    if not about or isinstance(error, ContextTooLong):
        return frozenset()
    sent = json.loads(call.body)
    return frozenset(name for one in about for name in one.parameters if name in sent)
