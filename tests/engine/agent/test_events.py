"""octo/agent/events.py, octo/agent/watch.py, octo/agent/watched.py: what the `events` chain of an agent is told."""

from __future__ import annotations

import asyncio
from textwrap import dedent, indent
from typing import Any

import pytest

import acting
from fake_model import TOOL, call, reply, run
from octo.doubles import Doubles
from octo.errors import BlockError, ConfigError, ProviderError
from octo.invocation import invoke
from octo.llm.chat import Usage
from octo.observe import BlockEntered, LogLine, TurnEnded
from octo.runtime import Runtime
from octo.testing.harness import config

WATCHED = """
events:
  process:
    - type: log
      name: hear
      settings: { message: body.type, level: debug }
"""
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


# ---------------------------------------------------------------- what is refused


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
