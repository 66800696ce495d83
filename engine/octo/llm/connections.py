"""The connections to one address: each call has one for itself, and a free one is taken before another is opened.

The pool that httpx brings looks at all its connections before and after each call, which is most of the work once many
calls are under way. Here each connection is a pool of its own. It needs httpx, and is imported by what has loaded it.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import httpx

_KEPT: Final = 32
"""The most connections that stay open while they are free."""


class Connections(httpx.AsyncBaseTransport):
    """Sends each call over the connection that was free last."""

    def __init__(self, *, proxy: str | None, verify: ssl.SSLContext | bool) -> None:
        self._proxy = proxy
        self._verify = verify
        self._free: list[httpx.AsyncHTTPTransport] = []
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        connection = self._free.pop() if self._free else self._another()
        try:
            response = await connection.handle_async_request(request)
        except BaseException:  # whatever it was, it is passed on; the connection sees to itself
            await self._give_back(connection)
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Answer(response.stream, connection, self._give_back)
        return response

    async def aclose(self) -> None:
        self._closed = True
        free, self._free = self._free, []
        for connection in free:
            await connection.aclose()

    def _another(self) -> httpx.AsyncHTTPTransport:
        return httpx.AsyncHTTPTransport(proxy=self._proxy, verify=self._verify, trust_env=False)

    async def _give_back(self, connection: httpx.AsyncHTTPTransport) -> None:
        if len(self._free) < _KEPT and not self._closed:
            self._free.append(connection)
        else:
            await connection.aclose()


class _Answer(httpx.AsyncByteStream):
    """The bytes of an answer, whose connection is free once it is closed."""

    def __init__(
        self,
        stream: httpx.AsyncByteStream,
        connection: httpx.AsyncHTTPTransport,
        give_back: Callable[[httpx.AsyncHTTPTransport], Awaitable[None]],
    ) -> None:
        self._stream = stream
        self._connection: httpx.AsyncHTTPTransport | None = connection
        self._give_back = give_back

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            yield chunk

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            await self._stream.aclose()
        finally:
            await self._give_back(connection)
