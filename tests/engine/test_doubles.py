"""octo/doubles.py and octo/invocation.py: mocks, spies, a breakpoint, and the envelope of a call."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from octo.config.load import load
from octo.debug import DebugConfig
from octo.doubles import Doubles
from octo.errors import ConfigError, ConnectorError, UsageError
from octo.invocation import Outcome, envelope, invoke
from octo.message import Message
from octo.runtime import Runtime
from octo.testing.harness import config
from octo.values import dumps


class Call:
    """Calls the flow `main` of a config with doubles and gives the envelope, or the texts of the problems."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "config.yaml"

    async def __call__(
        self,
        text: str,
        body: Any = None,
        *,
        mocks: Any = None,
        spies: Sequence[str] = (),
        break_at: str = "",
        flow: str = "main",
        limit: float | None = None,
    ) -> Any:
        self._file.write_text(dedent(text), encoding="utf-8")
        doubles = Doubles(DebugConfig.model_validate({"mocks": mocks or {}}).mocks, spies, break_at)
        try:
            loaded = load(self._file, environ={"PATH": os.environ["PATH"]}, rewrite=doubles.rewrite)
            stage = doubles.on(loaded)
        except ConfigError as error:
            return [problem.message for problem in error.problems]
        opened = Runtime(loaded, stage=stage, clock=lambda: 0, new_id=lambda: "1")
        return envelope(await invoke(opened, flow, body, limit=limit), stage)


@pytest.fixture
def call(tmp_path: Path) -> Call:
    return Call(tmp_path)


def message(body: Any = None, **variables: Any) -> dict[str, Any]:
    parts = {"event_id": "1", "variables": variables or None, "body": body}
    return {name: value for name, value in parts.items() if value is not None}


def answer(**case: Any) -> dict[str, Any]:
    """A mock that always does this."""
    return {"default": case}


def bodies(records: Any, part: str = "output") -> list[Any]:
    return [record[part].get("body") for record in records]


SHOP = """
  flows:
    - name: main
      process:
        - { type: set-payload, name: price, settings: { value: '{"unit": body.sku.size()}' } }
        - { type: set-payload, name: total, settings: { value: 'body.unit * 2.0' } }
"""

# ---------------------------------------------------------------- mocks


async def test_a_mock_sets_body_and_variables_in_the_place_of_its_block(call: Call) -> None:
    mocks = {"main.price": answer(body={"unit": 4}, vars={"status": 200})}

    assert await call(SHOP, mocks=mocks) == {"result": message(8.0, status=200.0)}


async def test_the_first_case_whose_condition_is_true_applies_and_else_the_default(call: Call) -> None:
    mocks = {
        "main.price": {
            "cases": [
                {"when": 'body == "a"', "body": {"unit": 1}},
                {"when": 'body in ["a", "b"]', "body": {"unit": 2}},
            ],
            "default": {"body": {"unit": 3}},
        }
    }

    results = [(await call(SHOP, body, mocks=mocks))["result"]["body"] for body in ("a", "b", "c")]

    assert results == [2, 4, 6]


async def test_a_mock_without_a_fitting_case_fails_as_the_block_would(call: Call) -> None:
    mocks = {"main.price": {"cases": [{"when": "false", "body": 1}]}}

    assert await call(SHOP, mocks=mocks) == {
        "error": 'block "price": no case of the mock matches, and it has no default'
    }


@pytest.mark.parametrize(
    ("when", "error"),
    [
        ("body.nope", 'block "price": mock case 1: evaluate expression: no such key: nope'),
        ("body", 'block "price": mock case 1 must evaluate to a bool, got a mapping'),
    ],
)
async def test_a_condition_that_cannot_be_read_names_its_case(call: Call, when: str, error: str) -> None:
    mocks = {"main.price": {"cases": [{"when": "false", "body": 1}, {"when": when, "body": 2}]}}

    assert await call(SHOP, {}, mocks=mocks) == {"error": error}


