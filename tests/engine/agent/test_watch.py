"""octo/agent/watch.py: what the `events` chain of an agent is told, and in which order."""

from __future__ import annotations

import asyncio
from textwrap import dedent
from typing import Any

import pytest

import acting
from fake_model import TOOL, call, reply, run
from octo.errors import BlockError, ProviderError
from octo.llm.chat import Usage
from octo.observe import BlockEntered

WATCHED = """
events:
  process:
    - type: log
      name: hear
      settings: { message: body.type, level: debug }
"""


class Heard:
    """Keeps the messages that the `events` chain was run on."""

    kinds = (BlockEntered,)

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def notify(self, event: Any) -> None:
        if event.address.endswith("[events].hear"):
            self.messages.append(event.message)

    @property
    def bodies(self) -> list[Any]:
        return [message.body for message in self.messages]

    @property
    def types(self) -> list[str]:
        return [body["type"] for body in self.bodies]


async def heard(keys: str, *replies: Any, **options: Any) -> tuple[Any, Heard]:
    observer = Heard()
    ran = await run(keys + WATCHED, *replies, observers=[observer], **options)
    return ran, observer


# ---------------------------------------------------------------- what is told


async def test_the_chain_is_told_of_every_step_in_order():
    usage = Usage(input_tokens=5, output_tokens=2, prompt_tokens=9, reported_cost_usd=0.5)
    first = reply("I look.", call("t", {"n": 1}, "c"), usage=usage)

    _, told = await heard(TOOL, first, reply('{"a": 1}'), body={"q": 1.0}, vars={"v": True})

    counts = {
        "inputTokens": 5.0,
        "outputTokens": 2.0,
        "thinkingTokens": None,
        "cachedTokens": None,
        "cacheWriteTokens": None,
        "promptTokens": 9.0,
        "reportedCostUSD": 0.5,
    }
    assert told.bodies == [
        {"type": "turn_start", "iteration": 1.0},
        {
            "type": "turn_end",
            "iteration": 1.0,
            "text": "I look.",
            "stopReason": "tool_use",
            "usage": counts,
            "contextTokens": 11.0,
            "contextMaxTokens": 200000.0,
        },
        {"type": "tool_call", "iteration": 1.0, "tool": "t", "toolCallId": "c", "input": {"n": 1.0}},
        {
            "type": "tool_result",
            "iteration": 1.0,
            "tool": "t",
            "toolCallId": "c",
            "output": {"done": {"n": 1.0}},
            "isError": False,
        },
        {"type": "turn_start", "iteration": 2.0},
        {"type": "turn_end", "iteration": 2.0, "text": '{"a": 1}', "stopReason": "end_turn"},
        {"type": "done", "iteration": 2.0, "text": '{"a": 1}'},
    ]


async def test_each_event_is_a_message_of_its_own_with_the_variables_of_the_run():
    keys = """
    tools:
      - name: t
        description: A tool.
        process:
          - type: set-variable
            settings: { name: seen, value: 'true' }
    """
    ran, told = await heard(dedent(keys), reply("", call("t")), reply("done"), vars={"v": 1.0})

    ids = {message.event_id for message in told.messages}
    assert len(ids) == len(told.messages)
    assert ran.message.event_id not in ids
    assert {message.trace_id for message in told.messages} == {ran.message.trace_id}
    assert {message.correlation_id for message in told.messages} == {ran.message.correlation_id}
    assert [message.vars.get("seen") for message in told.messages] == [None, None, None, True, True, True, True]
    assert [message.vars["v"] for message in told.messages] == [1.0] * 7


async def test_what_the_chain_makes_of_its_message_is_ignored():
    keys = f"""{TOOL}
events:
  process:
    - type: set-payload
      settings: {{ value: '"mine"' }}
    - type: set-variable
      settings: {{ name: mine, value: 'true' }}
"""
    ran = await run(keys, reply("", call("t", {"n": 1}, "c")), reply("done"))

    assert ran.message.body == "done"
    assert "mine" not in ran.message.vars


@pytest.mark.parametrize(
    ("arguments", "input"),
    [("", None), ("{no", "{no"), ('"x"', "x")],
    ids=["none", "no JSON", "no object"],
)
async def test_the_input_of_a_call_is_what_its_arguments_mean(arguments, input):
    _, told = await heard(TOOL, reply("", call("t", arguments, "c")), reply("done"))

    assert next(body for body in told.bodies if body["type"] == "tool_call")["input"] == input


async def test_a_failed_call_gives_a_result_that_is_an_error():
    _, told = await heard(TOOL, reply("", call("other", {}, "c")), reply("done"))

    assert told.bodies[3] == {
        "type": "tool_result",
        "iteration": 1.0,
        "tool": "other",
        "toolCallId": "c",
        "output": 'unknown tool "other"',
        "isError": True,
    }


async def test_an_empty_answer_is_told_to_be_one():
    _, told = await heard(TOOL, reply("", call("t")), reply(" "))

    assert told.bodies[-1] == {"type": "done", "iteration": 2.0, "text": " ", "emptyAnswer": True}


async def test_the_last_event_sees_the_folded_answer():
    """The body is the event; what the answer became is in the message that goes on."""
    ran, told = await heard(TOOL, reply("```json\n{}\n```"))

    assert told.bodies[-1] == {"type": "done", "iteration": 1.0, "text": "```json\n{}\n```"}
    assert ran.message.body == {}


