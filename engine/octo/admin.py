"""The admin port: whether a program is alive, whether it is ready, and what it counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from octo.metrics import CONTENT_TYPE, Metrics

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

State: TypeAlias = Literal["starting", "ready", "reloading", "draining", "stopped"]


@dataclass(slots=True)
class Status:
    """How far a program is."""

    state: State = "starting"


def admin_app(status: Status, metrics: Metrics | None, *, version: str) -> Starlette:
    """What answers on the admin port. Raises ImportError without the extra `server`."""
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("ok")

    async def readyz(request: Request) -> Response:
        return PlainTextResponse(status.state, status_code=200 if status.state == "ready" else 503)

    async def counted(request: Request) -> Response:
        if metrics is None:
            return PlainTextResponse("metrics are off, `--metrics` turns them on", status_code=404)
        text = metrics.text(version=version, ready=status.state == "ready")
        return PlainTextResponse(text, headers={"content-type": CONTENT_TYPE})

    async def index(request: Request) -> Response:
        paths = ["/healthz", "/readyz", *(["/metrics"] if metrics is not None else [])]
        return PlainTextResponse("".join(f"{path}\n" for path in paths))

    answers = {"/": index, "/healthz": healthz, "/readyz": readyz, "/metrics": counted}
    return Starlette(routes=[Route(path, answer) for path, answer in answers.items()])
