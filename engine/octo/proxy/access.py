"""What the log of the proxy tells of a request: who answered, how it ended, what it cost; never what was said."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from octo.config.pricing import Rates, cost_of
from octo.llm.chat import Usage
from octo.runlog.record import Record, instant
from octo.values import Json

_LONGEST: Final = 200
"""The most characters of what a client made up."""
_DETAILS: Final = ("prompt_tokens_details", "input_tokens_details")
"""Where OpenAI tells what was read from a cache."""


@dataclass(slots=True)
class Entry:
    """One request."""

    route: str
    connector: str = ""
    model: str = ""
    status: int = 0
    """What was answered; 0 when nothing was."""
    usage: Usage = field(default_factory=Usage)
    """What it used up, as far as it was told."""
    served: str = ""
    """The model that answered, as its provider names it."""
    broken: str = ""
    """Why the answer is not whole, if it is not: `client gone`, or what kind of failure it was."""
    began: float = field(default_factory=time.perf_counter)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.route = self.route[:_LONGEST]

    def leads_to(self, connector: str, model: str) -> None:
        self.connector, self.model = connector, model[:_LONGEST]

    @property
    def input_tokens(self) -> int | None:
        return self.usage.prompt_tokens

    @property
    def output_tokens(self) -> int | None:
        return self.usage.output_tokens

    def count(self, usage: Usage | None) -> None:
        if usage is not None:
            self.usage = usage

    def count_in(self, answer: Json) -> None:
        """Take the tokens that a part of an answer tells, in the form of any API."""
        places = [answer, *(answer.get(name) for name in ("message", "response"))] if isinstance(answer, dict) else []
        for place in places:
            if isinstance(place, dict):
                served, told = place.get("model"), place.get("usage")
                self.served = served if isinstance(served, str) else self.served
                self._add(told if isinstance(told, dict) else {})

    def _add(self, told: dict[str, Json]) -> None:
        details: dict[str, Json] = next((told[name] for name in _DETAILS if isinstance(told.get(name), dict)), {})
        found = {
            "input_tokens": _count(told, "prompt_tokens", "input_tokens"),
            "output_tokens": _count(told, "completion_tokens", "output_tokens"),
            "cached_tokens": _count({**details, **told}, "cached_tokens", "cache_read_input_tokens"),
            "cache_write_tokens": _count(told, "cache_creation_input_tokens"),
        }
        known = replace(self.usage, **{name: count for name, count in found.items() if count is not None})
        beside = {"cache_read_input_tokens", "cache_creation_input_tokens"} & told.keys()
        read = known.input_tokens
        if read is not None and beside:  # Anthropic counts what is cached beside what is not
            read += (known.cached_tokens or 0) + (known.cache_write_tokens or 0)
        if found["input_tokens"] is not None:
            known = replace(known, prompt_tokens=read)
        self.usage = known

    def price(self, table: Mapping[str, Rates]) -> None:
        """Find out what it cost, by the rates of the config."""
        if self.usage.cost_usd is None:
            cost = cost_of(self.usage, table, self.connector, self.model, self.served)
            self.usage = replace(self.usage, cost_usd=cost)

    def end(self, status: int) -> None:
        self.status = status
        self.seconds = time.perf_counter() - self.began

    @property
    def failure(self) -> str:
        """Why the client did not get what it asked for; empty when it did."""
        return self.broken or (f"status {self.status}" if self.status >= 400 else "")

    def record(self, seq: int, now: int) -> Record:
        """The request as a record of the run log; `now` is in nanoseconds since 1970."""
        id = secrets.token_hex(16)
        usage = {
            "promptTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "costUSD": self.usage.cost_usd,
        }
        attrs: dict[str, Json] = {
            "route": self.route,
            "connector": self.connector or None,
            "model": self.model or None,
            "status": self.status,
            "usage": {name: count for name, count in usage.items() if count is not None} or None,
        }
        return Record(
            seq=seq,
            kind="proxy.request",
            trace_id=id,
            event_id=id,
            at=instant(now),
            duration_ns=round(self.seconds * 10**9),
            error=self.failure,
            attrs={name: value for name, value in attrs.items() if value is not None},
        )


def _count(told: Mapping[str, Json], *names: str) -> int | None:
    """The first number of tokens under some names; anything else is none."""
    found = (told.get(name) for name in names)
    return next((one for one in found if type(one) is int and 0 <= one < 2**53), None)
