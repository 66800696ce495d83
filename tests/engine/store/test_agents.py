"""octo/store/agents.py: many processes on the agents of one store, some of them killed inside their work.

The full counts run with OCTO_SOAK=1, a slice of them otherwise.
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from octo.agent import authored, versions
from octo.agent.versions import Change
from octo.store import agents
from octo.store.store import Store

SOAK = os.environ.get("OCTO_SOAK") == "1"
KILLED = 200 if SOAK else 8
ANN = Change("ann", 1)

DEPLOY = """
import asyncio, sys, time
from pathlib import Path
from octo.agent import versions
from octo.agent.versions import Change
from octo.store.store import Store

async def main(directory, name):
    with Store(Path(directory)) as store:
        await store.read(lambda db: None, None)
        print("ready", flush=True)
        sys.stdin.readline()
        value = {"connector": "llm", "prompt": name}
        deployed = await versions.deploy(store, "a", value, Change(name, time.time_ns()))
        print(deployed.version, time.monotonic_ns(), flush=True)

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""

BUSY = """
import asyncio, sys
from pathlib import Path
from octo.agent import versions
from octo.agent.versions import Change
from octo.store.store import Store

async def main(directory):
    change = Change("bob", 1)
    with Store(Path(directory)) as store:
        number = 0
        print("ready", flush=True)
        while True:
            number += 1
            value = {"connector": "llm", "prompt": f"{number} " * 3000}
            await versions.deploy(store, "a", value, change)
            await versions.put_draft(store, "a", value, change)
            await versions.deploy_draft(store, "a", change, force=True)
            await versions.rename(store, "a", "b")
            await versions.rename(store, "b", "a")
            if number % 3 == 0:
                await versions.clear_history(store, "a")
            if number % 5 == 0:
                await versions.delete(store, "a")

asyncio.run(main(sys.argv[1]))
"""


def start(code: str, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )


def test_processes_that_deploy_at_once_make_one_version_each_in_the_order_of_their_writes(tmp_path: Path) -> None:
    directory = tmp_path / "store"
    with Store(directory) as store:
        asyncio.run(versions.deploy(store, "a", {"connector": "llm", "prompt": "first"}, ANN))
    processes = [start(DEPLOY, str(directory), f"p{number}") for number in range(8)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    made = [process.communicate(timeout=60)[0].split() for process in processes]

    assert sorted(int(version) for version, _ in made) == list(range(2, 10))
    rows = sqlite3.connect(directory / "octo.db").execute("SELECT version, created_by FROM agent_version ORDER BY id")
    written = rows.fetchall()
    assert [version for version, _ in written] == list(range(1, 10))
    by_process = {f"p{number}": int(version) for number, (version, _) in enumerate(made)}
    assert {by: version for version, by in written[1:]} == by_process


def test_a_process_that_is_killed_leaves_nothing_half_written(tmp_path: Path) -> None:
    """It deploys, drafts, renames, clears and deletes until it dies; whatever is there then belongs together."""
    numbers = [0]
    directory = tmp_path / "store"
    chance = random.Random(8)
    for _ in range(KILLED):
        process = start(BUSY, str(directory))
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.uniform(0.02, 0.25))
        process.kill()
        process.communicate()
        with Store(directory) as store:
            asyncio.run(store.read(_check, None))
            numbers.append(asyncio.run(store.read(lambda db: agents.next_version(db, "a"), 1)))
            name = asyncio.run(store.read(agents.names, []))
            if name == ["b"]:  # where the next one goes on
                asyncio.run(versions.rename(store, "b", "a"))
    assert sorted(numbers) == numbers
    assert numbers[-1] > 1


def _check(db: sqlite3.Connection) -> None:
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    (row,) = db.execute("SELECT name, version, value, hash FROM agent").fetchall() or [None]
    counted = db.execute("SELECT ifnull(max(version), 0) FROM agent_version").fetchone()[0]
    assert agents.next_version(db, "a") > counted
    if row is None:
        assert counted == 0
        return
    name, version, value, hash = row
    assert authored.digest(versions.decoded(value, name)) == hash
    kept = db.execute("SELECT name, version, value, hash FROM agent_version ORDER BY version").fetchall()
    assert {found for found, *_ in kept} == {name}
    assert kept[-1] == (name, version, value, hash)
    assert agents.next_version(db, name) == version + 1
    assert {found for (found,) in db.execute("SELECT name FROM agent_draft")} <= {name}


def test_a_list_of_many_agents_reads_none_of_their_values(tmp_path: Path) -> None:
    """The statement names no value, and finds its order in an index."""
    with Store(tmp_path / "store") as store:
        asyncio.run(versions.deploy(store, "a", {"connector": "llm", "prompt": "x", "description": "d"}, ANN))
        statements: list[str] = []

        def work(db: sqlite3.Connection) -> list[agents.AgentRow]:
            db.set_trace_callback(statements.append)
            found = agents.agents(db)
            db.set_trace_callback(None)
            plans.extend(plan for *_, plan in db.execute(f"EXPLAIN QUERY PLAN {statements[0]}"))
            return found

        plans: list[str] = []
        (row,) = asyncio.run(store.read(work, []))

    assert (row.name, row.version, row.connector, row.tools, row.description) == ("a", 1, "llm", 0, "d")
    assert "value" not in statements[0]
    assert plans == ["SCAN agent USING INDEX sqlite_autoindex_agent_1"]
