"""One model call over HTTP: time limits, retries, what an answer's status means. Nothing else sends."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final, TypeVar

from octo.errors import NotAnAnswer, OutOfTime, ProviderError, Truncated, Unreachable
from octo.llm import faults, network
from octo.llm.chat import Delta, OnDelta, Retry
from octo.llm.credentials import CREDENTIAL_HEADERS, shared_headers_faults, shown_url
from octo.llm.framing import Damaged, TooLong
from octo.llm.network import load_httpx
from octo.llm.reading import is_cut_off, is_stream, read, start_of, tell, whole
from octo.llm.wire import BROKE_OFF, Decoder, HttpCall

if TYPE_CHECKING:
    import httpx

MAX_RETRIES: Final = 3
LONGEST_WAIT: Final = 60.0
"""Seconds; a provider that asks for a longer wait is not waited for."""
TOTAL_SECONDS: Final = 600.0
"""What one model call may take, its retries included."""
TIME_LIMIT: Final = "OCTO_AI_TIMEOUT_SECONDS"
"""The environment variable that changes it."""
FOLLOW_REDIRECTS: Final = "OCTO_AI_FOLLOW_REDIRECTS"
"""The environment variable that lets redirects be followed, to find out where they lead."""

_MOST_REDIRECTS: Final = 5
_FOR_ANYBODY: Final = frozenset({"host", "accept", "accept-encoding", "content-length", "content-type", "user-agent"})

_NO_ADDRESS: Final = (OSError, UnicodeError, OverflowError, ExceptionGroup)
"""What is raised for a host or a port that cannot be."""

_OF_THE_BYTES: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})

_log = logging.getLogger("octo.llm")

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Failed:
    """A try that failed, with the answer that says so if there is one."""

    error: ProviderError
    response: httpx.Response | None = None


class Transport:
    """Sends the calls of one connector, over one HTTP client that is made on the first call.

    `environ` says how this machine reaches the network, `instance` is the name of the connector for the log,
    `mask` takes secrets out of what a provider says, `sign` puts a signature on a call right before each try.
    `sleep` and `random` decide the waits between tries.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        instance: str = "",
        mask: Callable[[str], str] = str,
        sign: Callable[[HttpCall], Awaitable[HttpCall]] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random.random,
    ) -> None:
        self._environ = environ
        self._instance = instance
        self._mask = mask
        self._sign = sign
        self._seconds = total_seconds(environ)
        self._sleep = sleep
        self._random = random
        self._client: httpx.AsyncClient | None = None
        self._follows = _follows_redirects(environ)

    async def __aenter__(self) -> Transport:
        return self

    async def __aexit__(self, *_: object) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def send(
        self, call: HttpCall, decoder: Callable[[], Decoder[Answer]], on_delta: OnDelta | None = None
    ) -> Answer:
        """Make a call until it is answered, its retries are used up, or its time is.

        Each try gets a decoder of its own; a listener is told when what it heard so far does not count. The time that a
        listener takes is not the provider's.
        """
        limit = asyncio.timeout(self._seconds)
        failed: list[ProviderError] = []
        tries: list[Decoder[Answer]] = []

        def next_try() -> Decoder[Answer]:
            tries.append(decoder())
            return tries[-1]

        try:
            async with limit:
                return await self._try(call, next_try, on_delta and _untimed(on_delta, limit), failed)
        except TimeoutError:
            if not limit.expired():
                raise
            if len(tries) > len(failed):
                with suppress(Truncated):
                    return tries[-1].finish()  # time was over after the answer was whole
            before = f", and the try before failed: {failed[-1].message}" if failed else ""
            raise OutOfTime(f"{target(call)}: no answer within {self._seconds:g} s{before}") from None

    async def _try(
        self,
        call: HttpCall,
        decoder: Callable[[], Decoder[Answer]],
        on_delta: OnDelta | None,
        failed: list[ProviderError],
    ) -> Answer:
        for attempt in count(1):
            try:
                return await self._exchange(call, decoder(), on_delta)
            except ProviderError as error:
                wait = self._wait(error, attempt)
                too_long = error.retryable and wait > LONGEST_WAIT
                if too_long:
                    error.message += f"; the provider asks to wait {wait:g} s, octo waits at most {LONGEST_WAIT:g} s"
                error.message = self._mask(error.message)
                error.args = (error.message,)
                if too_long or not error.retryable or attempt > MAX_RETRIES:
                    raise
                failed.append(error)
                await tell(on_delta, Retry(attempt, error.message, error))
                self._warn(f"a model call is tried again in {wait:.1f} s: {error.message}")
            await self._sleep(wait)
        raise AssertionError("counting ends")

    # ------------------------------------------------------------ answers as they come

    @asynccontextmanager
    async def forward(self, call: HttpCall, *, retries: int = MAX_RETRIES) -> AsyncIterator[httpx.Response]:
        """The answer to a call, of any status but those of redirects: a stream as it comes, open, else whole.

        A call is made again as long as that may help; a stream that began is not. What breaks while it is read is a
        ProviderError, too.
        """
        load_httpx()
        import httpx

        limit = asyncio.timeout(self._seconds)
        status: int | None = None
        try:
            async with limit, AsyncExitStack() as opened:
                response = await self._opened(call, retries, opened)
                status = response.status_code
                yield response
        except TimeoutError:
            if not limit.expired():
                raise
            raise OutOfTime(f"{target(call)}: no answer within {self._seconds:g} s") from None
        except (httpx.RequestError, Damaged) as error:
            raise self._broken(call, error, status) from error
        except TooLong as error:
            raise _too_long(call, status, error) from error

    async def _opened(self, call: HttpCall, retries: int, opened: AsyncExitStack) -> httpx.Response:
        for attempt in count(1):
            answer = await self._begun(call, opened)
            if not isinstance(answer, Failed):
                return answer
            error = answer.error
            error.message = self._mask(error.message)
            error.args = (error.message,)
            wait = self._wait(error, attempt)
            if not error.retryable or wait > LONGEST_WAIT or attempt > retries:
                if answer.response is None:
                    raise error
                return answer.response
            self._warn(f"a call is tried again in {wait:.1f} s: {error.message}")
            await self._sleep(wait)
        raise AssertionError("counting ends")

    async def _begun(self, call: HttpCall, opened: AsyncExitStack) -> httpx.Response | Failed:
        """The answer to one try: a stream is left open, else it is read. Of one that failed, what there is of it."""
        import httpx

        status: int | None = None
        if self._sign is not None:
            call = await self._sign(call)
        async with AsyncExitStack() as trying:
            try:
                response = await trying.enter_async_context(self._response(call))
                status = response.status_code
                if response.is_success and is_stream(response, asked=call.stream):
                    opened.push_async_exit(trying.pop_all())
                    return response
                if response.is_success:
                    body = await whole(response.aiter_bytes())
                    if is_cut_off(body, response):
                        return Failed(_cut_off(call, status, BROKE_OFF), _known(response, body))
                    return _known(response, body)
                async with aclosing(response.aiter_bytes()) as chunks:  # type: ignore[type-var]  # it is a generator
                    body = await start_of(chunks)
            except (httpx.RequestError, httpx.InvalidURL, *_NO_ADDRESS) as error:
                return Failed(self._broken(call, error, status))
            except TooLong as error:
                return Failed(_too_long(call, status, error))
        failure = faults.from_answer(response.status_code, response.headers, body)
        if response.is_redirect:
            failure.message = f"{target(call)}: {failure.message}"
            return Failed(failure)
        return Failed(failure, _known(response, self._mask(body.decode(errors="replace")).encode()))

    def _wait(self, error: ProviderError, attempt: int) -> float:
        """The seconds before the next try: as the provider says, else doubling, and a little at random."""
        return error.retry_after or min(2.0 ** (attempt - 1), 10.0) * (0.5 + self._random() / 2)

    async def _exchange(self, call: HttpCall, decoder: Decoder[Answer], on_delta: OnDelta | None) -> Answer:
        load_httpx()
        import httpx

        status: int | None = None
        if self._sign is not None:
            call = await self._sign(call)
        try:
            async with self._response(call) as response:
                status = response.status_code
                await read(response, decoder, on_delta, stream=call.stream, framing=call.framing, note=self._warn)
        except (httpx.RequestError, httpx.InvalidURL, Damaged, *_NO_ADDRESS) as error:
            try:
                return decoder.finish()  # the connection broke after the answer was whole
            except Truncated:
                raise self._broken(call, error, status) from error
        except TooLong as error:
            raise _too_long(call, status, error) from error
        except NotAnAnswer as error:
            error.message = f"{target(call)}: {error.message}"
            raise
        except Truncated as error:
            raise _cut_off(call, status, str(error)) from error
        try:
            return decoder.finish()
        except Truncated as error:
            raise _cut_off(call, status, str(error)) from error

    def _broken(self, call: HttpCall, error: Exception, status: int | None) -> ProviderError:
        """What it means for a call that its exchange failed below the answer: on the way, or in the form of HTTP."""
        if isinstance(error, Damaged):
            return _cut_off(call, status, str(error))
        text, advice = network.reason(error), network.advice(error)
        match network.side(error):
            case "ours":
                return ProviderError(f"{target(call)}: {text}", hint=advice)
            case "theirs":
                answer = "" if status is None else f"status {status} without a usable answer: "
                return NotAnAnswer(f"{target(call)}: {answer}{text}", status=status, hint=advice)
        if status is not None:
            return _cut_off(call, status, f"{BROKE_OFF}: {text}")
        if (proxy := network.proxy_for(call.url, self._environ)) and advice is None:
            advice = f"the call goes through the proxy `{shown_url(proxy)}`, which the environment names"
        return Unreachable(f"{target(call)}: {text}", retryable=True, hint=advice)

    # ------------------------------------------------------------ one exchange

    @asynccontextmanager
    async def _response(self, call: HttpCall) -> AsyncIterator[httpx.Response]:
        if self._client is None:
            self._client = network.http_client(call.url, self._environ)
        request = self._client.build_request(
            call.method,
            call.url,
            headers=[(name.encode(), value.encode()) for name, value in call.headers],
            content=call.body,
        )
        response = await self._client.send(request, stream=True, auth=_auth(request))
        try:
            for _ in range(_MOST_REDIRECTS if self._follows else 0):
                onward = response.next_request
                if onward is None:
                    break
                await response.aclose()
                onward = self._redirected(request, onward)
                response = await self._client.send(onward, stream=True, auth=_auth(onward))
            yield response
        finally:
            await response.aclose()

    def _redirected(self, request: httpx.Request, onward: httpx.Request) -> httpx.Request:
        """The next request of a redirect; another host is told nothing that was meant for the first."""
        self._warn(f"a redirect to {shown_url(str(onward.url))} is followed")
        if (request.url.scheme, request.url.netloc) != (onward.url.scheme, onward.url.netloc):
            for name in onward.headers.keys() - _FOR_ANYBODY:
                del onward.headers[name]
        return onward

    def _warn(self, text: str) -> None:
        which = f'connector "{self._instance}": ' if self._instance else ""
        _log.warning("%s%s", which, self._mask(text))


