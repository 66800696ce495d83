"""One flow with one block that asks a fake model, and what came of running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import dedent, indent
from typing import Any

from acting import Action, acting
from fake_model import FakeModel, FakeRuntime, Listener, Ran
from octo.budget import Limits, opened
from octo.errors import ConfigError
from octo.llm.chat import ChatResponse
from octo.observe import LogLine, Observer
from octo.testing import harness

HEAD = """
service: {name: shop}
connectors:
  - name: m
    type: llm-scripted
    settings: {turns: [{text: x}]}
  - name: claude
    type: llm-anthropic
    settings: {apiKey: k}
  - name: seek
    type: llm-deepseek
    settings: {apiKey: k}
  - {name: jobs, type: queue}
flows:
  - name: f
    process:
"""


def config_text(block: str) -> str:
    """A config whose flow `f` has the block."""
    return HEAD + indent(dedent(block).strip("\n"), "        ").replace("        ", "      - ", 1)


async def run(
    block: str,
    *replies: ChatResponse | Exception,
    body: Any = None,
    vars: Mapping[str, Any] | None = None,
    actions: Mapping[str, Action] | None = None,
    observers: Sequence[Observer] = (),
    tail: str = "",
    limits: Mapping[str, Any] | None = None,
) -> Ran:
    """Run the flow. `actions` stand in for the blocks of these names; `tail` is more of the config."""
    log = Listener(LogLine)
    model = FakeModel(replies)
    config = harness.config(f"{config_text(block)}\n{tail}")
    runtime = FakeRuntime(acting(config, dict(actions or {})), observers=[log, *observers])
    runtime.model = model
    async with runtime:
        with opened(Limits.model_validate(limits) if limits is not None else None):
            message = await runtime.invoke("f", body, vars=dict(vars or {}))
    assert model.replies == []
    return Ran(message, model.requests, [event.text for event in log.events if event.level != "debug"])  # type: ignore[attr-defined]  # only log lines


def problems(block: str) -> list[tuple[int | None, str, str | None]]:
    """What is wrong with a block: line in it, message, hint."""
    text = config_text(block)
    try:
        harness.config(text)
    except ConfigError as error:
        start = HEAD.count("\n")
        return [
            (problem.location.line - start if problem.location else None, problem.message, problem.hint)
            for problem in error.problems
        ]
    return []
