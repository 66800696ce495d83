"""A config with its connectors open, ready to take messages."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, nullcontext
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from octo import cel, registry
from octo.block import Takeover
from octo.config.address import blocks
from octo.config.model import Config, Flow
from octo.connector import Connector
from octo.errors import ConnectorError, Location, OctoError, UsageError, did_you_mean
from octo.message import Message
from octo.observe import Event, LogLine, Observer
from octo.pool import SIZE, Pool
from octo.run import Run
from octo.store.store import Store
from octo.values import Json, clone

if TYPE_CHECKING:
    from octo.budget import Limits
    from octo.doubles import Stage
    from octo.services.base import Services

T = TypeVar("T")


def random_id() -> str:
    """32 lowercase hex digits."""
    from secrets import token_hex

    return token_hex(16)


class Runtime:
    """Opens what a config declares, in order, and closes it in reverse.

    Time, identity and randomness come from outside, so that a run can be replayed: `clock` gives nanoseconds since
    1970, `new_id` the ids of messages, `random` so many bytes. What it keeps goes to `store`; without one it is kept
    in memory and ends with the runtime. `outputs` takes the lines that logs write to `stdout` and `stderr`.

    `limits` caps what one invocation may spend on models. With `streaming`, observers hear of the answers of agents
    while they come.

    Agents that blocks link are looked up in the store, those of `declared_agents` before it: what the config declares
    and the store could not take. With `drafts_of`, the drafts of that user count before what is deployed.

    With `serving`, flows take messages from their sources as soon as `serve` is called. Without, every flow is called
    by its name, and what only sources need is not opened.
    """

    def __init__(
        self,
        config: Config,
        *,
        store: Store | None = None,
        serving: bool = False,
        services: Services | None = None,
        stage: Stage | None = None,
        observers: Sequence[Observer] = (),
        outputs: Mapping[str, Callable[[str], object]] = MappingProxyType({}),
        limits: Limits | None = None,
        streaming: bool = False,
        declared_agents: Mapping[str, dict[str, Json]] = MappingProxyType({}),
        drafts_of: str = "",
        clock: Callable[[], int] = time.time_ns,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        new_id: Callable[[], str] = random_id,
        random: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.config = config
        self.store = store or Store()
        self.serving = serving
        self.stage = stage
        """The doubles of the call, if it has any."""
        self.outputs = outputs
        self.streaming = streaming
        self.declared_agents = declared_agents
        self.drafts_of = drafts_of
        self.kept: dict[object, Any] = {}
        """What is worked out once and serves all runs; each owner has its key."""
        self.clock = clock
        self.sleep = sleep
        """Waits so many seconds of that clock."""
        self.new_id = new_id
        self.surroundings = cel.Surroundings(random, config.templates.render)
        """What functions of expressions reach beyond their arguments."""
        self._services = services
        self._limits = limits
        self._observers = tuple(observers)
        self._listeners: dict[type[Event], tuple[Observer, ...]] = {}
        self._live: dict[str, object] = {}
        self._pools: dict[str, Pool] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()
        self._broken = False
        self._owns_store = store is None
        self._stack = AsyncExitStack()
        self.breathed = time.perf_counter()
        """When the event loop last had a turn, as far as the runs know."""

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            if self._owns_store:
                stack.callback(self.store.close)
            for observer in self._observers:
                if isinstance(observer, AbstractAsyncContextManager):
                    await stack.enter_async_context(observer)
            if self.config.declared_agents:
                self.declared_agents = {**self.declared_agents, **await registry.keep_agents()(self)}
            if any(getattr(block, "link", None) for _, block in blocks(self.config)):
                await registry.check_pins()(self)
            sources = [flow.source for flow in self.config.flows if flow.source is not None]
            listened_to = {source.instance for source in sources}
            for index, connector in enumerate(self.config.connectors):
                if connector.instance in listened_to and not self.serving:
                    self.log("info", f'connector "{connector.instance}" is not started, for flows have it as source')
                    continue
                await self._open(connector, stack, self.config.origin.locate(("connectors", index)))
            for source in sources if self.serving else ():
                if source.implied is not None and source.instance not in self._live:
                    await self._open(source.implied, stack)
            self._stack = stack.pop_all()
        self._start_background()
        return self

    async def _open(self, connector: Connector, stack: AsyncExitStack, location: Location | None = None) -> None:
        try:
            opening = self.stage.opening(connector) if self.stage else connector
            self._live[connector.instance] = await stack.enter_async_context(opening.open(self))
        except OctoError as error:
            raise ConnectorError(
                f'connector "{connector.instance}" ({connector.type}): {error.message}',
                hint=error.hint,
                location=error.location or location,
            ) from error

    def _start_background(self) -> None:
        for flow in self.config.flows:
            for block in (*flow.process, *(flow.error or ())):
                work = block.background(self) if isinstance(block, Takeover) else None
                if work is not None:
                    self.spawn(work)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        try:
            if error is not None:
                self._broken = True
                for task in self._tasks:
                    task.cancel()
            await self._finish()
        finally:
            await self._stack.aclose()

    async def _finish(self) -> None:
        """Wait for what is done beside the flows; what would go on for ever is told to end."""
        self._closing.set()
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def serve(
        self, *, ready: Callable[[], object] = lambda: None, stopping: Callable[[], object] = lambda: None
    ) -> None:
        """Let flows take messages from their sources until cancelled; then finish what they have accepted.

        `ready` is called as soon as all of them listen, `stopping` before they stop. Raises OctoError when a source
        cannot go on. To be cancelled once more is to give up the work that is under way.
        """
        from octo.intake import Intake

        async with AsyncExitStack() as started:
            started.push_async_callback(self._finish)
            intakes = [Intake(self, flow) for flow in self.config.flows if flow.source is not None]
            for intake in intakes:
                await started.enter_async_context(intake)
            started.callback(stopping)
            ready()
            await self._while_listening([intake.listening for intake in intakes])

    async def _while_listening(self, sources: Sequence[asyncio.Task[None]]) -> None:
        done: set[asyncio.Task[None]] = set()
        if sources:
            done, _ = await asyncio.wait(sources, return_when=asyncio.FIRST_EXCEPTION)
        for source in done:
            source.result()
        await asyncio.Event().wait()

    def message(
        self, body: Json = None, *, vars: dict[str, Json] | None = None, content_type: str | None = None
    ) -> Message:
        """A new message. With a content type the body is text, taken as raw content of that type."""
        message = Message(body, vars, event_id=self.new_id())
        if content_type is not None:
            message.set_raw(content_type, body if isinstance(body, str) else "")
        return message

    async def invoke(
        self,
        flow: str,
        body: Json = None,
        *,
        vars: dict[str, Json] | None = None,
        content_type: str | None = None,
        memory_id: str = "",
    ) -> Message:
        """Call a flow from outside. `memory_id` says which memory its agents are to go on with; blank for none.

        Returns the message that came out. Raises Dropped when the flow filtered it out, UsageError for a flow
        that does not exist, OctoError when the flow failed.
        """
        message = self.message(clone(body), vars=vars, content_type=content_type)
        called = self.flow(flow)
        run = Run(self, flow, memory_id=memory_id)
        with self.budgeted():
            return await run.through(called, message)

    def budgeted(self) -> AbstractContextManager[object]:
        """What one message that comes in may spend on its way, where that is limited."""
        if self._limits is None:
            return nullcontext()
        from octo.budget import opened

        return opened(self._limits)

    def flow(self, name: str) -> Flow:
        """The flow of that name; raises UsageError with a near miss."""
        found = self.config.flow(name)
        if found is None:
            names = [candidate.name for candidate in self.config.flows if candidate.name]
            raise UsageError(f'flow "{name}" is not registered', hint=did_you_mean(name, names) or "declare it")
        return found

    def callee(self, name: str) -> Flow | None:
        """The flow of that name, if other flows may call it: not one that takes messages from a source."""
        flow = self.config.flow(name)
        return None if flow is not None and flow.source is not None and self.serving else flow

    @cached_property
    def services(self) -> Services:
        """What the surroundings provide; without any, made when a block first asks for it."""
        if self._services is not None:
            return self._services
        from octo.services.standalone import standalone

        return standalone(self.store, clock=self.clock, mask=self.config.environment.mask)

    def live(self, name: str, kind: type[T]) -> T:
        """The live thing of a connector instance."""
        found = self._live.get(name)
        if found is None:
            raise OctoError(f'connector "{name}" is not open')
        return found  # type: ignore[return-value]  # the config was checked to name a connector of the right category

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do something beside the flow; the runtime waits for it before it closes.

        Raises OctoError when the runtime is being torn down, for then nothing would wait for the work.
        """
        if self._broken:
            work.close()
            raise OctoError("the runtime is closing and takes no more work")
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    async def pause(self, seconds: float) -> bool:
        """Wait, in work beside the flow; false as soon as the runtime closes."""
        try:
            async with asyncio.timeout(seconds):
                await self._closing.wait()
        except TimeoutError:
            return True
        return False

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.log("error", f"internal error: {error!r}")

    def pool(self, flow: str) -> Pool:
        """The pool of a flow, which all its messages share."""
        found = self._pools.get(flow)
        if found is None:
            size = next((declared.pool for declared in self.config.flows if declared.title == flow), 0)
            found = self._pools[flow] = Pool(size if size > 0 else SIZE)
        return found

    async def breathe(self) -> None:
        """Let the event loop have a turn: what came due is called in the first, and takes effect in the second."""
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.breathed = time.perf_counter()

    def listeners(self, kind: type[Event]) -> tuple[Observer, ...]:
        """Who wants events of a kind."""
        found = self._listeners.get(kind)
        if found is None:
            found = tuple(observer for observer in self._observers if kind in observer.kinds)
            self._listeners[kind] = found
        return found

    def emit(self, event: Event) -> None:
        """Tell the observers of an event."""
        for observer in self.listeners(type(event)):
            observer.notify(event)

    def log(self, level: str, text: str, **fields: Json) -> None:
        """Write a line to the process log, outside of any run."""
        self.emit(LogLine("", "", level, text, fields))
