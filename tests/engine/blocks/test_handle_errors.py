"""octo/blocks/handle_errors.py: recovery inside a flow."""

import pytest

from octo.errors import BlockError

FLOW = """
  flows:
    - name: main
      process:
        - type: handle-errors
          name: soft-parse
          process:
            - { type: set-variable, settings: { name: kept, value: '1' } }
            - { type: set-payload, name: parse, settings: { value: body.qty } }
          error:
            - { type: set-payload, settings: { value: 'vars.error' } }
        - { type: set-variable, settings: { name: after, value: 'true' } }
    - name: twice
      process:
        - type: handle-errors
          process: [ { type: set-payload, settings: { value: body.qty } } ]
          error: [ { type: set-payload, name: second, settings: { value: body.other } } ]
    - name: outer
      process:
        - type: if
          name: gate
          condition: 'true'
          then: { process: [ { type: set-payload, name: deep, settings: { value: body.qty } } ] }
      error:
        - { type: set-payload, settings: { value: vars.error } }
    - name: failing-recovery
      process: [ { type: set-payload, settings: { value: body.qty } } ]
      error: [ { type: set-payload, name: also, settings: { value: body.other } } ]
"""


async def test_the_error_chain_runs_on_the_message_as_it_was_left(run_flow):
    message = await run_flow(FLOW, {})

    failure = {
        "message": 'block "parse": set-payload value: evaluate expression: no such key: qty',
        "flow": "soft-parse",
        "block": "parse",
    }
    assert message.body == failure
    assert message.vars == {"kept": 1.0, "error": failure, "after": True}


async def test_success_skips_the_error_chain(run_flow):
    message = await run_flow(FLOW, {"qty": 2.0})

    assert (message.body, message.vars) == (2.0, {"kept": 1.0, "after": True})


async def test_a_failing_error_chain_fails_the_block(run_flow):
    with pytest.raises(BlockError) as caught:
        await run_flow(FLOW, {}, flow="twice")

    assert str(caught.value) == (
        'block "handle-errors": scope alternative: block "second": '
        "set-payload value: evaluate expression: no such key: other"
    )


async def test_the_error_chain_of_a_flow_reads_the_label_of_its_own_chain(run_flow):
    message = await run_flow(FLOW, {}, flow="outer")

    assert message.body == {
        "message": 'block "gate": block "deep": set-payload value: evaluate expression: no such key: qty',
        "flow": "outer",
        "block": "gate",
    }


async def test_a_failing_error_chain_fails_the_flow(run_flow):
    with pytest.raises(Exception) as caught:
        await run_flow(FLOW, {}, flow="failing-recovery")

    assert str(caught.value) == ('error path: block "also": set-payload value: evaluate expression: no such key: other')
