"""Caps on what agents may spend: money, tokens, time. What is spent inside of one is charged to it, too."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Self

from pydantic import Field, model_validator

from octo.fields import Duration, Int, Model, Number
from octo.llm.chat import Usage
from octo.refusals import Refusals
from octo.values import number_text

EXCEEDED: Final = "budget exceeded"
"""Why an agent takes its default path when nothing is left."""


_log: Final = logging.getLogger("octo.budget")


class Limits(Model):
    """The most that may be spent, looked at before each model call; 0 allows none."""

    max_cost_usd: Number | None = Field(None, alias="maxCostUSD")
    """Money in USD, by the rates of `aiPricing`, else as the provider reports it."""

    max_tokens: Int | None = None
    """Tokens that are read and written in all model calls."""

    max_duration: Duration | None = None
    """Time since the agent, or the run, began."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refusals = Refusals()
        for key, value in (("maxCostUSD", self.max_cost_usd), ("maxTokens", self.max_tokens)):
            if value is not None and not (math.isfinite(value) and value >= 0):
                refusals.add(f"expected 0 or more, found {value:g}", key)
        refusals.raise_if_any()
        return self


class Budget:
    """What one agent or one run may spend, and has spent. `clock` gives seconds."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._began = clock()
        self._tokens = 0
        self._cost = 0.0
        self._warned: set[str] = set()

    def charge(self, usage: Usage | None) -> None:
        """Take in what a model call used up; None when its provider did not tell."""
        usage = usage or Usage()
        read = usage.input_tokens if usage.prompt_tokens is None else usage.prompt_tokens
        self._tokens += (read or 0) + (usage.output_tokens or 0)
        self._cost += usage.cost_usd or 0.0
        if self._limits.max_tokens is not None and read is None and usage.output_tokens is None:
            self._warn("maxTokens", "its provider does not tell how many tokens it used")
        if self._limits.max_cost_usd is not None and usage.cost_usd is None:
            self._warn("maxCostUSD", "what it cost is not known; rates stand under `aiPricing`")

    def _warn(self, limit: str, why: str) -> None:
        """Say once that a limit does not hold."""
        if limit not in self._warned:
            self._warned.add(limit)
            _log.warning("a model call does not count for the budget's `%s`: %s", limit, why)

    @property
    def excess(self) -> str:
        """The limit that is reached, and what was used up; empty while something is left."""
        limits = self._limits
        seconds = limits.max_duration.seconds if limits.max_duration else None
        for name, limit, used, unit in (
            ("maxTokens", limits.max_tokens, self._tokens, ""),
            ("maxCostUSD", limits.max_cost_usd, self._cost, ""),
            ("maxDuration", seconds, self._clock() - self._began, " s"),
        ):
            if limit is not None and used >= limit:
                return f"`{name}` is {number_text(limit)}{unit}, {number_text(round(used, 6))}{unit} are used up"
        return ""


_OPEN: Final[ContextVar[tuple[Budget, ...]]] = ContextVar("octo.budgets", default=())
"""The budgets of the run and of the agents inside which this task works; tasks that it starts have them as well."""


def excess(budgets: Iterable[Budget]) -> str:
    """Which limit of some budgets is reached, and what was used up; empty while all have something left."""
    return next(filter(None, (one.excess for one in budgets)), "")


@contextmanager
def opened(limits: Limits | None) -> Iterator[tuple[Budget, ...]]:
    """The budgets that all model calls inside are charged to: those around, and one for these limits."""
    budgets = _OPEN.get()
    if limits is not None:
        budgets = (*budgets, Budget(limits))
    token = _OPEN.set(budgets)
    try:
        yield budgets
    finally:
        _OPEN.reset(token)
