"""octo/testing/coverage.py: which parts of a config the cases reach."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from octo.testing import report as reports
from octo.testing.pairing import pairs
from octo.testing.results import Report
from octo.testing.runner import Runner, Surroundings
from octo.testing.trial import trials
from octo.values import dumps
from suites import COMMAND, write

CONFIG = """\
connectors:
  - { name: model, type: llm-scripted, settings: { turns: [ { calls: [ { name: one } ] }, { text: done } ] } }
flows:
  - name: main
    process:
      - type: if
        name: gate
        condition: body.ask
        then:
          process:
            - type: ai-agent
              name: agent
              connector: model
              prompt: Do it.
              tools:
                - { name: one, description: One., process: [ { type: log } ] }
                - { name: two, description: Two., process: [ { type: log, name: a }, { type: log, name: b } ] }
              default: { process: [ { type: log } ] }
        else:
          process: [ { type: set-payload, name: no, settings: { value: 'body.none' } } ]
      - { type: log, name: last }
    error: [ { type: log } ]
  - name: unused
    process: [ { type: log }, { type: log, name: second } ]
"""
ASK = "flow: main\ncases:\n  - { name: asks, input: { data: { ask: true } } }\n"
BOTH = ASK + "  - { name: does not, input: { data: { ask: false } } }\n"


async def covered(folder: Path, suite: str, **around):
    runner = Runner(Surroundings(**{"environ": {}, "cwd": folder, "coverage": True, **around}))
    await runner.run(trials(pairs([write(folder, CONFIG, suite)])), lambda result: None)
    runner.workspace.remove()
    (coverage,) = runner.coverage.values()
    return coverage


def missing(coverage) -> list[tuple[str, str, int]]:
    return [(part.kind, part.address, part.location.line) for part in coverage.missing()]


@pytest.mark.parametrize("isolated", [False, True], ids=["in process", "isolated"])
async def test_what_no_case_reaches_is_named_without_what_is_inside_it(tmp_path, isolated):
    around = {"command": COMMAND, "environ": dict(os.environ)} if isolated else {}

    coverage = await covered(tmp_path, ASK, **around)

    assert missing(coverage) == [
        ("tool", "main.gate[then].agent[two]", 17),
        ("default path", "main.gate[then].agent[default]", 18),
        ("branch", "main.gate[else]", 20),
        ("error path", "main[error]", 22),
        ("flow", "unused", 24),
    ]
    assert coverage.counts() == {
        "flow": (1, 2),
        "block": (4, 11),
        "branch": (1, 2),
        "tool": (1, 2),
        "error path": (0, 1),
        "default path": (0, 1),
    }


async def test_cases_reach_together(tmp_path):
    coverage = await covered(tmp_path, BOTH)

    assert missing(coverage) == [
        ("tool", "main.gate[then].agent[two]", 17),
        ("default path", "main.gate[then].agent[default]", 18),
        ("flow", "unused", 24),
    ]


async def test_a_block_that_is_mocked_is_reached_and_what_is_inside_it_is_not(tmp_path):
    suite = ASK.replace("name: asks,", "name: asks, mocks: { main.gate: { default: { body: 1 } } },")

    assert missing(await covered(tmp_path, suite))[:2] == [
        ("branch", "main.gate[then]", 11),
        ("branch", "main.gate[else]", 20),
    ]


async def test_reports_tell_the_coverage(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = Report([], coverage=[await covered(Path(), BOTH)])

    assert [line.text for line in reports.total_lines(report)][3:] == [
        "coverage of app.yaml: 1 of 2 flows, 6 of 11 blocks, 2 of 2 branches, 1 of 2 tools, 1 of 1 error paths, "
        "0 of 1 default paths",
        "  not reached: tool main.gate[then].agent[two]  at app.yaml:17:62",
        "  not reached: default path main.gate[then].agent[default]  at app.yaml:18:37",
        "  not reached: flow unused  at app.yaml:24:16",
    ]
    (told,) = json.loads(dumps(reports.as_json(report)))["coverage"]
    assert (told["config"], told["reached"]["tool"]) == ("app.yaml", {"reached": 1, "total": 2})
    assert told["missing"][0] == {"kind": "tool", "address": "main.gate[then].agent[two]", "at": "app.yaml:17:62"}


LINKED = """\
connectors:
  - name: m
    type: llm-scripted
    settings: { turns: [ { calls: [ { name: one }, { name: ask, args: { user_message: hi } } ] }, { text: done } ] }
  - { name: n, type: llm-scripted, settings: { turns: [ { calls: [ { name: in } ] }, { text: fine } ] } }
agents:
  desk:
    connector: m
    prompt: Do it.
    tools:
      - name: one
        process:
          - { type: if, condition: 'true', then: { process: [ { type: log } ] }, else: { process: [ { type: log } ] } }
      - { name: two, process: [ { type: log } ] }
      - { name: ask, agent: expert }
  expert:
    connector: n
    prompt: Say it.
    tools:
      - { name: in, process: [ { type: log } ] }
      - { name: out, process: [ { type: log } ] }
      - { name: again, agent: desk }
flows:
  - { name: main, process: [ { type: ai-agent, name: a, agent: desk } ] }
  - { name: pinned, process: [ { type: ai-agent, name: a, agent: desk@1 } ] }
"""


@pytest.mark.parametrize("isolated", [False, True], ids=["in process", "isolated"])
@pytest.mark.parametrize("more", ["", ", spies: { 'main.a[one].if': { count: 1 } }"], ids=["alone", "spied"])
async def test_tools_of_a_linked_agent_count_where_it_is_linked(tmp_path, isolated, more):
    around = {"command": COMMAND, "environ": dict(os.environ)} if isolated else {}
    suite = f"flow: main\ncases:\n  - {{ name: asks, expect: {{ body: done }}{more} }}\n"
    runner = Runner(Surroundings(**{"environ": {}, "cwd": tmp_path, "coverage": True, **around}))
    await runner.run(trials(pairs([write(tmp_path, LINKED, suite)])), lambda result: None)
    runner.workspace.remove()
    (coverage,) = runner.coverage.values()

    assert missing(coverage) == [
        ("branch", "main.a[one].if[else]", 13),
        ("tool", "main.a[two]", 14),
        ("tool", "main.a[ask].ai-agent[out]", 21),
        ("flow", "pinned", 25),
    ]
    assert coverage.counts() == {"flow": (1, 2), "block": (5, 9), "branch": (1, 2), "tool": (3, 5)}
