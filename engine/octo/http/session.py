"""Calls of one HTTP API: time limits, redirects, repeats, what is sent to whom. Nothing else sends."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from octo import masking
from octo.http.auth import Authorization, basic_header
from octo.http.cache import Cache
from octo.http.call import Answer, Call, HttpError, Policy, excerpt, header_fault
from octo.http.url import BaseUrl, Target
from octo.llm.network import certificates, load_httpx, proxy_for, reason

if TYPE_CHECKING:
    import httpx

MAX_REDIRECTS: Final = 10
TOO_MANY_REQUESTS: Final = 429

_SECOND: Final = 10**9
_TOKEN_BYTES: Final = 64 * 1024
"""How much of an answer of a token server is read."""
_REST_BYTES: Final = 4096
_REST_SECONDS: Final = 0.2
"""How much of an unwanted rest is read away, so that its connection serves the next call."""
_FIRST_WAIT: Final = 0.5
"""Seconds before the second attempt, when the API names no wait; doubled with every further one."""
_FRAMING: Final = frozenset({"content-length", "transfer-encoding"})
"""Headers that follow from the body, whatever a flow says."""
_HOST: Final = frozenset({"host"})
"""What follows from the connector, whatever a message says."""
_PERSONAL: Final = re.compile("auth|cookie|key|password|secret|session|token", re.IGNORECASE)
"""Names of headers whose values are for this API only, and for no log."""
_PUBLIC: Final = frozenset({"accept", "accept-encoding", "accept-language", "content-type", "user-agent"})


class HttpSession:
    """Calls one API. The HTTP clients behind it are made when they are first needed.

    `environ` says how this machine reaches the network, `mask` takes secrets out of what the API says, `log`
    takes a level and a line.
    """

    def __init__(
        self,
        base_url: str,
        policy: Policy,
        authorization: Authorization | None = None,
        *,
        environ: Mapping[str, str],
        clock: Callable[[], int],
        mask: Callable[[str], str],
        log: Callable[[str, str], None],
    ) -> None:
        self._base = BaseUrl(base_url)
        self._policy = policy
        self._authorization = authorization
        self._environ = environ
        self._clock = clock
        self._mask = mask
        self._log = log
        self._clients: dict[tuple[str, str | None], httpx.AsyncClient] = {}
        self._cache = Cache[Answer](policy.cached, round(policy.cached_seconds * _SECOND), clock)

    async def __aenter__(self) -> HttpSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._clients:
            _, client = self._clients.popitem()
            await client.aclose()

    async def send(self, call: Call) -> Answer:
        """Make a call until it is answered with another status than 429, or its attempts are used up.

        Raises HttpError when there is no answer.
        """
        target = self._base.target(call.path, call.query)
        try:
            headers = await self._headers(call)
            cacheable = call.method == "GET" and self._policy.cached > 0
            answer = self._cache.get(target.url) if cacheable else None
            if answer is None:
                answer = await self._repeated(call, target, headers)
                if cacheable:
                    self._cache.put(target.url, answer)
        except HttpError as error:
            raise HttpError(f"request to {target.shown}: {error.message}", hint=error.hint) from error
        return answer

    # ------------------------------------------------------------ what is sent

    async def _headers(self, call: Call) -> dict[str, str]:
        """All headers of a call: its own, then those of the connector, then the credentials."""
        for name, value in call.headers:
            _check(name, value)
        own = {name.lower(): value for name, value in self._policy.headers}
        asked = {name.lower(): value for name, value in call.headers if name.lower() not in _HOST}
        headers = {name: value for name, value in (own | asked).items() if name not in _FRAMING}
        if call.body is not None:
            headers.setdefault("content-type", "application/json")
        if "authorization" not in headers:
            if self._authorization is not None:
                headers["authorization"] = await self._authorization(self._fetch)
                _check("authorization", headers["authorization"])
            elif self._base.user:
                headers["authorization"] = basic_header(self._base.user, self._base.password)
        if not self._policy.keep_alive:
            headers["connection"] = "close"
        return {"accept": "*/*", "accept-encoding": "gzip", "user-agent": "octo"} | headers

    # ------------------------------------------------------------ attempts

    async def _repeated(self, call: Call, target: Target, headers: Mapping[str, str]) -> Answer:
        attempt = 1
        while True:
            answer, retry_after = await self._attempt(call, target, headers)
            if answer.status != TOO_MANY_REQUESTS or attempt >= self._policy.attempts:
                return answer
            wait = min(_wait(retry_after, attempt, self._clock() / _SECOND), self._policy.max_wait)
            self._log("warn", f"{call.method} {target.shown} returned 429 and is tried again in {wait:g} s")
            await asyncio.sleep(wait)
            attempt += 1

    async def _attempt(self, call: Call, target: Target, headers: Mapping[str, str]) -> tuple[Answer, str]:
        """The final answer of one attempt, and the wait that it asks for."""
        async with self._timed():
            request = self._request(call.method, target.url, headers, call.body, target.line)
            for _ in range(MAX_REDIRECTS + 1):
                async with self._response(request) as response:
                    onward = response.next_request
                    if onward is None:
                        body = await _read(response, self._policy.max_bytes)
                        return self._answer(target, response, body, headers), response.headers.get("retry-after", "")
                    await _read_away(response.aiter_raw())
                request = self._redirected(request, onward)
        raise HttpError(f"more than {MAX_REDIRECTS} redirects")

    def _answer(self, target: Target, response: httpx.Response, body: bytes, headers: Mapping[str, str]) -> Answer:
        limit, status = self._policy.max_bytes, response.status_code
        if len(body) > limit:
            self._log("warn", f"the answer of {target.shown} is cut at {limit} bytes (`maxResponseBytes`)")
            body = body[:limit]
        return Answer(
            target.shown,
            status,
            response.headers.get("content-type", ""),
            body,
            excerpt(status, body, lambda text: self._mask(_without_secrets(text, headers))) if status >= 400 else "",
        )

    async def _fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> tuple[int, bytes]:
        async with self._timed(), self._response(self._request(method, url, headers, body)) as response:
            return response.status_code, (await _read(response, _TOKEN_BYTES))[:_TOKEN_BYTES]

    # ------------------------------------------------------------ one exchange

    @asynccontextmanager
    async def _timed(self) -> AsyncIterator[None]:
        """Everything that one attempt may meet, as HttpError."""
        load_httpx()
        import httpx

        limit = asyncio.timeout(self._policy.timeout)
        try:
            async with limit:
                yield
        except TimeoutError as error:
            if not limit.expired():
                raise HttpError(reason(error)) from error
            hint = "the `timeout` of the connector says how long to wait"
            raise HttpError(f"no answer within {self._policy.timeout:g} s", hint=hint) from None
        except (httpx.RequestError, httpx.InvalidURL, OSError, ValueError, OverflowError, ExceptionGroup) as error:
            # The last ones are what the layers below httpx make of a host or a port that cannot be.
            raise HttpError(reason(error)) from error

    def _request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, line: str = ""
    ) -> httpx.Request:
        import httpx

        return httpx.Request(
            method,
            url,
            headers=[(name.encode(), value.encode()) for name, value in headers.items()],
            content=body,
            # httpx would resolve the `..` of a path. A proxy needs another line, which httpx makes.
            extensions={"target": line.encode()} if line and proxy_for(url, self._environ) is None else {},
        )

    def _redirected(self, request: httpx.Request, onward: httpx.Request) -> httpx.Request:
        """The next request of a redirect; what is meant for this API only is not told to another host."""
        onward.extensions = {name: value for name, value in onward.extensions.items() if name != "target"}
        if onward.method != request.method:
            for name in [name for name in onward.headers if name.startswith("content-")]:
                del onward.headers[name]
        if _same_place(request.url, onward.url):
            if "cookie" in request.headers:
                onward.headers["cookie"] = request.headers["cookie"]
        else:
            own = {name.lower() for name, _ in self._policy.headers} - _PUBLIC
            for name in [name for name in onward.headers if name in own or _PERSONAL.search(name)]:
                del onward.headers[name]
        return onward

    @asynccontextmanager
    async def _response(self, request: httpx.Request) -> AsyncIterator[httpx.Response]:
        client = self._client(request.url)
        response = await client.send(request, stream=True, follow_redirects=False)
        try:
            yield response
        finally:
            await response.aclose()

    def _client(self, url: httpx.URL) -> httpx.AsyncClient:
        """The client for a scheme and the proxy that the environment names for a host."""
        key = url.scheme, proxy_for(str(url), self._environ)
        if key not in self._clients:
            self._clients[key] = self._new_client(*key)
        return self._clients[key]

    def _new_client(self, scheme: str, proxy: str | None) -> httpx.AsyncClient:
        from http.cookiejar import CookieJar, DefaultCookiePolicy

        import httpx

        policy = self._policy
        try:
            return httpx.AsyncClient(
                proxy=proxy,
                verify=certificates(self._environ) if proxy or scheme != "http" else False,
                trust_env=False,
                timeout=None,
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # messages share no session
                limits=httpx.Limits(
                    max_connections=None,
                    max_keepalive_connections=policy.idle_connections if policy.keep_alive else 0,
                    keepalive_expiry=policy.idle_seconds,
                ),
            )
        except (ImportError, ValueError, OSError) as error:
            raise HttpError(f"the HTTP client cannot be made: {error}") from error


def _check(name: str, value: str) -> None:
    if fault := header_fault(name, value):
        raise HttpError(fault)


async def _read(response: httpx.Response, limit: int) -> bytes:
    """The body, or more than `limit` bytes of it."""
    body = bytearray()
    async with aclosing(response.aiter_bytes()) as chunks:  # type: ignore[type-var]  # it is a generator
        async for chunk in chunks:
            body += chunk
            if len(body) > limit:
                await _read_away(chunks)
                break
    return bytes(body)


async def _read_away(chunks: AsyncIterator[bytes]) -> None:
    """Read a short rest, for a moment: only then its connection serves the next call."""
    import httpx

    size = 0
    with suppress(TimeoutError, httpx.RequestError):
        async with asyncio.timeout(_REST_SECONDS):
            async for chunk in chunks:
                size += len(chunk)
                if size > _REST_BYTES:
                    break


def _wait(retry_after: str, attempt: int, now: float) -> float:
    """The seconds before the next attempt: what the API asks for, else doubling."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        from email.utils import parsedate_to_datetime

        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return _FIRST_WAIT * (1 << min(attempt - 1, 30))


def _same_place(one: httpx.URL, other: httpx.URL) -> bool:
    """Whether two URLs are of one server, or the other one is its secure form."""
    if one.host != other.host:
        return False
    upgraded = (one.scheme, one.port, other.scheme, other.port) == ("http", None, "https", None)
    return upgraded or (one.scheme, one.port) == (other.scheme, other.port)


def _without_secrets(text: str, headers: Mapping[str, str]) -> str:
    """The text without the credentials that were sent, should the API repeat them."""
    personal = (value for name, value in headers.items() if _PERSONAL.search(name))
    secrets = (secret for value in personal for secret in (value, value.partition(" ")[2]))
    return masking.hidden(text, masking.forms(secrets))
