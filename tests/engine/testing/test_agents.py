"""octo/testing/asking.py, octo/testing/calling.py, octo/testing/expect.py, octo/testing/named.py: agents in suites,
with the replies of their models written down.
"""

from __future__ import annotations

import pytest

from suites import run, told

AGENT = """
    env: [ { name: KEY, default: none } ]
    connectors:
      - { name: claude, type: llm-anthropic, settings: { apiKey: '${KEY}', baseURL: 'http://127.0.0.1:1' } }
    flows:
      - name: main
        process:
          - type: ai-agent
            name: agent
            connector: claude
            prompt: Find the stock.
            input: body.question
            tools:
              - name: stock
                description: How many are left.
                process: [ { type: set-payload, name: look, settings: { value: '{"sku": body.sku, "left": 3}' } } ]
              - name: order
                description: Order more.
                process: [ { type: set-payload, settings: { value: 'body.none' } } ]
        error: [ { type: set-payload, settings: { value: '"recovered"' } } ]
"""
SUITE = """
    flow: main
    inputs: { ask: { data: { question: What is left? } } }
    models:
      claude:
        - calls: [ { name: stock, args: { sku: A1, site: Oslo } }, { name: order, args: {} } ]
        - text: { left: 3 }
    cases:
      - name: one
        input: ask
        expect: { body: { left: 3 } }
"""
ORDERED = (
    '  called: order {}, which failed: "block \\"set-payload\\": set-payload value: '
    'evaluate expression: no such key: none"'
)


async def failures(folder, *lines: str, isolated=False) -> list[str]:
    suite = SUITE + "".join(f"        {line}\n" for line in lines)
    (result,) = await run(folder, AGENT, suite, isolated=isolated)
    assert result.status in ("passed", "failed"), result.error
    return [line for failure in result.failures for line in failure.lines]


async def test_an_agent_is_tested_with_its_loop_and_its_tools(tmp_path):
    assert await failures(tmp_path, "spies: { 'main.agent[stock].look': { count: 1 } }") == []


@pytest.mark.parametrize("isolated", [False, True], ids=["in process", "isolated"])
async def test_what_models_are_sent_and_call_is_what_is_expected(tmp_path, isolated):
    lines = [
        "tools:",
        "  - { name: stock, args: { sku: A1 }, count: 1, block: main.agent }",
        "  - { name: order }",
        "sent:",
        "  main.agent:",
        "    count: 2",
        "    records:",
        "      - that:",
        "          - last.text == 'What is left?'",
        "          - system.contains('Find the stock.')",
        "          - tools == ['stock', 'order']",
        "          - call == 1 && size(messages) == 1",
        "      - that:",
        "          - call == 2 && size(messages) == 3",
        "          - messages[1].calls[0].args.site == 'Oslo'",
        '          - \'last.results[0].text == "{\\"left\\":3,\\"sku\\":\\"A1\\"}"\'',
        "          - last.results[1].isError && last.results[1].name == 'order'",
        "log:",
        "  - { kind: agent.tool_result, that: [ attrs.isError ], count: 1 }",
        "  - { kind: block.post-invoke, path: 'main.agent[stock].look', that: [ body.left == 3 ] }",
        "  - { kind: flow.failed, count: 0 }",
    ]

    assert await failures(tmp_path, *lines, isolated=isolated) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "tools: [ { name: stock, args: { sku: B2 } } ]",
            [
                'tool stock {"sku":"B2"}: called 0 times, want at least 1',
                '  called: stock {"site":"Oslo","sku":"A1"}',
                ORDERED,
            ],
        ),
        (
            "tools: [ { name: stock, count: 0 } ]",
            [
                "tool stock: called 1 time, want 0",
                '  called: stock {"site":"Oslo","sku":"A1"}',
                ORDERED,
            ],
        ),
        ("sent: { main.agent: { count: 1 } }", ["sent main.agent: asked 2 times, want 1"]),
        (
            "sent: { main.agent: { records: [ {}, {}, {} ] } }",
            ["sent main.agent: asked 2 times, want at least 3"],
        ),
        (
            "sent: { main.agent: { records: [ { that: [ 'call == 2' ] } ] } }",
            ["sent main.agent record 0.that: call == 2 is false", "  call: 1"],
        ),
        (
            "log: [ { kind: llm.turn, that: [ attrs.iteration == 9 ] } ]",
            [
                "log llm.turn: 0 records, want at least 1",
                "  2 of this kind",
                "  attrs.iteration == 9 is false for 2 of them",
            ],
        ),
        (
            "log: [ { kind: flow.dropped, count: 1 } ]",
            [
                "log flow.dropped: 0 records, want 1",
                "  kinds in the run log: agent.tool_call, agent.tool_result, agent.turn_start, block.post-invoke, "
                "block.pre-invoke, flow.completed, flow.started, llm.turn",
            ],
        ),
        (
            "log: [ { kind: llm.turn, that: [ 'attrs +' ] } ]",
            ['log llm.turn.that: compile expression "attrs +": unexpected end of expression'],
        ),
    ],
    ids=["arguments", "never", "count", "records", "that", "no record", "no kind", "no expression"],
)
async def test_what_is_not_as_expected_is_shown_beside_what_there_was(tmp_path, line, expected):
    assert await failures(tmp_path, line) == expected


