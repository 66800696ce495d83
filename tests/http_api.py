"""An HTTP API on a loopback port whose answers are a function of the request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from vendor.server import Answer, Request, Server


def as_json(value: Any, status: int = 200, **headers: str) -> Answer:
    """An answer of JSON; `retry_after="1"` is the header `retry-after`."""
    return text(json.dumps(value), status, "application/json", **headers)


def text(content: str | bytes, status: int = 200, content_type: str = "text/plain", **headers: str) -> Answer:
    """An answer of any content."""
    lines = {"content-type": content_type, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return Answer(status, tuple(lines.items()), (content if isinstance(content, bytes) else content.encode(),))


def echo(request: Request) -> Answer:
    """What the API was asked for: method, path with query, and the body as text."""
    target = f"{request.path}?{request.query}" if request.query else request.path
    return as_json({"method": request.method, "target": target, "body": request.body.decode("latin-1")})


class Api(Server):
    """Answers with a function, by default with `echo`."""

    def __init__(self, script: Callable[[Request], Answer] = echo) -> None:
        super().__init__()
        self._script = script

    def answer(self, request: Request) -> Answer:
        return self._script(request)

    @property
    def host(self) -> str:
        return self.url.partition("://")[2]

    def headers(self, name: str) -> list[str | None]:
        """The value of a header in each request so far."""
        return [request.headers.get(name) for request in self.requests]


def in_turn(*answers: Answer) -> Callable[[Request], Answer]:
    """A script of answers, of which the last one is repeated."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]
