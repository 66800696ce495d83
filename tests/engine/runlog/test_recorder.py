"""octo/runlog/recorder.py: records of a run while it goes, each in its place."""

import asyncio
import io
import json
from itertools import count
from typing import Any

import pytest

import fake_model
from fake_model import TOOL, call, reply
from http_api import Api, as_json
from octo.errors import OctoError, ProviderError
from octo.llm.chat import Retry, TextDelta, Usage
from octo.message import Dropped
from octo.observe import CompactionEnded, ModelDelta, TurnStarted
from octo.runlog.record import PIECES, Record
from octo.runlog.recorder import Recorder, Writer
from octo.runlog.tree import totals, tree
from octo.runlog.words import detail
from octo.testing import harness
from octo.testing.harness import runtime


def recorder(records: list[Record], **options: Any) -> Recorder:
    """A recorder whose clock goes on by a microsecond with each record."""
    ticks = count(1_700_000_000_000_000_000, 1000)
    return Recorder([records.append], clock=lambda: next(ticks), **options)


async def records_of(text: str, body: Any = None, *, flow: str = "main", **options: Any) -> list[Record]:
    """The records of one call, however it ends."""
    records: list[Record] = []
    async with runtime(text, observers=[recorder(records, **options)]) as octo:
        try:
            await octo.invoke(flow, body)
        except (Dropped, OctoError):
            pass
    return records


def plain(record: Record) -> dict[str, Any]:
    """A record as it is written, without what differs from run to run."""
    parts = json.loads(record.text)
    return {name: value for name, value in parts.items() if name not in ("traceId", "eventId", "at", "durationNs")}


def outline(records: list[Record]) -> list[str]:
    """What happened inside what."""
    return [
        f"{'  ' * depth}{node.kind} {node.name}{'' if node.outcome == 'completed' else ': ' + node.outcome}"
        for root in tree(records)
        for depth, node in root.walk()
    ]


# ---------------------------------------------------------------- flows and blocks


async def test_flows_and_blocks_are_told_with_what_went_in_and_came_out():
    records = await records_of(
        """
        flows:
          - name: main
            process:
              - type: set-variable
                settings: {name: seen, value: 'true'}
              - type: set-payload
                name: double
                settings: {value: body.n * 2}
        """,
        {"n": 2},
    )

    assert [plain(record) for record in records] == [
        {"seq": 1, "kind": "flow.started", "spanId": 1, "flow": "main", "body": {"n": 2}},
        {
            "seq": 2,
            "kind": "block.pre-invoke",
            "spanId": 2,
            "parentId": 1,
            "flow": "main",
            "path": "main.set-variable",
            "blockType": "set-variable",
            "body": {"n": 2},
        },
        {
            "seq": 3,
            "kind": "block.post-invoke",
            "spanId": 2,
            "flow": "main",
            "path": "main.set-variable",
            "blockType": "set-variable",
            "body": {"n": 2},
            "vars": {"seen": True},
        },
        {
            "seq": 4,
            "kind": "block.pre-invoke",
            "spanId": 4,
            "parentId": 1,
            "flow": "main",
            "path": "main.double",
            "blockType": "set-payload",
            "body": {"n": 2},
            "vars": {"seen": True},
        },
        {
            "seq": 5,
            "kind": "block.post-invoke",
            "spanId": 4,
            "flow": "main",
            "path": "main.double",
            "blockType": "set-payload",
            "body": 4,
            "vars": {"seen": True},
        },
        {"seq": 6, "kind": "flow.completed", "spanId": 1, "flow": "main", "body": 4, "vars": {"seen": True}},
    ]
    assert {record.trace_id for record in records} == {record.event_id for record in records} != {""}
    assert [record.at[-7:] for record in records] == [f"00000{n}Z" for n in range(6)]
    assert all((record.duration_ns is None) == record.begins for record in records)


async def test_a_failure_is_told_of_every_block_and_flow_that_it_ends():
    records = await records_of(
        """
        flows:
          - name: main
            process:
              - type: if
                condition: 'true'
                then:
                  process:
                    - type: set-payload
                      name: price
                      settings: {value: body.price}
        """,
        {},
    )

    cause = "set-payload value: evaluate expression: no such key: price"
    assert [(record.kind, record.path, record.error) for record in records if record.error] == [
        ("block.post-invoke", "main.if[then].price", cause),
        ("block.post-invoke", "main.if", f'block "price": {cause}'),
        ("flow.failed", "", f'block "if": block "price": {cause}'),
    ]


