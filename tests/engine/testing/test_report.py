"""octo/testing/report.py: results as people, CI servers and programs read them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from octo.testing import report as reports
from octo.testing.results import Report, SuiteResult
from octo.testing.trial import by_suite
from octo.values import dumps
from suites import run

CONFIG = """
    flows:
      - name: bill
        process: [ { type: set-payload, name: it, settings: { value: '{"total": body.qty * 2.0}' } } ]
"""
SUITE = """
    flow: bill
    inputs: { four: { data: { qty: 4 } } }
    cases:
      - { name: right, input: four, expect: { body: { total: 8 } }, spies: { bill.it: { count: 1 } } }
      - { name: "wrong, 100%: <b>", input: four, expect: { body: { total: 9 }, vars: { none: 1 } } }
      - { name: broken, spies: { bill.none: {} } }
      - { name: later, skip: "when it is done" }
"""
WRONG = [
    "        expect.body:",
    '          want: {"total":9}',
    '          got:  {"total":8}',
    "          total: want 9, got 8",
    "          at app_test.yaml:6:71",
    "        expect.vars.none: not set (vars: none)",
    "          at app_test.yaml:6:84",
]


@pytest.fixture
async def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    monkeypatch.chdir(tmp_path)
    results = await run(Path(), CONFIG, SUITE)
    ((pair, _),) = by_suite(result.trial for result in results)
    return Report([SuiteResult(pair, results)], wall=0.5, directory=Path("/tmp/octo-test-x"))


def shown(lines) -> list[str]:
    """The lines as they are printed, with times and paths of temporary files cut out."""
    return [re.sub(r"\d+ms|/tmp/octo-test-\w+/", "…", line.text) for line in lines]


async def test_people_read_one_line_for_each_suite_and_what_did_not_pass(report):
    (suite,) = report.suites
    reproduce = "        reproduce: octo invoke --store :memory: --config app.yaml --flow bill --run-debug-config …"

    assert shown(reports.suite_lines(suite)) == [
        "FAIL app_test.yaml  (bill)  …",
        "  --- FAIL: wrong, 100%: <b> (…)",
        *WRONG,
        f"{reproduce}002-wrong-100-b.json --timeout 30s --envelope",
        "  --- ERROR: broken (…)",
        '        app_test.yaml:7:30: spy "bill.none": no block "none" in that chain (blocks: it)',
        f"{reproduce}003-broken.json --timeout 30s --envelope",
        "  --- SKIP: later (when it is done)",
    ]
    assert "  --- PASS: right (…)" in shown(reports.suite_lines(suite, verbose=True))


async def test_the_last_lines_sum_up_and_name_the_directory(report):
    assert shown(reports.total_lines(report)) == [
        "",
        "1 passed, 1 failed, 1 errored, 1 skipped  (…)",
        "",
        "the runs are in /tmp/octo-test-x",
    ]


async def test_a_suite_that_passes_is_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = await run(Path(), CONFIG, SUITE.partition('      - { name: "wrong')[0])
    suite = SuiteResult(results[0].trial.pair, results)

    assert shown(reports.suite_lines(suite)) == ["ok   app_test.yaml  (bill)  …"]
    assert shown(reports.total_lines(Report([suite]))) == ["", "1 passed, 0 failed, 0 errored, 0 skipped  (…)"]


async def test_flaky_cases_and_those_not_run_are_counted_and_named(report):
    from dataclasses import replace

    (suite,) = report.suites
    right, wrong, broken, _ = suite.results
    flaky = replace(wrong, runs=5, passed_runs=3, failures=wrong.failures[1:])
    lost = replace(broken, status="not-run", error="", reproduce="")
    changed = Report([SuiteResult(suite.pair, [right, flaky, lost])])

    assert shown(reports.suite_lines(changed.suites[0]))[1:4] == [
        "  --- FAIL: wrong, 100%: <b> (…, 5 runs)",
        "        flaky: passed in 3 of 5 runs",
        "        expect.vars.none: not set (vars: none)",
    ]
    assert shown(reports.suite_lines(changed.suites[0]))[-1] == "  --- NOT RUN: broken"
    assert shown(reports.total_lines(changed)) == [
        "",
        "1 passed, 1 failed, 0 errored, 0 skipped, 1 not run  (…)",
        "",
        "flaky: app_test.yaml › wrong, 100%: <b>: passed in 3 of 5 runs",
    ]


@pytest.mark.parametrize(
    ("names", "status"),
    [(["right"], 0), (["right", "later"], 0), (["wrong, 100%: <b>", "right"], 1), (["wrong, 100%: <b>", "broken"], 2)],
)
async def test_the_status_says_the_worst_that_happened(report, names, status):
    (suite,) = report.suites
    chosen = [result for result in suite.results if result.trial.name in names]

    assert Report([SuiteResult(suite.pair, chosen)]).exit_status == status
    assert Report([SuiteResult(suite.pair, chosen)], interrupted=True).exit_status == 130


async def test_junit_has_a_testcase_for_each_case(report):
    root = ElementTree.fromstring(reports.junit(report))

    (suite,) = root
    assert {key: root.attrib[key] for key in ("name", "tests", "failures", "errors", "skipped")} == {
        "name": "octo",
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
    }
    assert suite.attrib["name"] == "app_test.yaml"
    assert [(case.attrib["name"], case.attrib["classname"], [part.tag for part in case]) for case in suite] == [
        ("right", "bill", []),
        ("wrong, 100%: <b>", "bill", ["failure", "system-out"]),
        ("broken", "bill", ["error", "system-out"]),
        ("later", "bill", ["skipped"]),
    ]
    assert all(re.fullmatch(r"\d+\.\d{3}", case.attrib["time"]) for case in [root, suite, *suite])
    failure, error, skipped = (case[0] for case in list(suite)[1:])
    assert failure.attrib == {
        "message": 'expect.body: want: {"total":9} got: {"total":8} total: want 9, got 8',
        "type": "assertion",
    }
    assert failure.text is not None
    assert failure.text.splitlines()[-1] == "  at app_test.yaml:6:84"
    assert error.attrib == {
        "message": 'app_test.yaml:7:30: spy "bill.none": no block "none" in that chain (blocks: it)',
        "type": "run",
    }
    assert skipped.attrib == {"message": "when it is done"}


async def test_junit_is_xml_whatever_a_case_holds(tmp_path):
    name, body = '"a\\u0001\\uFFFE<&>\\""', '"]]>\\u0000"'
    case = f"name: {name}, input: {{ data: {{ qty: 1 }} }}, expect: {{ body: {body} }}"
    suite = f"flow: bill\ncases: [ {{ {case} }} ]"
    results = await run(tmp_path, CONFIG, suite)

    root = ElementTree.fromstring(reports.junit(Report([SuiteResult(results[0].trial.pair, results)])))

    assert root[0][0].attrib["name"] == 'a\ufffd\ufffd<&>"'


async def test_a_long_failure_is_cut_in_the_message_only(tmp_path):
    suite = f"flow: bill\ncases: [ {{ name: one, input: {{ data: {{ qty: 1 }} }}, expect: {{ body: {'x' * 300} }} }} ]"
    results = await run(tmp_path, CONFIG, suite)

    root = ElementTree.fromstring(reports.junit(Report([SuiteResult(results[0].trial.pair, results)])))

    failure = root[0][0][0]
    assert (len(failure.attrib["message"]), "x" * 300 in (failure.text or "")) == (160, True)


async def test_the_json_report_tells_everything(report):
    told = json.loads(dumps(reports.as_json(report)))

    (suite,) = told.pop("suites")
    assert told == {
        "dolphin": told["dolphin"],
        "wallMs": 500,
        "workDir": "/tmp/octo-test-x",
        "totals": {
            "cases": 4,
            "passed": 1,
            "failed": 1,
            "errored": 1,
            "skipped": 1,
            "notRun": 0,
            "elapsedMs": told["totals"]["elapsedMs"],
        },
    }
    right, wrong, broken, later = suite.pop("cases")
    assert suite == {"path": "app_test.yaml", "config": "app.yaml", "flow": "bill", "elapsedMs": suite["elapsedMs"]}
    (record,) = right["outcome"]["spies"]["bill.it"]
    assert (right["name"], right["status"], record["output"]["body"]) == ("right", "passed", {"total": 8})
    assert right.keys() == {"name", "status", "elapsedMs", "outcome"}
    assert wrong["failures"] == [
        {
            "summary": "expect.body:",
            "detail": 'want: {"total":9}\ngot:  {"total":8}\ntotal: want 9, got 8',
            "at": "app_test.yaml:6:71",
        },
        {"summary": "expect.vars.none: not set (vars: none)", "detail": "", "at": "app_test.yaml:6:84"},
    ]
    assert wrong["outcome"]["result"]["body"] == {"total": 8}
    assert wrong["reproduce"].startswith("octo invoke ")
    assert (broken["status"], broken["error"][:18]) == ("errored", "app_test.yaml:7:30")
    assert later == {"name": "later", "status": "skipped", "elapsedMs": 0, "skip": "when it is done"}


async def test_github_shows_each_failure_at_its_line(report):
    assert list(reports.github(report)) == [
        "::error file=app_test.yaml,line=6,col=71,title=app_test.yaml › wrong%2C 100%25%3A <b>::expect.body:%0A"
        '  want: {"total":9}%0A  got:  {"total":8}%0A  total: want 9, got 8',
        "::error file=app_test.yaml,line=6,col=84,title=app_test.yaml › wrong%2C 100%25%3A <b>::"
        "expect.vars.none: not set (vars: none)",
        '::error file=app_test.yaml,line=7,col=13,title=app_test.yaml › broken::app_test.yaml:7:30: spy "bill.none": '
        'no block "none" in that chain (blocks: it)',
    ]


async def test_an_error_that_many_cases_have_is_told_once(tmp_path):
    suite = "flow: bill\nmocks: { bill.none: { default: { body: 1 } } }\ncases: [ { name: one }, { name: two } ]"
    results = await run(tmp_path, CONFIG, suite)

    lines = shown(reports.suite_lines(SuiteResult(results[0].trial.pair, results)))

    assert [line for line in lines if "reproduce" not in line][3:] == [
        "  --- ERROR: two (…)",
        "        the same error",
    ]
