"""The routes of the proxy."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import octo
from octo.errors import OctoError
from octo.llm.proxy import CHAT, FIM, MESSAGES, RESPONSES
from octo.proxy.access import Entry
from octo.proxy.client import BODY_LIMIT, KEEP_ALIVE, Client, Gone, Receive, Scope, Send, TooLarge
from octo.proxy.gateway import Doors, Stopping
from octo.proxy.guard import Guard
from octo.proxy.models import models
from octo.proxy.openapi import description
from octo.proxy.page import page
from octo.proxy.relay import IGNORED, Relay

if TYPE_CHECKING:
    from starlette.applications import Starlette

Log = Callable[[Entry], None]

_PATHS: Final = (CHAT, FIM, RESPONSES, MESSAGES)

_log = logging.getLogger("octo.proxy")


def proxy_app(
    doors: Doors, guard: Guard, log: Log, *, cors: Iterable[str] = (), keep_alive: float = KEEP_ALIVE
) -> Starlette:
    """The application. `log` is told of each request. Raises ImportError without the extra `server`."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware
    from starlette.routing import Route

    class Answers:
        """Answers all requests of one kind, each in a client's reach."""

        def __init__(self, door: Door) -> None:
            self._door = door

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            await self._door.open(scope, Client(scope, receive, send, keep_alive=keep_alive))

    allowed = frozenset(cors)
    calls, lists, page_, described, alive, nothing = (
        kind(doors, guard, log, allowed) for kind in (Calls, Lists, Page, Described, Alive, Nothing)
    )
    below = [
        (prefix + path, door)
        for prefix in ("/v1/", "/c/{connector}/v1/")
        for path, door in (*((path, calls) for path in _PATHS), ("models", lists))
    ]
    return Starlette(
        routes=[
            *(
                Route(path, Answers(door))
                for path, door in (*below, ("/", page_), ("/openapi.json", described), ("/healthz", alive))
            ),
            Route("/{path:path}", Answers(nothing)),
        ],
        middleware=[
            Middleware(
                CORSMiddleware,
                allow_origins=sorted(allowed),
                allow_methods=["GET", "POST"],
                allow_headers=["*"],
                expose_headers=[IGNORED],
            )
        ]
        if allowed
        else [],
    )


class Door:
    """Answers requests of one kind, once it is sure who asks."""

    method = "GET"
    is_open = False
    """Whether one needs no token."""
    for_browsers = False
    """Whether people open it, who are asked for the token as a password and come by a link from anywhere."""

    def __init__(self, doors: Doors, guard: Guard, log: Log, origins: frozenset[str]) -> None:
        self._doors = doors
        self._guard = guard
        self._log = log
        self._origins = origins

    async def open(self, scope: Scope, client: Client) -> None:
        """Answer one request, and tell the log of it. When the client goes away, the work for it ends at once."""
        entry = Entry(scope["path"])
        try:
            if await self._may_enter(scope, client):
                await self.answer(scope, client, entry)
        except Gone:
            entry.broken = "client gone"
        except OSError:
            entry.broken = "client gone"
        except Exception as error:  # a fault of ours: the client is told, and the others are served on
            _log.error("internal error: %r", error)
            entry.broken = "internal error"
            if not client.started:
                await client.refuse(500, "internal error", "server_error")
        finally:
            client.give_up()
            entry.end(client.status)
            if not self.is_open:
                self._log(entry)

    async def answer(self, scope: Scope, client: Client, entry: Entry) -> None:
        raise TypeError(f"{type(self).__name__} has no answer")

    async def _may_enter(self, scope: Scope, client: Client) -> bool:
        host = client.headers.get("host", "")
        if not self._guard.knows_host(host):
            shown = host[:100] if host.isprintable() else ""
            await client.refuse(
                403, f"the proxy is not called `{shown}`; `--allow-host` allows a name", "invalid_request_error"
            )
        elif not self.for_browsers and not self._guard.takes(client.headers, self._origins):
            shown = client.headers.get("origin", "")[:100] or "another site"
            message = f"pages of `{shown}` may not ask; `--cors` allows an origin"
            await client.refuse(403, message, "invalid_request_error")
        elif not self.is_open and not self._guard.admits(client.headers):
            headers = [("www-authenticate", 'Basic realm="octo proxy"')] if self.for_browsers else []
            message = self._guard.wants(client.headers)
            await client.refuse(401, message, "authentication_error", headers, "invalid_api_key")
        elif scope["method"] != self.method and not (scope["method"] == "HEAD" and self.method == "GET"):
            message = f"`{scope['path'][:200]}` takes `{self.method}`, not `{scope['method'][:20]}`"
            await client.refuse(405, message, "invalid_request_error", [("allow", self.method)], "method_not_allowed")
        else:
            return True
        return False


