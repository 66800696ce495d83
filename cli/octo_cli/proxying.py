"""What `octo proxy` does: one server, and behind it one generation of the config after another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import octo
from octo import server
from octo.chat_connector import ChatConnector
from octo.config.load import load
from octo.errors import OctoError, UsageError, did_you_mean
from octo.llm.chat import ChatModel
from octo.llm.transport import TIME_LIMIT
from octo.proxy.access import Entry
from octo.proxy.app import proxy_app
from octo.proxy.gateway import Doors, Gateway, Reached
from octo.proxy.guard import guard_of
from octo.runlog.background import ROOM
from octo_cli import diagnostics, logs, output, recording, watching
from octo_cli.session import Session

if TYPE_CHECKING:
    from octo.config.model import Config
    from octo.runlog.recorder import Sink

SECONDS: Final = "3600"
"""What one call may take when the environment does not say it: clients have limits of their own."""
KEPT: Final = "config cannot be used, the one before it stays in force"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asks for."""

    config: Path
    listen: str
    connector: str = ""
    token: str = field(default="", repr=False)
    hosts: Sequence[str] = ()
    cors: Sequence[str] = ()
    log: Path | None = None


class ProxyProgram:
    """Serves the models of a config until it is cancelled; the config is loaded anew whenever it changes."""

    def __init__(self, session: Session, wanted: Wanted) -> None:
        self._session = session
        self._wanted = wanted
        self._read: set[Path] = set()
        self._serving: list[asyncio.Task[None]] = []
        """What keeps the connectors of the config open as it is now."""
        self._closing: set[asyncio.Task[None]] = set()
        self._records: Sink | None = None
        self._last = 0
        """The number of the last record."""

    async def run(self) -> None:
        """Raises OctoError when the config cannot be used, or the address is not to be had."""
        log = self._wanted.log
        with recording.appending(self._session, log, room=ROOM, alone=True) if log else nullcontext() as records:
            if records is not None:
                self._records, self._last = records
            await self._serve()

    async def _serve(self) -> None:
        wanted = self._wanted
        seen = self._look()
        gateway, generation = await self._generation()
        self._serving.append(generation)
        doors = Doors(gateway)
        host, _ = server.split_address(wanted.listen)
        guard = guard_of(host, wanted.hosts, wanted.token)
        app = proxy_app(doors, guard, self._tell, cors=wanted.cors)
        ready = False
        try:
            async with server.serving(app, wanted.listen) as port:
                ready = True
                address = f"http://{f'[{host}]' if ':' in host else host or 'localhost'}:{port}"
                output.text(self._session, f"octo {octo.__version__} is ready: {address}/v1")
                try:
                    await self._follow(doors, seen)
                finally:  # what is not answered by then is told so, before its connection is cut
                    asyncio.get_running_loop().call_later(server.GRACE - 1, doors.closed.set)
        finally:
            await _ended([*self._serving, *self._closing])
            if ready:
                self._log("info", "stopped")

    async def _follow(self, doors: Doors, seen: watching.State) -> None:
        """Load the config anew whenever it changes; never ends by itself."""
        while True:
            await watching.until_changed(self._look, seen)
            seen = self._look()
            self._log("info", "config changed, loading it anew")
            try:
                gateway, following = await self._generation()
            except OctoError as error:
                diagnostics.show(self._session, error, KEPT)
                continue
            except Exception as error:  # a fault of ours; the next change may go around it
                diagnostics.crash(self._session, error)
                continue
            doors.gateway, before = gateway, doors.gateway
            self._retire(before, self._serving.pop())
            self._serving.append(following)

    # ------------------------------------------------------------ generations

    async def _generation(self) -> tuple[Gateway, asyncio.Task[None]]:
        """Load the config and open its connectors; they stay open until the task is cancelled."""
        session = self._session
        environ = session.environ if session.environ.get(TIME_LIMIT) else {**session.environ, TIME_LIMIT: SECONDS}
        loaded = load(self._wanted.config, environ=environ, read=self._read)
        session.mask = loaded.environment.mask
        for warning in loaded.warnings:
            diagnostics.warn(session, warning)
        config = self._with_models_only(loaded)
        opened: asyncio.Future[Gateway] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._open(config, opened))
        either: set[asyncio.Future[Any]] = {task, opened}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            await task
        return opened.result(), task

    async def _open(self, config: Config, opened: asyncio.Future[Gateway]) -> None:
        async with octo.Runtime(config) as runtime:
            reached = {
                one.instance: Reached(one.instance, one.type, runtime.live(one.instance, ChatModel))  # type: ignore[type-abstract]  # never instantiated
                for one in config.connectors
            }
            opened.set_result(Gateway(reached, self._wanted.connector, config.ai_pricing))
            await asyncio.Event().wait()

    def _with_models_only(self, config: Config) -> Config:
        """The config without what nobody asks the proxy for. Raises UsageError when nothing is left."""
        connectors = tuple(one for one in config.connectors if isinstance(one, ChatConnector))
        names = [one.instance for one in connectors]
        if not names:
            raise UsageError(
                f"{self._wanted.config} has no connector to a model",
                hint="declare one of a type `llm-…` under `connectors`",
            )
        if self._wanted.connector and self._wanted.connector not in names:
            hint = (
                did_you_mean(self._wanted.connector, names) or f"there are {', '.join(f'`{name}`' for name in names)}"
            )
            raise UsageError(f"`--connector`: there is no connector `{self._wanted.connector}` to a model", hint=hint)
        return config.model_copy(update={"connectors": connectors, "flows": ()})

    def _retire(self, gateway: Gateway, generation: asyncio.Task[None]) -> None:
        """Close the connectors of a config that was replaced, once its last request is answered."""

        async def close() -> None:
            try:
                await gateway.until_unused()
            finally:
                await _ended([generation])

        task = asyncio.create_task(close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _look(self) -> watching.State:
        files = {Path(".env"), *self._read}
        if self._session.environ.get("OCTO_ENV_FILE"):
            files.add(Path(self._session.environ["OCTO_ENV_FILE"]))
        return watching.state(self._wanted.config, files)

    # ------------------------------------------------------------ log

    def _tell(self, entry: Entry) -> None:
        """One line for each request, and one record."""
        fields = {
            "route": entry.route,
            "connector": entry.connector or None,
            "model": entry.model or None,
            "status": str(entry.status),
            "inputTokens": entry.input_tokens,
            "outputTokens": entry.output_tokens,
            "costUSD": entry.usage.cost_usd,
            "ms": round(entry.seconds * 1000),
            "broken": entry.broken or None,
        }
        self._log("info", "request", **fields)
        if self._records is not None:
            self._last += 1
            self._records(entry.record(self._last, time.time_ns()).masked(self._session.masked))

    def _log(self, level: str, text: str, **fields: str | int | float | None) -> None:
        logs.write(self._session, level, text, fields)


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
