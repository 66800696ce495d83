"""A small HTTP/1.1 server on a free loopback port, in a thread with a loop of its own.

Tests and the processes that they start call it alike. It sends exactly the bytes that an `Answer` asks for,
so that an answer can also be wrong on purpose.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import ssl
import struct
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import count
from typing import Any, Literal, Self

Json = Any


@dataclass(eq=False)
class Request:
    """What a client sent. Header names are in lower case."""

    method: str
    path: str
    """The path without the query."""
    query: str
    headers: dict[str, str]
    body: bytes
    connection: int
    """Number of the connection it came on, from 1: equal numbers are one kept-alive connection."""
    refusal: str | None = None
    """The message that a vendor's rules refused it with."""
    abandoned: threading.Event = field(default_factory=threading.Event, repr=False)
    """Set when the client went away before it had the whole answer."""

    @property
    def json(self) -> Json:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """What to send back. Each piece of the body is one network write; of a stream, each is one event."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    pieces: tuple[bytes, ...] = ()
    streamed: bool = False
    """Send the body chunked, instead of with a content length."""
    content_length: int | None = None
    """A length to claim in the place of the true one."""
    delay: float = 0
    """Seconds before the first byte."""
    pause: float = 0
    """Seconds before each piece."""
    ending: Literal["whole", "close", "reset", "hang"] = "whole"
    """After the pieces: end properly, close or reset the connection, or go silent."""
    send_head: bool = True
    """Whether status and headers are sent at all."""

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)


class Server(ABC):
    """Answers requests while its `with` block lasts. A fault in `answer` is raised where the block ends."""

    tls: ssl.SSLContext | None = None
    """Speaks HTTPS when it is set before the block begins."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.url = ""
        self._fault: Exception | None = None
        self._ready = threading.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers = count(1)

    @abstractmethod
    def answer(self, request: Request) -> Answer:
        """What to say to a request; called once per request, in the order of arrival."""

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._fault is not None and error is None:
            raise self._fault

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self.tls)
        host, port = server.sockets[0].getsockname()[:2]
        self.url = f"{'https' if self.tls else 'http'}://{host}:{port}"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._talk(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = next(self._numbers)
        try:
            while (request := await _read(reader, writer, number)) is not None:
                self.requests.append(request)
                if not await _send(self._answer(request), request, reader, writer):
                    break
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    def _answer(self, request: Request) -> Answer:
        try:
            return self.answer(request)
        except Exception as fault:  # the test's own script is wrong; it hears of it when the server closes
            self._fault = fault
            body = f"the script of the test server failed: {fault!r}".encode()
            return Answer(500, (("content-type", "text/plain"), ("x-should-retry", "false")), (body,))


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        start, *lines = head.rstrip("\r\n").split("\r\n")
        method, target, _ = start.split(" ", 2)
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await _read_body(reader, headers)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    path, _, query = target.partition("?")
    return Request(method, path, query, headers, body, connection)


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    parts: list[bytes] = []
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    while (await reader.readuntil(b"\r\n")) != b"\r\n":
        pass
    return b"".join(parts)


async def _send(answer: Answer, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Send an answer; true when the connection may be used again."""
    try:
        await asyncio.sleep(answer.delay)
        if answer.send_head:
            writer.write(_head(answer))
        for piece in answer.pieces:
            if answer.pause:
                await asyncio.sleep(answer.pause)
            if piece:
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if answer.streamed else piece)
                await writer.drain()
        if answer.ending == "whole" and answer.streamed:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
    except ConnectionError:
        request.abandoned.set()
        return False
    match answer.ending:
        case "reset":
            _reset(writer)
        case "hang":
            with contextlib.suppress(ConnectionError):
                while await reader.read(65536):
                    pass
            request.abandoned.set()
        case "whole":
            lied = answer.content_length not in (None, len(answer.body))
            return not lied and request.headers.get("connection", "").lower() != "close"
    return False


def _head(answer: Answer) -> bytes:
    phrases = {status.value: status.phrase for status in HTTPStatus}
    lines = [f"HTTP/1.1 {answer.status} {phrases.get(answer.status, 'Overloaded')}"]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    if answer.streamed:
        lines.append("transfer-encoding: chunked")
    else:
        length = len(answer.body) if answer.content_length is None else answer.content_length
        lines.append(f"content-length: {length}")
        if answer.ending == "close":
            lines.append("connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close so that the client sees a reset connection and not an end of the stream."""
    sock: socket.socket = writer.get_extra_info("socket")
    linger = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()
