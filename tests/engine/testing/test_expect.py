"""octo/testing/expect.py: outcomes, messages and crossings compared with what a case expects."""

from __future__ import annotations

import pytest

from shop import FUNCTIONS, PRICED, SHOP, SLOW, failures
from suites import run, told

# ---------------------------------------------------------------- the outcome


async def test_a_case_with_nothing_to_expect_says_that_the_flow_completes(tmp_path):
    suite = """
        flow: quote
        mocks:
          quote.price:
            cases: [ { when: body.qty == 1, error: closed }, { when: 'body.qty == 2', drop: true } ]
            default: { body: { unit: 4 } }
        cases:
          - { name: completes, input: { data: { qty: 3 } } }
          - { name: fails, input: { data: { qty: 1 } } }
          - { name: drops, input: { data: { qty: 2 } }, expect: {} }
    """

    done = await run(tmp_path, SHOP, suite)

    assert [result.status for result in done] == ["passed", "failed", "failed"]
    assert told(done[1]) == [
        '9:5 expect: the flow failed: block "price": closed',
        f"  in quote.price at {tmp_path / 'app.yaml'}:11:9",
    ]
    assert told(done[2]) == ["10:57 expect: the flow dropped the message"]


@pytest.mark.parametrize(
    ("expect", "lines"),
    [
        ("{ error: closed }", []),
        ("{ error: '' }", []),
        ("{ error: open }", ['expect.error: want "open", got "block \\"price\\": closed"']),
        ("{ dropped: true }", ['expect: the flow failed: block "price": closed']),
        ("{ body: 1, that: [ 'false' ] }", ['expect: the flow failed: block "price": closed']),
    ],
)
async def test_a_flow_that_fails_is_judged_by_its_error_alone(tmp_path, expect, lines):
    mocks = "mocks: { quote.price: { default: { error: closed } } }"

    place = f"  in quote.price at {tmp_path / 'app.yaml'}:11:9"
    assert await failures(tmp_path, "quote", f"expect: {expect}, spies: {{ quote.total: {{ count: 5 }} }}", mocks) == (
        [*lines, place] if lines else ["spy quote.total: crossed 0 times, want 5"]
    )


@pytest.mark.parametrize(
    ("expect", "lines"),
    [
        ("{ dropped: true }", []),
        ("{ dropped: false }", ["expect: the flow dropped the message"]),
        ("{ error: x }", ['expect.error: want a failure with "x", but the flow dropped the message']),
    ],
)
async def test_a_flow_that_drops_is_judged_by_that(tmp_path, expect, lines):
    mocks = "mocks: { drops.it: { default: { drop: true } } }"

    assert await failures(tmp_path, "drops", f"expect: {expect}", mocks) == lines


async def test_a_flow_that_completes_is_no_failure_and_no_drop(tmp_path):
    assert await failures(tmp_path, "drops", "expect: { error: x }") == [
        'expect.error: want a failure with "x", but the flow did not fail'
    ]
    assert await failures(tmp_path, "drops", "expect: { dropped: true }") == ["expect.dropped: the flow completed"]


async def test_a_failure_that_the_flow_recovers_from_is_none(tmp_path):
    assert await failures(tmp_path, "recovers", "expect: { body: saved }") == []


@pytest.mark.parametrize("expect", ["{}", "{ error: qoute }"])
async def test_a_flow_that_does_not_exist_is_a_problem_of_the_suite(tmp_path, expect):
    suite = f"flow: qoute\ncases: [ {{ name: one, expect: {expect} }} ]"

    (result,) = await run(tmp_path, SHOP, suite)

    assert (result.status, result.error) == (
        "errored",
        f'{tmp_path / "app_test.yaml"}:1:7: there is no flow "qoute" '
        "(flows: quote, drops, tells, counts, many, recovers)\nhint: did you mean `quote`?",
    )


