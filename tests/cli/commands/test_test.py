"""octo_cli/commands/test.py, octo_cli/testing.py: `octo test` from arguments to reports."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

CONFIG = """\
env: [ { name: CITY, default: Oslo } ]
flows:
  - name: bill
    process: [ { type: set-payload, settings: { value: '{"total": body.qty * 2.0, "city": env.CITY}' } } ]
"""
SUITE = """\
flow: bill
cases:
  - { name: two, input: { data: { qty: 1 } }, expect: { that: [ body.total == 2 ] } }
  - { name: four, input: { data: { qty: 2 } }, expect: { that: [ body.total == TOTAL ] } }
"""


@pytest.fixture(autouse=True)
def _own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put temporary files below the test's own directory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@pytest.fixture
def test(octo: Any, tmp_path: Path) -> Any:
    """Run `octo test` beside a config with a suite in which all is well; times are cut out of what is printed."""
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")
    write(tmp_path, SUITE.replace("TOTAL", "4"))

    def call(*args: str, **more: Any) -> Any:
        ran = octo("test", *args, **more)
        return ran._replace(stdout=re.sub(r"\d+ms|/\S*octo-test-\w+", "…", ran.stdout))

    return call


def write(folder: Path, suite: str) -> None:
    (folder / "app_test.yaml").write_text(suite, encoding="utf-8")


OK = "ok   app_test.yaml  (bill)  …\n\n2 passed, 0 failed, 0 errored, 0 skipped  (…)\n"


@pytest.mark.parametrize(
    "args", [(), (".",), ("app.yaml",), ("app_test.yaml", "--fail-fast"), ("--fail-fast", "app.yaml")]
)
def test_suites_are_found_and_run(test, args):
    assert test(*args) == (OK, "", 0)


def test_failures_are_shown_and_the_status_is_1(test, tmp_path):
    write(tmp_path, SUITE.replace("TOTAL", "5"))

    ran = test("app.yaml")

    assert (ran.stderr, ran.status) == ("", 1)
    assert ran.stdout == (
        "FAIL app_test.yaml  (bill)  …\n"
        "  --- FAIL: four (…)\n"
        "        expect.that: body.total == 5 is false\n"
        '          body: {"city":"Oslo","total":4}\n'
        "          at app_test.yaml:4:66\n"
        "        reproduce: octo invoke --store :memory: --config app.yaml --flow bill "
        "--run-debug-config …/002-four.json --timeout 30s --envelope\n"
        "\n"
        "1 passed, 1 failed, 0 errored, 0 skipped  (…)\n"
        "\n"
        "the runs are in …\n"
    )


def test_a_case_that_cannot_run_makes_the_status_2(test, tmp_path):
    write(tmp_path, SUITE.replace("TOTAL", "5") + "  - { name: lost, spies: { bill.none: {} } }\n")

    assert test().status == 2


def test_a_suite_that_is_wrong_ends_the_command_before_any_case_runs(test, tmp_path):
    (tmp_path / "other_test.yaml").write_text("flow: bill\ncase: []\n", encoding="utf-8")

    assert test(terminal="err") == (
        "",
        'error: other_test.yaml:2:1: parse suite: unknown field "case" in the suite\n'
        "    2 | case: []\n"
        "      | ^^^^\n"
        "hint: did you mean `cases`?\n",
        2,
    )


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("none.yaml",), "`none.yaml` does not exist"),
        (("--config", "none.yaml"), "`--config`: `none.yaml` does not exist"),
        (("--env-file", "none.env"), "`--env-file`: cannot read `none.env`: no such file or directory"),
        (("-k", "six"), "no case has a name that contains `six`"),
        (("--junit", "no/where.xml"), "`--junit`: there is no directory `no`"),
        (("--repeat", "0"), "`--repeat`: 0 is not in the range x>=1"),
        (("--fast",), "`octo test` has no option `--fast`"),
    ],
)
def test_a_command_that_cannot_be_carried_out_is_refused(test, args, error):
    ran = test(*args, terminal="err")

    assert (ran.stdout, ran.stderr.splitlines()[0], ran.status) == ("", f"error: {error}", 2)


def test_cases_are_chosen_and_named(test):
    assert test("-k", "FOUR", "-v").stdout == (
        "ok   app_test.yaml  (bill)  …\n  --- PASS: four (…)\n\n1 passed, 0 failed, 0 errored, 0 skipped  (…)\n"
    )


def test_an_env_file_holds_for_all_cases_and_counts_more_than_the_environment(test, tmp_path):
    (tmp_path / "test.env").write_text("CITY=Bergen\n", encoding="utf-8")
    write(tmp_path, SUITE.replace("body.total == TOTAL", "'body.city == \"Bergen\"'"))

    assert test("--env-file", "test.env", environ={"CITY": "Moss"}).status == 0
    assert test(environ={"CITY": "Moss"}).status == 1
    assert test(environ={"CITY": "Bergen"}).status == 0


def test_a_config_that_is_named_is_tested(test, tmp_path):
    (tmp_path / "else.yaml").write_text(CONFIG.replace("2.0", "3.0"), encoding="utf-8")

    assert test("app_test.yaml", "--config", "else.yaml").status == 1


def test_reports_are_written_whether_cases_pass_or_not(test, tmp_path):
    for total in ("4", "5"):
        write(tmp_path, SUITE.replace("TOTAL", total))
        test("--junit", "junit.xml", "--report-json", "report.json")

        text = (tmp_path / "report.json").read_text(encoding="utf-8")
        assert text.endswith("}\n")
        assert json.loads(text)["totals"]["failed"] == (total == "5")
        assert f'failures="{int(total == "5")}"' in (tmp_path / "junit.xml").read_text(encoding="utf-8")


def test_with_json_the_report_is_all_that_is_printed(octo, test):
    ran = octo("test", "--json")

    assert (ran.stderr, ran.status, ran.stdout.count("\n")) == ("", 0, 1)
    assert [case["name"] for case in json.loads(ran.stdout)["suites"][0]["cases"]] == ["two", "four"]


def test_failures_are_annotated_on_github(test, tmp_path):
    write(tmp_path, SUITE.replace("TOTAL", "5"))

    last = test(environ={"GITHUB_ACTIONS": "true"}).stdout.splitlines()[-1]

    assert last.startswith("::error file=app_test.yaml,line=4,col=66,title=app_test.yaml › four::expect.that: ")
    assert "::error" not in test().stdout


def test_a_suite_that_does_not_load_is_annotated_on_github(test, tmp_path):
    write(tmp_path, "flow: bill\ncase: []\n")

    ran = test(environ={"GITHUB_ACTIONS": "true"})

    assert (ran.stdout, ran.status) == (
        "::error file=app_test.yaml,line=2,col=1,title=octo test::"
        'parse suite: unknown field "case" in the suite%0Ahint: did you mean `cases`?\n',
        2,
    )


def test_a_suite_of_which_nothing_ran_is_not_called_ok(test, tmp_path):
    write(tmp_path, "flow: bill\ncases: [ { name: one, skip: later } ]\n")

    assert test().stdout == (
        "----" + " app_test.yaml  (bill)  …\n  --- SKIP: one (later)\n\n0 passed, 0 failed, 0 errored, 1 skipped  (…)\n"
    )


def test_a_note_is_shown_below_a_case_that_passes(test, tmp_path):
    write(tmp_path, "flow: bill\ncases: [ { name: one, input: { data: { qty: 1 } }, expect: { that: [] } } ]\n")

    ran = test()

    assert (ran.status, ran.stdout) == (
        0,
        "ok   app_test.yaml  (bill)  …\n  --- PASS: one (…)\n        note: `expect.that` is empty and expects nothing\n"
        "\n1 passed, 0 failed, 0 errored, 0 skipped  (…)\n",
    )


def test_on_a_terminal_marks_have_colour_and_progress_is_told(test, tmp_path):
    write(tmp_path, SUITE.replace("TOTAL", "5"))

    ran = test(terminal="out err", environ={"NO_COLOR": ""})

    assert "\x1b[31mFAIL\x1b[0m app_test.yaml" in ran.stdout
    assert "1 of 2 cases" in ran.stderr
    assert ran.stderr.endswith("\r\x1b[2K")
    assert test().stderr == ""


@pytest.mark.parametrize(
    "args", [("--shuffle", "7"), ("--parallel", "1"), ("--parallel", "-3"), ("--repeat", "2"), ("--isolate",)]
)
def test_the_outcome_is_the_same_however_cases_are_run(test, tmp_path, args):
    write(tmp_path, SUITE.replace("TOTAL", "5"))
    times = re.compile(r"octo-test-\w+|, 2 runs")

    plain, other = test(), test(*args, environ={"PATH": os.environ["PATH"]})

    assert times.sub("", other.stdout) == times.sub("", plain.stdout)
    assert other.status == plain.status == 1


def test_flaky_cases_are_named(test, tmp_path):
    (tmp_path / "flip.py").write_text(
        "seen = []\ndef flip(body):\n    seen.append(1)\n    return len(seen) % 2\n", encoding="utf-8"
    )
    (tmp_path / "app.yaml").write_text(
        "flows: [ { name: bill, process: [ { type: python, settings: { file: flip.py, function: flip } } ] } ]",
        encoding="utf-8",
    )
    write(tmp_path, "flow: bill\ncases: [ { name: one, expect: { body: 1 } } ]")

    ran = test("--repeat", "4")

    assert (ran.status, "flaky: app_test.yaml › one: passed in 2 of 4 runs" in ran.stdout) == (1, True)


# ---------------------------------------------------------------- as a process


def start(folder: Path, *args: str, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "octo_cli", "test", *args],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        **more,
    )


SLOW = """\
flows: [ { name: bill, process: [ { type: python, settings: { file: slow.py, function: FUNCTION } } ] } ]
"""
FUNCTIONS = """\
import asyncio, pathlib
async def hang(body):
    pathlib.Path("running").touch()
    await asyncio.sleep(60)
