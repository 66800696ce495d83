"""What it costs to keep runs: start-up of `octo invoke`, time per model call, and a look at a full store.

    python benchmarks/runs.py

All is CPU time, the least of many rounds: other programs on the machine then matter little. Ends with status 1 when a
limit is exceeded.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from octo.runlog import kept
from octo.runlog.keeper import Keeper
from octo.runlog.reach import flows_with_agents
from octo.runtime import Runtime, random_id
from octo.store import runs
from octo.store.runs import AgentRow, RunRow, Spent
from octo.store.store import Store
from octo.testing.harness import config

START = 2.0
"""How many times `python -c pass` a record may add to the start of `invoke`."""
CALL_COST, LOOK_COST = 0.5, 50.0
"""Milliseconds that records may add to a model call with a tool call, and that a look at a full store may take."""
STARTS, TURNS, ROUNDS, STORED = 30, 100, 15, 10_000

CONFIG = """
connectors:
  - name: model
    type: llm-scripted
    settings: {{turns: [{turns}]}}
flows:
  - name: ask
    process:
      - type: ai-agent
        connector: model
        prompt: Look.
        maxIterations: 1000
        tools: [{{name: look, description: Looks., process: [{{type: set-payload, settings: {{value: '"seen"'}}}}]}}]
"""
CALL = "{calls: [{name: look, args: {at: moon}}], usage: {inputTokens: 1200, outputTokens: 34}}"


def text(calls: int) -> str:
    return CONFIG.format(turns=", ".join([*[CALL] * calls, "{text: done}"]))


def start_up(folder: Path) -> dict[str, float]:
    """Milliseconds of CPU time."""
    (folder / "app.yaml").write_text(text(1), encoding="utf-8")
    invoke = [sys.executable, "-m", "octo_cli", "invoke", "--config", "app.yaml", "--flow", "ask", "--data", "1"]
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "invoke, nothing kept": [*invoke, "--store", ":memory:"],
        "invoke, run kept": invoke,
    }
    least = dict.fromkeys(commands, float("inf"))
    for _ in range(STARTS):
        for name, command in commands.items():
            before = _cpu()
            subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
            least[name] = min(least[name], (_cpu() - before) * 1000)
    return least


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def per_call(folder: Path) -> tuple[float, float]:
    """Milliseconds per model call without and with a keeper."""
    loaded = config(text(TURNS))
    with Store(folder / "calls") as store:
        keeper = Keeper(store, flows_with_agents(loaded), "", mask=str, warn=print, new_id=random_id)
        least = [float("inf")] * 2
        for _ in range(ROUNDS):
            for index, observers in enumerate(([], [keeper])):
                async with Runtime(loaded, observers=observers) as runtime:
                    started = time.process_time()
                    await runtime.invoke("ask")
                    least[index] = min(least[index], (time.process_time() - started) * 1000 / (TURNS + 1))
                keeper = Keeper(store, flows_with_agents(loaded), "", mask=str, warn=print, new_id=random_id)
    return least[0], least[1]


async def looking(folder: Path) -> dict[str, float]:
    """Milliseconds for a look at a store with many runs."""
    now = time.time_ns()

    def fill(db) -> None:  # type: ignore[no-untyped-def]  # a connection
        for _ in range(STORED):
            row = RunRow(random_id(), "ask", "app.yaml", now, "host", 1, now, now, "completed", spent=Spent(2, 1, 9, 9))
            runs.begin(db, row, random_id())
            runs.update(db, replace(row, log_size=8000))
            runs.update_agents(db, row.number, [(0, AgentRow("ask.a", "", "inline", None, "", "model"))])
            runs.append_log(db, row.number, "x" * 8000)

    with Store(folder / "many") as store:
        await store.write(fill)
        name = (await kept.newest(store, limit=1, now=now))[0].row.id[:8]
        found = {}
        for what, work in {
            "list 20": lambda: kept.newest(store, limit=20, now=now),
            "list 20 that failed": lambda: kept.newest(store, limit=20, now=now, failed=True),
            "find": lambda: kept.find(store, name, now=now),
            "trim": lambda: store.write(lambda db: runs.trim(db, seen=0)),
        }.items():
            started = time.process_time()
            await work()
            found[what] = (time.process_time() - started) * 1000
        return found


def main() -> int:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        starts = start_up(folder)
        for what, ms in starts.items():
            report(f"{what:32}{ms:8.1f} ms")
        bare, nothing, one = starts.values()
        report(f"{'a record adds':32}{(one - nothing) / bare:8.2f} x `python -c pass`, at most {START}")
        without, with_keeper = asyncio.run(per_call(folder))
        report(f"{'a model call with a tool call':32}{without:8.3f} ms")
        report(f"{'the same, kept':32}{with_keeper:8.3f} ms, at most {CALL_COST} more")
        report(f"with {STORED:,} runs in the store:")
        looks = asyncio.run(looking(folder))
        for what, ms in looks.items():
            report(f"  {what:30}{ms:8.2f} ms of {LOOK_COST}")
    late = one - nothing > START * bare or with_keeper - without > CALL_COST
    return int(late or max(looks.values()) > LOOK_COST)


def report(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
