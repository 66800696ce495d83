"""octo/blocks/foreach.py: a chain for each element."""

import pytest

from octo.errors import BlockError, ConfigError
from octo.testing.harness import config

FLOW = """
  flows:
    - name: sum
      process:
        - { type: set-variable, settings: { name: total, value: '0' } }
        - type: foreach
          items: body.rows
          as: row
          body:
            process:
              - { type: set-variable, settings: { name: total, value: 'vars.total + vars.row' } }
    - name: map
      process:
        - type: foreach
          items: body.rows
          mode: map
          body:
            process:
              - { type: set-variable, settings: { name: inside, value: '1' } }
              - { type: set-payload, settings: { value: '[vars.item, body.factor]' } }
    - name: untouched
      process:
        - type: foreach
          items: body.rows
          mode: map
          body: { process: [] }
    - name: recovered
      process:
        - type: foreach
          items: body.rows
          body: { process: [ { type: set-payload, settings: { value: 'vars.item.missing' } } ] }
      error:
        - { type: set-payload, settings: { value: '[vars.item, vars.error.block]' } }
"""


async def test_iterate_threads_one_message_and_takes_the_loop_variable_away(run_flow):
    message = await run_flow(FLOW, {"rows": [1.0, 2.0, 3.0]}, flow="sum")

    assert message.vars == {"total": 6.0}
    assert message.body == {"rows": [1.0, 2.0, 3.0]}


async def test_iterate_restores_the_loop_variable(run_flow):
    message = await run_flow(FLOW, {"rows": [1.0]}, flow="sum", vars={"row": "mine"})

    assert message.vars == {"total": 1.0, "row": "mine"}


async def test_map_collects_bodies_and_nothing_else_leaves_the_scope(run_flow):
    message = await run_flow(FLOW, {"rows": [1.0, 2.0], "factor": 9.0}, flow="map")

    assert message.body == [[1.0, 9.0], [2.0, 9.0]]
    assert message.vars == {}


async def test_inside_map_the_body_is_the_whole_incoming_body(run_flow):
    body = {"rows": [1.0, 2.0]}

    assert (await run_flow(FLOW, body, flow="untouched")).body == [body, body]


@pytest.mark.parametrize(("flow", "body"), [("sum", {"rows": []}), ("map", [])], ids=["iterate", "map"])
async def test_an_empty_list_runs_nothing(run_flow, flow, body):
    assert (await run_flow(FLOW, {"rows": []}, flow=flow)).body == body


async def test_a_failing_round_leaves_its_element_for_the_error_chain(run_flow):
    message = await run_flow(FLOW, {"rows": [{"missing": 1.0}, {"other": 1.0}]}, flow="recovered")

    assert message.body == [{"other": 1.0}, "foreach"]


@pytest.mark.parametrize("rows", [None, "abc", {"a": 1.0}, 3.0], ids=["null", "text", "mapping", "number"])
async def test_only_a_list_can_be_walked(run_flow, rows):
    with pytest.raises(BlockError, match="foreach items must evaluate to an array, got "):
        await run_flow(FLOW, {"rows": rows}, flow="sum")


def test_an_unknown_mode_is_refused():
    with pytest.raises(ConfigError) as caught:
        config("flows: [{name: main, process: [{type: foreach, items: body, mode: maps, body: {process: []}}]}]")

    (problem,) = caught.value.problems
    assert problem.message == "expected `iterate` or `map`, found `maps`"
    assert problem.hint == "did you mean `map`?"
