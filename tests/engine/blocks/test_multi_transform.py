"""octo/blocks/multi_transform.py: several steps in one block."""

import pytest

from octo.errors import ConfigError
from octo.testing.harness import config

FLOW = """
  flows:
    - name: main
      process:
        - type: multi-transform
          settings:
            transforms:
              - { setVar: net, value: 'body.gross / 1.25' }
              - { setBody: '{"net": vars.net, "vat": body.gross - vars.net}' }
              - { setVar: seen, value: body }
    - name: recovered
      process:
        - type: multi-transform
          settings:
            transforms:
              - { setVar: first, value: '1' }
              - { setBody: '"second"' }
              - { setBody: body.missing }
              - { setVar: fourth, value: '4' }
      error:
        - { type: set-payload, settings: { value: '[body, vars.error.message]' } }
"""


async def test_every_step_sees_what_the_earlier_ones_did(run_flow):
    message = await run_flow(FLOW, {"gross": 10.0})

    assert message.body == {"net": 8.0, "vat": 2.0}
    assert message.vars == {"net": 8.0, "seen": {"net": 8.0, "vat": 2.0}}


async def test_a_failing_step_is_named_and_the_edits_before_it_stay(run_flow):
    message = await run_flow(FLOW, {}, flow="recovered")

    assert message.body == [
        "second",
        'block "multi-transform": multi-transform step 2: evaluate expression: no such key: missing',
    ]
    assert (message.vars["first"], "fourth" in message.vars) == (1.0, False)


async def test_a_new_body_ends_raw_mode(run_flow):
    flow = """
      flows:
        - name: main
          process:
            - { type: set-payload, settings: { value: '"a"', rawBody: true, contentType: text/plain } }
            - { type: multi-transform, settings: { transforms: [ { setBody: body.rawData } ] } }
    """

    message = await run_flow(flow)

    assert (message.body, message.raw) == ("a", False)


@pytest.mark.parametrize(
    ("transforms", "message"),
    [
        ("[]", "`transforms` needs at least one entry"),
        ("[{setBody: '1'}, {}]", "multi-transform step 1 has neither `setBody` nor `setVar`"),
        ("[{value: '1'}]", "multi-transform step 0 has neither `setBody` nor `setVar`"),
        ("[{setBody: '1', setVar: a, value: '1'}]", "multi-transform step 0 has both `setBody` and `setVar`"),
        ("[{setBody: '1', value: '1'}]", "multi-transform step 0: `setBody` takes no `value`"),
        ("[{setBody: '1'}, {setVar: a}]", "multi-transform step 1: `setVar` requires `value`"),
    ],
    ids=["no step", "empty step", "value alone", "both", "body with value", "variable without value"],
)
def test_a_step_sets_exactly_one_thing(transforms, message):
    with pytest.raises(ConfigError) as caught:
        config(f"flows: [{{name: main, process: [{{type: multi-transform, transforms: {transforms}}}]}}]")

    assert [problem.message for problem in caught.value.problems] == [message]
