"""octo/runlog/recorder.py: records of what models are asked and answer, in agents and without one."""

import pytest

import fake_model
from fake_model import TOOL, call, reply
from http_api import Api, as_json
from octo.errors import OctoError, ProviderError
from octo.llm.chat import Retry, TextDelta, Usage
from octo.observe import CompactionEnded, ModelDelta, TurnStarted
from octo.runlog.record import PIECES, Record
from octo.runlog.tree import totals, tree
from octo.runlog.words import detail
from recorded import outline, plain, recorder, records_of

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