async def test_a_mock_fails_with_a_text_and_recovery_sees_the_block(call: Call) -> None:
    text = SHOP + "      error: [ { type: set-payload, settings: { value: vars.error } } ]\n"

    envelope = await call(text, mocks={"main.price": answer(error="no such sku")})

    assert envelope["result"]["body"] == {"block": "price", "flow": "main", "message": 'block "price": no such sku'}


async def test_a_mock_drops(call: Call) -> None:
    assert await call(SHOP, mocks={"main.price": answer(drop=True)}) == {"dropped": True}


async def test_nothing_of_a_mocked_block_is_built(call: Call) -> None:
    text = """
      flows:
        - name: main
          process:
            - { type: rest, name: ask, settings: { connector: nowhere, broken: true } }
            - type: no-such-type
              body: { process: [ { type: rest } ] }
    """
    mocks = {"main.ask": answer(body=1), "main.no-such-type": answer(body=2)}

    assert await call(text, mocks=mocks) == {"result": message(2.0)}


EVERYWHERE = """
  processors:
    - name: lookup
      type: enrich
      settings: { body: { process: [ { type: no-such-type, name: remote } ] }, setBody: body.found }
  flows:
    - name: main
      process:
        - type: fork
          branches:
            - { name: left, process: [ { type: no-such-type } ] }
            - { process: [ { type: no-such-type } ] }
        - { ref: lookup, name: first }
        - ref: lookup
          name: second
          settings: { setBody: 'body.found + 1.0' }
        - type: foreach
          settings:
            items: '[1, 2]'
            mode: map
            body: { process: [ { type: switch, cases: [ { when: 'true', process: [ { type: no-such-type } ] } ] } ] }
        - type: handle-errors
          process: [ { type: set-payload, settings: { value: body.nope } } ]
          error: [ { type: no-such-type, name: repair } ]
        - { type: flow-ref, flow: other }
    - name: other
      process: [ { type: set-payload, settings: { value: body.nope } } ]
      error: [ { type: no-such-type, name: last } ]
"""


async def test_blocks_are_mocked_wherever_chains_stand(call: Call) -> None:
    mocks = {
        "main.fork[left].no-such-type": answer(body=1),
        "main.fork[1].no-such-type": answer(body=1),
        "main.first[body].remote": answer(body={"found": 5}),
        "main.second[body].remote": answer(body={"found": 6}),
        "main.foreach[body].switch[0].no-such-type": answer(body=7),
        "main.handle-errors[error].repair": answer(body=8),
        "other[error].last": answer(body=9),
    }
    spies = ["main.first", "main.second", "main.foreach", "main.handle-errors", "main.flow-ref"]

    envelope = await call(EVERYWHERE, mocks=mocks, spies=spies)

    assert [bodies(entry["records"]) for entry in envelope["spies"]] == [[5], [7], [[7, 7]], [8], [9]]


AGENTS = """
    connectors:
      - name: outer
        type: llm-scripted
        settings: { turns: [ { calls: [ { name: ask, args: { user_message: Oslo? } } ] }, { text: done } ] }
      - name: inner
        type: llm-scripted
        settings: { turns: [ { calls: [ { name: look, args: { n: 1 } } ] }, { text: found } ] }
    processors:
      - name: lead
        type: ai-agent
        settings:
          connector: outer
          prompt: x
          tools:
            - name: ask
              agent:
                connector: inner
                prompt: y
                tools: [ { name: look, process: [ { type: set-payload, settings: { value: '"seen"' } } ] } ]
    flows:
      - { name: main, process: [ { ref: lead } ] }
"""


async def test_an_agent_that_is_a_tool_can_be_mocked_and_spied_upon(call: Call) -> None:
    address = "main.lead[ask].ai-agent"
    result = await call(AGENTS, mocks={address: answer(body="a city")}, spies=[address])

    assert bodies(result["spies"][0]["records"], "input") == [{"user_message": "Oslo?"}]
    assert bodies(result["spies"][0]["records"]) == ["a city"]


