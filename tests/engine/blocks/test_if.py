"""octo/blocks/if_.py: one of two chains, by a condition."""

import pytest

from octo.errors import BlockError

FLOW = """
  flows:
    - name: main
      process:
        - type: if
          condition: body.go
          then: { process: [ { type: set-variable, settings: { name: lane, value: '"fast"' } } ] }
          else: { process: [ { type: set-variable, settings: { name: lane, value: '"slow"' } } ] }
    - name: no-else
      process:
        - { type: if, condition: body.go, then: { process: [ { type: set-payload, settings: { value: '1' } } ] } }
"""


@pytest.mark.parametrize(("go", "lane"), [(True, "fast"), (False, "slow")])
async def test_a_branch_runs_on_the_same_message(run_flow, go, lane):
    assert (await run_flow(FLOW, {"go": go})).vars == {"lane": lane}


async def test_without_else_the_message_passes_unchanged(run_flow):
    assert (await run_flow(FLOW, {"go": False}, flow="no-else")).body == {"go": False}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"go": 1.0}, "condition must evaluate to a bool, got a number"),
        ({"go": None}, "condition must evaluate to a bool, got null"),
        ({}, "condition: evaluate expression: no such key: go"),
    ],
)
async def test_nothing_but_a_boolean_is_a_condition(run_flow, body, text):
    with pytest.raises(BlockError) as caught:
        await run_flow(FLOW, body)

    assert str(caught.value) == f'block "if": {text}'
