"""What no single block can see: names that refer to something."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol, runtime_checkable

from octo.block import Finding
from octo.config.address import blocks, tools_of, walk
from octo.config.model import Config
from octo.config.pricing import key_fault
from octo.connector import Source


@runtime_checkable
class HasTools(Protocol):
    """An agent."""

    def check_tools(self, config: Config) -> Iterator[Finding]:
        """What is wrong with its tools; paths are below the agent."""


def check(config: Config) -> Iterator[tuple[tuple[str | int, ...], Finding]]:
    """Everything that is wrong with a config as a whole, each finding with the path of the block it is below."""
    for index, flow in enumerate(config.flows):
        if flow.source is None and not flow.name:
            yield ("flows", index), Finding("a flow without a source requires a name", hint="add `name:`")
        if flow.source is not None:
            yield from ((("flows", index, "source"), finding) for finding in _check_source(flow.source, config))
    for index, connector in enumerate(config.connectors):
        yield from ((("connectors", index), finding) for finding in connector.check(config))
    categories = {connector.instance: connector.category for connector in config.connectors}
    for key in config.ai_pricing:
        if fault := key_fault(key, categories):
            yield ("aiPricing",), Finding(fault[0], (key,), fault[1])
    for _, block in blocks(config):
        for finding in block.check(config):
            yield block.place.path, finding
    yield from check_tools(config)


def check_tools(config: Config) -> Iterator[tuple[tuple[str | int, ...], Finding]]:
    """What is wrong with the tools of declared agents; what is wrong with blocks in them harms no more than a call."""
    for declared in config.declared_agents:
        agent: object = declared.agent
        if isinstance(agent, HasTools):
            yield from ((declared.path, finding) for finding in agent.check_tools(config))
        for branch in tools_of(declared):
            for block in walk(branch.chain):
                yield from ((block.place.path, replace(finding, warning=True)) for finding in block.check(config))


def _check_source(source: Source, config: Config) -> Iterator[Finding]:
    connector = source.implied or config.connector(source.instance)
    if connector is not None and source.asked not in ("", source.instance, connector.type):
        message = f'source connector "{source.asked}" is not configured, `{source.instance}` is used'
        yield Finding(message, ("connector",), f"write `connector: {source.instance}`", warning=True)