async def _not_found(scope: Scope, client: Client) -> None:
    what = f"{scope['method']} {scope['path']}"[:200]
    await client.refuse(404, f"there is no `{what}`", "invalid_request_error", code="not_found")


def _named(scope: Scope, client: Client) -> str:
    """The connector that the path or a header names."""
    return str(scope["path_params"].get("connector") or client.headers.get("x-octo-connector", "").strip())


class Calls(Door):
    """Requests to models."""

    method = "POST"

    async def answer(self, scope: Scope, client: Client, entry: Entry) -> None:
        try:
            body = await client.body()
        except TooLarge:
            size = BODY_LIMIT // 2**20
            await client.refuse(413, f"the body is longer than {size} MiB", "invalid_request_error")
            return
        path = scope["path"].rpartition("/v1/")[2]
        with self._doors.gateway.used() as gateway:
            relay = Relay(client, gateway, entry)
            work = asyncio.ensure_future(relay.answer(path, _named(scope, client), body))
            gone = asyncio.ensure_future(client.until_gone())
            closed = asyncio.ensure_future(self._doors.closed.wait())
            try:
                await asyncio.wait({work, gone, closed}, return_when=asyncio.FIRST_COMPLETED)
                if not work.done():
                    await _ended(work)
                    if gone.done():
                        raise Gone
                    await relay.fail(path, Stopping())
                else:
                    work.result()
            finally:
                await _ended(work, gone, closed)


async def _ended(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Lists(Door):
    """The list of models."""

    async def answer(self, scope: Scope, client: Client, entry: Entry) -> None:
        with self._doors.gateway.used() as gateway:
            reached = list(gateway.connectors.values())
            if named := _named(scope, client):
                try:
                    reached = [gateway.choose(named, "")[0]]
                except OctoError as error:
                    await client.refuse(404, error.message, "invalid_request_error", code="model_not_found")
                    return
            found, failed = await models(reached)
        await client.answer_json(200, found, [(IGNORED, ", ".join(failed))] if failed else [])


class Page(Door):
    """The page for people."""

    for_browsers = True

    async def answer(self, scope: Scope, client: Client, entry: Entry) -> None:
        url = f"{scope['scheme']}://{client.headers['host']}"
        text = page(self._doors.gateway, url, with_token=bool(self._guard.token))
        await client.answer(200, text.encode(), [("content-type", "text/html; charset=utf-8")])


class Described(Door):
    """The description for tools."""

    for_browsers = True

    async def answer(self, scope: Scope, client: Client, entry: Entry) -> None:
        connectors = self._doors.gateway.connectors
        await client.answer_json(200, description(octo.__version__, connectors, with_token=bool(self._guard.token)))


class Alive(Door):
    """Whether the proxy is there."""

    is_open = True
    for_browsers = True

    async def answer(self, scope: Scope, client: Client, entry: Entry) -> None:
        await client.answer(200, b"ok", [("content-type", "text/plain")])


class Nothing(Door):
    """What there is not."""

    async def answer(self, scope: Scope, client: Client, entry: Entry) -> None:
        await _not_found(scope, client)

    async def _may_enter(self, scope: Scope, client: Client) -> bool:
        return await super()._may_enter({**scope, "method": self.method}, client)
