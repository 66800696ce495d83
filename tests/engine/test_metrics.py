"""octo/metrics.py: what flows and blocks do, counted."""

import re

import pytest

from octo.errors import BlockError, OctoError
from octo.message import Dropped
from octo.metrics import BUCKETS, Metrics
from octo.runtime import Runtime
from octo.testing.harness import config

FLOWS = """
  flows:
    - name: main
      process:
        - type: if
          name: gate
          condition: 'body == "inner"'
          then: { process: [ { type: set-payload, settings: { value: body.x } } ] }
        - { type: set-payload, name: price, settings: { value: 'body == "drop" ? 1 : body.n' } }
    - name: recovers
      process: [ { type: flow-ref, settings: { flow: main } } ]
      error: [ { type: set-payload, settings: { value: '0' } } ]
    - name: fails-twice
      process: [ { type: set-payload, settings: { value: body.n } } ]
      error: [ { type: set-payload, name: second, settings: { value: body.n } } ]
    - { name: 'q"uiet' }
"""


async def counted(metrics, *calls):
    loaded = config(FLOWS)
    metrics.declare(loaded, 3)
    async with Runtime(loaded, observers=[metrics]) as runtime:
        for flow, body in calls:
            try:
                await runtime.invoke(flow, body)
            except (OctoError, Dropped):
                pass
    text = metrics.text(version="1.2", ready=True)
    return text, dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


async def test_messages_are_counted_by_how_they_ended():
    _, values = await counted(
        Metrics(), ("main", {"n": 1.0}), ("main", {"n": 2.0}), ("main", {}), ("recovers", {}), ("recovers", {"n": 1.0})
    )

    assert {name: value for name, value in values.items() if name.startswith("octo_flow_messages_total")} == {
        'octo_flow_messages_total{flow="main",outcome="completed"}': "3",
        'octo_flow_messages_total{flow="main",outcome="dropped"}': "0",
        'octo_flow_messages_total{flow="main",outcome="failed"}': "2",
        'octo_flow_messages_total{flow="recovers",outcome="completed"}': "2",
        'octo_flow_messages_total{flow="recovers",outcome="dropped"}': "0",
        'octo_flow_messages_total{flow="recovers",outcome="failed"}': "0",
        'octo_flow_messages_total{flow="fails-twice",outcome="completed"}': "0",
        'octo_flow_messages_total{flow="fails-twice",outcome="dropped"}': "0",
        'octo_flow_messages_total{flow="fails-twice",outcome="failed"}': "0",
        'octo_flow_messages_total{flow="q\\"uiet",outcome="completed"}': "0",
        'octo_flow_messages_total{flow="q\\"uiet",outcome="dropped"}': "0",
        'octo_flow_messages_total{flow="q\\"uiet",outcome="failed"}': "0",
    }
    assert values['octo_flow_in_flight{flow="main"}'] == "0"
    assert values["octo_ready"] == "1"
    assert values["octo_flows"] == "4"
    assert values["octo_connectors"] == "3"
    assert values['octo_build_info{version="1.2",build_date="",services_module="standalone"}'] == "1"


async def test_a_failure_that_nothing_recovered_names_the_block_of_the_chain_itself():
    _, values = await counted(Metrics(), ("main", "inner"), ("main", {}), ("recovers", {}), ("fails-twice", {}))

    assert {name: value for name, value in values.items() if name.startswith("octo_flow_errors_total")} == {
        'octo_flow_errors_total{flow="main",block="gate"}': "1",
        'octo_flow_errors_total{flow="main",block="price"}': "2",
        'octo_flow_errors_total{flow="fails-twice",block="second"}': "1",
    }


async def test_durations_fall_into_buckets():
    text, values = await counted(Metrics(), ("main", {"n": 1.0}))

    bounds = re.findall(r'octo_flow_duration_seconds_bucket\{flow="main",outcome="completed",le="(.*)"\} 1\n', text)
    assert bounds == [
        "0.005",
        "0.01",
        "0.025",
        "0.05",
        "0.1",
        "0.25",
        "0.5",
        "1",
        "2.5",
        "5",
        "10",
        "30",
        "60",
        "300",
        "+Inf",
    ]
    assert len(bounds) == len(BUCKETS) + 1
    assert values['octo_flow_duration_seconds_count{flow="main",outcome="completed"}'] == "1"
    assert 0 < float(values['octo_flow_duration_seconds_sum{flow="main",outcome="completed"}']) < 0.005


async def test_blocks_are_counted_when_that_is_asked_for():
    metrics = Metrics(with_blocks=True)
    metrics.blocks = {"main.gate", "fails-twice[error].second"}

    _, values = await counted(metrics, ("main", "inner"), ("main", {"n": 1.0}), ("fails-twice", {}))

    assert {name: value for name, value in values.items() if name.startswith("octo_block_invocations_total")} == {
        'octo_block_invocations_total{flow="main",path="main.gate",type="if",outcome="error"}': "1",
        'octo_block_invocations_total{flow="main",path="main.gate",type="if",outcome="ok"}': "1",
        'octo_block_invocations_total{flow="fails-twice",path="fails-twice[error].second",type="set-payload",'
        'outcome="error"}': "1",
    }
    assert values['octo_block_duration_seconds_count{flow="main",path="main.gate",type="if"}'] == "2"


async def test_without_that_blocks_cost_nothing():
    text, _ = await counted(Metrics(), ("main", {"n": 1.0}))

    assert "octo_block_invocations_total{" not in text


async def test_a_new_runtime_goes_on_counting():
    metrics = Metrics()

    await counted(metrics, ("main", {"n": 1.0}))
    _, values = await counted(metrics, ("main", {"n": 1.0}))

    assert values['octo_flow_messages_total{flow="main",outcome="completed"}'] == "2"


async def test_every_family_is_described_once():
    text, values = await counted(Metrics(with_blocks=True), ("main", {"n": 1.0}), ("main", {}))

    families = re.findall(r"# HELP (\S+) \S.*\n# TYPE (\S+) (?:counter|gauge|histogram)\n", text)
    assert all(name == other for name, other in families)
    assert len({name for name, _ in families}) == len(families)
    assert float(values["process_cpu_seconds_total"]) > 0
    assert text.endswith("\n")


@pytest.mark.parametrize("error", [None, OctoError("x")], ids=["none", "not of a block"])
async def test_a_failure_that_no_block_caused_has_no_block(error):
    from octo.observe import FlowEnded

    metrics = Metrics()
    metrics.notify(FlowEnded("main", "1", "failed", 0.1, None, error))
    metrics.notify(FlowEnded("main", "1", "failed", 0.1, None, BlockError("b", OctoError("x"))))

    text = metrics.text(version="", ready=False)
    assert 'octo_flow_errors_total{flow="main",block=""} 1\n' in text
    assert 'octo_flow_errors_total{flow="main",block="b"} 1\n' in text
