"""octo/agent/watched.py: the keys that say who is told what an agent does."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from octo.errors import ConfigError
from octo.testing.harness import config

EMITTED = [
    "compaction_end",
    "compaction_start",
    "custom",
    "done",
    "error",
    "guardrail",
    "retry",
    "signal",
    "text",
    "thinking",
    "thread_title",
    "tool_authorization",
    "tool_call",
    "tool_input",
    "tool_result",
    "turn_end",
    "turn_start",
]


def problems(keys: str) -> list[str]:
    text = f"""
connectors: [{{ name: m, type: llm-scripted, settings: {{ turns: [{{ text: done }}] }} }}]
flows:
  - name: f
    process:
      - type: ai-agent
        connector: m
        prompt: Do it.
        tools: [{{ name: t, description: x, process: [] }}]
{indent(dedent(keys).strip(), "        ")}
"""
    try:
        return [warning.message for warning in config(text).warnings]
    except ConfigError as error:
        return [
            f"{problem.message} ({problem.hint})" if problem.hint else problem.message for problem in error.problems
        ]


CHAIN = "events: { process: [] }"


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            "stream: true",
            "ai-agent: `stream` requires `events`: there is nothing to report to (add `events: {process: [...]}`)",
        ),
        (
            "emit: [done]",
            "ai-agent: `emit` requires `events`: there is nothing to filter (add `events: {process: [...]}`)",
        ),
        (
            f"{CHAIN}\nemit: [don]",
            f"expected {' or '.join(f'`{name}`' for name in EMITTED)}, found `don` (did you mean `done`?)",
        ),
        ("events: { process: [], source: x }", 'unknown field "source"'),
        (
            f"{CHAIN}\nemit: [done, text]",
            "ai-agent: there are no `text` events without `stream: true`",
        ),
    ],
    ids=["stream alone", "emit alone", "no event", "no flow of its own", "pieces without stream"],
)
def test_keys_that_cannot_work_are_told(keys, expected):
    (problem,) = problems(keys)

    assert problem.startswith(expected)


@pytest.mark.parametrize("keys", [CHAIN, f"{CHAIN}\nemit: []", f"{CHAIN}\nstream: true\nemit: [text]", "stream: false"])
def test_keys_that_work_are_taken(keys):
    assert problems(keys) == []
