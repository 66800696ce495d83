"""The connectors that clients of the proxy reach, and which of them a request is for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from octo.config.pricing import Rates
from octo.errors import OctoError, near
from octo.llm.chat import ChatModel
from octo.llm.failover import Failover
from octo.llm.model import HttpModel


class NoConnector(OctoError):
    """A request is for no connector, or for one that does not exist."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Stopping(OctoError):
    """The proxy ends, and with it what is not answered yet."""

    def __init__(self) -> None:
        super().__init__("the proxy is stopped")


@dataclass(frozen=True, slots=True)
class Reached:
    """A connector with its model, open."""

    name: str
    type: str
    model: ChatModel

    @property
    def alone(self) -> ChatModel:
        """The model without those that stand in for it: a client chooses by itself."""
        return self.model.alone if isinstance(self.model, Failover) else self.model

    @property
    def default_model(self) -> str:
        """The model of a request that names none."""
        alone: Any = self.alone
        return str(alone.model) if hasattr(alone, "model") else ""

    @property
    def http(self) -> HttpModel | None:
        """The model, if it is behind an HTTP API."""
        return self.alone if isinstance(self.alone, HttpModel) else None


@dataclass(frozen=True, slots=True)
class Gateway:
    """The connectors of one config. `default` is the one of a request that says nothing; it may be empty."""

    connectors: Mapping[str, Reached]
    default: str = ""
    prices: Mapping[str, Rates] = field(default_factory=dict)
    """The rates of the config."""
    _busy: set[object] = field(default_factory=set)
    _left: asyncio.Event = field(default_factory=asyncio.Event)

    def choose(self, named: str, model: str) -> tuple[Reached, str]:
        """The connector that is named, else the one before the slash of a model, else the default, else the only one.

        Gives the name of the model as the connector takes it, too. Raises NoConnector.
        """
        if named:
            if named in self.connectors:
                return self.connectors[named], model.removeprefix(f"{named}/") or model
            raise self._unknown(named)
        name, slash, rest = model.partition("/")
        if slash and rest and name in self.connectors:
            return self.connectors[name], rest
        if self.default:
            return self.connectors[self.default], model
        if len(self.connectors) == 1:
            return next(iter(self.connectors.values())), model
        if slash and name:
            raise self._unknown(name)
        known = ", ".join(f"`{name}`" for name in self.connectors)
        raise NoConnector(f"no connector is named: write `NAME/MODEL` as the model, with NAME one of {known}", 400)

    def _unknown(self, name: str) -> NoConnector:
        close = near(name, list(self.connectors))
        known = ", ".join(f"`{one}`" for one in self.connectors)
        hint = f"did you mean `{close}`?" if close else f"there are {known}"
        return NoConnector(f"there is no connector `{name}`: {hint}", 404)

    @contextmanager
    def used(self) -> Iterator[Gateway]:
        """While a request is answered."""
        request = object()
        self._busy.add(request)
        try:
            yield self
        finally:
            self._busy.discard(request)
            if not self._busy:
                self._left.set()

    @property
    def busy(self) -> bool:
        """Whether requests are being answered."""
        return bool(self._busy)

    async def until_unused(self) -> None:
        """Wait for the requests that are being answered."""
        while self.busy:
            self._left.clear()
            await self._left.wait()


@dataclass(slots=True)
class Doors:
    """Leads each new request to the gateway of the config as it is now."""

    gateway: Gateway
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the proxy ends: requests that are not answered yet fail."""
