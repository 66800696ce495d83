"""What a link to an agent adds to a run of its block, over an agent that is written in the block.

    python benchmarks/linked_agents.py

The agent has ten tools, one of which is called, and lies in a store on disk. Ends with status 1 when the limit is
exceeded.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from octo.agent import versions
from octo.agent.authored import authored
from octo.agent.versions import Change
from octo.runtime import Runtime
from octo.store.store import Store
from octo.testing import harness
from octo.values import Json

RUNS = 150
ROUNDS = 5
LIMIT = 0.5
"""Milliseconds that a link may add to a run."""

TOOLS: list[Json] = [
    {
        "name": f"look_{number}",
        "description": "Look something up. " * 10,
        "inputSchema": {
            "type": "object",
            "properties": {"words": {"type": "string"}, "index": {"type": "string"}},
        },
        "inputs": {"index": {"expr": "body.index"}},
        "process": [{"type": "set-payload", "settings": {"value": '{"found": body.words}'}}],
    }
    for number in range(10)
]
AGENT: dict[str, Json] = {"connector": "model", "prompt": "Answer what is asked. " * 40, "tools": TOOLS}


def config(block: dict[str, Json]) -> str:
    """A config with one agent, written in JSON, which is YAML, too."""
    from json import dumps

    turns = [{"calls": [{"name": "look_3", "args": {"words": "x"}}]}, {"text": "done"}]
    model = {"name": "model", "type": "llm-scripted", "settings": {"turns": turns * (RUNS + 1)}}
    flow = {"name": "f", "process": [{"type": "ai-agent", "name": "a", **block}]}
    return dumps({"connectors": [model], "flows": [flow]})


async def milliseconds(block: dict[str, Json], store: Store) -> float:
    """Of a run, when the first one is over."""
    async with Runtime(harness.config(config(block)), store=store) as runtime:
        await runtime.invoke("f", {"index": "all"})
        started = time.perf_counter()
        for _ in range(RUNS):
            message = await runtime.invoke("f", {"index": "all"})
        seconds = time.perf_counter() - started
        assert message.body == "done"
    return seconds * 1000 / RUNS


async def measure(directory: Path) -> tuple[float, float]:
    """The best of some rounds: without a link, and with one."""
    inline: list[float] = []
    linked: list[float] = []
    with Store(directory) as store:
        await versions.deploy(store, "desk", authored(AGENT), Change("ann", 0))
        for _ in range(ROUNDS):
            inline.append(await milliseconds(AGENT, store))
            linked.append(await milliseconds({"agent": "desk"}, store))
    return min(inline), min(linked)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        inline, linked = asyncio.run(measure(Path(folder)))
    added = linked - inline
    sys.stdout.write(
        f"inline {inline:.3f} ms, linked {linked:.3f} ms: a link adds {added:.3f} ms, {LIMIT} ms at most\n"
    )
    return 1 if added > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
