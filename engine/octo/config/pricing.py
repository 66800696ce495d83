"""What model calls cost, by the rates that the user gives; octo knows no prices of its own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from octo.fields import Model, Number
from octo.refusals import refusal

if TYPE_CHECKING:
    from octo.errors import ProviderError
    from octo.llm.chat import ChatResponse, Spent, Usage

_HIGHEST = 1000
_MILLION = 1_000_000


def _in_range(value: float) -> float:
    if not (math.isfinite(value) and 0 <= value <= _HIGHEST):
        raise refusal(f"expected a rate from 0 to {_HIGHEST}, in USD per million tokens; found {value:g}")
    return value


Rate = Annotated[Number, AfterValidator(_in_range)]


class Rates(Model):
    """What the tokens of one model cost, in USD per million."""

    input: Rate
    """Tokens that are read."""

    output: Rate
    """Tokens that are written, reasoning included."""

    cache_read: Rate | None = None
    """Tokens that are read from the cache; without it they cost as `input`."""

    cache_write: Rate | None = None
    """Tokens that are written to the cache; without it they cost as `input`."""

    def cost(self, usage: Usage) -> float | None:
        """What a call costs in USD; None when the provider did not tell what was read and written."""
        read, written = usage.prompt_tokens, usage.output_tokens
        if read is None or written is None:
            return None
        cached, kept = usage.cached_tokens or 0, usage.cache_write_tokens or 0
        cache_read = self.input if self.cache_read is None else self.cache_read
        cache_write = self.input if self.cache_write is None else self.cache_write
        fresh = max(read - cached - kept, 0)
        parts = (fresh * self.input, cached * cache_read, kept * cache_write, written * self.output)
        return sum(parts) / _MILLION


def bill(table: Mapping[str, Rates], response: ChatResponse) -> Usage | None:
    """All that an answer used up and cost, with the attempts before it that came to nothing; None when unknown."""
    usages = [_priced(response.usage, table, response.connector, response.asked, response.model)]
    return _total([*usages, *_lost(table, response.lost)])


def bill_of_failure(table: Mapping[str, Rates], error: ProviderError) -> Usage | None:
    """All that a call used up and cost that came to nothing; None when unknown."""
    return _total(_lost(table, error.spent))


def _lost(table: Mapping[str, Rates], spent: Iterable[Spent]) -> Iterator[Usage | None]:
    return (_priced(one.usage, table, one.connector, one.model, one.served) for one in spent)


def _total(usages: Iterable[Usage | None]) -> Usage | None:
    known = [usage for usage in usages if usage is not None]
    return reduce(add, known) if known else None


def _priced(usage: Usage | None, table: Mapping[str, Rates], connector: str, *models: str) -> Usage | None:
    return None if usage is None else replace(usage, cost_usd=cost_of(usage, table, connector, *models))


def cost(table: Mapping[str, Rates], response: ChatResponse) -> float | None:
    """What an answer cost in USD: by the rates of its connector and model, else as its provider says."""
    paid = bill(table, response)
    return None if paid is None else paid.cost_usd


def cost_of(usage: Usage, table: Mapping[str, Rates], connector: str, *models: str) -> float | None:
    """What was used costs in USD: by the rates of the first of the models that has some, else as the provider says."""
    for model in models:
        if rates := table.get(f"{connector}:{model}"):
            return rates.cost(usage)
    return usage.reported_cost_usd


def key_fault(key: str, connectors: Mapping[str, str]) -> tuple[str, str | None] | None:
    """What is wrong with a key of the table, and a hint. `connectors` are the categories by name."""
    from octo.errors import did_you_mean

    fitting = [name for name in connectors if key.startswith(f"{name}:")]
    llms = [name for name, category in connectors.items() if category == "llm"]
    name, separator, model = key.partition(":")
    if any(connectors[name] == "llm" and key.removeprefix(f"{name}:").strip() for name in fitting):
        return None
    if not separator or not model.strip():
        return f"expected `CONNECTOR:MODEL`, found `{key}`", "write the connector's name, a colon, and the model"
    if fitting:
        return f'connector "{fitting[0]}" is no connector of an `llm-*` type', did_you_mean(name, llms)
    return f'connector "{name}" is not configured', did_you_mean(name, llms)
