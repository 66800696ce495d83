"""A provider, a model id and credentials, ready to answer: the only door to a model."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Protocol

from octo.llm.chat import ChatRequest, ChatResponse, OnDelta


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
