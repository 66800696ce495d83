"""What a store full of agents costs those who list them.

    python benchmarks/agents.py

Ends with status 1 when a limit is exceeded.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from sqlite3 import Connection

from octo.agent.versions import Change, append
from octo.store.store import Store

AGENTS, VERSIONS = 1000, 100
ROUNDS = 12
LIMIT = 1.5
"""How many times as long the list may take as that of an empty store."""


def fill(db: Connection) -> None:
    """Many agents, each with as many versions as are kept."""
    for version in range(VERSIONS):
        for number in range(AGENTS):
            value = {
                "connector": "llm",
                "model": "m",
                "description": "Answers customers",
                "prompt": f"Version {version}. " * 60,
                "tools": [{"name": "look", "flow": "find"}],
            }
            append(db, f"team/agent{number:04}", value, Change("ann", time.time_ns()), "deploy")


async def make(directory: Path, *, full: bool) -> None:
    with Store(directory) as store:
        await store.write(fill if full else lambda db: None)


def seconds(directory: Path) -> float:
    """The shortest time of the command."""
    command = [sys.executable, "-m", "octo_cli", "agents", "list", "--store", str(directory)]
    found = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found.append(time.perf_counter() - begun)
    return min(found)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        empty, full = Path(folder) / "empty", Path(folder) / "full"
        asyncio.run(make(empty, full=False))
        asyncio.run(make(full, full=True))
        few, many = seconds(empty), seconds(full)
    times = many / few
    told = f"{few * 1000:.0f} ms with none, {many * 1000:.0f} ms with {AGENTS} of {VERSIONS} versions"
    sys.stdout.write(f"octo agents list: {told}: {times:.2f} times as long, at most {LIMIT}\n")
    return 0 if times <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