async def test_a_flow_that_takes_too_long_fails(tmp_path):
    (tmp_path / "slow.py").write_text(FUNCTIONS, encoding="utf-8")
    suite = "flow: hangs\ncases: [ { name: one, timeout: 100ms, expect: { error: context deadline exceeded } } ]"

    (result,) = await run(tmp_path, SLOW, suite)

    assert (result.status, result.seconds < 5) == ("passed", True)


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("expect", "lines"),
    [
        ("{ body: { total: 8 } }", []),
        ("{ body: { total: 8.0 }, vars: { status: 200, order: { qty: 2 } } }", []),
        ("{ body: null }", []),
        ("{ that: [ 'body.total == 8', 'size(eventID) == 32', 'correlationID == \"\"', 'now > timestamp(0)' ] }", []),
        (
            "{ body: { total: 9 } }",
            ["expect.body:", '  want: {"total":9}', '  got:  {"total":8}', "  total: want 9, got 8"],
        ),
        (
            "{ body: { total: '8' } }",
            [
                "expect.body:",
                '  want: {"total":"8"}',
                '  got:  {"total":8}',
                '  total: want "8", got 8 (only the kind differs: text against number)',
            ],
        ),
        ("{ body: 8 }", ["expect.body:", "  want: 8", '  got:  {"total":8}']),
        ("{ vars: { status: 500 } }", ["expect.vars.status: want 500, got 200"]),
        (
            "{ vars: { status: '200' } }",
            ['expect.vars.status: want "200", got 200 (only the kind differs: text against number)'],
        ),
        ("{ vars: { none: 1 } }", ["expect.vars.none: not set (vars: order, status)"]),
        ("{ that: [ 'body.total > 8' ] }", ["expect.that: body.total > 8 is false", '  body: {"total":8}']),
        ("{ that: [ body.total ] }", ["expect.that: body.total must evaluate to a bool, got a number"]),
        (
            "{ that: [ 'body.x == 1' ] }",
            [
                "expect.that: body.x == 1: evaluate expression: no such key: x",
            ],
        ),
        (
            "{ that: [ 'env.CITY == \"Oslo\"' ] }",
            ['expect.that: env.CITY == "Oslo": evaluate expression: no such key: CITY'],
        ),
        ("{ that: [ 'body +' ] }", ['expect.that: compile expression "body +": unexpected end of expression']),
        (
            "{ body: { total: 1 }, vars: { status: 1, none: 1 }, that: [ 'false', 'true', '1 > 2' ] }",
            [
                "expect.body:",
                '  want: {"total":1}',
                '  got:  {"total":8}',
                "  total: want 1, got 8",
                "expect.vars.status: want 1, got 200",
                "expect.vars.none: not set (vars: order, status)",
                "expect.that: false is false",
                "expect.that: 1 > 2 is false",
            ],
        ),
    ],
)
async def test_a_message_is_compared_with_what_is_expected(tmp_path, expect, lines):
    found = await failures(tmp_path, "quote", f"input: {{ data: {{ qty: 2 }} }}, expect: {expect}", PRICED)

    assert [line for line in found if not line.startswith("  `has(")] == [
        line for line in lines if not line.startswith("  `has(")
    ]


async def test_a_failure_stands_where_its_expectation_does(tmp_path):
    suite = f"""
        flow: quote
        {PRICED}
        cases:
          - name: one
            input: {{ data: {{ qty: 2 }} }}
            expect:
              body:
                other: 1
                total: 9
              vars:
                none: 1
              that:
                - 'true'
                - body.total == 1 +
            spies:
              quote.price:
                count: 1
                records:
                  - output:
                      body: {{ unit: 5 }}
              quote.total: {{ records: [ {{}}, {{}} ] }}
    """

    (result,) = await run(tmp_path, SHOP, suite)

    assert [line for line in told(result) if line[0] != " "] == [
        "9:16 expect.body:",
        "12:9 expect.vars.none: not set (vars: order, status)",
        '15:28 expect.that: compile expression "body.total == 1 +": unexpected end of expression',
        "21:29 spy quote.price record 0 output.body:",
        "22:37 spy quote.total: crossed 1 time, want at least 2",
    ]


async def test_secrets_are_hidden_in_what_is_judged_and_in_what_is_expected(tmp_path):
    case = "input: { data: 1 }, expect: { body: { city: Oslo, key: s3cret-value, n: 2 } }"

    assert await failures(tmp_path, "tells", case) == [
        "expect.body:",
        '  want: {"city":"Oslo","key":"***","n":2}',
        '  got:  {"city":"Oslo","key":"***","n":1}',
        "  n: want 2, got 1",
    ]


