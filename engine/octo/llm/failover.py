"""A model that has others to stand in for it: who is asked when a call fails, and for how long."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, Final

from octo.errors import (
    AuthenticationFailed,
    BadRequest,
    ContextTooLong,
    NotAnAnswer,
    OutOfTime,
    ProviderError,
    RateLimited,
    Truncated,
    Unreachable,
)
from octo.llm.chat import ChatModel, ChatRequest, ChatResponse, OnDelta, Retry, Spent
from octo.llm.embedding import Embedded, EmbedRequest

COOL_DOWN: Final = 60.0
"""Seconds for which a connector that could not answer is not asked again; longer if its provider says so."""
_LONGEST: Final = 3600.0

_log: Final = logging.getLogger("octo.llm")


class Failover:
    """Asks the models of several connectors in order, until one can answer. The first one is asked as usual.

    Those that stand in are asked for the model of their own connector. `models` gives the model of each connector by
    its name, in order, when it is needed. `clock` gives nanoseconds.
    """

    def __init__(self, models: Mapping[str, Callable[[], ChatModel]], *, clock: Callable[[], int] = time.monotonic_ns):
        self._models = dict(models)
        self._names = tuple(models)
        self._clock = clock
        self._cold_until: dict[str, int] = {}

    @property
    def alone(self) -> ChatModel:
        """The first model, without the others."""
        return self._models[self._names[0]]()

    @property
    def media_types(self) -> frozenset[str] | None:
        return self.alone.media_types

    def answers_by_tool(self, model: str, *, with_tools: bool) -> bool:
        """Every model takes a tool; so the way of the one that needs it is the way of all."""
        return any(
            self._models[name]().answers_by_tool("" if number else model, with_tools=with_tools)
            for number, name in enumerate(self._names)
        )

    async def complete(
        self, request: ChatRequest, *, session: MutableMapping[object, Any], on_delta: OnDelta | None = None
    ) -> ChatResponse:
        failed: list[tuple[str, ProviderError]] = []
        names = self._in_turn(request.only)
        for name, following in zip(names, (*names[1:], ""), strict=True):
            try:
                answer = await self._models[name]().complete(
                    self._asked(request, name), session=session, on_delta=on_delta
                )
            except ProviderError as error:
                if name == self._names[0] and not is_curable(error):
                    raise
                failed.append((name, error))
                self._cool(name, error)
                if following:
                    _log.warning(
                        'connector "%s" cannot answer, connector "%s" is asked: %s', name, following, error.message
                    )
                    if on_delta is not None:
                        await on_delta(Retry(len(failed), error.message))
                continue
            passed = tuple(other for other in self._names[: self._names.index(name)] if not request.only)
            return replace(answer, passed_over=passed, lost=(*_spent(failed), *answer.lost)) if passed else answer
        raise self._final(failed, request.only)

    @property
    def embeds(self) -> bool:
        return self.alone.embeds

    async def embed(self, request: EmbedRequest) -> Embedded:
        """Vectors of another model would lie in another space, so nobody stands in."""
        return await self.alone.embed(request)

    def _in_turn(self, only: str) -> Sequence[str]:
        """Who is asked, in order. When all have failed just now, they are asked again."""
        if only in self._models:
            return (only,)
        now = self._clock()
        return [name for name in self._names if self._cold_until.get(name, 0) <= now] or self._names

    def _asked(self, request: ChatRequest, name: str) -> ChatRequest:
        """The request as a connector takes it: words of one provider mean nothing to another."""
        return request if name == self._names[0] else replace(request, model=None, reasoning_effort=None)

    def _cool(self, name: str, error: ProviderError) -> None:
        if is_curable(error):
            seconds = min(max(error.retry_after or 0, COOL_DOWN), _LONGEST)
            self._cold_until[name] = self._clock() + int(seconds * 1e9)

    def _final(self, failed: Sequence[tuple[str, ProviderError]], only: str) -> ProviderError:
        """The error of the first one that was asked, with what became of the others."""
        (_, first), *others = failed
        first.message += "".join(f'; connector "{name}": {error.message}' for name, error in others)
        if only and len(self._names) > 1:
            first.message += "; no other connector is asked once a tool with effects has run"
            first.hint = first.hint or "a tool that may be called again without harm says `idempotent: true`"
        first.args = (first.message,)
        first.spent = _spent(failed)
        return first


def _spent(failed: Sequence[tuple[str, ProviderError]]) -> tuple[Spent, ...]:
    return tuple(spent for _, error in failed for spent in error.spent)


def is_curable(error: ProviderError) -> bool:
    """Whether the same request may be answered elsewhere: the fault lies with the provider, the account or the way."""
    match error:
        case RateLimited() | Unreachable() | OutOfTime() | Truncated() | NotAnAnswer() | AuthenticationFailed():
            return True
        case ContextTooLong() | BadRequest():
            return error.status == 404
    return error.retryable or error.status == 402 or (error.status or 0) >= 500
