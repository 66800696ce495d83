"""What no single block can see: names that refer to something."""

from __future__ import annotations

from collections.abc import Iterator

from octo.block import Finding
from octo.config.address import blocks
from octo.config.model import Config


def check(config: Config) -> Iterator[tuple[tuple[str | int, ...], Finding]]:
    """Everything that is wrong with a config as a whole, each finding with the path of the block it is below."""
    for index, flow in enumerate(config.flows):
        if not flow.name:
            yield ("flows", index), Finding("a flow without a source requires a name", hint="add `name:`")
    for _, block in blocks(config):
        for finding in block.check(config):
            yield block.place.path, finding
