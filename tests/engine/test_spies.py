"""octo/doubles.py: spies, and a breakpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from doubled import SHOP, Call, answer, bodies, message
from octo.values import dumps


@pytest.fixture
def call(tmp_path: Path) -> Call:
    return Call(tmp_path)


# ---------------------------------------------------------------- spies


async def test_a_spy_tells_what_went_in_and_came_out(call: Call) -> None:
    envelope = await call(SHOP, {"sku": "K1"}, spies=["main.total", "main.price"])

    assert dumps(envelope) == (
        '{"result":{"event_id":"1","body":4},"spies":['
        '{"address":"main.total","records":[{"seq":2,"at":"1970-01-01T00:00:00Z",'
        '"input":{"event_id":"1","body":{"unit":2}},"output":{"event_id":"1","body":4}}]},'
        '{"address":"main.price","records":[{"seq":1,"at":"1970-01-01T00:00:00Z",'
        '"input":{"event_id":"1","body":{"sku":"K1"}},"output":{"event_id":"1","body":{"unit":2}}}]}]}'
    )


async def test_a_spy_tells_of_a_failure_in_the_words_of_the_block(call: Call) -> None:
    envelope = await call(SHOP, {}, spies=["main.price", "main.total"])

    text = "set-payload value: evaluate expression: no such key: sku"
    assert envelope == {
        "spies": [
            {
                "address": "main.price",
                "records": [{"seq": 1, "at": "1970-01-01T00:00:00Z", "input": message({}), "error": text}],
            },
            {"address": "main.total", "records": []},
        ],
        "error": f'block "price": {text}',
    }


async def test_a_spy_tells_of_a_drop(call: Call) -> None:
    envelope = await call(SHOP, 1, mocks={"main.price": answer(drop=True)}, spies=["main.price"])

    assert envelope == {
        "dropped": True,
        "spies": [
            {
                "address": "main.price",
                "records": [{"seq": 1, "at": "1970-01-01T00:00:00Z", "input": message(1.0), "dropped": True}],
            }
        ],
    }


async def test_each_crossing_is_one_record_also_of_concurrent_branches(call: Call) -> None:
    text = """
      flows:
        - name: main
          process:
            - type: fork
              branches:
                - { process: [ { type: flow-ref, flow: shared } ] }
                - { process: [ { type: flow-ref, flow: shared }, { type: flow-ref, flow: shared } ] }
        - name: shared
          process: [ { type: set-variable, name: it, settings: { name: n, value: '1' } } ]
    """
    envelope = await call(text, spies=["shared.it"])

    records = envelope["spies"][0]["records"]
    assert [record["seq"] for record in records] == [1, 2, 3]


async def test_two_blocks_of_one_address_are_told_apart(call: Call) -> None:
    text = """
      flows:
        - name: main
          process:
            - { type: set-payload, name: log, settings: { value: '1' } }
            - { type: log }
    """
    envelope = await call(text, spies=["main.log"])

    assert bodies(envelope["spies"][0]["records"]) == [1]


async def test_two_spellings_of_one_block_both_record(call: Call) -> None:
    envelope = await call(SHOP, {"sku": "K1"}, spies=["main.total", "main[process].total"])

    first, second = envelope["spies"]
    assert first["records"] == second["records"] != []


async def test_variables_of_the_runtime_are_not_shown(call: Call) -> None:
    text = """
      flows:
        - name: main
          process: [ { type: set-variable, name: mark, settings: { name: __trace, value: '"t"' } } ]
    """
    envelope = await call(text, spies=["main.mark"], break_at="main.mark")

    assert envelope["message"] == message()
    assert envelope["spies"][0]["records"][0]["output"] == message()


async def test_a_record_does_not_change_with_what_comes_later(call: Call) -> None:
    text = """
      flows:
        - name: main
          process:
            - { type: set-variable, name: a, settings: { name: n, value: '1' } }
            - { type: set-variable, name: b, settings: { name: n, value: '2' } }
    """
    envelope = await call(text, spies=["main.a"])

    assert envelope["spies"][0]["records"][0]["output"] == message(n=1)


# ---------------------------------------------------------------- a breakpoint


async def test_the_message_after_the_block_is_shown_and_nothing_later_runs(call: Call) -> None:
    envelope = await call(SHOP, {"sku": "K1"}, spies=["main.total"], break_at="main.price")

    assert envelope == {
        "reached": True,
        "block": "main.price",
        "message": message({"unit": 2}),
        "spies": [{"address": "main.total", "records": []}],
    }


@pytest.mark.parametrize(
    ("mocks", "expected"),
    [
        ({"main.price": answer(drop=True)}, {}),
        ({"main.price": answer(error="gone")}, {"error": 'block "price": gone'}),
        ({"main.total": answer(drop=True)}, {}),
    ],
    ids=["dropped before it", "failed before it", "dropped in it"],
)
async def test_a_breakpoint_that_is_not_reached(call: Call, mocks: Any, expected: Any) -> None:
    envelope = await call(SHOP, {"sku": "K1"}, mocks=mocks, break_at="main.total")

    assert envelope == {"reached": False, "block": "main.total"} | expected


LOOP = """
  flows:
    - name: main
      process:
        - type: foreach
          name: each
          items: '[1, 2, 3]'
          as: n
          body: { process: [ { type: set-payload, name: line, settings: { value: vars.n } } ] }
        - { type: log, name: after }