async def test_a_recovered_failure_leaves_the_flow_completed():
    records = await records_of(
        """
        flows:
          - name: main
            process:
              - {type: set-payload, name: price, settings: {value: body.price}}
            error:
              - {type: set-payload, name: sorry, settings: {value: '"sorry"'}}
        """,
        {},
    )

    assert outline(records) == ["flow main", "  block price: failed", "  block sorry"]
    assert records[-1].kind == "flow.completed"


async def test_a_message_that_is_filtered_out_is_told():
    records: list[Record] = []
    text = """
        flows:
          - name: main
            process:
              - {type: aggregate, correlation: body, completionSize: '9', maxGroups: 1, onOverflow: drop}
              - {type: log, settings: {message: body}}
    """
    async with runtime(text, observers=[recorder(records)]) as octo:
        await octo.invoke("main", "first group")
        with pytest.raises(Dropped):
            await octo.invoke("main", "second group")

    assert [(record.kind, record.dropped, record.error) for record in records[-2:]] == [
        ("block.post-invoke", True, ""),
        ("flow.dropped", True, ""),
    ]


async def test_flows_that_are_called_lie_inside_the_block_that_calls_them_and_have_its_trace():
    records = await records_of(
        """
        flows:
          - name: main
            process:
              - {type: flow-ref, settings: {flow: other}}
          - name: other
            process:
              - {type: set-payload, settings: {value: '1'}}
        """
    )

    assert outline(records) == ["flow main", "  block flow-ref", "    flow other", "      block set-payload"]
    assert len({record.trace_id for record in records}) == 1
    assert [record.flow for record in records] == ["main", "main", "other", "other", "other", "other", "main", "main"]


async def test_branches_that_run_at_the_same_time_keep_their_blocks_apart():
    branches = "".join(
        f"""
                  - name: b{n}
                    process:
                      - {{type: enrich, name: outer{n}, setBody: body, body: {{process: [
                          {{type: set-payload, name: inner{n}, settings: {{value: '{n}'}}}}]}}}}"""
        for n in range(3)
    )
    records = await records_of(
        f"""
        flows:
          - name: main
            process:
              - type: fork
                branches: {branches}
        """
    )

    assert outline(records) == [
        "flow main",
        "  block fork",
        *[line for n in range(3) for line in (f"    block outer{n}", f"      block inner{n}")],
    ]


async def test_messages_that_a_block_sends_on_their_way_belong_to_it_also_when_it_is_done():
    records = await records_of(
        """
        flows:
          - name: main
            process:
              - {type: split, name: cut, settings: {items: body}}
              - {type: set-variable, name: note, settings: {name: it, value: body}}
        """,
        [1.0, 2.0],
    )

    assert outline(records) == ["flow main", "  block cut", *["    flow main", "      block note"] * 2]
    assert len({record.trace_id for record in records}) == 1
    assert len({record.event_id for record in records}) == 3


async def test_calls_from_outside_are_apart_even_when_they_run_at_the_same_time():
    records: list[Record] = []
    text = """
        flows:
          - name: main
            process:
              - {type: fork, branches: [{process: [{type: set-payload, settings: {value: body}}]}]}
    """
    async with runtime(text, observers=[recorder(records)]) as octo:
        await asyncio.gather(octo.invoke("main", 1), octo.invoke("main", 2))

    one = ["flow main", "  block fork", "    block set-payload"]
    assert outline(records) == one + one
    assert len({record.trace_id for record in records}) == 2


async def test_what_is_cancelled_is_told_as_interrupted():
    records: list[Record] = []
    text = """
        flows:
          - name: main
            process:
              - {type: python, name: wait, settings: {file: wait.py, function: wait}}
    """
    files = {"wait.py": "import asyncio\n\nasync def wait(body):\n    await asyncio.sleep(9)\n"}
    async with runtime(text, files=files, observers=[recorder(records)]) as octo:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await octo.invoke("main")

    assert [(record.kind, record.error) for record in records[-2:]] == [
        ("block.post-invoke", "interrupted"),
        ("flow.failed", "interrupted"),
    ]


