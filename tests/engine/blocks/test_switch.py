"""octo/blocks/switch.py: the first chain whose guard is true."""

import pytest

from octo.errors import BlockError, ConfigError
from octo.testing.harness import config

FLOW = """
  flows:
    - name: main
      process:
        - type: switch
          cases:
            - { when: 'body.kind == "a"', process: [ { type: set-payload, settings: { value: '1' } } ] }
            - { when: 'body.size > 3', name: big, process: [ { type: set-payload, settings: { value: '2' } } ] }
          default: { process: [ { type: set-payload, settings: { value: '0' } } ] }
"""


@pytest.mark.parametrize(
    ("body", "result"),
    [({"kind": "a"}, 1.0), ({"kind": "b", "size": 4.0}, 2.0), ({"kind": "b", "size": 3.0}, 0.0)],
    ids=["first", "second", "default"],
)
async def test_the_first_true_guard_wins_and_later_ones_are_not_evaluated(run_flow, body, result):
    assert (await run_flow(FLOW, body)).body == result


async def test_a_failing_guard_names_its_place(run_flow):
    with pytest.raises(BlockError) as caught:
        await run_flow(FLOW, {"kind": "b"})

    assert str(caught.value) == 'block "switch": switch case 1: evaluate expression: no such key: size'


@pytest.mark.parametrize(
    ("cases", "message"),
    [("[{process: []}]", "missing key `when`"), ("[]", "`cases` needs at least one entry")],
)
def test_a_case_needs_a_guard(cases, message):
    with pytest.raises(ConfigError) as caught:
        config(f"flows: [{{name: main, process: [{{type: switch, cases: {cases}}}]}}]")

    assert [problem.message for problem in caught.value.problems] == [message]
