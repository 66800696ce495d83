"""What connectors to models have in common: others that stand in for them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator

from octo.block import Finding
from octo.connector import Connector
from octo.fields import LlmName

if TYPE_CHECKING:
    from octo.config.model import Config
    from octo.llm.chat import ChatModel
    from octo.runtime import Runtime


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class ChatConnector(Connector, category="llm"):
    """A connector to a model."""

    reports_cost: ClassVar[bool] = False
    """Whether its answers tell what they cost."""

    fallback: Annotated[
        tuple[LlmName, ...], BeforeValidator(_listed, json_schema_input_type=LlmName | tuple[LlmName, ...])
    ] = ()
    """Other connectors of `llm-*` types, which are asked in this order when this one cannot answer.

    That is so when its provider cannot be reached, is overloaded or fails, limits the rate, or refuses the key; not
    when it refuses the request itself. It is not asked again for a minute. Once a tool has run that is not marked
    `idempotent`, an agent stays with the connector that answered last.
    """

    @property
    def embeds(self) -> bool:
        """Whether it gives vectors of texts."""
        return False

    @property
    def reads_files(self) -> bool:
        """Whether its model reads anything but text."""
        return True

    def knows_web_search(self, model: str) -> bool:
        """Whether a model can search the web by itself; empty is the connector's own."""
        return False

    def check(self, config: Config) -> Iterator[Finding]:
        if "/" in self.instance:
            yield Finding(
                f'clients of `octo proxy` cannot name the connector "{self.instance}" before a model: '
                "the name ends there at the first `/`",
                ("name",),
                "give it a name without `/`",
                warning=True,
            )
        if (cycle := self._cycle(config)) and min(cycle) == self.instance:
            shown = " → ".join(f"`{name}`" for name in (*cycle, cycle[0]))
            yield Finding(f"connectors stand in for one another in a circle: {shown}", ("settings", "fallback"))

    def _cycle(self, config: Config) -> tuple[str, ...]:
        """The way along `fallback` from this connector back to it, if there is one."""
        ways: list[tuple[str, ...]] = [(self.instance,)]
        seen: set[str] = set()
        while ways:
            way = ways.pop()
            for name in stand_ins(config, way[-1]):
                if name == self.instance:
                    return way
                if name not in seen:
                    seen.add(name)
                    ways.append((*way, name))
        return ()

    def connect(self, runtime: Runtime) -> AbstractAsyncContextManager[ChatModel]:
        """Open the model of this connector alone. Raises ConnectorError."""
        raise TypeError(f"connector type `{self.type}` has no connect method")

    @asynccontextmanager
    async def open(self, runtime: Runtime) -> AsyncIterator[ChatModel]:
        async with self.connect(runtime) as model:
            if not self.fallback:
                yield model
                return
            from octo.llm.failover import Failover

            models: dict[str, Callable[[], ChatModel]] = {self.instance: lambda: model}
            waiting = [*self.fallback]
            while waiting:
                name = waiting.pop(0)
                if name not in models:
                    models[name] = partial(_alone, runtime, name)
                    waiting = [*stand_ins(runtime.config, name), *waiting]
            yield Failover(models, clock=runtime.clock)


def stand_ins(config: Config, name: str) -> tuple[LlmName, ...]:
    """The connectors that stand in for one, nearest first."""
    connector = config.connector(name)
    return connector.fallback if isinstance(connector, ChatConnector) else ()


def _alone(runtime: Runtime, name: str) -> ChatModel:
    """The model of a connector, without those that stand in for it."""
    from octo.llm.chat import ChatModel
    from octo.llm.failover import Failover

    live = runtime.live(name, ChatModel)  # type: ignore[type-abstract]  # never instantiated
    return live.alone if isinstance(live, Failover) else live
