"""octo/agent/watch.py: over every wire, an agent does the same whether its answers are streamed or not."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fake_model import FakeRuntime, Listener, config_text
from octo.agent.events import decoded
from octo.errors import OctoError
from octo.observe import BlockEntered, ToolCalled, TurnEnded
from octo.testing import harness
from vendor.doubles import DOUBLES, Double, Offline, Said

EXAMPLES = 5_000 if os.environ.get("OCTO_SOAK") else 120

KEYS = """
answer: text
tools:
  - {name: lookup, description: x, process: [{type: set-payload, value: '{"found": body}'}]}
  - {name: t, description: x, validateInput: false, process: []}
default: {process: [{type: set-payload, value: '"default"'}]}
"""
STREAMED = """
stream: true
emit: [text, tool_input, turn_end, tool_call]
events: {process: [{type: log, name: hear, message: '""', level: debug}]}
"""
CONFIGS = {stream: harness.config(config_text(KEYS + (STREAMED if stream else ""))) for stream in (False, True)}

OBJECTS = ({}, {"n": 1}, {"n": [1, {"é": None, "s": "😀" * 9}]})
TEXTS = ('{"n":', "[]", " ")
"""Arguments that only wires which send them as text can hold."""


def said(arguments: tuple[Any, ...]) -> st.SearchStrategy[Said]:
    return st.builds(
        Said,
        text=st.sampled_from(["", " ", "It is so.", "é 😀 日本", '```json\n{"a": 1}\n```', "two\n\nlines\n"]),
        calls=st.lists(
            st.tuples(st.sampled_from(["lookup", "t", "unknown"]), st.sampled_from(arguments)),
            max_size=3,
        ).map(tuple),
        thinking=st.sampled_from(["", "", "let me see\n"]),
        cut_off=st.integers(0, 7).map(lambda one: one == 0),
        refuses=st.integers(0, 15).map(lambda one: one == 0),
    )


async def work(double: Double, script: list[Said], *, stream: bool) -> tuple[Any, list[Any], list[Any], list[Any]]:
    """What came out, the turns, the calls, and the events of the chain."""
    turns, calls, blocks = Listener(TurnEnded), Listener(ToolCalled), Listener(BlockEntered)
    said = iter([*script, *[Said("fine")] * 9])
    runtime = FakeRuntime(CONFIGS[stream], observers=[turns, calls, blocks])
    server = double.serve(lambda _: double.say(next(said)))
    runtime.model = double.asked("http://double", Offline(server), **double.settings)  # type: ignore[assignment]  # a model
    async with runtime:
        try:
            result = (await runtime.invoke("f", "go")).body
        except OctoError as error:
            result = error.message
    events = [event.message.body for event in blocks.events if event.address.endswith("[events].hear")]  # type: ignore[attr-defined]
    ended = [(turn.stop_reason, turn.text, turn.tool_calls, turn.usage) for turn in turns.events]  # type: ignore[attr-defined]
    return result, ended, [(call.tool, decoded(call.arguments)) for call in calls.events], events  # type: ignore[attr-defined]


async def compare(double: Double, script: list[Said]) -> None:
    plain = await work(double, script, stream=False)
    streamed = await work(double, script, stream=True)

    assert streamed[:3] == plain[:3]
    text = ""
    inputs: dict[str, str] = defaultdict(str)
    for event in streamed[3]:
        match event["type"]:
            case "text":
                text += event["text"]
            case "tool_input":
                inputs[event["toolCallId"]] += event["text"]
            case "turn_end":
                assert text == event["text"] or (text == "" and event["stopReason"] == "refusal")
                text = ""
            case "tool_call":
                sent = inputs.pop(event["toolCallId"], "")
                assert decoded(sent) in (event["input"], event["input"] or None)


@pytest.mark.parametrize("double", DOUBLES, ids=lambda double: double.name)
def test_a_streamed_run_equals_one_that_was_not(double: Double):
    arguments = OBJECTS + (TEXTS if double.name in ("Chat Completions", "Responses") else ())

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(script=st.lists(said(arguments), max_size=3))
    def equals(script: list[Said]) -> None:
        asyncio.run(compare(double, script))

    equals()
