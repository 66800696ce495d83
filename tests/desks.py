"""A config with an agent, two agent files, and how the answers of `octo agents` are read."""

from __future__ import annotations

import json
from typing import Any

APP = """\
env:
  - {name: MODEL, default: m1}
connectors:
  - {name: llm, type: llm-scripted, settings: {rules: [{when: 'true', text: hi}]}}
agents:
  desk:
    description: Answers customers
    connector: llm
    model: ${MODEL}
    prompt: Be kind.
    tools:
      - {name: look, flow: find}
flows:
  - {name: find, process: []}
  - name: main
    process:
      - {type: ai-agent, name: answer, agent: desk, input: body.q}
"""
FIRST = "connector: llm\nprompt: Be kind.\n"
SECOND = "connector: llm\nprompt: Be short.\ntemperature: 0.5\n"


def answer(outcome: Any) -> Any:
    assert (outcome.stderr, outcome.status) == ("", 0)
    return json.loads(outcome.stdout)


def deploy(agents: Any, *files: str, name: str = "greet") -> None:
    for file in files:
        assert agents(f"deploy {name} --file {file}.agent.yaml").status == 0


def failure(outcome: Any) -> tuple[str, str, int]:
    """The error and the hint of a command that a person runs, and its status."""
    error, _, hint = outcome.stderr.strip().partition("\nhint: ")
    return error.removeprefix("error: "), hint, outcome.status
