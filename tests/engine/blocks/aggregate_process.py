"""One of several processes that put messages into the groups of one store; prints the groups that it sent on."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from octo.config.address import find
from octo.message import Message
from octo.observe import BlockLeft, Event
from octo.runtime import Runtime
from octo.store.store import Store
from octo.testing.harness import config

FLOW = """
  flows:
    - name: main
      process:
        - { type: aggregate, correlation: '"all"', completionSize: '4' }
        - { type: set-payload, name: end, settings: { value: body } }
"""


class Printer:
    """Prints what arrives at the end."""

    kinds = (BlockLeft,)

    def notify(self, event: Event) -> None:
        if isinstance(event, BlockLeft) and event.address == "main.end" and isinstance(event.message, Message):
            sys.stdout.write(",".join(event.message.body) + "\n")


async def main(directory: str, name: str, count: int) -> None:
    loaded = config(FLOW)
    assert find(loaded, "main.end")
    with Store(Path(directory)) as store:
        async with Runtime(loaded, store=store, observers=[Printer()]) as octo:
            for number in range(count):
                await octo.invoke("main", f"{name}{number}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
