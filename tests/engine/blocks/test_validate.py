"""octo/blocks/validate.py: turning away what breaks a rule."""

import pytest

from acting import drop, runtime
from octo.errors import BlockError, ConfigError
from octo.message import Dropped
from octo.testing.harness import config

FLOW = """
  flows:
    - name: main
      process:
        - type: validate
          rules:
            - { expr: 'has(body.sku) && body.sku != ""', message: sku missing }
            - { expr: 'body.qty > 0' }
            - { expr: 'body.qty < 10', message: too many }
        - { type: set-variable, settings: { name: after, value: 'true' } }
      error: [ { type: set-payload, settings: { value: vars.error.message } } ]
    - name: shaped
      process:
        - type: validate
          rejectStatus: 400
          rules: [ { expr: 'false', message: never } ]
          onReject:
            process:
              - type: set-payload
                name: shape
                settings: { value: '{"why": vars.validationErrors, "was": body}' }
        - { type: set-payload, settings: { value: '"after"' } }
    - name: empty
      process:
        - { type: validate, rejectStatus: 400, rules: [ { expr: 'false' } ], onReject: { process: [] } }
    - name: zero
      process:
        - { type: validate, rejectStatus: 0, rules: [ { expr: 'false' } ] }
    - name: fails
      process:
        - type: validate
          rules: [ { expr: 'false' } ]
          onReject: { process: [ { type: set-payload, settings: { value: body.missing } } ] }
      error: [ { type: set-payload, settings: { value: vars.error.message } } ]
    - name: nested
      process:
        - type: if
          condition: 'true'
          then:
            process:
              - { type: flow-ref, settings: { flow: zero } }
              - { type: set-payload, settings: { value: '"inner"' } }
        - { type: set-payload, settings: { value: '"outer"' } }
"""


async def test_a_message_that_keeps_all_rules_passes_unchanged(run_flow):
    message = await run_flow(FLOW, {"sku": "a", "qty": 2.0})

    assert (message.body, message.vars) == ({"sku": "a", "qty": 2.0}, {"after": True})


@pytest.mark.parametrize(
    ("body", "broken"),
    [
        ({"qty": 2.0}, ["sku missing"]),
        ({"sku": "a", "qty": 0.0}, [""]),
        ({"sku": "", "qty": 10.0}, ["sku missing", "too many"]),
    ],
    ids=["one", "without a message", "two"],
)
async def test_the_built_in_answer_lists_the_broken_rules_in_order_and_stops_the_flow(run_flow, body, broken):
    message = await run_flow(FLOW, body)

    assert message.body == {"error": "validation_failed", "messages": broken}
    assert message.vars == {"validationErrors": broken, "httpStatus": 422.0}
    assert message.stopped


async def test_what_on_reject_makes_is_the_answer_and_nothing_is_set_before_it(run_flow):
    message = await run_flow(FLOW, {"a": 1.0}, flow="shaped")

    assert message.body == {"why": ["never"], "was": {"a": 1.0}}
    assert message.vars == {"validationErrors": ["never"]}


@pytest.mark.parametrize(("flow", "status"), [("empty", 400.0), ("zero", 422.0)])
async def test_an_empty_on_reject_and_a_status_of_0_mean_the_defaults(run_flow, flow, status):
    message = await run_flow(FLOW, {}, flow=flow)

    assert message.body == {"error": "validation_failed", "messages": [""]}
    assert message.vars["httpStatus"] == status


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"sku": "a"}, "validate rule 1: evaluate expression: no such key: qty"),
        ({"sku": None, "qty": "x"}, "validate rule 1: evaluate expression: no such overload"),
    ],
    ids=["missing", "wrong kind"],
)
async def test_a_rule_that_fails_is_an_error_and_no_rejection(run_flow, body, text):
    message = await run_flow(FLOW, body)

    assert message.body.startswith(f'block "validate": {text}')
    assert "validationErrors" not in message.vars


async def test_a_rule_that_is_no_boolean_is_an_error(run_flow):
    with pytest.raises(BlockError) as caught:
        await run_flow("flows: [{name: main, process: [{type: validate, rules: [{expr: body}]}]}]", "yes")

    assert str(caught.value) == 'block "validate": validate rule 0: expression must evaluate to a bool, got text'


async def test_a_failing_on_reject_fails_the_block(run_flow):
    message = await run_flow(FLOW, {}, flow="fails")

    assert message.body == (
        'block "validate": block "set-payload": set-payload value: evaluate expression: no such key: missing'
    )


async def test_a_drop_in_on_reject_drops_the_message():
    async with runtime(FLOW, {"shape": drop}) as octo:
        with pytest.raises(Dropped):
            await octo.invoke("shaped", {})


async def test_the_stop_travels_through_composites_and_called_flows(run_flow):
    message = await run_flow(FLOW, {}, flow="nested")

    assert message.body == {"error": "validation_failed", "messages": [""]}


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("[]", "`rules` needs at least one entry"),
        ("[{message: a}]", "missing key `expr`"),
        ("[{expr: 'a b'}]", None),
    ],
    ids=["none", "without an expression", "not an expression"],
)
def test_faulty_rules_are_refused(rules, message):
    with pytest.raises(ConfigError) as caught:
        config(f"flows: [{{name: main, process: [{{type: validate, rules: {rules}}}]}}]")

    (problem,) = caught.value.problems
    assert problem.message == message or (message is None and problem.message.startswith('compile expression "a b": '))