async def test_two_recorders_of_one_runtime_do_not_disturb_each_other():
    first: list[Record] = []
    second: list[Record] = []
    text = "flows: [{name: main, process: [{type: set-payload, settings: {value: '1'}}]}]"
    async with runtime(text, observers=[recorder(first), recorder(second)]) as octo:
        await octo.invoke("main")

    assert outline(first) == outline(second) == ["flow main", "  block set-payload"]


# ---------------------------------------------------------------- agents


async def test_a_turn_tells_what_the_model_was_asked_and_what_it_answered():
    records: list[Record] = []
    usage = Usage(input_tokens=5, output_tokens=2)
    first = reply("I look.", call("t", {"n": 1}, "c1"), thinking="hm", usage=usage)
    await fake_model.run(TOOL, first, reply("done"), body={"q": 1.0}, observers=[recorder(records)])

    first_turn, second_turn = (plain(record)["attrs"] for record in records if record.kind == "llm.turn")
    asked = first_turn["input"]
    assert asked.pop("system").endswith("Do it.")
    assert first_turn == {
        "iteration": 1,
        "model": "fake",
        "stopReason": "tool_use",
        "toolCalls": 1,
        "usage": {"inputTokens": 5, "outputTokens": 2},
        "input": {
            "tools": [{"name": "t", "description": "A tool.", "inputSchema": {"type": "object"}}],
            "messages": [{"role": "user", "text": 'The input of the task, as JSON:\n{"q":1}'}],
        },
        "output": {
            "role": "assistant",
            "reasoning": "hm",
            "text": "I look.",
            "calls": [{"toolCallId": "c1", "tool": "t", "input": {"n": 1}}],
        },
    }
    assert second_turn == {
        "iteration": 2,
        "model": "fake",
        "stopReason": "end_turn",
        "toolCalls": 0,
        "input": {
            "earlier": 2,
            "messages": [
                {"role": "tool", "results": [{"toolCallId": "c1", "tool": "t", "output": {"done": {"n": 1}}}]}
            ],
        },
        "output": {"role": "assistant", "text": "done"},
    }


async def test_turns_and_tool_calls_lie_inside_the_block_of_the_agent():
    records: list[Record] = []
    await fake_model.run(TOOL, reply("", call("t", {"n": 1})), reply("done"), observers=[recorder(records)])

    assert outline(records) == [
        "flow f",
        "  block ag",
        "    turn turn 1",
        "    tool t",
        "      block set-payload",
        "    turn turn 2",
    ]
    assert [plain(record)["attrs"] for record in records if record.kind.startswith("agent.tool")] == [
        {"iteration": 1, "tool": "t", "toolCallId": "call_t", "input": {"n": 1}},
        {"iteration": 1, "tool": "t", "toolCallId": "call_t", "output": {"done": {"n": 1}}, "isError": False},
    ]


async def test_tool_calls_that_run_at_the_same_time_keep_their_blocks_apart():
    """Also when the model gave two of them one id."""
    records: list[Record] = []
    keys = """
    tools:
      - name: t
        description: A tool.
        process:
          - {type: fork, branches: [{process: [{type: set-payload, settings: {value: body}}]}]}
          - {type: set-payload, name: last, settings: {value: body}}
    """
    calls = [call("t", {"n": n}, "same") for n in range(3)]
    await fake_model.run(keys, reply("", *calls, call("unknown")), reply("done"), observers=[recorder(records)])

    one = ["    tool t", "      block fork", "        block set-payload", "      block last"]
    assert outline(records) == [
        "flow f",
        "  block ag",
        "    turn turn 1",
        *one * 3,
        "    tool unknown: failed",
        "    turn turn 2",
    ]
    for node in (node for root in tree(records) for _, node in root.walk() if node.kind == "tool" and node.children):
        assert {child.first.body["n"] for child in node.children} == {node.attrs["input"]["n"]}
        assert node.attrs["output"] == node.attrs["input"]


