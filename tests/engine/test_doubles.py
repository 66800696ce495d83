"""octo/doubles.py: mocks, and addresses of blocks that cannot be doubled."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from doubled import SHOP, Call, answer, bodies, message
from octo.config.load import load
from octo.debug import DebugConfig
from octo.doubles import Doubles
from octo.invocation import invoke
from octo.runtime import Runtime


@pytest.fixture
def call(tmp_path: Path) -> Call:
    return Call(tmp_path)


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
