"""octo/testing/mutate.py: changes of a config that no case notices."""

from __future__ import annotations

import json
from pathlib import Path

from octo.testing import report as reports
from octo.testing.harness import config
from octo.testing.mutate import mutants, mutations
from octo.testing.pairing import pairs
from octo.testing.results import Report
from octo.testing.runner import Runner, Surroundings
from octo.testing.trial import trials
from octo.values import dumps
from suites import write

CONFIG = """\
processors: [ { name: note, type: set-variable, settings: { name: noted, value: 'true' } } ]
env: [ { name: KEY, required: true } ]
flows:
  - name: main
    process:
      - ref: note
      - type: if
        name: gate
        condition: body.n > 3
        then: { process: [ { type: set-payload, name: big, settings: { value: '"big"' } } ] }
        else: { process: [ { type: set-payload, name: small, settings: { value: '"small"' } } ] }
      - { type: log, name: told }
    error: [ { type: set-payload, name: saved, settings: { value: '"saved"' } } ]
"""
SUITE = """\
flow: main
env: { KEY: k }
cases:
  - { name: big, input: { data: { n: 5 } }, expect: { body: big, vars: { noted: true } } }
"""


def test_changes_are_those_of_blocks_settings_and_error_paths():
    loaded = config(CONFIG, environ={"KEY": "k"})

    assert [f"{mutant.location.line} {mutant.what}" for mutant in mutants(loaded)] == [
        "6 main.note does nothing",
        "1 main.note: `value` is null",
        "7 main.gate does nothing",
        "9 main.gate: `condition` is turned round",
        "11 main.gate[else] is left out",
        "10 main.gate[then].big does nothing",
        "10 main.gate[then].big: `value` is null",
        "11 main.gate[else].small does nothing",
        "11 main.gate[else].small: `value` is null",
        "12 main.told does nothing",
        "13 main[error].saved does nothing",
        "13 main[error].saved: `value` is null",
        "13 main: the `error` chain is left out",
    ]


def test_numbers_and_switches_within_settings_are_changed():
    text = """
        flows:
          - name: main
            process:
              - type: validate
                name: rules
                rules: [ { expr: 'body.a', message: no a } ]
              - { type: rest, name: ask, settings: { connector: c, method: GET, path: '"/"', failOnError: false } }
        connectors: [ { name: c, type: http-client, settings: { baseURL: http://localhost:1 } } ]
    """

    changes = [mutant.what for mutant in mutants(config(text))]

    assert "main.rules: `rules[0].expr` is turned round" in changes
    assert "main.ask: `failOnError` is true, not false" in changes


async def unnoticed(folder: Path, suite: str) -> tuple[int, list[str], Report]:
    around = Surroundings(environ={}, cwd=folder, coverage=True)
    runner = Runner(around)
    found = trials(pairs([write(folder, CONFIG, suite)]))
    await runner.run(found, lambda result: None)
    ticks: list[tuple[int, int]] = []
    (told,) = await mutations(runner, around, found, lambda done, total: ticks.append((done, total)))
    assert ticks == [(number, told.total) for number in range(told.total)]
    assert runner.workspace.directory is None
    return told.total, [mutant.what for mutant in told.unnoticed], Report([], mutations=[told])


async def test_changes_that_no_case_notices_are_listed(tmp_path):
    total, lost, report = await unnoticed(tmp_path, SUITE)

    assert (total, lost) == (
        13,
        [
            "main.gate[else] is left out",
            "main.gate[else].small does nothing",
            "main.gate[else].small: `value` is null",
            "main.told does nothing",
            "main[error].saved does nothing",
            "main[error].saved: `value` is null",
            "main: the `error` chain is left out",
        ],
    )
    lines = [line.text for line in reports.total_lines(report)]
    assert lines[3].endswith("app.yaml: 6 of 13 noticed")
    assert lines[4].startswith("  not noticed: main.gate[else] is left out  at ")
    (told,) = json.loads(dumps(reports.as_json(report)))["mutations"]
    assert (told["total"], len(told["unnoticed"]), told["unnoticed"][0]["what"]) == (
        13,
        7,
        "main.gate[else] is left out",
    )


async def test_better_cases_notice_more(tmp_path):
    suite = (
        SUITE + "  - { name: small, input: { data: { n: 1 } }, expect: { body: small }, spies: { main.told: {} } }\n"
    )
    suite += "  - { name: fails, input: { data: {} }, expect: { body: saved } }\n"

    assert (await unnoticed(tmp_path, suite))[1] == ["main.told does nothing"]


async def test_blocks_that_all_cases_mock_are_left_alone(tmp_path):
    mocked = SUITE.replace("name: big,", "name: big, mocks: { main.gate: { default: { body: big } } },")
    other = SUITE.partition("cases:\n")[2].replace("name: big", "name: other")

    assert "main.gate does nothing" not in (await unnoticed(tmp_path, mocked))[1]
    assert (await unnoticed(tmp_path, mocked))[0] == 6
    assert (await unnoticed(tmp_path, mocked + other))[0] == 13