async def test_a_model_that_gives_up_is_told_with_the_reason():
    records: list[Record] = []
    keys = TOOL + "guardrail: Stop.\ndefault: {process: [{type: set-payload, settings: {value: '1'}}]}\n"
    await fake_model.run(
        keys, reply("", call("take_default_path", {"reason": "no idea"})), observers=[recorder(records)]
    )

    (note,) = (plain(record) for record in records if record.kind == "agent.guardrail")
    assert note["attrs"] == {"iteration": 1, "reason": "model refused", "detail": "no idea"}
    assert outline(records) == [
        "flow f",
        "  block ag",
        "    turn turn 1",
        "    note guardrail",
        "    block set-payload",
    ]


async def test_a_model_call_that_fails_is_told_with_the_error():
    records: list[Record] = []
    with pytest.raises(OctoError):
        await fake_model.run(TOOL, ProviderError("overloaded"), observers=[recorder(records)])

    (turn,) = (record for record in records if record.kind == "llm.turn")
    assert (turn.error, turn.attrs["iteration"], turn.attrs.get("output")) == ("overloaded", 1, None)
    assert outline(records)[:3] == ["flow f: failed", "  block ag: failed", "    turn turn 1: failed"]


# ---------------------------------------------------------------- payloads


async def test_bodies_beyond_the_limit_are_left_out():
    records = await records_of("flows: [{name: main}]", "x" * 100, limit=99)

    assert [plain(record) for record in records] == [
        {"seq": 1, "kind": "flow.started", "spanId": 1, "flow": "main", "truncated": True},
        {"seq": 2, "kind": "flow.completed", "spanId": 1, "flow": "main", "truncated": True},
    ]


async def test_secrets_never_reach_a_record():
    records: list[Record] = []
    text = """
        env: [{name: API_KEY}]
        flows:
          - name: main
            process:
              - {type: set-variable, settings: {name: key, value: env.API_KEY}}
              - {type: set-payload, settings: {value: 'body[env.API_KEY]'}}
    """
    secret = 's3cret"value'
    mask = harness.config(text, environ={"API_KEY": secret}).environment.mask
    async with runtime(text, environ={"API_KEY": secret}, observers=[recorder(records, mask=mask)]) as octo:
        with pytest.raises(OctoError):
            await octo.invoke("main", {"a": [f"<{secret}>"]})

    assert records[0].body == {"a": ["<***>"]}
    assert records[-1].error.endswith("no such key: ***")
    assert not any("s3cret" in record.text for record in records)


async def test_a_value_that_has_no_json_form_does_not_disturb_the_run():
    records: list[Record] = []
    async with runtime("flows: [{name: main}]", observers=[recorder(records)]) as octo:
        await octo.invoke("main", vars={"odd": object()})

    assert [(record.kind, record.truncated, record.vars) for record in records] == [
        ("flow.started", True, {}),
        ("flow.completed", True, {}),
    ]


# ---------------------------------------------------------------- writing


def test_a_writer_writes_each_record_at_once():
    class Stream(io.StringIO):
        flushed = 0

        def flush(self) -> None:
            self.flushed += 1

    stream = Stream()
    writer = Writer(stream)
    writer(Record(seq=1, kind="a"))
    writer(Record(seq=2, kind="b"))

    assert stream.getvalue() == '{"seq":1,"kind":"a"}\n{"seq":2,"kind":"b"}\n'
    assert (stream.flushed, writer.error) == (2, None)


def test_a_writer_that_cannot_write_keeps_the_reason_and_stays_silent():
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    writer = Writer(Full())
    writer(Record(seq=1, kind="a"))
    writer(Record(seq=2, kind="b"))

    assert str(writer.error) == "[Errno 28] No space left on device"


LONG = "x" * 300


async def test_a_long_body_or_variable_that_stays_is_written_once():
    records = await records_of(
        """
        flows:
          - name: main
            process:
              - {type: set-variable, name: keep, settings: {name: kept, value: body.text}}
              - {type: set-variable, name: short, settings: {name: n, value: '1'}}
              - {type: set-payload, name: new, settings: {value: '"new"'}}
        """,
        {"text": LONG},
    )

    body = {"text": LONG}
    written = [json.loads(record.text) for record in records]
    assert [(parts.get("body"), parts.get("vars"), parts.get("same")) for parts in written] == [
        (body, None, None),
        (None, None, {"body": 1}),
        (None, {"kept": LONG}, {"body": 1}),
        (None, None, {"body": 1, "vars.kept": 3}),
        (None, {"n": 1}, {"body": 1, "vars.kept": 3}),
        (None, {"n": 1}, {"body": 1, "vars.kept": 3}),
        ("new", {"n": 1}, {"vars.kept": 3}),
        ("new", {"n": 1}, {"vars.kept": 3}),
    ]
    assert [record.body for record in records] == [body] * 6 + ["new"] * 2
    assert [dict(record.vars) for record in records[3:5]] == [{"kept": LONG}, {"kept": LONG, "n": 1.0}]


