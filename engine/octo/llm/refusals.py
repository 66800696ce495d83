"""What models refuse of the settings that all requests may have, wherever a vendor has the place for them."""

from __future__ import annotations

import json
import re
from typing import Final

from octo.errors import ContextTooLong, ProviderError
from octo.llm.wire import HttpCall
from octo.values import Json

_NOT_TAKEN: Final = re.compile(
    r"deprecated|unsupported|not (supported|allowed|permitted|available)|(does not|doesn['’]t) (support|allow|take)"
    r"|unknown|unrecognized|may only be set|is removed",
    re.IGNORECASE,
)

TOOL_CHOICE: Final = "toolChoice"
_TEMPERATURE: Final = re.compile(r"\btemperature\b", re.IGNORECASE)
_PLACES: Final = (
    ("temperature", _TEMPERATURE, ("temperature",)),
    ("temperature", _TEMPERATURE, ("generationConfig", "temperature")),
    ("temperature", _TEMPERATURE, ("inferenceConfig", "temperature")),
    (TOOL_CHOICE, re.compile(r"toolChoice\.(any|tool)\b"), ("toolConfig", "toolChoice")),
)
"""The name of each setting, how a refusal tells of it, and where it stands in a request."""


def refused(error: ProviderError, call: HttpCall) -> frozenset[str]:
    """The settings of a call that its refusal says the model does not take."""
    if error.status != 400 or isinstance(error, ContextTooLong) or not _NOT_TAKEN.search(error.body):
        return frozenset()
    sent = json.loads(call.body)
    return frozenset(name for name, words, place in _PLACES if words.search(error.body) and _holds(sent, place))


def _holds(body: Json, place: tuple[str, ...]) -> bool:
    for step in place:
        if not isinstance(body, dict) or step not in body:
            return False
        body = body[step]
    return True
