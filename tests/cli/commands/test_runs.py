"""octo_cli/commands/runs.py: looking at a run log."""

import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest

CONFIG = """\
connectors:
  - name: model
    type: llm-scripted
    settings:
      turns:
        - {calls: [{name: look, args: {at: moon}}], usage: {inputTokens: 1200, outputTokens: 34}}
        - {text: done, usage: {inputTokens: 1300, outputTokens: 5}}
flows:
  - name: ask
    process:
      - type: ai-agent
        name: agent
        connector: model
        prompt: Look.
        tools:
          - name: look
            description: Looks.
            process:
              - {type: set-payload, name: broken, settings: {value: body.none}}
      - {type: log, settings: {message: body}}
"""


@pytest.fixture
def log(octo: Any, tmp_path: Path) -> str:
    """The log of a run with an agent, made by octo."""
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")
    assert octo("invoke", "--config", "app.yaml", "--flow", "ask", "--log", "run.jsonl").status == 0
    return "run.jsonl"


def without_times(text: str) -> str:
    return re.sub(r" +[\d.]+ m?s\b", "  …", text)


def test_on_a_terminal_a_run_is_a_tree(octo: Any, log: str) -> None:
    stdout, stderr, status = octo("runs", "show", log, terminal="out err")

    assert [line.rstrip() for line in without_times(stdout).splitlines()] == [
        "ask  …",
        "├─ agent  …  ai-agent",
        "│  ├─ turn 1  …  scripted · tool_use  1,200 → 34 tokens",
        '│  ├─ look  …  {"at": "moon"}  failed',
        "│  │  └─ broken  …  set-payload  failed: set-payload value: evaluate expression: no such key: none",
        "│  └─ turn 2  …  scripted · end_turn  1,300 → 5 tokens",
        "└─ log  …",
        "",
        re.match(r"[\d.]+ m?s", stdout.splitlines()[-1])[0]  # type: ignore[index]  # it begins with a time
        + ", 2 turns, 1 tool call, 2,500 tokens read and 39 tokens written, 1 failure, 14 records",
    ]
    assert (stderr, status) == ("", 0)


def test_in_a_pipe_it_is_one_document(octo: Any, log: str) -> None:
    stdout, stderr, status = octo("runs", "show", log)
    shown = json.loads(stdout)

    assert {name: value for name, value in shown["totals"].items() if name != "seconds"} == {
        "records": 14,
        "turns": 2,
        "toolCalls": 1,
        "tokensRead": 2500,
        "tokensWritten": 39,
        "costUSD": None,
        "failures": 1,
    }
    assert [(span["depth"], span["kind"], span["name"], span["outcome"]) for span in shown["spans"]] == [
        (0, "flow", "ask", "completed"),
        (1, "block", "agent", "completed"),
        (2, "turn", "turn 1", "completed"),
        (2, "tool", "look", "failed"),
        (3, "block", "broken", "failed"),
        (2, "turn", "turn 2", "completed"),
        (1, "block", "log", "completed"),
    ]
    assert octo("runs", "show", log, "--json", terminal="out").stdout == stdout
    assert (stderr, status) == ("", 0)


def test_colours_tell_kinds_and_failures(octo: Any, log: str) -> None:
    stdout = octo("runs", "show", log, terminal="out", environ={"NO_COLOR": ""}).stdout

    assert "\x1b[34magent\x1b[0m" in stdout
    assert "\x1b[31mbroken\x1b[0m" in stdout


def test_what_a_log_holds_cannot_steer_the_terminal(octo: Any, tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text('{"seq":1,"kind":"flow.failed","flow":"a\\u001b[2Jb\\nc","error":"\\u0007"}')

    assert octo("runs", "show", "run.jsonl", terminal="out").stdout == (
        "a\\u001b[2Jb c             failed: \\u0007\n\n0.00 ms, 1 failure, 1 record\n"
    )


def test_the_page_is_written_whole_for_its_owner(octo: Any, log: str, tmp_path: Path) -> None:
    assert octo("runs", "show", log, "--html", "run.html") == ('{"html":"run.html","records":14}\n', "", 0)
    assert octo("runs", "show", log, "--html", "run.html", terminal="out").stdout == "wrote run.html\n"

    page = tmp_path / "run.html"
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("none.jsonl",), "cannot read `none.jsonl`: no such file or directory"),
        (
            ("app.yaml",),
            "app.yaml:1:1: this is no run log: expecting value\n"
            "    1 | connectors:\n      | ^\nhint: a run log is what `octo invoke --log FILE` writes",
        ),
        (("run.jsonl", "--html", "no/run.html"), "`--html`: there is no directory `no`\nhint: make it first"),
        ((), "`octo runs show` needs `FILE`\nhint: see `octo runs show --help`"),
    ],
    ids=["no file", "no log", "no directory", "nothing"],
)
def test_what_cannot_be_shown_ends_with_2(octo: Any, log: str, args: tuple[str, ...], error: str) -> None:
    assert octo("runs", "show", *args, terminal="err") == ("", f"error: {error}\n", 2)


def test_a_line_that_is_no_record_is_a_warning_and_the_rest_is_shown(octo: Any, tmp_path: Path) -> None:
    lines = [
        '{"seq":1,"kind":"flow.started","spanId":1,"flow":"f"}',
        "{",
        '{"seq":2,"kind":"flow.completed","spanId":1}',
    ]
    (tmp_path / "run.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")

    ran = octo("runs", "show", "run.jsonl", terminal="out err")

    assert ran.stdout == "f\n\n0.00 ms, 0 failures, 2 records\n"
    assert ran.stderr == (
        "warning: run.jsonl:2:2: this line is no record and is left out: "
        "expecting property name enclosed in double quotes\n    2 | {\n      |  ^\n"
    )
    assert ran.status == 0
