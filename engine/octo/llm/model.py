"""A provider, a model id and credentials, ready to answer: the only door to a model."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, MutableMapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from octo.errors import BadRequest, ProviderError
from octo.llm import embedding, facts, fallbacks, faults, media, refusals, thinking
from octo.llm.chat import ChatRequest, ChatResponse, OnDelta, Spent, Usage
from octo.llm.fallbacks import Learnt
from octo.llm.hints import hint
from octo.llm.providers import Provider, provider_of
from octo.llm.wires import anthropic

if TYPE_CHECKING:
    import httpx

    from octo.llm.credentials import Credentials, Tokens
    from octo.llm.embedding import Embedded, EmbedRequest
    from octo.llm.transport import Transport
    from octo.llm.wire import ChatDecoder, Endpoint, HttpCall, Wire

_log: Final = logging.getLogger("octo.llm")

_OFF: Final = frozenset({"none", "off"})
"""How a model is told not to think."""
_CHAT_NANOSECONDS: Final = 3600 * 10**9
"""How long a model whose first route does not exist is not asked there again."""


class HttpModel:
    """A model behind an HTTP API.

    `instance` is the name of its connector, which errors tell. `tokens` gives the access tokens of one without a
    key. `clock` gives nanoseconds.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        transport: Transport,
        instance: str = "",
        *,
        tokens: Tokens | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._endpoint = endpoint
        self._transport = transport
        self._instance = instance
        self._tokens = tokens
        self._clock = clock
        self._refused: defaultdict[str, set[str]] = defaultdict(set)
        """What each model was found to refuse in all sessions."""
        self._chat_until: dict[str, int] = {}
        """When to try again whether a model answers on the first route of its provider."""

    @property
    def media_types(self) -> frozenset[str] | None:
        return self._provider(self._endpoint.model).media_types

    @property
    def model(self) -> str:
        """The model of a request that names none."""
        return self._endpoint.model

    def answers_by_tool(self, model: str, *, with_tools: bool) -> bool:
        name = model or self._endpoint.model
        by_tool = self._provider(name).answers_by_tool(with_tools=with_tools)
        return by_tool or facts.answers_by_tool(name, with_tools=with_tools)

    def ignores(self, request: ChatRequest) -> tuple[str, ...]:
        """The settings of a request that make no difference, by their names."""
        model = request.model or self._endpoint.model
        provider = self._provider(model)
        at_once = not request.parallel_calls and not provider.limits_calls
        claude = facts.is_claude(model) or provider.wire is anthropic
        unthinking = claude and thinking.forces(request) and not request.may_think_first
        thinks = claude and not unthinking and (request.reasoning_effort or self._endpoint.thinking) not in _OFF
        plain = thinks or not facts.takes_temperature(model)
        one_only = facts.is_claude(model) and request.temperature is not None
        names = {
            "parallel_calls": at_once,
            "reasoning_effort": unthinking and bool(request.reasoning_effort),
            "temperature": plain and request.temperature is not None,
            "top_p": (plain or one_only) and request.top_p is not None,
        }
        return tuple(name for name, ignored in names.items() if ignored)

    def _provider(self, model: str) -> Provider:
        return provider_of(self._endpoint.credentials.provider, model)

    async def complete(
        self,
        request: ChatRequest,
        *,
        session: MutableMapping[object, Any],
        on_delta: OnDelta | None = None,
    ) -> ChatResponse:
        model = request.model or self._endpoint.model
        provider = self._provider(model)
        tries: list[ChatDecoder] = []
        try:
            messages = media.with_true_types(request.messages, provider.media_types)
            request = replace(request, messages=messages, model=model)
            if provider.answers_by_tool(with_tools=bool(request.tools)):
                request = replace(request, output_schema=None)
            if request.web_search and not provider.searches:
                raise BadRequest(f"models of `{provider.connector}` cannot search the web by themselves")
            if request.output_type == "image" and not provider.draws:
                raise BadRequest(f"models of `{provider.connector}` make no images")
            endpoint = replace(self._endpoint, credentials=await self._credentials(provider), model=model)
            answer = await self._answered(request, provider, endpoint, session, on_delta, tries)
            return replace(
                answer, asked=model, connector=self._instance, lost=self._spent(model, tries[:-1], answer.model)
            )
        except ProviderError as error:
            error.spent = self._spent(model, tries)
            error.provider = provider.id
            error.hint = error.hint or hint(error, self._endpoint.credentials, model)
            faults.sign(error, provider.connector, self._instance, way="complete" if on_delta is None else "stream")
            raise

    @property
    def embeds(self) -> bool:
        return self._provider("").embedder is not None

    async def embed(self, request: EmbedRequest) -> Embedded:
        provider = self._provider("")
        try:
            if provider.embedder is None:
                raise BadRequest("its provider has no embeddings")
            embedding.check(request)
            call = provider.embedder.encode(request, await self._credentials(provider))
            return await self._transport.send(call, partial(provider.embedder.decoder, request))
        except ProviderError as error:
            error.provider = provider.id
            error.hint = error.hint or hint(error, self._endpoint.credentials, request.model)
            faults.sign(error, provider.connector, self._instance, way="embed")
            raise

    async def _credentials(self, provider: Provider) -> Credentials:
        """The credentials as the API of a provider takes them, with a token where there is no key."""
        return provider.reached_by(await self.credentials())

    async def credentials(self) -> Credentials:
        """The credentials of the connector, with a token where there is no key."""
        if self._tokens is None:
            return self._endpoint.credentials
        return replace(self._endpoint.credentials, access_token=await self._tokens.current())

    @asynccontextmanager
    async def forward(self, call: HttpCall, *, retries: int | None = None) -> AsyncIterator[httpx.Response]:
        """The answer to a call that somebody else made up, as it comes. Raises ProviderError."""
        limits = {} if retries is None else {"retries": retries}
        try:
            async with self._transport.forward(call, **limits) as response:
                yield response
        except ProviderError as error:
            error.hint = error.hint or hint(error, self._endpoint.credentials, self._endpoint.model)
            faults.sign(error, self._provider("").connector, self._instance, way="forward")
            raise

    async def _answered(
        self,
        request: ChatRequest,
        provider: Provider,
        endpoint: Endpoint,
        session: MutableMapping[object, Any],
        on_delta: OnDelta | None,
        tries: list[ChatDecoder],
    ) -> ChatResponse:
        """Call, and call again without what the endpoint refuses, as long as that makes another request of it.

        What was refused is remembered for the session, and so is the route that answered. `tries` receives the decoder
        of each attempt.
        """
        learnt: Learnt = session.setdefault((self, endpoint.model), Learnt())
        learnt.on_chat |= self._clock() < self._chat_until.get(endpoint.model, 0)
        before: HttpCall | None = None
        refusal: ProviderError | None = None
        while True:
            wire = provider.wire_for(request, endpoint.credentials, on_chat=learnt.on_chat)
            refused = frozenset(learnt.refused | self._refused[endpoint.model])
            call = wire.encode(request, replace(endpoint, refused=refused), stream=on_delta is not None)
            if refusal is not None:
                if call == before:
                    raise refusal
                self._warn(f"a model call is made again in another shape: {refusal.message}")
            try:
                answer = await self._transport.send(call, partial(_next, wire, request, tries), on_delta)
            except ProviderError as error:
                refused = fallbacks.refused(error, call) | refusals.refused(error, call)
                learnt.refused |= refused
                self._refused[endpoint.model] |= refused & fallbacks.LASTING
                plain = request.output_type == "text" and not request.web_search
                may_chat = plain and provider.may_chat(endpoint.credentials)
                if not refused and not (may_chat and learnt.moves_to_chat(error)):
                    raise
                before, refusal = call, error
                continue
            if learnt.lacks_route:
                self._chat_until[endpoint.model] = self._clock() + _CHAT_NANOSECONDS
                learnt.lacks_route = False
            learnt.answered = True
            return answer

    def _spent(self, model: str, tries: Sequence[ChatDecoder], served: str = "") -> tuple[Spent, ...]:
        """What some attempts used up together, by the model that served, which is `served` where none was named."""
        spent: defaultdict[str, Usage] = defaultdict(Usage)
        for one in tries:
            if one.usage is not None:
                spent[one.model or served] += one.usage
        return tuple(Spent(self._instance, model, usage, by) for by, usage in spent.items())

    def _warn(self, text: str) -> None:
        which = f'connector "{self._instance}": ' if self._instance else ""
        _log.warning("%s%s", which, text)


def _next(wire: Wire, request: ChatRequest, tries: list[ChatDecoder]) -> ChatDecoder:
    """A decoder for one more attempt."""
    tries.append(wire.decoder(request))
    return tries[-1]