@pytest.mark.parametrize(
    ("expect", "lines"),
    [
        ("{ that: [ 'body.key == \"s3cret-value\"', 'size(body.key) == 12' ] }", []),
        (
            "{ body: { city: Oslo, key: other-secret, n: 1 } }",
            [
                "expect.body:",
                '  want: {"city":"Oslo","key":"other-secret","n":1}',
                '  got:  {"city":"Oslo","key":"***","n":1}',
                '  key: want "other-secret", got "***"',
            ],
        ),
        (
            "{ body: { city: Oslo, key: '***', n: 1 } }",
            [
                "expect.body:",
                '  want: {"city":"Oslo","key":"***","n":1}',
                '  got:  {"city":"Oslo","key":"***","n":1}',
                "  what differs is secret",
            ],
        ),
        (
            "{ that: [ 'body.key == \"s3cret-value!\"' ] }",
            ['expect.that: body.key == "***!" is false', '  body: {"city":"Oslo","key":"***","n":1}'],
        ),
    ],
    ids=["expressions", "another value", "stars", "a secret in an expression"],
)
async def test_secrets_are_compared_as_they_are_and_hidden_when_they_are_told(tmp_path, expect, lines):
    assert await failures(tmp_path, "tells", f"input: {{ data: 1 }}, expect: {expect}") == lines


# ---------------------------------------------------------------- spies


@pytest.mark.parametrize(
    ("spied", "lines"),
    [
        ("{ count: 2 }", []),
        ("{ count: 2, records: [ { input: { vars: { item: 1 } }, output: { body: 2 } } ] }", []),
        ("{ records: [ {}, { output: { that: [ 'body == 4' ] } } ] }", []),
        ("{ count: 0 }", ["spy many.foreach[body].each: crossed 2 times, want 0"]),
        ("{ records: [ {}, {}, {} ] }", ["spy many.foreach[body].each: crossed 2 times, want at least 3"]),
        (
            "{ records: [ { error: x }, { dropped: true } ] }",
            [
                'spy many.foreach[body].each record 0 error: want a failure with "x", but the block did not fail',
                "spy many.foreach[body].each record 1 dropped: the block did not drop the message",
            ],
        ),
        (
            "{ records: [ { input: { body: 9 }, output: { vars: { x: 1 } } } ] }",
            [
                "spy many.foreach[body].each record 0 input.body:",
                "  want: 9",
                "  got:  [1,2]",
                "spy many.foreach[body].each record 0 output.vars.x: not set (vars: item)",
            ],
        ),
    ],
)
async def test_crossings_are_compared_with_what_is_expected(tmp_path, spied, lines):
    case = f"name: one, input: {{ data: [1, 2] }}, spies: {{ 'many.foreach[body].each': {spied} }}"
    suite = f"flow: many\ncases: [ {{ {case} }} ]"

    (result,) = await run(tmp_path, SHOP, suite)

    assert [line for failure in result.failures for line in failure.lines] == lines


async def test_a_block_that_fails_or_drops_is_seen_by_its_spy(tmp_path):
    suite = """
        flow: quote
        inputs: { one: { data: { qty: 1 } } }
        mocks: { quote.price: { default: { error: closed for today } } }
        cases:
          - name: error
            input: one
            expect: { error: closed }
            spies: { quote.price: { records: [ { error: for today } ] } }
          - { name: output, input: one, expect: { error: '' }, spies: { quote.price: { records: [ { output: {} } ] } } }
          - name: dropped
            mocks: { quote.price: { default: { drop: true } } }
            expect: { dropped: true }
            spies: { quote.price: { records: [ { dropped: true } ] } }
          - name: output of one that drops
            mocks: { quote.price: { default: { drop: true } } }
            expect: { dropped: true }
            spies: { quote.price: { records: [ { output: {} } ] } }
    """

    error, output, dropped, nothing = await run(tmp_path, SHOP, suite)

    assert (error.status, dropped.status) == ("passed", "passed")
    assert output.lines == ["spy quote.price record 0 output: the block failed: closed for today"]
    assert nothing.lines == ["spy quote.price record 0 output: the block dropped the message"]
