"""What `octo run` does: the admin port and the services around it, and one generation of the config after another."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import octo
from octo import server
from octo.admin import Status, admin_app
from octo.config.address import find
from octo.config.load import load
from octo.errors import OctoError, UsageError
from octo.metrics import Metrics
from octo.services.standalone import standalone
from octo_cli import diagnostics, logs, options, output, recording, watching
from octo_cli.progress import FlowLog
from octo_cli.session import Session
from octo_cli.startup import NotWritten

if TYPE_CHECKING:
    from octo.budget import Limits
    from octo.config.model import Config
    from octo.observe import Observer
    from octo.runlog.recorder import Recorder
    from octo.store.store import Store

WAITING: Final = "config cannot run, waiting for it to change"


@dataclass(frozen=True, slots=True)
class Admin:
    """What the admin port is to be."""

    address: str
    """Empty for no admin port."""
    metrics: bool
    metrics_blocks: str
    """Addresses of blocks to count; empty for none, `*` for all."""


class Program:
    """A config that serves until it is cancelled. With `watch`, it is loaded anew whenever it changes."""

    def __init__(
        self,
        session: Session,
        config: Path,
        store: Store,
        admin: Admin,
        *,
        watch: bool,
        recorder: Recorder | None = None,
        recorded_blocks: str = "*",
        limits: Limits | None = None,
        drafts: bool = False,
        values: bool = True,
    ) -> None:
        """`limits` are what each message may spend on its way.

        With `drafts`, agents run as drafts of the user, and with `values` the records of runs hold these.
        """
        self._session = session
        self._config = config
        self._store = store
        self._admin = admin
        self._watch = watch
        self._recorder = recorder
        self._recorded_blocks = recorded_blocks
        self._limits = limits
        self._drafts = drafts
        self._values = values
        self._status = Status()
        self._metrics = Metrics(with_blocks=bool(admin.metrics_blocks)) if admin.metrics else None
        self._services = standalone(store, clock=time.time_ns, mask=session.masked)
        self._loaded: Config | None = None
        self._read: set[Path] = set()
        """Files beside the config that matter to it."""
        self._seen: watching.State = {}
        """What the files were when they were read."""
        self._reloading = False

    async def run(self) -> None:
        """Serve until cancelled. Without `watch`, raises OctoError when the config cannot run."""
        async with AsyncExitStack() as hosted:
            await self._open_admin_port(hosted)
            try:
                await (self._generations() if self._watch else self._generation())
            finally:
                self._status.state = "stopped"
                self._log("info", "stopped")

    async def _open_admin_port(self, hosted: AsyncExitStack) -> None:
        if not self._admin.address:
            return
        if hint := server.missing():
            self._log("info", "there is no admin port without the extra `server`", hint=hint)
            return
        app = admin_app(self._status, self._metrics, version=octo.__version__)
        try:
            port = await hosted.enter_async_context(server.serving(app, self._admin.address))
        except OctoError as error:
            self._log("warn", f"there is no admin port: {error.message}", hint=error.hint)
        else:
            self._log("info", "admin port open", port=str(port))

    # ------------------------------------------------------------ generations

    async def _generations(self) -> None:
        while True:
            self._seen = self._look()
            generation = asyncio.create_task(self._generation_or_report())
            try:
                await watching.until_changed(self._look, self._seen)
                self._log("info", "config changed, loading it anew")
                self._status.state, self._reloading = "reloading", True
            finally:
                await _ended(generation)
                self._reloading = False

    async def _generation_or_report(self) -> None:
        try:
            await self._generation()
        except OctoError as error:
            diagnostics.show(self._session, error, WAITING)
        except Exception as error:  # a fault of ours; the next change may go around it
            diagnostics.crash(self._session, error)
        self._status.state = "reloading"

    async def _generation(self) -> None:
        session = self._session
        try:
            loaded = load(self._config, environ=session.environ, read=self._read)
        finally:
            watching.add(self._look(), self._seen)
        session.mask = loaded.environment.mask
        self._loaded = loaded
        for warning in loaded.warnings:
            diagnostics.warn(session, warning)
        observers = self._observers(loaded)
        sizes = {"flows": len(loaded.flows), "connectors": len(_instances(loaded))}
        self._log("info", "starting runtime", version=octo.__version__, **sizes)
        runtime = octo.Runtime(
            loaded,
            serving=True,
            store=self._store,
            services=self._services,
            observers=observers,
            outputs=output.lines(session),
            limits=self._limits,
            drafts_of=options.drafts_of(session, self._drafts),
        )
        async with runtime:
            if not self._drafts:
                await self._tell_drafts(loaded)
            await runtime.serve(ready=lambda: self._ready(sizes), stopping=self._stopping)

    async def _tell_drafts(self, config: Config) -> None:
        """Say which drafts the user may think are in use."""
        from octo.agent import links

        names = {link.name for _, link in links.of(config)}
        if not names:
            return
        for name, base in await links.drafts(self._store, options.drafts_of(self._session, True)):
            if name in names:
                begun = f"v{base}" if base is not None else None
                self._log("info", "an agent has a draft, which is not used", agent=name, base=begun)

    def _observers(self, config: Config) -> list[Observer]:
        observers: list[Observer] = [FlowLog(self._session)]
        if self._metrics is not None:
            self._metrics.blocks = _addresses("--metrics-blocks", self._admin.metrics_blocks, config)
            self._metrics.declare(config, len(_instances(config)))
            observers.append(self._metrics)
        if self._recorder is not None:
            self._recorder.blocks = _addresses("--traces-blocks", self._recorded_blocks, config)
            observers.append(self._recorder)
        return [*observers, *recording.keeping(self._session, config, self._store, values=self._values)]

    def _ready(self, sizes: dict[str, int]) -> None:
        self._status.state = "ready"
        counts = ", ".join(
            f"{number} {noun.removesuffix('s') if number == 1 else noun}" for noun, number in sizes.items()
        )
        with suppress(NotWritten):  # flows run, whether or not anybody reads that
            output.text(self._session, f"octo {octo.__version__} is ready: {counts}")

    def _stopping(self) -> None:
        self._status.state = "reloading" if self._reloading else "draining"
        self._log("info", "sources stop, messages that were accepted are finished")

    def _look(self) -> watching.State:
        environ = self._session.environ
        files = {Path(".env"), *self._read}
        if environ.get("OCTO_ENV_FILE"):
            files.add(Path(environ["OCTO_ENV_FILE"]))
        if self._loaded is not None:  # templates may be read while flows run
            files.update(self._loaded.root / name for name in self._loaded.templates)
        return watching.state(self._config, files)

    def _log(self, level: str, text: str, **fields: str | int | None) -> None:
        logs.write(self._session, level, text, fields)


async def _ended(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end, also when this is cancelled meanwhile."""
    task.cancel()
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _instances(config: Config) -> set[str]:
    """Names of the connectors that are open while a config serves."""
    sources = (flow.source.instance for flow in config.flows if flow.source is not None)
    return {*(connector.instance for connector in config.connectors), *sources}


def _addresses(option: str, text: str, config: Config) -> frozenset[str] | None:
    """The addresses of the blocks that an option names; None for all of them."""
    if text.strip() == "*":
        return None
    found = set()
    for name in filter(None, map(str.strip, text.split(","))):
        try:
            found.add(find(config, name).address)
        except UsageError as error:
            raise UsageError(f"`{option}`: `{name}`: {error.message}", hint=error.hint) from error
    return frozenset(found)
