"""octo_cli/commands/invoke.py, octo/agent/memory/history.py, octo/agent/memory/managed.py: `--memory-id`, and every
combination of policy, ids and messages that a block and a run can have.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from octo.agent.memory import codec, keys
from octo.llm.chat import ChatMessage, Text, user
from octo.store import memories
from octo.store.memories import Place
from octo.store.store import Store

CONFIG = """\
service:
  name: shop
connectors:
  - name: m
    type: llm-scripted
    settings: {{turns: [{{text: fine}}]}}
flows:
  - name: ask
    process:
      - type: ai-agent
        name: desk
        connector: m
        prompt: Do it.
        answer: text
        input: '"now"'
        tools: [{{name: t, description: T., process: []}}]
{keys}
"""

BAKED = "0c3f4b5e-0000-4000-8000-00000000000a"
RUN_ID, BLOCK_ID = "customer-1", "customer-2"
MEMORIES = {
    "K(run)": keys.key(RUN_ID, workspace="shop", flow="ask"),
    "K(block)": keys.key(BLOCK_ID, workspace="shop", flow="ask"),
    "K(baked)": BAKED,
}

L1 = "memory: no memory id was given to this run; running without memory"
L2 = "memory: memoryId of this block is empty; running without memory"
L3 = "memory: memory is on; previousMessages of this block is ignored"
L4 = "memory: memory is off; memoryId of this block is ignored"
L5 = "memory: legacy memory setting; memoryId of this block is not read"
L6 = "memory: legacy memory setting; previousMessages of this block is not read"
L7 = "memory: image output sends no history; memory settings are not read"

IDS = {
    "N": ["", "memoryId: ''", "memoryId: {value: ' '}"],
    "V": [f"memoryId: {{value: {BLOCK_ID}}}", f"memoryId: '\"{BLOCK_ID}\"'"],
    "E": ["memoryId: 'null'", "memoryId: '\" \"'"],
}
LISTS = {
    "N": [""],
    "Z": ["previousMessages: []", "previousMessages: 'null'", "previousMessages: {value: []}"],
    "L": [
        "previousMessages: [{role: user, content: given}]",
        'previousMessages: \'[{"role": "user", "content": "given"}]\'',
    ],
}
OFF = ["", "memory: {kind: off}", "memory: {kind: window, contextLength: 0}", "memory: {kind: auto}"]
ON = ["memory: {kind: window, contextLength: 20}", "memory: {kind: compaction}"]
AUTO = ["memory: {kind: auto, contextLength: 20}", "messagesContextLength: 20"]
WITH_BAKED = [f"memory: {{kind: auto, contextLength: 20, memoryId: {BAKED}}}"]
MANUAL = ["memory: {kind: manual, messages: [{role: user, content: old}]}"]


class Asked(NamedTuple):
    """What the model was sent before the question, which memory was written, and what the log says of memory."""

    history: list[str]
    written: list[str]
    lines: list[str]


class Desk:
    """Runs the flow with some keys in its agent, over a store in which every memory holds its own name."""

    def __init__(self, octo: Any, folder: Path) -> None:
        self._octo = octo
        self._folder = folder

    def ask(self, *keys_: str, run_id: str = "") -> Asked:
        body = "\n".join(" " * 8 + line for key in keys_ for line in key.splitlines())
        (self._folder / "app.yaml").write_text(CONFIG.format(keys=body), encoding="utf-8")
        asyncio.run(self._fill())
        args = ["--memory-id", run_id] if run_id else []
        log = self._folder / "run.jsonl"
        found = self._octo(
            "invoke", "--config", "app.yaml", "--flow", "ask", "--store", "kept", "--log", str(log), *args
        )
        assert found.status == 0, found.stderr
        return Asked(self._sent(log), asyncio.run(self._changed()), self._lines(found.stderr))

    async def _fill(self) -> None:
        with Store(self._folder / "kept") as store:
            for name, key in MEMORIES.items():
                turns = codec.encode([user(name), ChatMessage("assistant", (Text("well"),))])
                place, text = Place("shop", key, "ask.desk"), json.dumps(turns)
                await store.write(lambda db, place=place, text=text: memories.save(db, place, text, 2, now=1))

    async def _changed(self) -> list[str]:
        with Store(self._folder / "kept") as store:
            rows = await store.read(memories.rows, [])
        names = {key: name for name, key in MEMORIES.items()}
        return [names[row.place.key] for row in rows if row.updated > 1]

    def _sent(self, log: Path) -> list[str]:
        records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        (turn,) = [record for record in records if record["kind"] == "llm.turn"]
        return [message["text"] for message in turn["attrs"]["input"]["messages"] if message["role"] == "user"][:-1]

    def _lines(self, stderr: str) -> list[str]:
        return [text for line in stderr.splitlines() for text in (L1, L2, L3, L4, L5, L6, L7) if f'"{text}"' in line]


@pytest.fixture
def desk(octo: Any, tmp_path: Path) -> Desk:
    return Desk(octo, tmp_path)


def rows(table: str) -> list[Any]:
    """The rows of a decision table as parameters."""
    cells = [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]
    return [pytest.param(*row[1:], id=row[0]) for row in cells]


def lines(codes: str) -> list[str]:
    found = {"L1": L1, "L2": L2, "L3": L3, "L4": L4, "L5": L5, "L6": L6}
    return [] if codes == "-" else [found[code] for code in codes.split(", ")]


def spellings(*choices: list[str]) -> list[tuple[str, ...]]:
    """Every choice at least once, without all combinations."""
    return [tuple(choice[at % len(choice)] for choice in choices) for at in range(max(map(len, choices)))]


@pytest.mark.parametrize(
    ("ids", "messages", "history", "log"),
    rows(
        """
        O1 | N | N | -     | -
        O2 | N | Z | -     | -
        O3 | N | L | given | -
        O4 | V | N | -     | L4
        O5 | V | Z | -     | L4
        O6 | V | L | given | L4
        O7 | E | N | -     | -
        O8 | E | Z | -     | -
        O9 | E | L | given | -
        """
    ),
)
def test_memory_off(desk: Desk, ids: str, messages: str, history: str, log: str) -> None:
    sent = [] if history == "-" else [history]

    for keys_ in spellings(OFF, IDS[ids], LISTS[messages]):
        for run_id in ("", RUN_ID):
            assert desk.ask(*keys_, run_id=run_id) == Asked(sent, [], lines(log)), (keys_, run_id)


@pytest.mark.parametrize(
    ("run", "ids", "messages", "key", "log"),
    rows(
        """
        W1  | no  | N | N | -        | L1
        W2  | no  | N | Z | -        | L1
        W3  | no  | N | L | -        | L3, L1
        W4  | no  | V | N | K(block) | -
        W5  | no  | V | Z | K(block) | -
        W6  | no  | V | L | K(block) | L3
        W7  | no  | E | N | -        | L2
        W8  | no  | E | Z | -        | L2
        W9  | no  | E | L | -        | L3, L2
        W10 | yes | N | N | K(run)   | -
        W11 | yes | N | Z | K(run)   | -
        W12 | yes | N | L | K(run)   | L3
        W13 | yes | V | N | K(block) | -
        W14 | yes | V | Z | K(block) | -
        W15 | yes | V | L | K(block) | L3
        W16 | yes | E | N | -        | L2
        W17 | yes | E | Z | -        | L2
        W18 | yes | E | L | -        | L3, L2
        """
    ),
)
def test_managed_memory(desk: Desk, run: str, ids: str, messages: str, key: str, log: str) -> None:
    kept = [] if key == "-" else [key]

    for keys_ in spellings(ON, IDS[ids], LISTS[messages]):
        asked = desk.ask(*keys_, run_id=RUN_ID if run == "yes" else " ")
        assert asked == Asked(kept, kept, lines(log)), keys_


@pytest.mark.parametrize(
    ("baked", "run", "ids", "messages", "key", "log"),
    rows(
        """
        U1  | no  | no  | N | N | -        | L1
        U2  | no  | no  | N | Z | -        | L1
        U3  | no  | no  | N | L | -        | L6, L1
        U4  | no  | no  | V | N | -        | L5, L1
        U5  | no  | no  | V | Z | -        | L5, L1
        U6  | no  | no  | V | L | -        | L5, L6, L1
        U7  | no  | no  | E | N | -        | L1
        U8  | no  | no  | E | Z | -        | L1
        U9  | no  | no  | E | L | -        | L6, L1
        U10 | no  | yes | N | N | K(run)   | -
        U11 | no  | yes | N | Z | K(run)   | -
        U12 | no  | yes | N | L | K(run)   | L6
        U13 | no  | yes | V | N | K(run)   | L5
        U14 | no  | yes | V | Z | K(run)   | L5
        U15 | no  | yes | V | L | K(run)   | L5, L6
        U16 | no  | yes | E | N | K(run)   | -
        U17 | no  | yes | E | Z | K(run)   | -
        U18 | no  | yes | E | L | K(run)   | L6
        U19 | yes | no  | N | N | K(baked) | -
        U20 | yes | no  | N | Z | K(baked) | -
        U21 | yes | no  | N | L | K(baked) | L6
        U22 | yes | no  | V | N | K(baked) | L5
        U23 | yes | no  | V | Z | K(baked) | L5
        U24 | yes | no  | V | L | K(baked) | L5, L6
        U25 | yes | no  | E | N | K(baked) | -
        U26 | yes | no  | E | Z | K(baked) | -
        U27 | yes | no  | E | L | K(baked) | L6
        U28 | yes | yes | N | N | K(run)   | -
        U29 | yes | yes | N | Z | K(run)   | -
        U30 | yes | yes | N | L | K(run)   | L6
        U31 | yes | yes | V | N | K(run)   | L5
        U32 | yes | yes | V | Z | K(run)   | L5
        U33 | yes | yes | V | L | K(run)   | L5, L6
        U34 | yes | yes | E | N | K(run)   | -
        U35 | yes | yes | E | Z | K(run)   | -
        U36 | yes | yes | E | L | K(run)   | L6
        """
    ),
)
def test_the_older_kind_auto(desk: Desk, baked: str, run: str, ids: str, messages: str, key: str, log: str) -> None:
    kept = [] if key == "-" else [key]

    for keys_ in spellings(WITH_BAKED if baked == "yes" else AUTO, IDS[ids], LISTS[messages]):
        asked = desk.ask(*keys_, run_id=RUN_ID if run == "yes" else "")
        assert asked == Asked(kept, kept, lines(log)), keys_


@pytest.mark.parametrize(
    ("ids", "messages", "log"),
    rows(
        """
        M1 | N | N | -
        M2 | N | Z | -
        M3 | N | L | L6
        M4 | V | N | L5
        M5 | V | Z | L5
        M6 | V | L | L5, L6
        M7 | E | N | -
        M8 | E | Z | -
        M9 | E | L | L6
        """
    ),
)
def test_the_older_kind_manual(desk: Desk, ids: str, messages: str, log: str) -> None:
    for keys_ in spellings(MANUAL, IDS[ids], LISTS[messages]):
        for run_id in ("", RUN_ID):
            assert desk.ask(*keys_, run_id=run_id) == Asked(["old"], [], lines(log)), keys_
    empty = "memory: {kind: manual, messages: []}"
    assert desk.ask(empty, IDS[ids][-1], LISTS[messages][-1]) == Asked([], [], lines(log))
