"""What stands behind a tool of the config: a chain of blocks, a flow, or another agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from octo.block import Block, Chain
    from octo.config.model import Config
    from octo.message import Message
    from octo.run import Run


class Kind(Protocol):
    """What a tool runs when it is called."""

    def about(self, config: Config) -> str:
        """What it is there for, as far as it says so itself."""

    async def run(self, message: Message, run: Run) -> None:
        """Work on a message whose body are the arguments, and leave the result as its body. Raises as a chain does."""


@dataclass(frozen=True)
class Branch:
    """A chain of blocks that belongs to the tool."""

    chain: Chain

    def about(self, config: Config) -> str:
        return ""

    async def run(self, message: Message, run: Run) -> None:
        message.adopt(await run.chain(self.chain, message))


@dataclass(frozen=True)
class CalledFlow:
    """A flow of the config, which can be called and tested alone, too."""

    name: str

    def about(self, config: Config) -> str:
        flow = config.flow(self.name)
        return (flow.description or "") if flow else ""

    async def run(self, message: Message, run: Run) -> None:
        await run.call_on(self.name, message)


@dataclass(frozen=True)
class CalledAgent:
    """An agent with tools of its own, which is given a task in words."""

    agent: Block
    """The agent, or what stands in for it in a test."""

    def about(self, config: Config) -> str:
        return str(getattr(self.agent, "description", ""))

    async def run(self, message: Message, run: Run) -> None:
        message.adopt(await run.chain((self.agent,), message))