async def test_models_of_a_case_replace_those_of_the_file(tmp_path):
    suite = SUITE.replace(
        "expect: { body: { left: 3 } }", "models: { claude: [ { text: '7' } ] }\n        expect: { body: 7 }"
    )

    (result,) = await run(tmp_path, AGENT, suite)

    assert (result.status, result.error) == ("passed", "")


async def test_a_model_that_is_taken_away_is_the_one_of_the_config(tmp_path):
    real = "{ name: claude, type: llm-scripted, settings: { turns: [ { text: '5' } ] } }"
    config = "\n".join(f"      - {real}" if "llm-anthropic" in line else line for line in AGENT.splitlines())
    suite = SUITE.replace("expect: { body: { left: 3 } }", "models: { claude: null }\n        expect: { body: 5 }")

    (result,) = await run(tmp_path, config, suite)

    assert (result.status, result.error) == ("passed", "")


@pytest.mark.parametrize("isolated", [False, True], ids=["in process", "isolated"])
async def test_a_turn_that_is_not_written_is_an_error_also_when_the_flow_recovers(tmp_path, isolated):
    suite = SUITE.replace("        - text: { left: 3 }\n", "").replace("body: { left: 3 }", "body: recovered")

    (result,) = await run(tmp_path, AGENT, suite, isolated=isolated)

    file = tmp_path / "app_test.yaml"
    assert result.status == "errored"
    assert result.error.startswith(
        f'{file}:5:3: model "claude": turn 2 is not written, which was asked with {{"results":[{{"id":"call_1",'
    )
    assert '"text":"{\\"left\\":3,\\"sku\\":\\"A1\\"}"' in result.error


async def test_a_model_that_is_not_to_be_asked_has_no_turns(tmp_path):
    suite = SUITE.replace("expect: { body: { left: 3 } }", "models: { claude: [] }")

    (result,) = await run(tmp_path, AGENT, suite)

    assert result.error.partition("main")[0] == (
        f'{tmp_path / "app_test.yaml"}:11:15: model "claude": turn 1 is not written, which was asked with '
        '{"role":"user","text":"What is left?"}\nhint: add a turn, or find out why there is one more call'
    )


async def test_a_failure_stands_where_its_expectation_does(tmp_path):
    suite = SUITE + "        tools:\n          - { name: stock }\n          - { name: order, count: 3 }\n"

    (result,) = await run(tmp_path, AGENT, suite)

    assert told(result)[0] == "14:9 tool order: called 1 time, want 3"


# ---------------------------------------------------------------- calls that are refused

REFUSED = (
    SUITE.replace("name: stock, args", "name: stok, args")
    .replace("expect: { body: { left: 3 } }", "expect: { body: { left: 3 } }\n        tools: TOOLS")
    .replace("{ name: order, args: {} }", "{ name: order, args: '[1]' }")
)
UNKNOWN = [
    "6:16 tool stok: called, but main.agent has no such tool",
    "  a case in which that is right expects it: `tools: [{name: stok, failed: true}]`",
]


