"""octo/layout/order.py: agents in configs, and in files of their own."""

from __future__ import annotations

import pytest

from octo.layout.lay_out import lay_out

AGENT = """\
# what it is
prompt: hi
tools:
- process:
  - settings: {value: body}
    type: set-payload   # echo
  name: echo
model: m
connector: llm
name: a
"""
LAID_OUT = """\
# what it is
name: a
connector: llm
model: m
prompt: hi
tools:
  - name: echo
    process:
      - type: set-payload   # echo
        settings:
          value: body
"""


def indented(text: str, by: str) -> str:
    return "".join(f"{by}{line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (AGENT, LAID_OUT),
        ("agents:\n  a:\n" + indented(AGENT, "    "), "agents:\n  a:\n" + indented(LAID_OUT, "    ")),
    ],
    ids=["a file", "a mapping"],
)
def test_what_an_agent_is_called_stands_first(before: str, after: str) -> None:
    assert lay_out(before.encode(), "a.agent.yaml").decode() == after
    assert lay_out(after.encode(), "a.agent.yaml").decode() == after


def test_agents_of_a_list_are_laid_out_alike() -> None:
    before = "agents:\n- prompt: x\n  name: a\n"

    assert lay_out(before.encode(), "app.yaml").decode() == "agents:\n  - name: a\n    prompt: x\n"