def _untimed(on_delta: OnDelta, limit: asyncio.Timeout) -> OnDelta:
    """The listener, for which the clock of a call stands still."""
    now = asyncio.get_running_loop().time

    async def listen(delta: Delta) -> None:
        left = (limit.when() or 0) - now()
        limit.reschedule(None)
        await on_delta(delta)
        limit.reschedule(now() + left)

    return listen


def total_seconds(environ: Mapping[str, str]) -> float:
    """What one model call may take: `OCTO_AI_TIMEOUT_SECONDS`, if it is a number from 1 to 86400."""
    return _stated_seconds(environ) or TOTAL_SECONDS


def _stated_seconds(environ: Mapping[str, str]) -> float | None:
    try:
        seconds = float(environ.get(TIME_LIMIT, ""))
    except ValueError:
        return None
    return seconds if 1 <= seconds <= 86400 else None


def _follows_redirects(environ: Mapping[str, str]) -> bool:
    return environ.get(FOLLOW_REDIRECTS, "").strip() == "1"


def warnings(environ: Mapping[str, str]) -> list[str]:
    """What to tell once of the variables that all calls heed."""
    found = shared_headers_faults(environ)
    text = environ.get(TIME_LIMIT, "").strip()
    if text and _stated_seconds(environ) is None:
        found.append(f"{TIME_LIMIT} is `{text}`, expected 1 to 86400; {TOTAL_SECONDS:g} s stay in force")
    if _follows_redirects(environ):
        found.append(f"{FOLLOW_REDIRECTS} is 1: redirects are followed, which is meant for a look at a fault only")
    return found


def _known(response: httpx.Response, body: bytes) -> httpx.Response:
    """An answer whose body was read."""
    import httpx

    kept = [(name, value) for name, value in response.headers.items() if name not in _OF_THE_BYTES]
    return httpx.Response(response.status_code, headers=kept, content=body)


def _auth(request: httpx.Request) -> httpx.Auth | None:
    """User and password of an address are sent only where no other credential is."""
    import httpx

    return httpx.Auth() if CREDENTIAL_HEADERS & request.headers.keys() else None


def target(call: HttpCall) -> str:
    return f"{call.method} {shown_url(call.url)}"


def _too_long(call: HttpCall, status: int | None, error: TooLong) -> ProviderError:
    return ProviderError(f"{target(call)}: status {status}, but {error}", status=status)


def _cut_off(call: HttpCall, status: int | None, text: str) -> Truncated:
    return Truncated(f"{target(call)}: status {status}, but {text}", status=status, retryable=True)
