"""What memory costs: the loop with a long history, the last turns of very many, and the start of a command.

    python benchmarks/memory.py

Ends with status 1 when a limit is exceeded.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from octo.agent.memory import codec
from octo.llm.chat import ChatMessage, Text, ToolCall, ToolResult, user
from octo.runtime import Runtime
from octo.store import conversations
from octo.store.conversations import Place, Turn
from octo.store.store import Store
from octo.testing import harness
from octo.values import Json

TURNS = 50
ROUNDS = 5
LOOP = 1.0
"""Milliseconds that the loop may add to a model call, with a history of 100 messages."""
LAST = 1.0
"""Milliseconds that the last 20 of a million turns may take."""
START = 1.5
"""How many times `python -c pass` memory may add to the start of `invoke`."""

KINDS = {
    "nothing": "",
    "a thread": "memoryThreadId: '\"t\"'",
    "an agent with an id": "memoryThreadId: '\"t\"'\n        agentId: a",
}
"""What an agent remembers, and the keys that say so."""

CONFIG = """
connectors:
  - name: model
    type: llm-scripted
    settings:
      turns: [{calls}, {{text: done}}]
flows:
  - name: f
    process:
      - type: ai-agent
        name: ag
        connector: model
        prompt: Count.
        input: '"go"'
        maxIterations: {turns}
        {memory}
        tools:
          - name: count
            description: Count.
            process:
              - type: set-payload
                settings: {{value: '{{"n": body.n + 1.0}}'}}
"""


def history(messages: int) -> list[ChatMessage]:
    """A conversation of so many messages, of some hundred bytes each."""
    words = "some words that were said " * 8
    turns: list[ChatMessage] = []
    for n in range(messages // 4):
        turns += [
            user(f"{n} {words}"),
            ChatMessage("assistant", (Text(words), ToolCall(f"c{n}", "count", '{"n": 1}'))),
            ChatMessage("tool", (ToolResult(f"c{n}", "count", words),)),
            ChatMessage("assistant", (Text(words),)),
        ]
    return turns


async def milliseconds_per_call(folder: Path, messages: int, memory: str) -> float:
    """The best of some rounds, each on a thread that holds so many messages."""
    calls = ", ".join(["{calls: [{name: count, args: {n: 1}}]}"] * (TURNS - 1))
    stored: Json = {"v": 1, "tokens": 0, "messages": codec.encode(history(messages))}
    best = float("inf")
    with Store(folder) as store:
        config = harness.config(CONFIG.format(calls=calls, turns=TURNS, memory=memory))
        async with Runtime(config, store=store) as runtime:
            for _ in range(ROUNDS):
                await runtime.services.entries.put("user", "agent-memory/t", stored)
                begun = time.process_time()
                message = await runtime.invoke("f", {})
                best = min(best, time.process_time() - begun)
                assert message.body == "done"
    return best * 1000 / TURNS


async def loop() -> bool:
    wrong = False
    for kind in ("nothing", "a thread"):
        for messages in (20, 100, 400, 1600) if KINDS[kind] else (0,):
            with tempfile.TemporaryDirectory() as folder:
                cost = await milliseconds_per_call(Path(folder), messages, KINDS[kind])
            print(f"{kind}, {messages} messages: {cost:.3f} ms per model call")  # noqa: T201
            wrong |= messages == 100 and cost > LOOP
    return wrong


async def last_turns() -> bool:
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder)) as store:
        for number in range(100):
            turns = [Turn("user" if n % 2 else "assistant", f"turn {n} " * 5, n) for n in range(10_000)]
            add = partial(conversations.append, place=Place("a", f"t{number % 10}"), turns=turns, user="", now=1)
            await store.write(add)
        best = float("inf")
        for number in range(200):
            begun = time.perf_counter()
            found: list[Turn] = await store.read(lambda db: conversations.last(db, Place("a", "t3"), 20), [])
            best = min(best, time.perf_counter() - begun) if number else best
            assert len(found) == 20
    print(f"the last 20 of a million turns: {best * 1000:.3f} ms")  # noqa: T201
    return best * 1000 > LAST


def start() -> bool:
    """Whole runs of one agent, in multiples of the time that the processor takes for the bare interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        for name, keys in KINDS.items():
            text = CONFIG.format(calls="{text: done}", turns=2, memory=keys)
            Path(folder, f"{name}.yaml").write_text(text, encoding="utf-8")

        def seconds(*command: str) -> float:
            begun = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *command], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            ended = resource.getrusage(resource.RUSAGE_CHILDREN)
            return ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime

        invoke = ("-m", "octo_cli", "invoke", "--flow", "f", "--config")
        commands = {"pass": ("-c", "pass")} | {name: (*invoke, f"{name}.yaml") for name in KINDS}
        best = dict.fromkeys(commands, float("inf"))
        for _ in range(15):
            for name, command in commands.items():
                best[name] = min(best[name], seconds(*command))
    wrong = False
    for name in ("a thread", "an agent with an id"):
        added = (best[name] - best["nothing"]) / best["pass"]
        wrong |= added > START
        print(f"start of `invoke`, {name}: {added:+.2f} x `python -c pass`")  # noqa: T201
    return wrong


def main() -> int:
    wrong = [asyncio.run(loop()), asyncio.run(last_turns()), start()]
    return int(any(wrong))


if __name__ == "__main__":
    sys.exit(main())
