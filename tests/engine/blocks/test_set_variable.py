"""octo/blocks/set_variable.py and octo/blocks/delete_variable.py: variables of the message."""

import pytest

from octo.errors import BlockError


async def test_a_variable_is_set_changed_and_removed(run_flow):
    flow = """
      flows:
        - name: main
          process:
            - { type: set-variable, settings: { name: tier, value: 'body.spend >= 100.0 ? "gold" : "base"' } }
            - { type: set-variable, settings: { name: a.b, value: 'null' } }
            - { type: set-variable, settings: { name: gone, value: '1' } }
            - { type: delete-variable, settings: { name: gone } }
            - { type: delete-variable, settings: { name: never } }
    """

    message = await run_flow(flow, {"spend": 100.0})

    assert message.vars == {"tier": "gold", "a.b": None}
    assert message.body == {"spend": 100.0}


async def test_a_stored_integer_literal_is_a_double_for_later_expressions(run_flow):
    flow = """
      flows:
        - name: main
          process:
            - { type: set-variable, settings: { name: limit, value: '5' } }
            - { type: set-payload, settings: { value: 'vars.limit / 2' } }
    """

    assert (await run_flow(flow)).body == 2.5


async def test_a_failure_names_the_variable(run_flow):
    flow = """
      flows:
        - name: main
          process:
            - { type: set-variable, settings: { name: tier, value: body.spend } }
    """

    with pytest.raises(BlockError) as caught:
        await run_flow(flow)

    assert str(caught.value) == (
        'block "set-variable": set-variable "tier" value: evaluate expression: no such key: spend'
    )


async def test_a_name_beside_the_type_is_the_label_and_not_the_variable(run_flow):
    flow = """
      flows:
        - name: main
          process:
            - type: set-variable
              name: remember
              settings: { name: x, value: '1' }
    """

    assert (await run_flow(flow)).vars == {"x": 1.0}
