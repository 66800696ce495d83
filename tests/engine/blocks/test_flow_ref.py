"""octo/blocks/flow_ref.py: calling another flow."""

import pytest

from octo.errors import BlockError, ConfigError
from octo.observe import LogLine
from octo.testing.harness import config, runtime

FLOW = """
  flows:
    - name: main
      process:
        - { type: set-variable, settings: { name: mine, value: '1' } }
        - { type: flow-ref, name: price, settings: { flow: price-one } }
    - name: price-one
      process:
        - { type: delete-variable, settings: { name: mine } }
        - { type: set-variable, settings: { name: caller, value: eventID } }
        - { type: set-payload, settings: { value: 'body.qty * 2' } }
    - name: recovers
      process: [ { type: flow-ref, settings: { flow: recovered } } ]
    - name: recovered
      process: [ { type: set-payload, settings: { value: body.missing } } ]
      error: [ { type: set-payload, settings: { value: '"saved"' } } ]
"""


async def test_body_and_variables_come_back_and_deleted_ones_stay(run_flow):
    message = await run_flow(FLOW, {"qty": 2.0})

    assert message.body == 4.0
    assert message.vars["mine"] == 1.0
    assert message.vars["caller"] != message.event_id


async def test_a_failure_names_the_called_flow(run_flow):
    with pytest.raises(BlockError) as caught:
        await run_flow(FLOW, {})

    assert str(caught.value) == (
        'block "price": flow-ref "price-one": block "set-payload": '
        "set-payload value: evaluate expression: no such key: qty"
    )


async def test_a_flow_that_recovered_returns_normally_with_its_error(run_flow):
    message = await run_flow(FLOW, {}, flow="recovers")

    assert message.body == "saved"
    assert message.vars["error"]["flow"] == "recovered"


async def test_an_unknown_flow_is_a_warning_at_load_and_an_error_when_called(run_flow):
    flow = "flows: [{name: main, process: [{type: flow-ref, settings: {flow: prise}}]}, {name: price, process: []}]"

    (warning,) = config(flow).warnings
    with pytest.raises(BlockError) as caught:
        await run_flow(flow)

    assert (warning.message, warning.hint) == ('flow "prise" is not registered', "did you mean `price`?")
    assert str(caught.value) == 'block "flow-ref": flow "prise" is not registered'


async def test_a_conditional_cycle_fails_at_its_depth_and_shows_itself(run_flow):
    flow = """
      flows:
        - name: a
          process:
            - { type: if, condition: 'true', then: { process: [ { type: flow-ref, settings: { flow: b } } ] } }
        - name: b
          process: [ { type: flow-ref, settings: { flow: a } } ]
    """

    with pytest.raises(BlockError) as caught:
        await run_flow(flow, flow="a")

    assert str(caught.value).endswith("call depth 64 exceeded: a → b → a → …")


def test_a_cycle_that_every_message_takes_is_refused():
    flow = """
      flows:
        - { name: a, process: [ { type: flow-ref, settings: { flow: b } } ] }
        - { name: b, process: [ { type: flow-ref, settings: { flow: a } } ] }
    """

    with pytest.raises(ConfigError) as caught:
        config(flow)

    assert [problem.message for problem in caught.value.problems] == [
        "flow `a` calls itself without end: a → b → a",
        "flow `b` calls itself without end: b → a → b",
    ]


async def test_one_way_goes_on_at_once_and_a_failure_is_only_logged():
    class Lines:
        kinds = (LogLine,)

        def __init__(self):
            self.seen = []

        def notify(self, event):
            self.seen.append((event.level, event.text))

    flow = """
      flows:
        - name: main
          process:
            - { type: flow-ref, settings: { flow: side, oneWay: true } }
            - { type: set-payload, settings: { value: '"done"' } }
        - { name: side, process: [ { type: set-payload, settings: { value: body.missing } } ] }
    """
    lines = Lines()

    async with runtime(flow, observers=[lines]) as octo:
        message = await octo.invoke("main")

    assert message.body == "done"
    assert lines.seen == [
        (
            "error",
            'flow-ref "side": block "set-payload": set-payload value: evaluate expression: no such key: missing',
        )
    ]


async def test_an_unknown_flow_is_reported_by_the_command_too(tmp_path):
    import subprocess
    import sys

    (tmp_path / "c.yaml").write_text("flows: [{name: main, process: [{type: flow-ref, flow: zz}]}]", encoding="utf-8")
    command = [sys.executable, "-m", "octo_cli", "invoke", "--config", "c.yaml", "--flow", "main"]

    done = subprocess.run(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
    )

    assert done.returncode == 1
    assert 'error="block \\"flow-ref\\": flow \\"zz\\" is not registered"' in done.stderr
