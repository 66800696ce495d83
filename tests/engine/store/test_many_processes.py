"""octo/store/store.py: many processes on one store, one of them stopped inside a transaction.

The full counts run with OCTO_SOAK=1, a slice of them otherwise.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from octo.services.standalone import standalone
from octo.store.store import Store

SOAK = os.environ.get("OCTO_SOAK") == "1"
PROCESSES, WRITES, STOPPED = (16, 500, 3.0) if SOAK else (4, 50, 0.5)
ROUNDS = 10 if SOAK else 1

WRITER = """
import asyncio, json, sys, time
from pathlib import Path
from octo.services.standalone import standalone
from octo.store.store import Store

async def main(directory, name, writes):
    with Store(Path(directory)) as store:
        entries = standalone(store, clock=time.time_ns).entries
        print("ready", flush=True)
        sys.stdin.readline()
        seconds = []
        for number in range(writes):
            for key in (f"{name}:{number}", "shared"):
                begun = time.perf_counter()
                await entries.put("user", key, {"by": name, "number": number})
                seconds.append(time.perf_counter() - begun)
            assert (await entries.get("user", f"{name}:{number}")).value == {"by": name, "number": number}
        print(json.dumps(seconds))

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""

HOLDER = """
import asyncio, sys
from pathlib import Path
from octo.store import entries
from octo.store.store import Store

def work(db):
    entries.put(db, "user", "held", "1", 1, now=1)
    print("inside", flush=True)
    sys.stdin.readline()

with Store(Path(sys.argv[1])) as store:
    asyncio.run(store.write(work))
"""

FLOW = """
flows:
  - name: write
    process:
      - type: foreach
        items: body.numbers
        body:
          process:
            - type: object-write
              settings: { key: 'body.name + ":" + string(vars.item)', value: vars.item }
"""


def start(args: list[str], folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *args], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )


def say(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return output


async def test_no_write_is_lost_and_none_is_slow_while_one_process_stands_still(tmp_path: Path) -> None:
    names = [f"w{number}" for number in range(PROCESSES)]
    writers = [start(["-c", WRITER, "store", name, str(WRITES)], tmp_path) for name in names]
    assert [hear(writer) for writer in writers] == ["ready"] * PROCESSES

    holder = start(["-c", HOLDER, "store"], tmp_path)
    assert hear(holder) == "inside"
    holder.send_signal(signal.SIGSTOP)
    for writer in writers:
        say(writer)
    await asyncio.sleep(STOPPED)
    holder.send_signal(signal.SIGCONT)
    end(holder)
    seconds = sorted(second for writer in writers for second in json.loads(end(writer)))

    with Store(tmp_path / "store") as store:
        shared = await standalone(store, clock=time.time_ns).entries.get("user", "shared")
        stored = await store.read(lambda db: db.execute("SELECT count(*) FROM entries").fetchone()[0], 0)
    slowest_of_99_percent = seconds[len(seconds) * 99 // 100 - 1]
    assert stored == PROCESSES * WRITES + len(["shared", "held"])
    assert shared is not None
    assert shared.version == PROCESSES * WRITES
    assert slowest_of_99_percent < 1


async def test_commands_that_run_at_once_lose_nothing(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(FLOW, encoding="utf-8")
    command = ["-m", "octo_cli", "invoke", "--config", "app.yaml", "--flow", "write", "--data"]
    for round_ in range(ROUNDS):
        bodies = [{"name": f"{round_}.{number}", "numbers": list(range(50))} for number in range(PROCESSES // 2)]
        for process in [start([*command, json.dumps(body)], tmp_path) for body in bodies]:
            end(process)

    with Store(tmp_path / ".octo") as store:
        stored = await store.read(lambda db: db.execute("SELECT count(*) FROM entries").fetchone()[0], 0)
    assert stored == ROUNDS * (PROCESSES // 2) * 50
