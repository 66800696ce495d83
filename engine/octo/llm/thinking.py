"""How Claude models are told to think: the same settings on every wire that leads to them."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final, assert_never

from octo.errors import BadRequest
from octo.llm import facts
from octo.llm.chat import ChatRequest, NamedTool
from octo.llm.refusals import ADAPTIVE, BUDGET, EFFORT, WORD
from octo.llm.wire import Endpoint
from octo.values import Json

EFFORTS: Final[tuple[str, ...]] = ("none", "low", "medium", "high", "xhigh", "max")
"""How hard a model can be asked to think; some models know only some of these words."""

SMALLEST_BUDGET: Final = 1024
_BUDGETS: Final = {"low": 1024, "medium": 8192, "high": 24576, "xhigh": 32000, "max": 32000}
"""Tokens for each word, for models that know no words."""
_BUDGET: Final = 8192
_BEST_KNOWN: Final = "high"
"""In the place of a word that the model does not know; only words for more than this are new."""

_log = logging.getLogger("octo.llm")


def settings(request: ChatRequest, endpoint: Endpoint, max_tokens: int | None, *, may_begin: bool) -> dict[str, Json]:
    """The settings of thinking; none where a tool is forced, which the vendor refuses together.

    `may_begin` is false in the middle of a turn that did not begin with thinking: the vendor does not let it start
    with a budget half-way. That happens when a tool was forced before, or when another model made the calls.
    """
    effort = request.reasoning_effort
    if effort and effort not in EFFORTS:
        known = ", ".join(f"`{word}`" for word in EFFORTS)
        raise BadRequest(f"expected one of {known} as `reasoningEffort`, found `{effort}`")
    if effort == "none":
        return {"thinking": {"type": "disabled"}}
    if forces(request) and not request.may_think_first:
        return {}
    refused, model = endpoint.refused, request.model or endpoint.model
    in_tokens = facts.needs_budget(model) or refused & {ADAPTIVE, EFFORT}
    if in_tokens and (effort or endpoint.thinking == "adaptive"):
        wanted = _BUDGETS.get(effort or "", _BUDGET)
        return _budgeted(wanted if max_tokens is None else min(wanted, max_tokens - 1), may_begin=may_begin)
    if effort:
        adaptive = {"thinking": {"type": "adaptive", "display": "summarized"}}
        word = _BEST_KNOWN if WORD in refused else effort
        return adaptive | {"output_config": {"effort": word}}
    match endpoint.thinking:
        case "off":
            return {}
        case "adaptive":
            return {"thinking": {"type": "adaptive"}}
        case "budgeted" if BUDGET in refused or not facts.takes_budget(model):
            return {"thinking": {"type": "adaptive"}}
        case "budgeted":
            budget = endpoint.thinking_budget or 0
            if max_tokens is not None and max_tokens <= budget:
                text = "%sthinking is left out: its budget %d is not below maxTokens %d"
                _log.warning(text, endpoint.who, budget, max_tokens)
                return {}
            return _budgeted(budget, may_begin=may_begin)
        case _ as unknown:
            assert_never(unknown)


def _budgeted(budget: int, *, may_begin: bool) -> dict[str, Json]:
    """Thinking by tokens, if there are enough for the vendor."""
    if not may_begin or budget < SMALLEST_BUDGET:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def sampling(request: ChatRequest, endpoint: Endpoint, settings: dict[str, Json]) -> dict[str, float]:
    """`temperature` and `top_p` as far as the model takes them beside its settings of thinking."""
    model = request.model or endpoint.model
    if "temperature" in endpoint.refused or is_on(settings) or not facts.takes_temperature(model):
        return {}
    if facts.is_claude(model) and request.temperature is not None:  # such models do not take both
        return {"temperature": request.temperature}
    given = {"temperature": request.temperature, "top_p": request.top_p}
    return {name: value for name, value in given.items() if value is not None}


def unforced(request: ChatRequest, settings: dict[str, Json]) -> ChatRequest:
    """The request with its tools just offered, if the model will think and may."""
    thinks_first = request.may_think_first and forces(request) and is_on(settings)
    return replace(request, tool_choice="auto") if thinks_first else request


def forces(request: ChatRequest) -> bool:
    """Whether a tool is to be called."""
    return bool(request.tools) and (request.tool_choice == "any" or isinstance(request.tool_choice, NamedTool))


def is_on(settings: dict[str, Json]) -> bool:
    """Whether the model will think."""
    return settings.get("thinking", {}).get("type") in {"adaptive", "enabled"}
