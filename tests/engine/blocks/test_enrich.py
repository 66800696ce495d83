"""octo/blocks/enrich.py: chosen parts of what a chain finds out."""

import pytest

from acting import drop, runtime
from octo.errors import BlockError
from octo.message import Dropped

FLOW = """
  flows:
    - name: main
      process:
        - type: enrich
          name: rate
          setBody: 'body.text'
          setVars: { rate: body.rate, old: vars.rate, set: vars.inside }
          body:
            process:
              - { type: set-variable, settings: { name: inside, value: 'body.q' } }
              - { type: set-payload, settings: { value: '{"rate": 1.17, "text": "ok"}' } }
    - name: aside
      process:
        - type: enrich
          setBody: ''
          body:
            process:
              - { type: set-variable, settings: { name: inside, value: 'body' } }
              - { type: delete-variable, settings: { name: rate } }
              - { type: set-payload, settings: { value: '0' } }
    - name: stopped
      process:
        - type: enrich
          setVars: { rejected: vars.validationErrors }
          setBody: body.error
          body: { process: [ { type: validate, rules: [ { expr: 'false', message: no } ] } ] }
        - { type: set-payload, settings: { value: '"never"' } }
    - name: fails-inside
      process:
        - { type: enrich, body: { process: [ { type: set-payload, settings: { value: body.missing } } ] } }
    - name: fails-body
      process: [ { type: enrich, setBody: body.missing, body: { process: [] } } ]
    - name: fails-variable
      process:
        - type: enrich
          setVars: { a: 'body.q', b: 'body.missing' }
          body: { process: [] }
      error: [ { type: set-payload, settings: { value: '[vars.error.message, has(vars.a)]' } } ]
"""


async def test_only_what_is_named_leaves_the_scope_and_all_of_it_is_read_from_one_result(run_flow):
    message = await run_flow(FLOW, {"q": 1.0}, vars={"rate": 9.0})

    assert message.body == "ok"
    assert message.vars == {"rate": 1.17, "old": 9.0, "set": 1.0}


async def test_without_a_setting_nothing_leaves_the_scope(run_flow):
    message = await run_flow(FLOW, {"q": 1.0}, flow="aside", vars={"rate": 9.0})

    assert (message.body, message.vars) == ({"q": 1.0}, {"rate": 9.0})


async def test_a_stop_inside_still_sets_what_is_named_and_then_stops_the_flow(run_flow):
    message = await run_flow(FLOW, {}, flow="stopped")

    assert message.body == "validation_failed"
    assert message.vars == {"rejected": ["no"]}
    assert message.stopped


async def test_a_drop_inside_drops_the_message():
    async with runtime(FLOW, {"delete-variable": drop}) as octo:
        with pytest.raises(Dropped):
            await octo.invoke("aside", {})


@pytest.mark.parametrize(
    ("flow", "text"),
    [
        ("fails-inside", 'block "set-payload": set-payload value: evaluate expression: no such key: missing'),
        ("fails-body", "enrich setBody: evaluate expression: no such key: missing"),
    ],
)
async def test_failures_say_which_part_failed(run_flow, flow, text):
    with pytest.raises(BlockError) as caught:
        await run_flow(FLOW, {}, flow=flow)

    assert str(caught.value) == f'block "enrich": {text}'


async def test_a_failing_variable_is_named_and_none_is_set(run_flow):
    message = await run_flow(FLOW, {"q": 1.0}, flow="fails-variable")

    text = 'block "enrich": enrich setVars["b"]: evaluate expression: no such key: missing'
    assert message.body == [text, False]


async def test_a_raw_result_becomes_a_plain_body(run_flow):
    flow = """
      flows:
        - name: main
          process:
            - type: enrich
              setBody: body
              body:
                process:
                  - { type: set-payload, settings: { value: '"a"', rawBody: true, contentType: text/plain } }
    """

    message = await run_flow(flow)

    assert (message.body, message.raw) == ({"contentType": "text/plain", "rawData": "a"}, False)
