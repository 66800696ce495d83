"""octo/agent/events.py: the `events` chain of an agent, when it goes wrong, stops the run or is slow."""

from __future__ import annotations

import asyncio
from textwrap import dedent, indent
from typing import Any

import pytest

import acting
from fake_model import TOOL, reply, run
from octo.doubles import Doubles
from octo.invocation import invoke
from octo.observe import LogLine, TurnEnded
from octo.runtime import Runtime
from octo.testing.harness import config

# ---------------------------------------------------------------- a chain that fails, drops or stops


@pytest.mark.parametrize(
    "block",
    [
        "{type: set-payload, settings: {value: body.nothing.there}}",
        "{type: validate, settings: {rules: [{expr: 'false'}]}}",
    ],
    ids=["fails", "stops at the end"],
)
async def test_a_chain_that_goes_wrong_never_makes_the_agent_fail(block):
    ran = await run(f"emit: [done]\nevents: {{process: [{block}]}}\n{TOOL}", reply("done"))

    assert ran.message.body == "done"
    assert not ran.message.stopped
    assert ran.log == []


async def test_what_went_wrong_is_in_the_debug_log():
    lines: list[LogLine] = []

    class Lines:
        kinds = (LogLine,)

        def notify(self, event: LogLine) -> None:
            lines.append(event)

    keys = f"emit: [done]\nevents: {{process: [{{type: set-payload, name: x, settings: {{value: body.no}}}}]}}\n{TOOL}"
    await run(keys, reply("done"), observers=[Lines()])

    (line,) = [line for line in lines if line.text.startswith("ai-agent: events")]
    assert line.level == "debug"
    assert line.text == ('ai-agent: events: block "x": set-payload value: evaluate expression: no such key: no')
    assert line.fields == {"block": "f.ag", "event": "done"}


@pytest.mark.parametrize("fault", [RuntimeError("a bug"), acting.Dropped()], ids=["bug", "drop"])
async def test_not_even_a_bug_in_a_block_of_the_chain_reaches_the_agent(fault):
    async def hear(message, run):
        raise fault

    body = await with_chain("{ text: done }", hear)

    assert body == ("done", False)


async def with_chain(turns: str, hear: Any, *, keys: str = "", observers: Any = ()) -> tuple[Any, bool]:
    """The body after a run of an agent whose chain is a function, and whether the flow was completed early."""
    text = f"""
    connectors:
      - name: m
        type: llm-scripted
        settings: {{ chunkSize: 2, turns: [{turns}] }}
    flows:
      - name: f
        process:
          - type: ai-agent
            name: ag
            connector: m
            prompt: Do it.
            tools:
              - {{ name: t, description: x, process: [{{ type: set-payload, settings: {{ value: '"tool"' }} }}] }}
            events: {{ process: [{{ type: log, name: hear, settings: {{ message: '""' }} }}] }}
{indent(dedent(keys), "            ")}
          - type: set-variable
            settings: {{ name: after, value: 'true' }}
    """
    async with acting.runtime(text, {"hear": hear}, observers=observers) as octo:
        message = await octo.invoke("f", "in")
    return message.body, "after" not in message.vars


@pytest.mark.parametrize(
    ("at", "expected", "calls"),
    [
        ("turn_start", ("in", True), 1),
        ("turn_end", ("in", True), 1),
        ("tool_call", ("tool", True), 1),
        ("tool_result", ("tool", True), 1),
        ("text", ("in", True), 1),
        ("tool_input", ("in", True), 1),
        ("thinking", ("in", True), 1),
        ("done", ("end", False), 2),
    ],
)
async def test_a_stop_of_the_chain_halts_the_run(at, expected, calls):
    """The body stays as it is, no later block of the flow runs, and the default path is not taken."""
    ended: list[str] = []

    class Ends:
        kinds = (TurnEnded,)

        def notify(self, event: TurnEnded) -> None:
            ended.append(event.stop_reason)

    async def hear(message, run):
        if message.body["type"] == at:
            message.stop()

    turns = "{ thinking: hm, text: look, calls: [{ name: t }, { name: t }] }, { text: end }"
    keys = "stream: true\ndefault: { process: [{ type: set-payload, settings: { value: '\"default\"' } }] }"
    found = await with_chain(turns, hear, keys=keys, observers=[Ends()])

    assert found == expected
    abandoned = at in ("turn_start", "text", "tool_input", "thinking")
    assert ended == (["stopped"] if abandoned else ["tool_use", "end_turn"][:calls])