async def test_what_an_agent_calls_that_is_a_tool_can_be_mocked_and_spied_upon(call: Call) -> None:
    address = "main.lead[ask].ai-agent[look].set-payload"
    result = await call(AGENTS, mocks={address: answer(body="mocked")}, spies=[address])

    assert bodies(result["spies"][0]["records"], "input") == [{"n": 1}]
    assert bodies(result["spies"][0]["records"]) == ["mocked"]


async def test_a_mock_is_found_by_name_type_and_ref_as_the_block_is(call: Call) -> None:
    mocks = {"main.ask": answer(body={"unit": 1})}

    for given in ("type: rest, name: ask", "ref: ask", "type: ask"):
        text = SHOP.replace("type: set-payload, name: price", given)
        assert await call(text, mocks=mocks, spies=["main.ask"], break_at="main.ask") == {
            "reached": True,
            "block": "main.ask",
            "message": message({"unit": 1.0}),
            "spies": [
                {
                    "address": "main.ask",
                    "records": [
                        {
                            "seq": 1,
                            "at": "1970-01-01T00:00:00Z",
                            "input": message(),
                            "output": message({"unit": 1.0}),
                        }
                    ],
                }
            ],
        }


async def test_the_answer_of_a_mock_is_new_each_time(call: Call) -> None:
    text = """
      flows:
        - name: main
          process:
            - { type: foreach, items: '[1, 2]', body: { process: [ { type: log, name: it } ] } }
    """
    file = Path(call._file)
    file.write_text(dedent(text), encoding="utf-8")
    doubles = Doubles(DebugConfig.model_validate({"mocks": {"main.foreach[body].it": answer(body={"n": 1})}}).mocks)
    config = load(file, environ={}, rewrite=doubles.rewrite)

    first, second = [await invoke(Runtime(config, stage=doubles.on(config)), "main") for _ in range(2)]

    assert first.message is not None and second.message is not None
    assert first.message.body == second.message.body == {"n": 1}
    assert first.message.body is not second.message.body


async def test_a_config_with_stand_ins_and_no_answers_says_so(call: Call) -> None:
    file = Path(call._file)
    file.write_text(dedent(SHOP), encoding="utf-8")
    doubles = Doubles(DebugConfig.model_validate({"mocks": {"main.price": answer(body=1)}}).mocks)

    outcome = await invoke(Runtime(load(file, environ={}, rewrite=doubles.rewrite)), "main")

    assert str(outcome.error) == 'block "price": it is mocked, but nothing says what the mock does'


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


# ---------------------------------------------------------------- bad addresses

NESTED = """
  flows:
    - name: main
      process:
        - type: if
          name: choose
          condition: 'true'
          then: { process: [ { type: log, name: a }, { type: log }, { type: log } ] }
        - { type: log, name: last }
"""
INSIDE = 'it lies inside the block that mock "main.if" replaces'


