"""What the log of the proxy tells of a request: who answered, how it ended, what it cost; never what was said."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import Final

from octo.llm.chat import Usage
from octo.runlog.record import Record, instant
from octo.values import Json

_LONGEST: Final = 200
"""The most characters of what a client made up."""


@dataclass(slots=True)
class Entry:
    """One request."""

    route: str
    connector: str = ""
    model: str = ""
    status: int = 0
    """What was answered; 0 when nothing was."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    broken: str = ""
    """Why the answer is not whole, if it is not: `client gone`, or what kind of failure it was."""
    began: float = field(default_factory=time.perf_counter)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.route = self.route[:_LONGEST]

    def leads_to(self, connector: str, model: str) -> None:
        self.connector, self.model = connector, model[:_LONGEST]

    def count(self, usage: Usage | None) -> None:
        if usage is not None:
            self.input_tokens, self.output_tokens = usage.prompt_tokens, usage.output_tokens

    def count_in(self, answer: Json) -> None:
        """Take the tokens that a part of an answer tells, in the form of any API."""
        places = [answer, *(answer.get(name) for name in ("message", "response"))] if isinstance(answer, dict) else []
        for place in places:
            usage = place.get("usage") if isinstance(place, dict) else None
            if isinstance(usage, dict):
                read, written = (
                    next((usage[name] for name in names if isinstance(usage.get(name), int)), None)
                    for names in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))
                )
                self.input_tokens = self.input_tokens if read is None else read
                self.output_tokens = self.output_tokens if written is None else written

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
        usage = {"promptTokens": self.input_tokens, "outputTokens": self.output_tokens}
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
