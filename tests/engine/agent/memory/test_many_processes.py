"""octo/store/conversations.py, octo/agent/memory/conversations.py: eight processes that write to one conversation."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from octo.store import conversations
from octo.store.conversations import Place
from octo.store.store import Store

PROCESSES = 8
APPENDS = 500 if os.environ.get("OCTO_SOAK") == "1" else 40

WRITER = """
import asyncio, sys
from pathlib import Path
from octo.store import conversations
from octo.store.conversations import Place, Turn
from octo.store.store import Store

async def main(name, count):
    with Store(Path("store")) as store:
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(count):
            turns = [Turn("user", f"{name}:{number}", 1), Turn("assistant", f"{name}:{number}", 1)]
            await store.write(lambda db: conversations.append(db, Place("a", "t"), turns, user=name, now=number))

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""

CONFIG = """
connectors:
  - name: m
    type: llm-scripted
    settings: { rules: [{ when: 'last.role == "tool"', text: done }, { when: 'true', calls: [{ name: t }] }] }
flows:
  - name: chat
    process:
      - type: foreach
        items: body.turns
        body:
          process:
            - type: ai-agent
              name: ag
              connector: m
              prompt: Talk.
              input: vars.item
              memoryThreadId: '"t"'
              agentId: a
              tools: [{ name: t, description: x, process: [] }]
"""


def start(folder: Path, *args: str) -> subprocess.Popen[str]:
    command = [sys.executable, *args]
    return subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    )


async def turns(folder: Path) -> list[conversations.Turn]:
    with Store(folder / "store") as store:
        return await store.read(lambda db: conversations.last(db, Place("a", "t"), 10**6), [])


async def test_appends_of_many_processes_are_all_there_and_in_pairs(tmp_path):
    writers = [start(tmp_path, "-c", WRITER, f"p{n}", str(APPENDS)) for n in range(PROCESSES)]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        assert writer.communicate(timeout=300)[1] == ""
    found = await turns(tmp_path)

    assert [turn.position for turn in found] == list(range(1, 2 * PROCESSES * APPENDS + 1))
    assert [turn.text for turn in found[::2]] == [turn.text for turn in found[1::2]]
    assert Counter(turn.text.split(":")[0] for turn in found[::2]) == {f"p{n}": APPENDS for n in range(PROCESSES)}


async def test_runs_of_many_processes_on_one_conversation_lose_no_question(tmp_path):
    (tmp_path / "c.yaml").write_text(CONFIG, encoding="utf-8")
    command = ["-m", "octo_cli", "invoke", "--config", "c.yaml", "--flow", "chat", "--store", "store", "--data"]
    bodies = [f'{{"turns": ["{n}.0", "{n}.1", "{n}.2"]}}' for n in range(PROCESSES)]
    errors = [run.communicate(timeout=300)[1] for run in [start(tmp_path, *command, body) for body in bodies]]
    found = await turns(tmp_path)

    assert "".join(errors) == ""
    assert sorted(turn.text for turn in found if turn.role == "user") == sorted(
        f"{n}.{turn}" for n in range(PROCESSES) for turn in range(3)
    )