async def test_giving_up_is_told_before_the_default_path_runs():
    keys = """
    maxIterations: 1
    default:
      process:
        - type: log
          name: fallback
          settings: { message: '"x"' }
    """
    observer = Heard()
    order: list[str] = []

    class Order:
        kinds = (BlockEntered,)

        def notify(self, event: Any) -> None:
            order.append(event.address)

    await run(dedent(keys) + TOOL + WATCHED, reply("", call("t", {"n": 1})), observers=[observer, Order()])

    assert observer.bodies[-1] == {"type": "guardrail", "iteration": 1.0, "reason": "exceeded max iterations"}
    assert order[-2:] == ["f.ag[events].hear", "f.ag[default].fallback"]


async def test_the_reason_of_the_model_is_told_as_detail():
    keys = f"guardrail: Stop.\ndefault: {{process: []}}\n{TOOL}"
    _, told = await heard(keys, reply("", call("take_default_path", {"reason": "too hard"})))

    assert told.bodies[-1] == {
        "type": "guardrail",
        "iteration": 1.0,
        "reason": "model refused",
        "detail": "too hard",
    }


async def test_a_budget_that_allows_nothing_is_told_in_the_first_turn():
    _, told = await heard(f"budget: {{maxTokens: 0}}\ndefault: {{process: []}}\n{TOOL}")

    detail = "`maxTokens` is 0, 0 are used up"
    assert told.bodies == [{"type": "guardrail", "iteration": 1.0, "reason": "budget exceeded", "detail": detail}]


async def test_a_failed_model_call_is_told_as_an_error():
    observer = Heard()
    with pytest.raises(BlockError):
        await run(TOOL + WATCHED, ProviderError("no way"), observers=[observer])

    assert observer.bodies == [
        {"type": "turn_start", "iteration": 1.0},
        {"type": "error", "iteration": 1.0, "error": "no way"},
    ]


async def test_only_listed_events_are_sent():
    _, told = await heard("emit: [tool_result, done]\n" + TOOL, reply("", call("t")), reply("done"))

    assert told.types == ["tool_result", "done"]


async def test_a_conversation_that_is_made_shorter_is_told():
    replies = [reply("x" * 400, call("t", {"n": n}, f"c{n}"), usage=Usage(prompt_tokens=200 * n)) for n in (1, 2)]

    _, told = await heard(f"contextMaxTokens: 500\n{TOOL}", *replies, reply("done"))

    about = {"iteration": 3.0, "strategy": "prune", "before": 600.0, "contextMaxTokens": 500.0}
    assert told.bodies[8:10] == [
        {"type": "compaction_start", "contextTokens": 600.0, **about},
        {"type": "compaction_end", "contextTokens": 400.0, "after": 400.0, "dropped": 2.0, **about},
    ]
    assert told.types[10] == "turn_start"


# ---------------------------------------------------------------- calls of one turn


async def test_calls_are_told_in_call_order_and_results_as_they_come():
    text = """
    connectors:
      - name: m
        type: llm-scripted
        settings: { turns: [{ calls: [{ name: slow }, { name: quick }] }, { text: done }] }
    flows:
      - name: f
        process:
          - type: ai-agent
            name: ag
            connector: m
            prompt: Do it.
            tools:
              - { name: slow, description: x, process: [{ type: log, name: wait, settings: { message: '""' } }] }
              - { name: quick, description: x, process: [] }
            events: { process: [{ type: log, name: hear, settings: { message: '""' } }] }
    """
    told = Heard()
    busy = 0

    async def wait(message, run):
        await asyncio.sleep(0.02)

    async def hear(message, run):
        nonlocal busy
        assert busy == 0
        busy += 1
        told.messages.append(message)
        await asyncio.sleep(0.001)
        busy -= 1

    async with acting.runtime(text, {"wait": wait, "hear": hear}) as octo:
        await octo.invoke("f")

    tools = [(body["type"], body["tool"]) for body in told.bodies if body["type"].startswith("tool")]
    assert tools == [("tool_call", "slow"), ("tool_call", "quick"), ("tool_result", "quick"), ("tool_result", "slow")]


async def test_a_slow_chain_does_not_keep_the_next_call_waiting():
    """One of two slots is free as soon as its call is done, not only when the chain has heard of it."""
    text = """
    connectors:
      - name: m
        type: llm-scripted
        settings: { turns: [{ calls: [{ name: a }, { name: b }, { name: c }] }, { text: done }] }
    flows:
      - name: f
        process:
          - type: ai-agent
            name: ag
            connector: m
            prompt: Do it.
            maxParallelTools: 2
            tools:
              - { name: a, description: x, process: [{ type: log, name: a, settings: { message: '""' } }] }
              - { name: b, description: x, process: [{ type: log, name: b, settings: { message: '""' } }] }
              - { name: c, description: x, process: [{ type: log, name: c, settings: { message: '""' } }] }
            emit: [tool_result]
            events: { process: [{ type: log, name: hear, settings: { message: '""' } }] }
    """
    c_runs = asyncio.Event()

    async def at_once(message, run):
        pass

    async def until_c(message, run):
        await asyncio.wait_for(c_runs.wait(), 5)

    async def c(message, run):
        c_runs.set()

    async with acting.runtime(text, {"a": at_once, "b": until_c, "c": c, "hear": until_c}) as octo:
        assert (await octo.invoke("f")).body == "done"
