"""The HTTP server: an ASGI application at an address, as long as a context lasts.

It needs the extra `server`, which is imported when the first server starts.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

from octo.errors import UsageError, missing_extra

if TYPE_CHECKING:
    from starlette.applications import Starlette

GRACE: Final = 5
"""Seconds that answers may take which are under way at the end."""
IDLE: Final = 75
"""Seconds that a connection is kept for a next request: longer than clients keep theirs, lest both let go at once."""


def missing() -> str | None:
    """How to install what a server needs; None when it is there."""
    return missing_extra("starlette", "server") or missing_extra("uvicorn", "server")


@asynccontextmanager
async def serving(app: Starlette, address: str) -> AsyncIterator[int]:
    """Serve an application; the port. Raises UsageError when the address is not to be had."""
    import uvicorn

    class Server(uvicorn.Server):
        """A server that leaves signals to the command."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    with _prompt(_listening(address)) as listener:
        options: dict[str, Any] = {"log_config": None, "access_log": False, "lifespan": "off", "ws": "none"}
        limits: dict[str, Any] = {"timeout_graceful_shutdown": GRACE, "timeout_keep_alive": IDLE}
        server = Server(uvicorn.Config(app, server_header=False, **options, **limits))
        work = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield int(listener.getsockname()[1])
        finally:
            server.should_exit = True
            await asyncio.wait([work])


def _listening(address: str) -> socket.socket:
    host, port = split_address(address)
    try:
        if host:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            return socket.create_server((host, port), family=family)
        dual = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dual else socket.AF_INET
        return socket.create_server(("", port), family=family, dualstack_ipv6=dual)
    except OSError as error:
        code = error.errno or 0
        reason = os.strerror(code) if code > 0 else error.strerror or str(error)
        raise UsageError(f"cannot listen on `{address}`: {reason.lower()}") from error


def _prompt(listener: socket.socket) -> socket.socket:
    """The same socket, known as one of TCP: only then asyncio lets its connections send at once what they are given."""
    return socket.socket(listener.family, listener.type, socket.IPPROTO_TCP, fileno=listener.detach())


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `host:port`; the host is empty for all of them. Raises ValueError."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(address)
    return host.strip("[]"), int(port)
