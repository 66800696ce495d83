"""octo/agent/watch.py: over every wire, an agent does the same whether its answers are streamed or not."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acting import acting
from fake_model import FakeRuntime, Listener, config_text
from octo.agent.events import decoded
from octo.errors import OctoError
from octo.llm.transport import Transport
from octo.message import Message
from octo.observe import BlockEntered, ToolCalled, TurnEnded
from octo.testing import harness
from vendor import AnthropicServer, reply
from vendor.doubles import DOUBLES, Double, Offline, Said
from vendor.faults import hang, reset

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


# ---------------------------------------------------------------- over a real connection

ANTHROPIC = next(double for double in DOUBLES if double.name == "Anthropic Messages")


async def over_http(server: AnthropicServer, hear: Any, **options: Any) -> tuple[Message, list[Any]]:
    """The message after a run of an agent whose chain is a function, and the events that it was told."""
    told: list[Any] = []

    async def listen(message: Any, run: Any) -> None:
        told.append(message.body)
        await hear(message)

    async def at_once(_: float) -> None:
        """Waits for nothing."""

    loaded = acting(harness.config(config_text(KEYS + STREAMED.replace("turn_end, ", "retry, "))), {"hear": listen})
    async with Transport({}, sleep=at_once, **options) as transport, FakeRuntime(loaded) as runtime:
        runtime.model = ANTHROPIC.asked(server.url, transport)  # type: ignore[assignment]  # a model
        return await runtime.invoke("f", "in"), told


async def test_a_stop_in_the_middle_of_an_answer_hangs_up():
    async def stop(message: Message) -> None:
        message.stop()

    with AnthropicServer([reply("It goes on and on", faults=[hang(after=4)])]) as server:
        message, told = await asyncio.wait_for(over_http(server, stop), 5)

        assert (message.body, message.stopped) == ("in", True)
        assert [event["type"] for event in told] == ["text"]
        (request,) = server.requests
        assert await asyncio.to_thread(request.abandoned.wait, 5)


async def test_an_answer_that_broke_off_is_told_anew():
    async def listen(_: Message) -> None:
        """Do nothing."""

    with AnthropicServer([reply("It is", faults=[reset(after=4)]), reply("It is so.")]) as server:
        message, told = await over_http(server, listen)

    assert message.body == "It is so."
    first, retry, *rest = told
    assert (first["type"], retry["type"], retry["attempt"]) == ("text", "retry", 1.0)
    assert retry["reason"] == (
        f"POST {server.url}/v1/messages: status 200, but the answer broke off before its end: connection reset by peer"
    )
    assert "".join(event["text"] for event in rest) == "It is so."
