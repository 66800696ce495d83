"""octo/masking.py: secrets of many lines, with quotes, and short ones, wherever `octo invoke` shows or keeps texts."""

import json
import sqlite3
from base64 import b64encode

import pytest

LINES = '-----BEGIN KEY-----\nfirstlineofit "quoted" and\\back\nsecondlineofit\n-----END KEY-----'
SHOWN = ("firstlineofit", "secondlineofit")
"""What nobody may read."""

CONFIG = """
env: [{ name: TOKEN }]
connectors:
  - name: m
    type: llm-scripted
    settings:
      rules:
        - { when: 'last.role == "tool"', text: 'Done: ${TOKEN}' }
        - when: 'true'
          text: 'I say ${TOKEN}'
          calls: [{ name: look, args: { said: 'AROUND${TOKEN}', more: '{"deep": "${TOKEN}"}' } }]
flows:
  - name: agent
    process:
      - type: ai-agent
        name: ag
        connector: m
        prompt: Look.
        input: '"see " + env.TOKEN'
        answer: text
        memoryThreadId: '"t"'
        agentId: '"a"'
        tools:
          - name: look
            description: Looks.
            process: [{ type: set-payload, settings: { value: 'toJson({"k": toJson({"again": body})})' } }]
  - name: nested
    process:
      - { type: set-payload, settings: { value: 'toJson({"k": env.TOKEN})' } }
      - { type: set-payload, settings: { value: 'toJson({"again": body})' } }
      - { type: log, settings: { message: 'body' } }
      - { type: log, settings: { message: '{"b": body}' } }
  - name: basic
    process:
      - { type: set-payload, settings: { value: '"Basic " + base64.encode(bytes("u:" + env.TOKEN))' } }
"""


@pytest.fixture
def invoke(octo, tmp_path):
    (tmp_path / "c.yaml").write_text(CONFIG, encoding="utf-8")

    def run(flow: str, *options: str, token: str = LINES, terminal: str = ""):
        arguments = ["invoke", "--config", "c.yaml", "--flow", flow, "--store", "kept", *options]
        return octo(*arguments, environ={"TOKEN": token}, terminal=terminal)

    return run


@pytest.mark.parametrize("terminal", ["", "out err"], ids=["in a pipe", "on a terminal"])
@pytest.mark.parametrize("before", ["", "x" * 20, "x" * 55], ids=["whole", "cut late", "cut early"])
def test_a_secret_of_many_lines_shows_nowhere_while_an_agent_works(invoke, tmp_path, terminal, before):
    (tmp_path / "c.yaml").write_text(CONFIG.replace("AROUND", before), encoding="utf-8")

    ran = invoke("agent", "-v", "--log", "run.jsonl", terminal=terminal)

    store = sqlite3.connect(tmp_path / "kept" / "octo.db")
    kept = "\n".join(store.iterdump())
    store.close()
    log = (tmp_path / "run.jsonl").read_text(encoding="utf-8")
    assert ran.status == 0
    assert "***" in ran.stdout
    assert [word for word in SHOWN for text in (ran.stdout, ran.stderr, log, kept) if word in text] == []


def test_a_secret_in_json_inside_of_json_shows_nowhere(invoke):
    ran = invoke("nested")

    assert ran.status == 0
    assert json.loads(ran.stdout)["body"] == '{"again":"{\\"k\\":\\"***\\"}"}'
    assert [word for word in SHOWN if word in ran.stderr] == []


def test_a_tool_that_fails_shows_no_secret_on_a_terminal(invoke, tmp_path):
    failing = CONFIG.replace('toJson({"k": toJson({"again": body})})', "body[env.TOKEN]")
    (tmp_path / "c.yaml").write_text(failing, encoding="utf-8")

    ran = invoke("agent", terminal="out err")

    assert "tool `look` failed: " in ran.stderr
    assert [word for word in SHOWN if word in ran.stderr] == []


def test_a_short_secret_is_hidden_behind_a_user_in_base64(invoke):
    ran = invoke("basic", token="hunter2")

    assert b64encode(b"u:hunter2").decode() not in ran.stdout
    assert json.loads(ran.stdout)["body"] == "Basic dTp***"
