"""One model call over HTTP: time limits, retries, what an answer's status means. Nothing else sends."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Final

from octo.errors import ProviderError, Truncated
from octo.llm import faults
from octo.llm.chat import ChatResponse, Delta, OnDelta, Retry
from octo.llm.credentials import shown_url
from octo.llm.framing import EVENT_LIMIT, EventFraming, TooLong
from octo.llm.network import http_client, load_httpx, reason
from octo.llm.wire import Decoder, HttpCall, Unreadable

if TYPE_CHECKING:
    import httpx

MAX_RETRIES: Final = 3
UNREADABLE_IN_A_ROW: Final = 5
"""So many events that make no sense end a call."""
LONGEST_WAIT: Final = 60.0
"""Seconds; a provider that asks for a longer wait is not waited for."""
TOTAL_SECONDS: Final = 600.0
"""What one model call may take, its retries included."""

_ERROR_BODY: Final = 64 * 1024
_ERROR_BODY_SECONDS: Final = 5.0
_LAST_BYTES_SECONDS: Final = 0.2

_log = logging.getLogger("octo.llm")


class Transport:
    """Sends the calls of one connector, over one HTTP client that is made on the first call.

    `environ` says how this machine reaches the network, `mask` takes secrets out of what a provider says.
    `sleep` and `random` decide the waits between tries.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        mask: Callable[[str], str] = str,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random.random,
    ) -> None:
        self._environ = environ
        self._mask = mask
        self._seconds = total_seconds(environ)
        self._sleep = sleep
        self._random = random
        self._client: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Transport:
        return self

    async def __aexit__(self, *_: object) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def send(
        self, call: HttpCall, decoder: Callable[[], Decoder], on_delta: OnDelta | None = None
    ) -> ChatResponse:
        """Make a call until it is answered, its retries are used up, or its time is.

        Each try gets a decoder of its own; a listener is told when what it heard so far does not count.
        """
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                return await self._try(call, decoder, on_delta)
        except TimeoutError:
            if not limit.expired():
                raise
            raise _failed(call, f"no answer within {self._seconds:g} s") from None

    async def _try(self, call: HttpCall, decoder: Callable[[], Decoder], on_delta: OnDelta | None) -> ChatResponse:
        for attempt in count(1):
            try:
                return await self._exchange(call, decoder(), on_delta)
            except ProviderError as error:
                error.message = self._mask(error.message)
                error.args = (error.message,)
                wait = self._wait(error, attempt)
                if not error.retryable or attempt > MAX_RETRIES or wait > LONGEST_WAIT:
                    raise
                _log.warning("a model call is tried again in %.1f s: %s", wait, error)
                await _tell(on_delta, Retry(attempt, error.message))
            await self._sleep(wait)
        raise AssertionError("counting ends")

    def _wait(self, error: ProviderError, attempt: int) -> float:
        """The seconds before the next try: as the provider says, else doubling, and a little at random."""
        return error.retry_after or min(2.0 ** (attempt - 1), 10.0) * (0.5 + self._random() / 2)

    async def _exchange(self, call: HttpCall, decoder: Decoder, on_delta: OnDelta | None) -> ChatResponse:
        load_httpx()
        import httpx

        try:
            async with self._response(call) as response:
                await _read(response, call, decoder, on_delta)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError) as error:
            raise _failed(call, reason(error)) from error
        except httpx.RequestError as error:
            try:
                return decoder.finish()  # the connection broke after the answer was whole
            except Truncated:
                raise _failed(call, reason(error), retryable=True) from error
        except TooLong as error:
            raise _failed(call, str(error)) from error
        try:
            return decoder.finish()
        except Truncated as error:
            raise Truncated(f"{_target(call)}: {error}", retryable=error.retryable) from error

    @asynccontextmanager
    async def _response(self, call: HttpCall) -> AsyncIterator[httpx.Response]:
        if self._client is None:
            self._client = http_client(call.url, self._environ)
        request = self._client.build_request(
            call.method,
            call.url,
            headers=[(name.encode(), value.encode()) for name, value in call.headers],
            content=call.body,
        )
        response = await self._client.send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()