async def test_what_is_the_same_again_is_masked_as_before():
    records = await records_of(
        "flows: [{name: main, process: [{type: log, settings: {message: '1'}}]}]",
        [LONG, "s3cret"],
        mask=lambda text: text.replace("s3cret", "***"),
    )

    assert [record.body for record in records] == [[LONG, "***"]] * 4
    assert [record.same for record in records] == [{}, *[{"body": 1}] * 3]


async def test_what_was_too_large_is_not_referred_to():
    records = await records_of(
        "flows: [{name: main, process: [{type: log, settings: {message: '1'}}]}]", [LONG], limit=300
    )

    assert [(record.body, record.truncated, record.same) for record in records] == [(None, True, {})] * 4


async def test_the_log_of_a_loop_does_not_repeat_what_stays():
    text = """
    flows:
      - name: main
        process:
          - type: set-variable
            settings: {name: all, value: body}
          - type: foreach
            settings:
              items: '[1, 2, 3, 4]'
              body: {process: [{type: set-payload, settings: {value: 'vars.all.size()'}}]}
    """

    records = await records_of(text, [LONG] * 50)

    assert sum(len(record.text) for record in records) < 2.5 * 50 * len(LONG)


# ---------------------------------------------------------------- models without an agent

ONE_STEP = """
connectors:
  - name: model
    type: llm-scripted
    settings: {turns: [{calls: [{name: select_route, args: {route: a}}], usage: {inputTokens: 9, outputTokens: 2}}]}
flows:
  - name: main
    process:
      - type: ai-router
        connector: model
        prompt: Choose.
        routes: [{name: a, description: A., process: [{type: log, message: body}]}]
      - {type: ai-embed, connector: model, model: e-1, text: BODY, dimensions: 2}
"""


async def test_the_turns_of_a_router_and_the_call_of_an_embedding_stand_in_their_blocks():
    records = await records_of(ONE_STEP.replace("BODY", "body.text"), {"text": "four or so"})

    assert outline(records) == [
        "flow main",
        "  block ai-router",
        "    turn turn 1",
        "    block log",
        "  block ai-embed",
        "    note llm.embed",
    ]
    (embedding,) = (record for record in records if record.kind == "llm.embed")
    assert (embedding.path, embedding.duration_ns is not None) == ("main.ai-embed", True)
    usage = {"inputTokens": 3, "outputTokens": 0, "promptTokens": 3}
    assert embedding.attrs == {"connector": "model", "model": "e-1", "texts": 1, "dimensions": 2, "usage": usage}
    assert detail(tree(records)[0].children[1].children[0]) == "e-1 · 1 text"
    assert (totals(records, tree(records)).tokens_read, totals(records, tree(records)).turns) == (12, 1)


async def test_an_embedding_that_fails_is_where_the_failure_began():
    text = ONE_STEP.replace("BODY", "body.text").replace("model: e-1", "model: e-1, name: vec")
    with Api(lambda _: as_json({"error": {"message": "no such model"}}, 400)) as server:
        settings = f"{{apiKey: k, baseURL: '{server.url}'}}"
        text = text.replace("ai-embed, connector: model", "ai-embed, connector: wire").replace(
            "flows:", f"  - {{name: wire, type: llm-openai, settings: {settings}}}\nflows:"
        )
        records = await records_of(text, {"text": "x"})

    assert outline(records)[-2:] == ["  block vec: failed", "    note llm.embed: failed"]
    origins = [node for root in tree(records) for _, node in root.walk() if node.is_origin_of_failure]
    assert [node.name for node in origins] == ["llm.embed"]


# ---------------------------------------------------------------- answers as they come

