"""What is known of models by their names."""

from __future__ import annotations

import re
from typing import Final

_CLAUDE_BEFORE_4_7: Final = re.compile(
    r"claude-([23]|instant)|(haiku|sonnet)(?!-([5-9]|\d\d)(?!\d))|opus-4(?![-\d])|opus-4-[01256]"
)
"""Fragments of the names of Claude models that can be given a temperature, and a number of tokens to think with.

Later ones refuse both. `opus-4-2` is the date of the first Opus 4. Haiku and Sonnet take them up to version 4.
"""
_CLAUDE_BEFORE_4_6: Final = re.compile(
    r"claude-([23]|instant)|(haiku|sonnet|opus)-4(-[0-5](?!\d)|(?!\d|-\d{1,2}(?!\d)))"
)
"""Fragments of the names of Claude models that think with a number of tokens only."""
_GPT_5: Final = re.compile(r"o\d|gpt-5(?P<later>\.\d+)?(?!\.?\d|(\.\d+)?-chat)")
"""The beginning of the names of OpenAI models that think; `later` ones do not where nothing is said of an effort."""


def _is_in(names: re.Pattern[str], claude: str) -> bool:
    return names.search(claude.lower().replace(".", "-")) is not None


def takes_temperature(model: str, effort: str = "") -> bool:
    """Whether a model takes a temperature when it is to think that hard; an unknown one counts as the newest."""
    if is_claude(model):
        return _is_in(_CLAUDE_BEFORE_4_7, model)
    thinking = _GPT_5.match(model.lower())
    return thinking is None or (thinking["later"] is not None and effort in ("", "none"))


def takes_budget(model: str) -> bool:
    """Whether a model can be told in tokens how much to think; of the Claude models only earlier ones can."""
    return not is_claude(model) or _is_in(_CLAUDE_BEFORE_4_7, model)


def needs_budget(model: str) -> bool:
    """Whether a model has to be told in tokens how much to think: it knows no other way."""
    return is_claude(model) and _is_in(_CLAUDE_BEFORE_4_6, model)


_EFFORT_WITH_TOOLS: Final = re.compile(r"gpt-5(\.[0-3])?(?![.\d])|o[134](?!\w)|gpt-[34]")
"""The beginning of the names of OpenAI models that take an effort beside tools on Chat Completions."""


def takes_effort_with_tools(model: str) -> bool:
    """Whether a model takes a reasoning effort beside tools on Chat Completions; later models of OpenAI do not."""
    name = model.lower()
    return not re.match(r"gpt-\d|o\d", name) or _EFFORT_WITH_TOOLS.match(name) is not None


_BEFORE_GEMINI_3: Final = re.compile(r"gemini-[12](?!\d)")


def is_before_gemini_3(model: str) -> bool:
    """Whether a model is of the Gemini families up to 2.5; an unknown one counts as later.

    They are told in tokens how much to think, and take no schema of the answer beside tools.
    """
    return _BEFORE_GEMINI_3.search(model.lower()) is not None


def is_claude(model: str) -> bool:
    return "claude" in model.lower()


def answers_by_tool(model: str, *, with_tools: bool) -> bool:
    """Whether a model gives an answer of a certain form as the arguments of a tool: Claude models do.

    The Gemini models that take no schema beside tools do when there are others.
    """
    return is_claude(model) or (with_tools and is_before_gemini_3(model))


_WITHOUT_REASONING: Final = re.compile(r"(chat)?gpt-[34](?!\d)|gpt-5(\.\d+)?-chat")
"""The beginning of the names of OpenAI models that answer without thinking, and refuse all that is about it."""


def reasons(model: str) -> bool:
    """Whether a model of OpenAI thinks before it answers; an unknown one counts as a new one, which does."""
    return _WITHOUT_REASONING.match(model.lower()) is None


_OF_A_PLACE: Final = re.compile(r"^(arn:[^/]*/)?((us|eu|apac|au|ca|jp|sa|us-gov|global)\.)?")
"""What stands before the name of a model on Bedrock: the head of its ARN, the part of the world that serves it."""
_CLAUDE_WITHOUT_CACHE: Final = re.compile(r"anthropic\.claude-(v\d|instant|3-(haiku|sonnet|opus)|3-5-sonnet-20240620)")
_NOVA_WITHOUT_TEXT: Final = re.compile(r"amazon\.nova-(canvas|reel|sonic|\d-sonic)")


_FREE_OF_CHOICE: Final = re.compile(r"(meta|cohere|ai21)\.")


def can_be_made_to_call(model: str) -> bool:
    """Whether a model on Bedrock can be made to call a tool; some are offered tools only."""
    return _FREE_OF_CHOICE.match(_OF_A_PLACE.sub("", model.lower())) is None


def cache_places(model: str) -> frozenset[str]:
    """After which parts of a request a model on Bedrock takes a cache point."""
    name = _OF_A_PLACE.sub("", model.lower())
    if name.startswith("anthropic.claude-") and not _CLAUDE_WITHOUT_CACHE.match(name):
        return frozenset({"system", "tools", "messages"})
    if name.startswith("amazon.nova-") and not _NOVA_WITHOUT_TEXT.match(name):
        return frozenset({"system", "messages"})
    return frozenset()


_WINDOWS: Final = (
    (r"claude-(2\.1|[3-9]|instant|haiku|sonnet|opus)", 200_000),
    (r"gpt-4\.1", 1_047_576),
    (r"gpt-5", 400_000),
    (r"gpt-4(o|-turbo)|chatgpt-4o", 128_000),
    (r"gpt-4-32k", 32_768),
    (r"gpt-4", 8_192),
    (r"gpt-3\.5", 16_385),
    (r"o1-(mini|preview)", 128_000),
    (r"o[134](?!\w)", 200_000),
    (r"gemini-1\.0|gemini-pro", 32_760),
    (r"gemini-1\.5-pro", 2_097_152),
    (r"gemini-[1-9]", 1_048_576),
    (r"nova-micro", 128_000),
    (r"nova-(lite|pro)", 300_000),
    (r"deepseek", 128_000),
    (r"mistral-large|llama-?3[.-][123]", 128_000),
)
"""Parts of the names of models, and how many tokens those read at once; the first that is found counts."""


def context_window(model: str) -> int | None:
    """How many tokens a model reads at once; None where that is not known."""
    name = model.lower()
    return next((tokens for pattern, tokens in _WINDOWS if re.search(rf"(?<![a-z0-9]){pattern}", name)), None)
