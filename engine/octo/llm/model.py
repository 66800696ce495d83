"""A provider, a model id and credentials, ready to answer: the only door to a model."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from octo.errors import ProviderError
from octo.llm import fallbacks, faults, media
from octo.llm.chat import ChatRequest, ChatResponse, OnDelta
from octo.llm.hints import hint
from octo.llm.providers import PROVIDERS

if TYPE_CHECKING:
    from octo.llm.transport import Transport
    from octo.llm.wire import Endpoint

_log: Final = logging.getLogger("octo.llm")


class ChatModel(Protocol):
    """What every LLM connector opens to. Safe for concurrent calls."""

    @property
    def media_types(self) -> frozenset[str] | None:
        """The MIME types that the model reads; empty means text only, None means every type."""

    async def complete(
        self,
        request: ChatRequest,
        *,
        session: MutableMapping[object, Any],
        on_delta: OnDelta | None = None,
    ) -> ChatResponse:
        """Make one model call.

        `session` lives as long as one invocation from outside; the model keeps there, under keys of its own,
        what it has learnt for the rest of that invocation. With `on_delta` the provider is asked to stream
        and each fragment is awaited in order. Raises ProviderError.
        """


class HttpModel:
    """A model behind an HTTP API. `instance` is the name of its connector, which errors tell."""

    def __init__(self, endpoint: Endpoint, transport: Transport, instance: str = "") -> None:
        self._endpoint = endpoint
        self._instance = instance
        self._provider = PROVIDERS[endpoint.credentials.provider]
        self._transport = transport

    @property
    def media_types(self) -> frozenset[str] | None:
        return self._provider.media_types

    async def complete(
        self,
        request: ChatRequest,
        *,
        session: MutableMapping[object, Any],
        on_delta: OnDelta | None = None,
    ) -> ChatResponse:
        provider, stream = self._provider, on_delta is not None
        try:
            messages = media.with_true_types(request.messages, provider.media_types)
            request = replace(request, messages=messages)
            return await self._answered(request, session, on_delta)
        except ProviderError as error:
            error.provider = provider.id
            error.hint = error.hint or hint(error, self._endpoint.credentials, request.model or self._endpoint.model)
            faults.sign(error, provider.connector, self._instance, streamed=stream)
            raise

    async def _answered(
        self, request: ChatRequest, session: MutableMapping[object, Any], on_delta: OnDelta | None
    ) -> ChatResponse:
        """Call, and call again without what the endpoint refuses, as long as that makes another request of it.

        What was refused is remembered for the session.
        """
        wire, stream = self._provider.wire, on_delta is not None
        refused: set[str] = session.setdefault((self, request.model or self._endpoint.model), set())
        call = wire.encode(request, replace(self._endpoint, refused=frozenset(refused)), stream=stream)
        while True:
            try:
                return await self._transport.send(call, partial(wire.decoder, request), on_delta)
            except ProviderError as error:
                named = fallbacks.refused(error, call)
                if not named:
                    raise
                refused |= named
                again = wire.encode(request, replace(self._endpoint, refused=frozenset(refused)), stream=stream)
                if again.body == call.body:
                    raise
                which = f'connector "{self._instance}": ' if self._instance else ""
                _log.warning("%sa model call is made again in another shape: %s", which, error.message)
                call = again
