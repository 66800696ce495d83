"""Blocks of the tests: what a config calls by a label is replaced by a function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from octo.block import Block, Chain
from octo.config.address import walk
from octo.config.model import Config
from octo.message import Dropped, Message
from octo.run import Run
from octo.runtime import Runtime
from octo.testing.harness import config

Action = Callable[[Message, Run], Awaitable[None]]


class Act(Block, type="test-act"):
    """Does what a function does to a message."""

    action: Any

    async def execute(self, message: Message, run: Run) -> Message:
        await self.action(message, run)
        return message


async def drop(message: Message, run: Run) -> None:
    """Filter the message out."""
    raise Dropped


async def stop(message: Message, run: Run) -> None:
    """Complete the flow."""
    message.stop()


def acting(loaded: Config, actions: dict[str, Action]) -> Config:
    """The config with every block that bears one of the labels replaced."""

    def replaced(chain: Chain) -> Chain:
        return tuple(act(block) for block in chain)

    def act(block: Block) -> Block:
        if block.label not in actions:
            return block
        double = Act.model_construct(action=actions[block.label])
        double.put_at(block.place)
        return double

    for flow in loaded.flows:
        for block in [*walk(flow.process), *walk(flow.error or ())]:
            for branch in block.branches():
                owner: Any = block
                for key in branch.path[:-1]:
                    owner = owner[key] if isinstance(key, int) else getattr(owner, owner.yaml_keys()[key])
                owner.__dict__[str(branch.path[-1])] = replaced(branch.chain)
        flow.__dict__["process"] = replaced(flow.process)
        if flow.error is not None:
            flow.__dict__["error"] = replaced(flow.error)
    return loaded


@asynccontextmanager
async def runtime(text: str, actions: dict[str, Action], *, observers: Sequence[Any] = (), **options: Any):  # type: ignore[no-untyped-def]
    """An open runtime from YAML text, with blocks replaced by functions."""
    async with Runtime(acting(config(text), actions), observers=observers, **options) as opened:
        yield opened