@pytest.mark.parametrize("isolated", [False, True], ids=["in process", "isolated"])
@pytest.mark.parametrize(
    ("tools", "lines"),
    [
        ("[]", UNKNOWN),
        ("[ { name: stok, failed: true }, { name: order, failed: true, count: 1 } ]", []),
        (
            "[ { name: stok, count: 1 } ]",
            [
                "12:14 tool stok: called 0 times, want 1",
                '  called: stok {"site":"Oslo","sku":"A1"}, which was refused: "unknown tool \\"stok\\""',
                '  called: order [1], which was refused: "invalid arguments: [1] is not of type \\"object\\""',
                *UNKNOWN,
            ],
        ),
        (
            "[ { name: stok, failed: true }, { name: order } ]",
            [
                "12:44 tool order: called 0 times, want at least 1",
                '  called: stok {"site":"Oslo","sku":"A1"}, which was refused: "unknown tool \\"stok\\""',
                '  called: order [1], which was refused: "invalid arguments: [1] is not of type \\"object\\""',
            ],
        ),
    ],
    ids=["not expected", "expected", "expected to run", "bad arguments"],
)
async def test_a_call_that_is_refused_is_none_unless_the_case_says_so(tmp_path, tools, lines, isolated):
    (result,) = await run(tmp_path, AGENT, REFUSED.replace("TOOLS", tools), isolated=isolated)

    assert (result.error, told(result)) == ("", lines)


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ("[ { name: order, failed: true, count: 1 }, { name: stock, failed: false, count: 1 } ]", []),
        ("[ { name: order, count: 1 } ]", []),
        (
            "[ { name: order, failed: false } ]",
            [
                "tool order without an error: called 0 times, want at least 1",
                '  called: stock {"site":"Oslo","sku":"A1"}',
                ORDERED,
            ],
        ),
        (
            "[ { name: stock, failed: true } ]",
            [
                "tool stock with an error: called 0 times, want at least 1",
                '  called: stock {"site":"Oslo","sku":"A1"}',
                ORDERED,
            ],
        ),
    ],
    ids=["told apart", "it ran", "no result", "no error"],
)
async def test_calls_that_fail_are_told_from_those_that_do_not(tmp_path, tools, expected):
    assert await failures(tmp_path, f"tools: {tools}") == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sent: { 'main.agent[stock].look': { count: 1 } }", "12:13: `main.agent[stock].look` asks no model"),
        (
            "tools: [ { name: stock, block: 'main.agent[stock].look' } ]",
            "12:29: `main.agent[stock].look` is no agent",
        ),
    ],
    ids=["sent", "tools"],
)
async def test_a_block_that_asks_no_model_is_refused_where_an_agent_is_needed(tmp_path, line, expected):
    (result,) = await run(tmp_path, AGENT, SUITE + f"        {line}\n")

    assert result.status == "errored"
    assert result.error == f"{tmp_path / 'app_test.yaml'}:{expected}\nhint: did you mean `main.agent`?"


MAPPED = """
connectors:
  - {name: claude, type: llm-anthropic, settings: {apiKey: none}}
flows:
  - name: main
    process: [{type: ai-mapping, connector: claude, prompt: Map.}]
"""


async def test_what_a_block_asks_a_model_that_is_no_agent_may_be_looked_at(tmp_path):
    expected = "{ count: 1, records: [ { that: ['last.text == \"{}\"', 'system.contains(\"Map.\")'] } ] }"
    suite = f"""
    flow: main
    cases:
      - name: one
        input: {{ data: {{}} }}
        models: {{ claude: [ {{ text: 7 }} ] }}
        expect: {{ body: 7 }}
        sent: {{ main.ai-mapping: {expected} }}
    """

    (result,) = await run(tmp_path, MAPPED, suite)

    assert (result.status, result.error) == ("passed", "")


async def test_a_block_that_asks_a_model_is_no_agent_whose_tools_are_called(tmp_path):
    suite = """
    flow: main
    cases:
      - name: one
        input: { data: {} }
        tools: [ { name: stock, block: main.ai-mapping } ]
    """

    (result,) = await run(tmp_path, MAPPED, suite)

    assert result.error.endswith("`main.ai-mapping` is no agent\nhint: there is none")


@pytest.mark.parametrize(
    ("turns", "note"),
    [
        ("[ { text: '7' }, { text: '8' } ]", 'model "claude": the last of its 2 turns was not asked for'),
        ("[ { text: '7' }, {}, {} ]", 'model "claude": 2 of its 3 turns were not asked for'),
    ],
    ids=["one", "two"],
)
async def test_turns_that_nobody_asks_for_are_noted(tmp_path, turns, note):
    suite = SUITE.replace("expect: { body: { left: 3 } }", f"models: {{ claude: {turns} }}")

    (result,) = await run(tmp_path, AGENT, suite)

    assert (result.status, result.error, result.notes) == ("passed", "", (note,))


LINKED = """
    connectors:
      - { name: desk, type: llm-scripted, settings: { turns: [ { text: unused } ] } }
      - { name: law, type: llm-scripted, settings: { turns: [ { text: no } ] } }
    agents:
      - name: desk
        connector: desk
        prompt: Answer.
        tools: [ { name: refund, process: [] }, { name: lawyer, agent: lawyer } ]
      - { name: lawyer, connector: law, prompt: Say no. }
    flows:
      - name: main
        process: [ { type: ai-agent, name: agent, agent: desk, input: body } ]
"""


async def test_the_tools_of_an_agent_with_a_name_are_known_and_what_they_are_sent(tmp_path):
    suite = """
    flow: main
    inputs: { ask: { data: hello } }
    models:
      desk:
        - calls: [ { name: lawyer, args: { user_message: may I? } } ]
        - text: done
    cases:
      - name: one
        input: ask
        expect: { body: done }
        tools: [ { name: refund, count: 0 }, { name: lawyer, count: 1 } ]
        sent:
          'main.agent[lawyer].ai-agent': { count: 1, records: [ { that: [ 'last.text == "may I?"' ] } ] }
    """
    (result,) = await run(tmp_path, LINKED, suite)

    assert (result.status, result.error) == ("passed", "")