async def deaf(body):
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
"""


def test_after_an_interruption_what_ran_is_reported(tmp_path):
    (tmp_path / "slow.py").write_text(FUNCTIONS, encoding="utf-8")
    (tmp_path / "app.yaml").write_text(SLOW.replace("FUNCTION", "hang"), encoding="utf-8")
    write(
        tmp_path,
        "flow: bill\ncases:\n  - { name: quick, mocks: { bill.python: { default: { body: 1 } } } }\n"
        "  - { name: slow }\n  - { name: waiting }\n",
    )
    process = start(tmp_path, "--report-json", "report.json", "--parallel", "1")
    for _ in range(500):
        if (tmp_path / "running").exists():
            break
        time.sleep(0.02)

    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)

    cases = json.loads((tmp_path / "report.json").read_text())["suites"][0]["cases"]
    assert [(case["name"], case["status"], case.get("interrupted", False)) for case in cases] == [
        ("quick", "passed", False),
        ("slow", "not-run", True),
        ("waiting", "not-run", False),
    ]
    assert process.returncode == 130
    assert "  --- NOT RUN: slow (interrupted)\n  --- NOT RUN: waiting\n" in out
    assert list(tmp_path.glob("octo-test-*")) == []
    assert "1 passed, 0 failed, 0 errored, 0 skipped, 2 not run" in out


def test_a_case_that_cannot_be_cancelled_does_not_hold_the_command_up(tmp_path):
    (tmp_path / "slow.py").write_text(FUNCTIONS, encoding="utf-8")
    (tmp_path / "app.yaml").write_text(SLOW.replace("FUNCTION", "deaf"), encoding="utf-8")
    write(tmp_path, "flow: bill\ncases: [ { name: slow, timeout: 10ms } ]\n")

    process = start(tmp_path)
    out, _ = process.communicate(timeout=30)

    assert process.returncode == 2
    assert "        the case had not ended 10 s after its time limit of 0.01 s, and was cancelled\n" in out


@pytest.mark.parametrize("file", ["app.yaml", "app_test.yaml"])
def test_suites_run_again_when_a_file_of_theirs_changes(tmp_path, file):
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")
    write(tmp_path, SUITE.replace("TOTAL", "4"))
    (tmp_path / "b.yaml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "b_test.yaml").write_text(SUITE.replace("TOTAL", "4"), encoding="utf-8")
    process = start(tmp_path, "--watch", "app.yaml", "b.yaml")
    assert process.stdout is not None
    first = [process.stdout.readline() for _ in range(4)]

    time.sleep(0.6)
    path = tmp_path / file
    path.write_text(path.read_text(encoding="utf-8").replace("2.0", "5.0").replace("== 4", "== 9"), encoding="utf-8")
    second = [process.stdout.readline() for _ in range(2)]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)

    assert [line[:19] for line in first[:2]] == ["ok   app_test.yaml ", "ok   b_test.yaml  ("]
    assert [line[:12] for line in second] == ["FAIL app_tes", "  --- FAIL: "]
    assert process.returncode == 130


def test_watching_goes_on_for_no_file_that_no_suite_depends_on_and_leaves_one_directory(tmp_path):
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")
    write(tmp_path, SUITE.replace("TOTAL", "5"))
    process = start(tmp_path, "--watch", ".", "--report-json", "report.json", "--junit", "junit.xml")
    assert process.stdout is not None
    first = [process.stdout.readline() for _ in range(10)]
    (before,) = tmp_path.glob("octo-test-*")

    for name in ("README.md", "app.yaml~", ".app.yaml.swp", "out.csv"):
        (tmp_path / name).write_text("x", encoding="utf-8")
    time.sleep(1.5)
    os.utime(tmp_path / "app.yaml")
    second = [process.stdout.readline() for _ in range(10)]
    (after,) = tmp_path.glob("octo-test-*")
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=20)

    assert (first[-1], second[-1]) == (f"the runs are in {before}\n", f"the runs are in {after}\n")
    assert before != after
    assert rest == ""


def test_coverage_and_unnoticed_changes_are_told(test):
    told = test("-k", "two", "--coverage", "--mutate").stdout

    assert told.endswith(
        "1 passed, 0 failed, 0 errored, 0 skipped  (…)\n\n"
        "coverage of .: 1 of 1 flows, 1 of 1 blocks\n\n"
        "changes of .: 2 of 2 noticed\n"
    )


def test_nothing_is_changed_as_long_as_cases_fail(test, tmp_path):
    write(tmp_path, SUITE.replace("TOTAL", "5"))

    ran = test("--mutate")

    assert (ran.status, ran.stderr) == (1, "nothing was changed: `--mutate` needs cases that all pass\n")


@pytest.mark.parametrize("args", [(), ("--isolate",)], ids=["in process", "isolated"])
def test_what_python_code_prints_is_no_part_of_the_report(octo, test, tmp_path, args):
    (tmp_path / "loud.py").write_text("def shout(body):\n    print('one', 'two')\n    return 1\n", encoding="utf-8")
    (tmp_path / "app.yaml").write_text(
        "flows: [ { name: bill, process: [ { type: python, settings: { file: loud.py, function: shout } } ] } ]",
        encoding="utf-8",
    )
    write(tmp_path, "flow: bill\ncases: [ { name: one } ]")

    ran = octo("test", "--json", *args, environ={"PATH": os.environ["PATH"]})

    assert json.loads(ran.stdout)["suites"][0]["cases"][0]["stderr"] == "one two"


def test_a_pin_to_a_version_of_another_store_harms_no_case_but_those_that_run_it(octo, tmp_path):
    (tmp_path / "app.yaml").write_text(
        "connectors: [{name: m, type: llm-scripted, settings: {turns: [{text: hi}]}}]\n"
        "agents: {desk: {connector: m, prompt: p}}\n"
        "flows:\n"
        "  - {name: live, process: [{type: ai-agent, name: a, agent: desk}]}\n"
        "  - {name: pinned, process: [{type: ai-agent, name: a, agent: desk@2}]}\n",
        encoding="utf-8",
    )
    for flow, more in (("live", ""), ("pinned", "  - {name: mocked, mocks: {pinned.a: {default: {body: 1}}}}\n")):
        suite = f"flow: {flow}\ncases:\n  - {{name: runs, expect: {{body: hi}}}}\n{more}"
        (tmp_path / f"{flow}_test.yaml").write_text(suite, encoding="utf-8")

    assert octo("test", "live_test.yaml", "--config", "app.yaml").status == 0
    told = octo("test", "pinned_test.yaml", "--config", "app.yaml")
    assert told.status == 1
    assert 'expect: the flow failed: block "a": agent "desk" has no version 2: version 1 is kept\n' in told.stdout
    assert "\n1 passed, 1 failed, 0 errored, 0 skipped" in told.stdout
