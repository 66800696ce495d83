"""octo/config/names.py: which flows a flow calls, and which connectors a block uses."""

from octo.config.names import calls_of, names_in
from octo.fields import ConnectorName, FlowName
from octo.testing import harness

CONFIG = """
connectors: [{name: model, type: llm-scripted, settings: {turns: [{text: done}]}}]
flows:
  - name: f
    process:
      - {type: flow-ref, name: one, settings: {flow: a}}
      - type: if
        condition: 'true'
        then: {process: [{type: flow-ref, name: two, settings: {flow: b}}]}
      - type: ai-agent
        connector: model
        prompt: Help.
        tools: [{name: t, description: Calls., flow: c}]
        default: {process: [{type: flow-ref, name: three, settings: {flow: a}}]}
    error: [{type: flow-ref, name: four, settings: {flow: d}}]
  - {name: a, process: []}
  - {name: b, process: []}
  - {name: c, process: []}
  - {name: d, process: []}
"""


def test_a_flow_calls_what_its_blocks_call_and_what_its_agents_may():
    assert list(calls_of(harness.config(CONFIG).flows[0])) == ["a", "b", "c", "a", "d"]


def test_names_are_of_a_kind_and_those_of_inner_blocks_are_left_out():
    agent = harness.config(CONFIG).flows[0].process[2]

    assert names_in(agent, ConnectorName) == ["model"]
    assert names_in(agent, FlowName) == ["c"]