"""


async def test_the_first_hit_in_a_loop_ends_the_loop_and_the_flow(call: Call) -> None:
    spies = ["main.each[body].line", "main.after"]

    envelope = await call(LOOP, spies=spies, break_at="main.each[body].line")

    assert envelope["message"] == message(1, n=1)
    assert [len(entry["records"]) for entry in envelope["spies"]] == [1, 0]


async def test_the_other_branches_of_a_fork_finish(call: Call) -> None:
    text = """
      flows:
        - name: main
          process:
            - type: fork
              name: both
              branches:
                - { name: a, process: [ { type: log, name: stop }, { type: log, name: never } ] }
                - { name: b, process: [ { type: log, name: one }, { type: log, name: two } ] }
            - { type: log, name: after }
    """
    spies = ["main.both[a].never", "main.both[b].two", "main.after"]

    envelope = await call(text, spies=spies, break_at="main.both[a].stop")

    assert [len(entry["records"]) for entry in envelope["spies"]] == [0, 1, 0]


async def test_the_halt_goes_up_through_a_called_flow(call: Call) -> None:
    text = """
      flows:
        - name: main
          process: [ { type: flow-ref, flow: other }, { type: log, name: after } ]
          error: [ { type: log, name: recover } ]
        - name: other
          process: [ { type: set-payload, name: here, settings: { value: '1' } }, { type: log, name: later } ]
    """
    envelope = await call(text, spies=["other.later", "main.after", "main[error].recover"], break_at="other.here")

    assert (envelope["reached"], envelope["message"]) == (True, message(1))
    assert [entry["records"] for entry in envelope["spies"]] == [[], [], []]


async def test_a_block_that_cannot_finish_because_it_was_halted_is_not_recovered_from(call: Call) -> None:
    text = """
      flows:
        - name: main
          process:
            - type: enrich
              body:
                process:
                  - { type: log, name: here }
                  - { type: set-payload, settings: { value: '{"found": 1}' } }
              setBody: body.found
          error: [ { type: log, name: recover } ]
    """
    envelope = await call(text, {}, spies=["main[error].recover"], break_at="main.enrich[body].here")

    assert envelope == {
        "reached": True,
        "block": "main.enrich[body].here",
        "message": message({}),
        "spies": [{"address": "main[error].recover", "records": []}],
    }


async def test_a_halted_body_is_not_cached_and_a_cached_one_does_not_reach_the_breakpoint(call: Call) -> None:
    text = """
      flows:
        - name: main
          process:
            - { type: flow-ref, flow: cached }
            - { type: flow-ref, flow: cached }
        - name: cached
          process:
            - type: cache-scope
              key: '"k"'
              body: { process: [ { type: set-payload, name: slow, settings: { value: '1' } }, { type: log } ] }
    """
    assert (await call(text, spies=["cached.cache-scope[body].slow"]))["spies"][0]["records"][1:] == []

    envelope = await call(text, break_at="cached.cache-scope[body].slow", spies=["cached.cache-scope"])

    assert envelope["reached"] is True
    assert len(envelope["spies"][0]["records"]) == 1


AGENT = """
  connectors:
    - name: m
      type: llm-scripted
      settings:
        turns:
          - calls: [ { name: look, args: { id: 7 } } ]
          - text: '"done"'
  flows:
    - name: main
      process:
        - type: ai-agent
          name: agent
          connector: m
          prompt: Look.
          tools:
            - name: look
              description: Looks.
              process: [ { type: rest, name: ask }, { type: log, name: note } ]
        - { type: log, name: after }
"""


async def test_the_blocks_of_a_tool_are_mocked_and_watched(call: Call) -> None:
    mocks = {"main.agent[look].ask": answer(body={"found": True})}

    envelope = await call(AGENT, mocks=mocks, spies=["main.agent[0].ask"])

    assert envelope["result"]["body"] == "done"
    (record,) = envelope["spies"][0]["records"]
    assert (record["input"]["body"], record["output"]["body"]) == ({"id": 7}, {"found": True})


async def test_a_breakpoint_in_a_tool_halts_the_agent(call: Call) -> None:
    mocks = {"main.agent[look].ask": answer(body=1)}

    envelope = await call(
        AGENT, mocks=mocks, spies=["main.agent[look].note", "main.after"], break_at="main.agent[look].ask"
    )

    assert (envelope["reached"], envelope["message"]["body"]) == (True, 1)
    assert [entry["records"] for entry in envelope["spies"]] == [[], []]


async def test_a_takeover_block_is_mocked_and_elements_are_watched(call: Call) -> None:
    text = """
      flows:
        - name: main
          process:
            - { type: split, items: body }
            - { type: set-payload, name: twice, settings: { value: body * 2.0 } }
    """
    envelope = await call(text, [1, 2], spies=["main.twice"])
    assert sorted(bodies(envelope["spies"][0]["records"])) == [2, 4]

    envelope = await call(text, mocks={"main.split": answer(body=5)}, spies=["main.twice"])
    assert envelope["result"] == message(10)
