"""octo/graph/picture.py: what there is to see of a config."""

from __future__ import annotations

import pytest

from drawn import SECRET, SERVING, picture
from octo.errors import UsageError
from octo.graph.picture import Inlet, Setting, walk


def test_flows_know_what_they_call_and_who_calls_them(tmp_path):
    answer, later = picture(tmp_path).flows

    assert [(flow.name, flow.description, flow.called_by) for flow in (answer, later)] == [
        ("answer", "Answer a ticket.", ()),
        ("later", "", ("answer",)),
    ]
    assert {step.address: step.calls for step in walk(answer.steps) if step.calls} == {
        "answer.clerk[default].hand-over": ("later",)
    }


def test_chains_of_blocks_are_branches_tools_default_and_error_paths(tmp_path):
    steps = [step for flow in picture(tmp_path).flows for step in walk((*flow.steps, *flow.error))]

    assert {step.address: [(lane.name, lane.role, lane.about) for lane in step.lanes] for step in steps} == {
        "answer.stamp": [],
        "answer.kind": [("mail", "branch", 'when: body.kind == "mail"'), ("default", "default", "")],
        "answer.kind[mail].log": [],
        "answer.clerk": [("find", "tool", "Finds a customer."), ("default", "default", "")],
        "answer.clerk[find].rest": [],
        "answer.clerk[default].hand-over": [],
        "answer[error].set-payload": [],
        "later.handle-errors": [("process", "branch", ""), ("error", "error", "")],
        "later.handle-errors[process].rest": [],
        "later.handle-errors[error].log": [],
    }


def test_connectors_know_who_uses_them(tmp_path):
    assert [
        (outlet.name, outlet.type, [step.address for step in outlet.users]) for outlet in picture(tmp_path).connectors
    ] == [
        ("claude", "llm-anthropic", ["answer.clerk"]),
        ("crm", "http-client", ["answer.clerk[find].rest", "later.handle-errors[process].rest"]),
        ("spare", "http-client", []),
    ]


def test_a_flow_knows_its_source_and_a_connector_the_flows_that_it_feeds(tmp_path):
    drawn = picture(tmp_path, SERVING)

    assert {flow.name: flow.source for flow in drawn.flows} == {
        "fetch": Inlet("cron", "", (Setting("schedule", "@every 1h"),)),
        "read": Inlet("queue", "jobs", (Setting("subject", "page"),)),
    }
    assert {outlet.name: outlet.feeds for outlet in drawn.connectors} == {"jobs": ("read",), "idle": ()}
    assert [outlet.name for outlet in picture(tmp_path, SERVING, "read").connectors] == ["jobs"]


def test_a_block_shows_the_settings_that_were_given_and_its_place(tmp_path):
    stamp, _, clerk = picture(tmp_path).flows[0].steps

    assert (stamp.type, stamp.name, stamp.settings) == (
        "set-variable",
        "stamp",
        (Setting("name", "stage"), Setting("value", '"start"')),
    )
    assert clerk.place == f"{tmp_path / 'app.yaml'}:22:9"
    assert clerk.settings == (Setting("prompt", "Help.\nThe key is ***."),)


def test_no_secret_is_in_a_picture(tmp_path):
    assert SECRET not in repr(picture(tmp_path))


def test_one_flow_comes_with_the_connectors_that_it_uses(tmp_path):
    drawn = picture(tmp_path, flow="later")

    assert [flow.name for flow in drawn.flows] == ["later"]
    assert [(outlet.name, len(outlet.users)) for outlet in drawn.connectors] == [("crm", 1)]


def test_a_flow_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(UsageError) as caught:
        picture(tmp_path, flow="latr")

    assert (caught.value.message, caught.value.hint) == ('flow "latr" is not registered', "did you mean `later`?")


LINKED = """
connectors:
  - { name: m, type: llm-scripted, settings: { turns: [ { text: x } ] } }
agents:
  - name: desk
    connector: m
    prompt: Answer.
    tools:
      - { name: look, description: Looks., process: [ { type: log, message: body } ] }
      - { name: order, flow: order }
      - { name: lawyer, agent: lawyer }
flows:
  - name: f
    process:
      - { type: ai-agent, name: live, agent: desk, input: body.q, enabledTools: [look] }
      - { type: ai-agent, name: pinned, agent: desk@3 }
  - { name: order, process: [] }
"""


def test_an_agent_that_is_linked_is_shown_with_the_tools_that_the_config_declares(tmp_path):
    drawn = picture(tmp_path, LINKED)
    live, log, pinned = walk(drawn.flows[0].steps)

    assert (live.agent, live.uses, [setting.line for setting in live.settings]) == (
        "desk",
        ("m",),
        ["input: body.q", 'enabledTools: ["look"]'],
    )
    assert [(lane.name, lane.role, lane.about, lane.calls) for lane in live.lanes] == [
        ("look", "tool", "Looks.", ()),
        ("order", "tool", "", ("order",)),
        ("lawyer", "tool", "", ("agent lawyer",)),
    ]
    assert (log.address, log.id) == ("f.live[look].log", "flows-0-process-0-tools-look-process-0")
    assert (pinned.agent, pinned.uses, pinned.lanes) == ("desk@3", (), ())


def test_connectors_of_agents_that_are_tools_are_used_by_the_block(tmp_path):
    config = LINKED.replace(
        "agents:\n",
        "  - { name: law, type: llm-scripted, settings: { turns: [{ text: x }] } }\n"
        "  - { name: books, type: http-client, settings: { baseURL: 'https://books.example' } }\n"
        "agents:\n"
        "  - name: lawyer\n"
        "    connector: law\n"
        "    prompt: Judge.\n"
        "    tools: [{ name: read, process: [{ type: rest, settings: { connector: books, path: '\"/\"' } }] }]\n",
    )
    live, *_ = walk(picture(tmp_path, config).flows[0].steps)

    assert live.uses == ("m", "law", "books")
