"""Declarative flows with LLM agents in them.

The names below are public, each imported on first use; everything else may change any day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from octo.block import Block, Chain, SubFlow, Takeover
    from octo.config.load import load
    from octo.config.model import Config
    from octo.connector import Connector, Source
    from octo.errors import (
        BlockError,
        ConfigError,
        ConnectorError,
        ExpressionError,
        OctoError,
        ProviderError,
        StoreError,
        UsageError,
    )
    from octo.fields import ConnectorName, Duration, Expression
    from octo.message import Dropped, Message
    from octo.observe import Event, Observer
    from octo.run import Run
    from octo.runtime import Runtime

_HOME = {
    "Block": "octo.block",
    "BlockError": "octo.errors",
    "Chain": "octo.block",
    "Config": "octo.config.model",
    "ConfigError": "octo.errors",
    "Connector": "octo.connector",
    "ConnectorError": "octo.errors",
    "ConnectorName": "octo.fields",
    "Dropped": "octo.message",
    "Duration": "octo.fields",
    "Event": "octo.observe",
    "Expression": "octo.fields",
    "ExpressionError": "octo.errors",
    "Message": "octo.message",
    "Observer": "octo.observe",
    "OctoError": "octo.errors",
    "ProviderError": "octo.errors",
    "Run": "octo.run",
    "Runtime": "octo.runtime",
    "Source": "octo.connector",
    "StoreError": "octo.errors",
    "SubFlow": "octo.block",
    "Takeover": "octo.block",
    "UsageError": "octo.errors",
    "load": "octo.config.load",
}

__version__ = "0.1.0"
__all__ = [
    "Block",
    "BlockError",
    "Chain",
    "Config",
    "ConfigError",
    "Connector",
    "ConnectorError",
    "ConnectorName",
    "Dropped",
    "Duration",
    "Event",
    "Expression",
    "ExpressionError",
    "Message",
    "Observer",
    "OctoError",
    "ProviderError",
    "Run",
    "Runtime",
    "Source",
    "StoreError",
    "SubFlow",
    "Takeover",
    "UsageError",
    "load",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module `octo` has no attribute `{name}`")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value
