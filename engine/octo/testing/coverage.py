"""Which blocks, branches, tools, error and default paths of a config the cases reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from octo.block import Block, Branch, Chain, branches_of
from octo.config.address import place_in
from octo.config.document import Path as Keys
from octo.config.model import Config
from octo.errors import Location

Kind: TypeAlias = Literal["flow", "block", "branch", "tool", "error path", "default path"]

Locate: TypeAlias = Callable[[Keys], Location]
"""Finds the place in a file for the place of a block."""

KINDS: Final[tuple[Kind, ...]] = ("flow", "block", "branch", "tool", "error path", "default path")


@dataclass(frozen=True, slots=True)
class Part:
    """Something that a message may reach: a block, or a chain with at least one block."""

    kind: Kind
    address: str
    keys: Keys
    """Of the block; of a chain those of its first block."""
    location: Location


@dataclass
class Coverage:
    """What the cases that call one config have reached."""

    path: Path
    """Of the config."""
    config: Config
    reached: set[Keys] = field(default_factory=set)
    """The blocks that were run, by their places; one that is mocked counts."""
    mocked: set[Keys] = field(default_factory=set)
    """Those of them for which only mocks were run."""

    def reach(self, reached: Set[Keys], mocked: Set[Keys]) -> None:
        """Take note of the blocks that a case ran, some of them mocked."""
        real = (self.reached - self.mocked) | (reached - mocked)
        self.reached |= reached
        self.mocked = self.reached - real

    def reach_address(self, address: str) -> None:
        """Take note of a block that was run, by an address that the run log tells."""
        self.reached.update(part.keys for part in parts(self.config) if part.address == address)

    def counts(self) -> dict[Kind, tuple[int, int]]:
        """Of each kind that there is, how many were reached, and how many there are."""
        found: dict[Kind, tuple[int, int]] = {}
        for part in parts(self.config):
            reached, total = found.get(part.kind, (0, 0))
            found[part.kind] = reached + (part.keys in self.reached), total + 1
        return {kind: found[kind] for kind in KINDS if kind in found}

    def missing(self) -> list[Part]:
        """What was not reached. Of a chain that was not, its blocks are left out."""
        found: list[Part] = []
        lost: list[Keys] = []
        for part in parts(self.config):
            if part.keys in self.reached or any(part.keys[: len(keys)] == keys for keys in lost):
                continue
            found.append(part)
            lost.append(part.keys if part.kind == "block" else part.keys[:-1])
        return found


def parts(config: Config) -> Iterator[Part]:
    """Everything that may be reached, each chain before its blocks."""
    for flow in config.flows:
        if flow.process:
            yield from _chain("flow", flow.title, flow.process, config.origin.locate, config)
        if flow.error:
            yield from _chain("error path", f"{flow.title}[error]", flow.error, config.origin.locate, config)


def _chain(
    kind: Kind, address: str, chain: Chain, locate: Locate, config: Config, *, nested: bool = False
) -> Iterator[Part]:
    keys = chain[0].place.path
    yield Part(kind, address, keys, locate(keys))
    for block in chain:
        yield Part("block", block.address, block.place.path, locate(block.place.path))
        for branch in block.branches():
            if branch.chain:
                inner = f"{block.address}[{branch.name}]"
                yield from _chain(_kind(block, branch), inner, branch.chain, locate, config, nested=nested)
        yield from _of_agent(block, config, nested=nested)


def _of_agent(block: Block, config: Config, *, nested: bool) -> Iterator[Part]:
    """The tools of an agent that a block links, if the config declares it; a nested one works without agents."""
    link = getattr(block, "link", None)
    if link is None or link.version is not None:
        return
    for declared in config.declared_agents:
        tools = getattr(declared.agent, "tools", ()) if declared.name == link.name else ()
        for index, tool in enumerate(tools):
            path = ("tools", tool.name)
            start, written = (*block.place.path, *path), (*declared.path, "tools", index)

            def locate(keys: Keys, start: Keys = start, written: Keys = written) -> Location:
                return config.origin.locate((*written, *keys[len(start) :]))

            place_in(block, tool, path)
            for branch in branches_of(tool, path):
                if branch.chain and not (nested and branch.lone):
                    inner = f"{block.address}[{branch.name}]"
                    yield from _chain("tool", inner, branch.chain, locate, config, nested=branch.lone)


def _kind(block: Block, branch: Branch) -> Kind:
    match branch.path[0]:
        case "tools":
            return "tool"
        case "error" | "onReject":
            return "error path"
        case "default":
            return "default path"
    return "branch"
