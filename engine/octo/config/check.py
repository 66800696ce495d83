"""What no single block can see: names that refer to something."""

from __future__ import annotations

from collections.abc import Iterator

from octo.block import Block, Finding
from octo.config.address import blocks
from octo.config.model import Config
from octo.connector import Connector
from octo.errors import did_you_mean
from octo.fields import ConnectorName


def check(config: Config) -> Iterator[tuple[tuple[str | int, ...], Finding]]:
    """Everything that is wrong with a config as a whole, each finding with the path of the block it is below."""
    for index, flow in enumerate(config.flows):
        if not flow.name:
            yield ("flows", index), Finding("a flow without a source requires a name", hint="add `name:`")
    for _, block in blocks(config):
        for finding in (*_connectors(block, config), *block.check(config)):
            yield block.place.path, finding


def _connectors(block: Block, config: Config) -> Iterator[Finding]:
    for key, name in block.yaml_keys().items():
        value = getattr(block, name)
        if not isinstance(value, ConnectorName):
            continue
        connector = config.connector(value)
        if connector is None:
            known = [candidate.instance for candidate in config.connectors]
            hint = did_you_mean(value, known) or "declare it under `connectors`"
            yield Finding(f'{block.type}: connector "{value}" is not configured', (key,), hint)
        elif not _fits(connector, value):
            fitting = [other.instance for other in config.connectors if _fits(other, value)]
            kind = value.type or value.category
            wanted = f"type `{kind}`" if value.type else f"an `{kind}-…` type"
            yield Finding(
                f'{block.type}: connector "{value}" is a `{connector.type}`, which is no {kind} connector',
                (key,),
                did_you_mean(value, fitting) or f"declare a connector of {wanted}",
            )


def _fits(connector: Connector, name: ConnectorName) -> bool:
    return name.category in ("", connector.category) and name.type in ("", connector.type)
