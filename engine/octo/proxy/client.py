"""The client of a request: what it sent, and the way back to it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

from octo.llm.completions import error_body, text
from octo.values import Json

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers: TypeAlias = Iterable[tuple[str, str]]

BODY_LIMIT: Final = 64 * 1024 * 1024
"""The most bytes that the body of a request may have."""
KEEP_ALIVE: Final = 15.0
"""Seconds without a byte after which a stream is told to be alive."""

ALIVE: Final = b": keepalive\n\n"
"""What tells it: a comment, which clients skip."""

_NOT_IN_HEADERS: Final = re.compile(r"[^\t\x20-\x7e\x80-\xff]")
_LONGEST_VALUE: Final = 2000


class Gone(Exception):
    """The client went away."""


class TooLarge(Exception):
    """The body of a request is longer than it may be."""


class Client:
    """One request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, *, keep_alive: float = KEEP_ALIVE) -> None:
        self.headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        self.status = 0
        """What was answered; 0 as long as nothing was."""
        self._of_anthropic = re.search(r"/v1/messages(/|$)", str(scope["path"])) is not None
        self._receive = receive
        self._send = send
        self._seconds = keep_alive
        self._last = 0.0
        self._beat: asyncio.Task[None] | None = None

    @property
    def started(self) -> bool:
        return self.status != 0

    @property
    def streams(self) -> bool:
        """Whether a stream was begun and not ended."""
        return self._beat is not None

    async def body(self) -> bytes:
        """The whole body. Raises TooLarge, or Gone."""
        length = self.headers.get("content-length", "")
        if length.isdecimal() and int(length) > BODY_LIMIT:
            raise TooLarge
        body = bytearray()
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Gone
            body += message.get("body", b"")
            if len(body) > BODY_LIMIT:
                raise TooLarge
            if not message.get("more_body"):
                return bytes(body)

    async def until_gone(self) -> None:
        """Wait until the client goes away. The body was read before."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    # ------------------------------------------------------------ the answer

    async def answer(self, status: int, body: bytes, headers: Headers = ()) -> None:
        """Answer at once. Of two headers of one name the first one counts."""
        await self._start(status, [*headers, ("content-length", str(len(body)))])
        await self._send({"type": "http.response.body", "body": body})

    async def answer_json(self, status: int, body: Json, headers: Headers = ()) -> None:
        await self.answer(status, text(body), [*headers, ("content-type", "application/json")])

    async def refuse(
        self, status: int, message: str, kind: str, headers: Headers = (), code: str | None = None
    ) -> None:
        """Answer with an error as clients of OpenAI read it, and those of Anthropic, too, where they ask."""
        body = error_body(message, kind, code)
        await self.answer_json(status, {"type": "error", **body} if self._of_anthropic else body, headers)

    async def open_stream(self, headers: Headers) -> None:
        """Begin to answer with events."""
        await self._start(200, [*headers, ("content-type", "text/event-stream"), ("cache-control", "no-cache")])
        self._beat = asyncio.create_task(self._keep_alive())

    @property
    def patience(self) -> float:
        """Seconds that a client may hear nothing."""
        return self._seconds

    async def write(self, events: bytes) -> None:
        """Tell events that are whole."""
        self._last = asyncio.get_running_loop().time()
        await self._send({"type": "http.response.body", "body": events, "more_body": True})

    async def close_stream(self) -> None:
        await self._rest()
        await self._send({"type": "http.response.body", "body": b""})

    async def _rest(self) -> None:
        beat, self._beat = self._beat, None
        if beat is not None:
            beat.cancel()
            with suppress(asyncio.CancelledError):
                await beat

    def give_up(self) -> None:
        """Nothing more will be said."""
        if self._beat is not None:
            self._beat.cancel()

    async def _keep_alive(self) -> None:
        loop = asyncio.get_running_loop()
        self._last = loop.time()
        while True:
            wait = self._last + self._seconds - loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            else:
                await self.write(ALIVE)

    async def _start(self, status: int, headers: Headers) -> None:
        self.status = status
        named: dict[str, str] = {}
        for name, value in headers:
            named.setdefault(name.lower(), value)
        raw = [(name.encode("latin-1"), _value(value)) for name, value in named.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})


class Late:
    """A stream that begins when there is something to tell: until then its failure can still be an error of its own.

    If the client `expects` a stream, it begins all the same once the client has heard nothing for a while: with the
    `first` event, else with a comment.
    """

    def __init__(self, client: Client, headers: Headers = (), first: bytes = b"", *, expects: bool = True) -> None:
        self._client = client
        self._headers = headers
        self._first = first
        self._expects = expects
        self._beginning = asyncio.Lock()
        self._waiting: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Late:
        if self._expects:
            self._waiting = asyncio.create_task(self._begin_anyway())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._waiting is not None:
            self._waiting.cancel()

    def told(self, headers: Headers) -> Late:
        """The same with the headers of the answer, which is on its way."""
        self._headers = headers
        return self

    async def hold(self) -> None:
        """Do not begin any more, if it has not begun."""
        if self._waiting is not None:
            self._waiting.cancel()
            await asyncio.wait([self._waiting])

    async def write(self, events: bytes) -> None:
        """Tell events that are whole."""
        await self._begin(self._first)
        await self._client.write(events)

    async def _begin(self, first: bytes) -> None:
        async with self._beginning:
            if not self._client.started:
                await self._client.open_stream(self._headers)
                if first:
                    await self._client.write(first)

    async def _begin_anyway(self) -> None:
        await asyncio.sleep(self._client.patience)
        await self._begin(self._first or ALIVE)


def _value(text: str) -> bytes:
    """The value of a header, which may hold what a client made up."""
    return _NOT_IN_HEADERS.sub("?", text[:_LONGEST_VALUE]).strip().encode("latin-1")
