"""What models refuse of the settings that all requests may have, wherever a vendor has the place for them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from octo.errors import ContextTooLong, ProviderError
from octo.llm.wire import HttpCall
from octo.values import Json

_NOT_TAKEN: Final = re.compile(
    r"deprecated|unsupported|not (supported|allowed|permitted|available)|(does not|doesn['’]t) (support|allow|take)"
    r"|unknown|unrecognized|may only be set|is removed",
    re.IGNORECASE,
)

TEMPERATURE: Final = "temperature"
TOOL_CHOICE: Final = "toolChoice"
ADAPTIVE: Final = "thinking as much as the model finds right"
BUDGET: Final = "thinking by tokens"
EFFORT: Final = "an effort in words"
WORD: Final = "this word for an effort"
"""What a model may refuse, as it is remembered for its session."""


@dataclass(frozen=True, slots=True)
class _Setting:
    """A setting, how a refusal tells of it, and where it stands in a request; a place may end with a value."""

    name: str
    words: re.Pattern[str]
    places: tuple[tuple[str, ...], ...]
    words_suffice: bool = False
    """Whether the words are those of a refusal; others only mention the setting."""

    def is_refused(self, body: str, sent: Json) -> bool:
        told = self.words.search(body) and (self.words_suffice or _NOT_TAKEN.search(body))
        return bool(told) and any(_holds(sent, place) for place in self.places)


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_BEDROCK: Final = "additionalModelRequestFields"
_GEMINI: Final = ("generationConfig", "thinkingConfig")
_EFFORTS: Final = (("output_config", "effort"), (_BEDROCK, "output_config", "effort"))
_LEVEL: Final = ((*_GEMINI, "thinkingLevel"),)

_SETTINGS: Final = (
    _Setting(
        TEMPERATURE,
        _words(r"\btemperature\b"),
        (("temperature",), ("generationConfig", "temperature"), ("inferenceConfig", "temperature")),
    ),
    _Setting(TOOL_CHOICE, re.compile(r"toolChoice\.(any|tool)\b"), (("toolConfig", "toolChoice"),)),
    _Setting(WORD, _words(r"effort[^.]*(level|should be|one of)|level[^.]*effort"), _EFFORTS, words_suffice=True),
    _Setting(WORD, _words(r"thinking[_ ]?level (?!is )|at '[^']*thinking_?level'"), _LEVEL, words_suffice=True),
    _Setting(EFFORT, _words(r"thinking[_ ]?level is "), _LEVEL),
    _Setting(EFFORT, _words(r"\b(effort|output_config)\b"), _EFFORTS),
    _Setting(
        ADAPTIVE,
        _words(r"\badaptive\b"),
        (("thinking", "type", "adaptive"), (_BEDROCK, "thinking", "type", "adaptive")),
    ),
    _Setting(
        BUDGET,
        _words(r"type\W{1,4}enabled|budget"),
        (("thinking", "type", "enabled"), (_BEDROCK, "thinking", "type", "enabled"), (*_GEMINI, "thinkingBudget")),
    ),
    _Setting(BUDGET, _words("only works in thinking mode"), ((*_GEMINI, "thinkingBudget"),), words_suffice=True),
)


def refused(error: ProviderError, call: HttpCall) -> frozenset[str]:
    """The settings of a call that its refusal says the model does not take."""
    if error.status != 400 or isinstance(error, ContextTooLong):
        return frozenset()
    sent = json.loads(call.body)
    names = {one.name for one in _SETTINGS if one.is_refused(error.body, sent)}
    return frozenset(names - {EFFORT} if WORD in names else names)


def _holds(body: Json, place: tuple[str, ...]) -> bool:
    for step in place:
        if body == step:
            return True
        if not isinstance(body, dict) or step not in body:
            return False
        body = body[step]
    return True
