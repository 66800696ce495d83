"""Run chains at once."""

from functools import partial

from pydantic import Field

from octo.block import Block, SubFlow
from octo.errors import OctoError
from octo.message import Dropped, Message
from octo.run import ChainFailed, Run


class Fork(Block, type="fork", group="control"):
    """Run chains at once, each on a copy of the message, and wait for all; the message itself goes on unchanged.

    The first branch that fails ends the others and fails the block.
    """

    branches_: tuple[SubFlow, ...] = Field(min_length=1)
    """The chains. At most as many run at once as the flow's `pool` allows."""

    async def execute(self, message: Message, run: Run) -> Message:
        copies = [message.clone() for _ in self.branches_]
        pairs = zip(self.branches_, copies, strict=True)
        await run.together([partial(_follow, branch, copy) for branch, copy in pairs])
        if any(copy.stopped for copy in copies):
            message.stop()
        return message


async def _follow(branch: SubFlow, copy: Message, run: Run) -> None:
    try:
        await run.chain(branch.process, copy)
    except Dropped:
        pass
    except OctoError as error:
        raise ChainFailed(f'fork branch "{branch.name or ""}"', error) from error