def total_seconds(environ: Mapping[str, str]) -> float:
    """What one model call may take: `OCTO_AI_TIMEOUT_SECONDS`, if it is a number from 1 to 86400."""
    text = environ.get("OCTO_AI_TIMEOUT_SECONDS", "").strip()
    if not text:
        return TOTAL_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if 1 <= seconds <= 86400:
        return seconds
    _log.warning("OCTO_AI_TIMEOUT_SECONDS is `%s`, expected 1 to 86400; %g s stay in force", text, TOTAL_SECONDS)
    return TOTAL_SECONDS


def _target(call: HttpCall) -> str:
    return f"{call.method} {shown_url(call.url)}"


def _failed(call: HttpCall, cause: str, *, retryable: bool = False) -> ProviderError:
    return ProviderError(f"{_target(call)}: {cause}", retryable=retryable)


# ---------------------------------------------------------------- reading an answer


async def _read(response: httpx.Response, call: HttpCall, decoder: Decoder, on_delta: OnDelta | None) -> None:
    """Feed an answer to its decoder. How it is read follows its content type, then what was asked for."""
    content_type = response.headers.get("content-type", "").lower()
    async with aclosing(response.aiter_bytes()) as chunks:  # type: ignore[type-var]  # it is a generator
        if not response.is_success:
            raise faults.from_answer(response.status_code, response.headers, await _start_of(chunks))
        if "event-stream" in content_type or (call.stream and not re.search("json|html", content_type)):
            await _read_events(chunks, decoder, on_delta)
            await _read_rest(chunks)
        else:
            for delta in _decoded(await _whole(chunks), content_type, decoder):
                await _tell(on_delta, delta)


async def _read_events(chunks: AsyncIterator[bytes], decoder: Decoder, on_delta: OnDelta | None) -> None:
    """Feed events until the decoder has all that it needs, or no more come."""
    unreadable = 0
    async for data in _events(chunks):
        try:
            deltas = decoder.feed(json.loads(data))
        except (ValueError, RecursionError) as error:
            unreadable += 1
            _log.warning("an event of an answer is skipped: %s", error)
            if unreadable == UNREADABLE_IN_A_ROW:
                raise ProviderError(f"{unreadable} unreadable events in a row: {error}") from error
            continue
        unreadable = 0
        for delta in deltas:
            await _tell(on_delta, delta)
        if decoder.complete:
            return


async def _events(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    framing = EventFraming()
    async for chunk in chunks:
        for data in framing.feed(chunk):
            yield data
    for data in framing.finish():
        yield data


async def _tell(on_delta: OnDelta | None, delta: Delta) -> None:
    if on_delta is not None:
        await on_delta(delta)


async def _read_rest(chunks: AsyncIterator[bytes]) -> None:
    """Read to the end of an answer that is whole, for a moment: only then its connection serves the next call."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LAST_BYTES_SECONDS):
            async for _ in chunks:
                pass


async def _whole(chunks: AsyncIterator[bytes]) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > EVENT_LIMIT:
            raise TooLong("the answer is longer than 32 MiB")
    return bytes(body)


async def _start_of(chunks: AsyncIterator[bytes]) -> bytes:
    """As much of the body of an error as is worth waiting for."""
    body = bytearray()
    with suppress(TimeoutError):
        async with asyncio.timeout(_ERROR_BODY_SECONDS):
            async for chunk in chunks:
                body += chunk
                if len(body) >= _ERROR_BODY:
                    break
    return bytes(body[:_ERROR_BODY])


def _decoded(body: bytes, content_type: str, decoder: Decoder) -> Sequence[Delta]:
    """Feed the decoder an answer that was not streamed."""
    try:
        return decoder.feed(json.loads(body))
    except Unreadable as error:
        raise ProviderError(f"the answer is of no known shape: {error}") from error
    except (ValueError, RecursionError) as error:
        if body.lstrip()[:1] in {b"", b"{"}:
            raise Truncated("the answer broke off before its end", retryable=True) from error
        summary = faults.page_summary(body, content_type)
        raise ProviderError(f"the answer is not JSON: {summary}") from error