@pytest.mark.parametrize(
    ("asked", "problems"),
    [
        ({"spies": ["x.y"]}, ['spy "x.y": no flow named "x" (flows: main)']),
        ({"break_at": "main.x"}, ['breakpoint "main.x": no block "x" in that chain (blocks: choose, last)']),
        (
            {"mocks": {"main.choose[else].a": answer(body=1)}},
            ['mock "main.choose[else].a": block `choose` has no branch "else" (branches: then)'],
        ),
        (
            {"spies": ["main.choose[then].log"], "mocks": {"main.choose[then].log": answer(body=1)}},
            [
                f'{kind} "main.choose[then].log": "log" matches 3 blocks in the same chain '
                "(block 1 of the chain, block 2 of the chain, block 3 of the chain)"
                for kind in ("mock", "spy")
            ],
        ),
        (
            {"spies": ["main.last", "main.last", ""]},
            [
                'spy "": that is no block address',
                'spy "main.last": the address is given twice',
            ],
        ),
        (
            {
                "mocks": {"main.if": answer(body=1)},
                "spies": ["main.choose[then].a"],
                "break_at": "main.choose[else].b[c].d",
            },
            [f'breakpoint "main.choose[else].b[c].d": {INSIDE}', f'spy "main.choose[then].a": {INSIDE}'],
        ),
        (
            {"mocks": {"main.if": answer(body=1), "main.choose[then].a": answer(body=2)}},
            [f'mock "main.choose[then].a": {INSIDE}'],
        ),
        (
            {"mocks": {"main.choose[then].a": answer(body=2), "main.if": answer(body=1)}},
            ['mock "main.if": it replaces a block around that of mock "main.choose[then].a"'],
        ),
        (
            {"mocks": {"main.if": answer(body=1), "main.choose": answer(body=2)}},
            ['mock "main.choose": it names the same block as mock "main.if"'],
        ),
    ],
    ids=[
        "flow",
        "block",
        "branch",
        "several blocks",
        "repeated and empty",
        "inside a mock",
        "mock in a mock",
        "mock around a mock",
        "one block twice",
    ],
)
async def test_an_address_that_cannot_be_doubled(call: Call, asked: Any, problems: list[str]) -> None:
    assert await call(NESTED, **asked) == problems


async def test_problems_of_mocks_come_with_those_of_the_config_but_not_of_mocked_blocks(call: Call) -> None:
    text = SHOP.replace("set-payload, name: price", "rest, name: price").replace("body.unit *", "body.unit *-")
    mocks = {"main.price": answer(body=1), "main.prise": answer(body=1)}

    assert await call(text, mocks=mocks) == [
        'mock "main.prise": no block "prise" in that chain (blocks: price, total)',
    ]

    text = text.replace("body.unit *-", "body.unit **")
    assert await call(text, mocks=mocks) == [
        'mock "main.prise": no block "prise" in that chain (blocks: price, total)',
        'compile expression "body.unit ** 2.0": unexpected `*`',
    ]


# ---------------------------------------------------------------- outcomes

HANGS = """
  flows:
    - name: main
      process:
        - { type: cli-run, name: sleep, settings: { program: '"sleep"', args: '["20"]' } }
    - name: quick
      process: [ { type: log } ]
"""


async def test_the_time_limit_is_an_outcome_and_spies_tell_where_the_time_went(call: Call) -> None:
    envelope = await call(HANGS, spies=["main.sleep"], limit=0.1)

    (record,) = envelope["spies"][0]["records"]
    assert record["error"] == "cancelled before it was done"
    assert envelope["error"] == 'call flow "main": context deadline exceeded'


async def test_a_time_limit_that_was_not_needed_changes_nothing(call: Call) -> None:
    assert await call(HANGS, flow="quick", limit=20) == {"result": message()}


async def test_an_unknown_flow_is_an_outcome(call: Call) -> None:
    assert await call(SHOP, flow="mian") == {"error": 'flow "mian" is not registered'}


async def test_work_beside_the_flow_is_given_up_when_the_time_is_over(call: Call) -> None:
    text = HANGS + (
        "    - name: beside\n"
        "      process: [ { type: flow-ref, flow: main, oneWay: true }, { type: flow-ref, flow: main } ]\n"
    )
    async with asyncio.timeout(10):
        envelope = await call(text, flow="beside", limit=0.1)

    assert envelope == {"error": 'call flow "beside": context deadline exceeded'}


