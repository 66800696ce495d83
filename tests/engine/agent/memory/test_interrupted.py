"""octo/agent/memory/threads.py, octo/agent/memory/conversations.py: runs that are killed at any instant.

Whatever a killed run leaves in the store, the next message on its thread is answered, by a vendor that refuses every
conversation which is not whole. The full counts run with OCTO_SOAK=1, a slice of them otherwise.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import octo
from octo.runtime import Runtime
from octo.store.store import Store
from vendor import AnthropicServer, Request, call, reply

ROUNDS = 500 if os.environ.get("OCTO_SOAK") == "1" else 10
CONVERSATION = 25
"""After so many rounds another conversation begins."""
TOOL_TURNS = 3

CONFIG = """
connectors:
  - name: m
    type: llm-anthropic
    settings: { apiKey: k, baseURL: "${BASE_URL}", thinking: adaptive }
env: [{ name: BASE_URL }]
flows:
  - name: chat
    process:
      - type: ai-agent
        name: ag
        connector: m
        prompt: Talk.
        input: body
        answer: text
        memoryThreadId: '"t"'
        AGENT
        tools:
          - name: look
            description: Looks.
            process: [{ type: cli-run, settings: { program: '"sleep"', args: '["0.01"]' } }]
          - name: see
            description: Sees.
            process: [{ type: set-payload, settings: { value: '"seen"' } }]
"""


def talk(request: Request) -> object:
    """Two calls in each of three turns, then an answer."""
    turns = request.json["messages"]
    since = next(n for n, turn in enumerate(reversed(turns)) if turn["role"] == "user" and _asks(turn))
    if since // 2 < TOOL_TURNS:
        return reply("I look.", thinking="hm", calls=[call("look", {}), call("see", {"n": since})])
    return reply("done")


def _asks(turn: dict) -> bool:
    """Whether a user turn holds a question; its first part may be results that the killed run left."""
    return isinstance(turn["content"], str) or turn["content"][-1]["type"] == "text"


def asked(request: Request) -> list[str]:
    """All texts of user turns."""
    return [
        part["text"]
        for turn in request.json["messages"]
        if turn["role"] == "user"
        for part in (
            turn["content"] if isinstance(turn["content"], list) else [{"type": "text", "text": turn["content"]}]
        )
        if part["type"] == "text"
    ]


async def answered(config: Path, store: Path, url: str, text: str) -> object:
    """What the next message on the thread gets."""
    with Store(store) as opened:
        async with Runtime(octo.load(config, environ=os.environ | {"BASE_URL": url}), store=opened) as runtime:
            return (await runtime.invoke("chat", text)).body


def interrupt(process: subprocess.Popen[bytes], server: AnthropicServer, how: random.Random) -> None:
    """End the process at some instant: when it has asked so often, and a little later."""
    already, wanted = len(server.requests), how.randint(0, TOOL_TURNS + 1)
    while len(server.requests) < already + wanted and process.poll() is None:
        time.sleep(0.001)
    time.sleep(how.uniform(0, 0.04) if wanted else how.uniform(0, 0.4))
    process.send_signal(how.choice([signal.SIGKILL, signal.SIGINT]))
    process.wait(timeout=30)


@pytest.mark.parametrize("agent", ["", "agentId: helper"], ids=["a thread", "an agent with an id"])
async def test_the_next_message_on_the_thread_of_a_killed_run_is_answered(tmp_path, agent):
    config, store = tmp_path / "config.yaml", tmp_path / "store"
    config.write_text(CONFIG.replace("AGENT", agent), encoding="utf-8")
    how = random.Random(len(agent))
    command = [sys.executable, "-m", "octo_cli", "invoke", "--config", str(config), "--flow", "chat"]
    begun = 0
    with AnthropicServer(talk) as server:
        environ = os.environ | {"BASE_URL": server.url}
        for number in range(ROUNDS):
            words = [*command, "--store", str(store), "--data", f'"killed {number}"']
            if how.random() < 0.2:
                words += ["--timeout", f"{how.uniform(0.01, 0.1):.3f}s"]
            process = subprocess.Popen(words, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            interrupt(process, server, how)

            assert await answered(config, store, server.url, f"next {number}") == "done", number
            assert server.refusals == []
            kept = asked(server.requests[-1])
            assert [text for text in kept if text.startswith("next")] == [f"next {n}" for n in range(begun, number + 1)]
            if number + 1 - begun == CONVERSATION:
                store, begun = tmp_path / f"store {number}", number + 1