async def test_a_stop_at_the_end_of_a_turn_keeps_an_answer_from_being_folded():
    async def hear(message, run):
        if message.body["type"] == "turn_end":
            message.stop()

    assert await with_chain("{ text: done }", hear) == ("in", True)


@pytest.mark.parametrize("at", ["guardrail", "error"])
async def test_a_stop_where_there_is_nothing_to_stop_is_ignored(at):
    async def hear(message, run):
        if message.body["type"] == at:
            message.stop()

    keys = "maxIterations: 1\ndefault: { process: [{ type: set-payload, settings: { value: '\"default\"' } }] }"

    assert await with_chain("{ calls: [{ name: t }] }", hear, keys=keys) == ("default", False)


# ---------------------------------------------------------------- answers as they come


async def test_pieces_of_an_answer_are_told_as_they_come():
    told: list[Any] = []

    async def hear(message, run):
        told.append({key: value for key, value in message.body.items() if key != "iteration"})

    turns = "{ thinking: 'hmm', text: 'look', calls: [{ name: t, args: { n: 1 } }] }, { text: done }"
    await with_chain(turns, hear, keys="stream: true\nemit: [text, thinking, tool_input, done]")

    call = {"type": "tool_input", "index": 0.0, "tool": "t", "toolCallId": "call_1"}
    assert told == [
        {"type": "thinking", "text": "hm", "index": 0.0},
        {"type": "thinking", "text": "m", "index": 0.0},
        {"type": "text", "text": "lo", "index": 0.0},
        {"type": "text", "text": "ok", "index": 0.0},
        *({**call, "text": text} for text in ('{"', 'n"', ":1", "}")),
        {"type": "text", "text": "do", "index": 0.0},
        {"type": "text", "text": "ne", "index": 0.0},
        {"type": "done", "text": "done"},
    ]


async def test_without_stream_there_are_no_pieces_also_when_observers_want_them():
    types: list[str] = []

    async def hear(message, run):
        types.append(message.body["type"])

    text = """
    connectors: [{ name: m, type: llm-scripted, settings: { turns: [{ text: done }] } }]
    flows:
      - name: f
        process:
          - type: ai-agent
            connector: m
            prompt: Do it.
            tools: [{ name: t, description: x, process: [] }]
            events: { process: [{ type: log, name: hear, settings: { message: '""' } }] }
    """
    async with acting.runtime(text, {"hear": hear}, streaming=True) as octo:
        await octo.invoke("f")

    assert types == ["turn_start", "turn_end", "done"]


async def test_a_slow_chain_slows_the_stream_down():
    at_work: list[str] = []

    async def hear(message, run):
        at_work.append("begin")
        await asyncio.sleep(0.001)
        at_work.append("end")

    await with_chain("{ text: 'a long answer' }", hear, keys="stream: true\nemit: [text]")

    assert at_work == ["begin", "end"] * 7


# ---------------------------------------------------------------- addresses


WITH_BREAK = """
connectors: [{ name: m, type: llm-scripted, settings: { turns: [{ %s }] } }]
flows:
  - name: f
    process:
      - type: ai-agent
        name: ag
        connector: m
        prompt: Do it.
        maxIterations: 1
        tools: [{ name: t, description: x, process: [] }]
        default: { process: [{ type: set-variable, name: fallback, settings: { name: x, value: '1' } }] }
        emit: [%s]
        events:
          process:
            - { type: set-payload, name: first, settings: { value: body.type } }
            - { type: set-payload, name: second, settings: { value: '"no"' } }
      - { type: set-payload, name: after, settings: { value: '"no"' } }
"""


@pytest.mark.parametrize(
    ("turn", "event"),
    [
        ("text: done", "turn_start"),
        ("text: done", "turn_end"),
        ("text: done", "done"),
        ("calls: [{ name: t }]", "guardrail"),
        ("error: { message: no }", "error"),
    ],
    ids=lambda value: value,
)
async def test_after_a_breakpoint_in_the_chain_nothing_runs(turn, event):
    doubles = Doubles({}, ["f.ag[events].second", "f.ag[default].fallback", "f.after"], "f.ag[events].first")
    loaded = config(WITH_BREAK % (turn, event))
    stage = doubles.on(loaded)
    outcome = await invoke(Runtime(loaded, stage=stage), "f", "in")

    assert outcome.error is None
    assert stage is not None
    assert stage.snapshot is not None
    assert stage.snapshot["body"] == event
    assert set(map(tuple, stage.records.values())) == {()}