async def test_what_keeps_a_runtime_from_opening_is_raised(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("", encoding="utf-8")
    loaded = config(f"""
      connectors: [ {{ name: log, type: logger, settings: {{ output: {tmp_path}/there/app.log }} }} ]
      flows: [ {{ name: main }} ]
    """)

    with pytest.raises(ConnectorError):
        await invoke(Runtime(loaded), "main")


def test_an_envelope_without_doubles() -> None:
    assert envelope(Outcome(Message(1, event_id="1"))) == {"result": message(1)}
    assert envelope(Outcome()) == {"dropped": True}
    assert envelope(Outcome(error=UsageError("no"))) == {"error": "no"}


def test_without_doubles_there_is_no_stage(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(dedent(SHOP), encoding="utf-8")

    assert Doubles().on(load(tmp_path / "a.yaml", environ={})) is None


# ---------------------------------------------------------------- in agents that blocks link

DESK = """
    connectors:
      - {name: m, type: llm-scripted, settings: {turns: [{calls: [{name: look, args: {}}]}, {text: done}]}}
      - {name: h, type: llm-scripted, settings: {turns: [{text: helped}]}}
    agents:
      - name: desk
        connector: m
        prompt: Answer.
        tools:
          - {name: look, process: [{type: set-payload, name: find, settings: {value: '"real"'}}]}
          - {name: ask, agent: helper}
      - {name: helper, connector: h, prompt: Help.}
    flows:
      - name: main
        process:
          - type: ai-agent
            name: ag
            agent: desk
            input: '"q"'
            default: {process: [{type: set-payload, name: d, settings: {value: '"default"'}}]}
"""
HELP = DESK.replace("name: look, args: {}", "name: ask, args: {user_message: q}")
FOUND = "main.ag[look].find"
HELPER = "main.ag[ask].ai-agent"


async def test_a_block_of_a_linked_agent_is_mocked_and_spied_on(call: Call) -> None:
    ended = await call(DESK, mocks={FOUND: {"default": {"body": "mock"}}}, spies=[FOUND])

    assert ended["result"]["body"] == "done"
    (spy,) = ended["spies"]
    assert (spy["address"], [record["output"]["body"] for record in spy["records"]]) == (FOUND, ["mock"])


async def test_a_block_of_a_linked_agent_is_spied_on_as_it_is(call: Call) -> None:
    ended = await call(DESK, spies=[FOUND])

    assert [record["output"]["body"] for record in ended["spies"][0]["records"]] == ["real"]


async def test_an_agent_that_is_a_tool_of_a_linked_one_is_mocked(call: Call) -> None:
    ended = await call(HELP, mocks={HELPER: {"default": {"body": "mock"}}}, spies=[HELPER])

    assert [record["output"]["body"] for record in ended["spies"][0]["records"]] == ["mock"]


async def test_an_agent_with_a_name_that_is_a_tool_in_a_block_is_mocked(call: Call) -> None:
    text = HELP.replace(
        "            agent: desk\n",
        "            connector: m\n            prompt: x\n            tools: [{name: ask, agent: helper}]\n",
    )
    ended = await call(text, mocks={HELPER: {"default": {"body": "mock"}}}, spies=[HELPER])

    assert [record["output"]["body"] for record in ended["spies"][0]["records"]] == ["mock"]


async def test_a_breakpoint_may_stand_in_a_linked_agent(call: Call) -> None:
    ended = await call(DESK, break_at=FOUND)

    assert (ended["reached"], ended["block"], ended["message"]["body"]) == (True, FOUND, "real")


async def test_branches_of_the_block_itself_are_found_as_ever(call: Call) -> None:
    ended = await call(DESK, mocks={"main.ag[default].d": {"default": {"body": "x"}}})

    assert ended["result"]["body"] == "done"


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("main.ag[look].fin", id="no block"),
        pytest.param("main.ag[lok].find", id="no tool"),
    ],
)
async def test_an_address_in_a_linked_agent_of_the_config_must_be_right(call: Call, address: str) -> None:
    message = "the tools of the agent have no such block (blocks: main.ag[look].find, main.ag[ask].ai-agent)"

    assert await call(DESK, mocks={address: {"default": {"body": 1}}}) == [f'mock "{address}": {message}']
    assert await call(DESK, spies=[address]) == [f'spy "{address}": {message}']