STREAMED = """
connectors:
  - name: model
    type: llm-scripted
    settings: {turns: [{thinking: hm, text: I look., calls: [{name: t, args: {n: 1}}]}, {text: done}]}
flows:
  - name: main
    process:
      - type: ai-agent
        name: ag
        connector: model
        prompt: Do it.
        tools: [{name: t, description: A tool., process: []}]
        stream: true
        emit: [turn_start, text, tool_result]
        events: {process: [{type: log, name: hear, settings: {message: body.type, level: debug}}]}
"""


async def test_pieces_of_an_answer_are_records_where_they_are_wanted():
    records = await records_of(STREAMED, pieces=True)

    assert [(record.kind, record.attrs) for record in records if record.kind in PIECES] == [
        ("agent.thinking", {"iteration": 1, "text": "hm", "index": 0}),
        ("agent.text", {"iteration": 1, "text": "I look.", "index": 0}),
        ("agent.tool_input", {"iteration": 1, "text": '{"n":1}', "index": 0, "tool": "t", "toolCallId": "call_1"}),
        ("agent.text", {"iteration": 2, "text": "done", "index": 0}),
    ]


async def test_without_pieces_the_records_are_the_same_but_for_them():
    with_pieces = await records_of(STREAMED, pieces=True)
    without = await records_of(STREAMED)

    assert [record.kind for record in with_pieces if record.kind not in PIECES] == [record.kind for record in without]
    assert outline(with_pieces) == outline(without)


async def test_the_blocks_of_an_events_chain_are_told_where_they_run():
    records = await records_of(STREAMED)

    nodes = [(depth, node) for root in tree(records) for depth, node in root.walk()]
    assert [f"{'  ' * depth}{node.name} {detail(node)}".rstrip() for depth, node in nodes] == [
        "main",
        "  ag ai-agent",
        "    turn 1 scripted · tool_use",
        "      hear log · in events",
        "      hear log · in events",
        '    t {"n": 1}',
        "    hear log · in events",
        "    turn 2 scripted · end_turn",
        "      hear log · in events",
        "      hear log · in events",
    ]


def test_an_answer_that_broke_off_is_always_told():
    records: list[Record] = []
    watching = recorder(records)
    watching.notify(TurnStarted("main.ag", "e", 1))
    watching.notify(ModelDelta("main.ag", "e", 1, TextDelta("so")))
    watching.notify(ModelDelta("main.ag", "e", 1, Retry(1, "the line broke")))

    assert [plain(record) for record in records[1:]] == [
        {
            "seq": 2,
            "kind": "agent.retry",
            "parentId": 1,
            "path": "main.ag",
            "attrs": {"iteration": 1, "attempt": 1, "reason": "the line broke"},
        }
    ]


def test_a_conversation_that_was_made_shorter_is_told():
    records: list[Record] = []
    recorder(records).notify(CompactionEnded("main.ag", "e", "prune", before=900, after=400, most=500, dropped=3))

    assert [plain(record) for record in records] == [
        {
            "seq": 1,
            "kind": "agent.compaction",
            "path": "main.ag",
            "attrs": {"strategy": "prune", "before": 900, "after": 400, "contextMaxTokens": 500, "dropped": 3},
        }
    ]
    assert [detail(node) for node in tree(records)] == ["900 → 400 tokens"]


async def test_a_summary_of_a_conversation_is_told_beside_the_turns():
    records: list[Record] = []
    keys = f"memoryThreadId: '\"t\"'\nmemoryCompaction: summarize\ncontextMaxTokens: 1\n{TOOL}"
    answers = [reply("", call("t"), usage=Usage(prompt_tokens=9)), reply("done", usage=Usage(prompt_tokens=20))]
    await fake_model.run(keys, *answers, reply("short", usage=Usage(prompt_tokens=5)), observers=[recorder(records)])
    told = [record for record in records if record.kind in ("llm.turn", "agent.compaction")]

    assert [(record.kind, record.attrs.get("purpose"), record.span_id == 0) for record in told] == [
        ("llm.turn", None, False),
        ("agent.compaction", None, True),
        ("llm.turn", None, False),
        ("llm.turn", "memory-compaction", True),
    ]
    assert outline(records)[-1] == "    turn memory-compaction"
    assert [record.attrs["input"].get("earlier") for record in told if record.kind == "llm.turn"] == [None, 2, None]
