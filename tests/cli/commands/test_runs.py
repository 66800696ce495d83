"""octo_cli/commands/runs.py, octo_cli/run_table.py, octo_cli/run_tree.py: looking at runs, and at a run log."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
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
        ((), "`octo runs show` needs `RUN|FILE`\nhint: see `octo runs show --help`"),
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


# ---------------------------------------------------------------- runs of the store


@pytest.fixture
def invoke(octo: Any, tmp_path: Path) -> Any:
    """Calls a flow with an agent; the id of the run."""
    (tmp_path / "app.yaml").write_text(CONFIG + FAILS, encoding="utf-8")

    def call(flow: str = "ask") -> str:
        outcome = octo("invoke", "--config", "app.yaml", "--flow", flow)
        found = json.loads(octo("runs", "list").stdout)["runs"][0]
        assert outcome.status == (0 if flow == "ask" else 1)
        return str(found["id"])

    return call


FAILS = """\
  - name: fails
    process:
      - {type: flow-ref, flow: ask}
      - {type: set-payload, name: price, settings: {value: body.price}}
"""


def runs_of(octo: Any, *args: str) -> list[str]:
    outcome = octo("runs", "list", *args)
    assert (outcome.stderr, outcome.status) == ("", 0)
    return [run["id"] for run in json.loads(outcome.stdout)["runs"]]


def test_the_runs_are_a_table_on_a_terminal(octo: Any, invoke: Any) -> None:
    done, failed = invoke(), invoke("fails")

    stdout, stderr, status = octo("runs", "list", terminal="out err")

    lines = [re.sub(r" +[\d.]+ m?s  ", "  …  ", re.sub(r"\d s ago", "N s ago", line)) for line in stdout.splitlines()]
    assert re.fullmatch(r"RUN       FLOW   BEGAN +TIME  OUTCOME    TURNS  TOOLS      TOKENS  ERROR", lines[0])
    assert lines[1].startswith(f'{failed[:8]}  fails  N s ago  …  failed         2      1  2,500 → 39  block "')
    assert len(stdout.splitlines()[1]) == 80
    assert lines[2] == f"{done[:8]}  ask    N s ago  …  completed      2      1  2,500 → 39"
    assert (stderr, status, len(lines)) == ("", 0, 3)


def test_in_a_pipe_the_runs_are_one_document(octo: Any, invoke: Any, tmp_path: Path) -> None:
    run = invoke()

    document = json.loads(octo("runs", "list").stdout)
    (found,) = document["runs"]
    (agent,) = found.pop("agents")

    assert document["more"] is False
    assert {name: value for name, value in found.items() if name not in ("began", "ended", "seconds", "logBytes")} == {
        "id": run,
        "flow": "ask",
        "config": str(tmp_path / "app.yaml"),
        "outcome": "completed",
        "error": None,
        "turns": 2,
        "toolCalls": 1,
        "tokensRead": 2500,
        "tokensWritten": 39,
        "costUSD": None,
        "records": 14,
    }
    assert {name: value for name, value in agent.items() if name not in ("hash", "seconds")} == {
        "address": "ask.agent",
        "name": None,
        "source": "inline",
        "version": None,
        "connector": "model",
        "turns": 2,
        "toolCalls": 1,
        "tokensRead": 2500,
        "tokensWritten": 39,
        "costUSD": None,
        "reason": None,
        "error": None,
    }


def test_runs_are_chosen_by_flow_time_and_outcome(octo: Any, invoke: Any) -> None:
    done, failed = invoke(), invoke("fails")

    assert runs_of(octo) == [failed, done]
    assert runs_of(octo, "--flow", "ask") == [done]
    assert runs_of(octo, "--failed") == [failed]
    assert runs_of(octo, "--since", "1h") == runs_of(octo, "--since", "2020-01-01") == [failed, done]
    assert runs_of(octo, "--since", "0") == runs_of(octo, "--since", "2999-01-01T00:00:00Z") == []
    assert runs_of(octo, "--limit", "1") == [failed]


def test_a_narrow_terminal_shows_how_runs_ended(octo: Any, invoke: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = invoke()
    monkeypatch.setenv("COLUMNS", "30")

    assert octo("runs", "list", terminal="out").stdout == (
        f"RUN       FLOW  OUTCOME    TUR\n{run[:8]}  ask   completed    …\n"
    )


def test_a_person_is_told_of_older_runs_and_of_none(octo: Any, invoke: Any) -> None:
    assert octo("runs", "list", terminal="out").stdout == "no runs yet: those in which an agent works are recorded\n"

    for _ in range(2):
        invoke()

    assert octo("runs", "list", "--limit", "1", terminal="out").stdout.endswith("\nolder ones: `--limit 5`\n")
    assert octo("runs", "list", "--flow", "other", terminal="out").stdout == "no such run\n"


def test_a_run_is_shown_by_the_beginning_of_its_id(octo: Any, invoke: Any, tmp_path: Path) -> None:
    run = invoke()

    stdout, stderr, status = octo("runs", "show", run[:6], terminal="out err")

    head, tree = stdout.split("\n\n", 1)
    assert re.sub(r"\d s ago", "N s ago", head).splitlines()[:3] == [
        f"run {run}",
        "flow ask, completed",
        f"N s ago, {tmp_path / 'app.yaml'}",
    ]
    assert re.fullmatch(r"agent ask\.agent, [0-9a-f]{8}, with model", head.splitlines()[3])
    assert without_times(tree).startswith("ask  …\n├─ agent  …  ai-agent\n│  ├─ turn 1")
    assert (stderr, status) == ("", 0)


@pytest.mark.parametrize("name", ["latest", "-1"])
def test_the_last_run_has_a_name(octo: Any, invoke: Any, name: str) -> None:
    invoke()
    last = invoke()

    document = json.loads(octo("runs", "show", name).stdout)

    assert (document["run"]["id"], document["totals"]["records"], document["spans"][0]["name"]) == (last, 14, "ask")


def test_a_run_can_be_written_as_a_page(octo: Any, invoke: Any, tmp_path: Path) -> None:
    run = invoke()

    assert octo("runs", "show", "latest", "--html", "run.html", terminal="out") == ("wrote run.html\n", "", 0)
    assert run in (tmp_path / "run.html").read_text(encoding="utf-8")


def test_a_run_that_there_is_not_ends_with_2(octo: Any, invoke: Any) -> None:
    invoke()

    assert octo("runs", "show", "lates", terminal="err") == (
        "",
        "error: there is no run `lates` in `.octo/octo.db`\nhint: did you mean `latest`?\n",
        2,
    )


def test_runs_are_pruned_once_it_is_said_twice(octo: Any, invoke: Any) -> None:
    invoke()
    last = invoke()

    assert octo("runs", "prune", "--keep", "1", terminal="err") == (
        "",
        "error: remove 1 run from `.octo/octo.db`: nobody is there to be asked\nhint: `--yes` does it without asking\n",
        2,
    )
    assert octo("runs", "prune", "--keep", "1", "--yes", terminal="out") == ("removed 1 run\n", "", 0)
    assert runs_of(octo) == [last]
    assert octo("runs", "prune", "--older-than", "30d") == ('{"path":".octo/octo.db","removed":0}\n', "", 0)
    assert octo("runs", "prune", "--older-than", "0", "--yes").stdout == '{"path":".octo/octo.db","removed":1}\n'


@pytest.mark.parametrize(("said", "left"), [("y\n", 0), ("\n", 1), ("no\n", 1)], ids=["yes", "nothing", "no"])
def test_a_person_is_asked_before_runs_are_removed(
    octo: Any, invoke: Any, tmp_path: Path, said: str, left: int
) -> None:
    invoke()
    terminal, end = os.openpty()
    command = [sys.executable, "-m", "octo_cli", "runs", "prune", "--keep", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=end, stdout=subprocess.PIPE, stderr=end, text=True) as process:
        os.write(terminal, said.encode())
        stdout, _ = process.communicate()
    os.close(end)
    told = b""
    while b"[y/N] " not in told:
        told += os.read(terminal, 1000)
    os.close(terminal)

    assert "remove 1 run from `.octo/octo.db`? [y/N] " in told.decode()
    assert json.loads(stdout)["removed"] == 1 - left
    assert len(runs_of(octo)) == left


def test_what_a_flow_calls_itself_cannot_steer_the_terminal(octo: Any, tmp_path: Path) -> None:
    named = CONFIG.replace("name: ask", r'name: "ask\e[31m"').replace("body.none", r"'{\"a\": 1}[\"\e]0;x\a\"]'")
    (tmp_path / "app.yaml").write_text(named, encoding="utf-8")
    octo("invoke", "--config", "app.yaml", "--flow", "ask\x1b[31m")

    for command in (("list",), ("show", "latest")):
        assert "\x1b" not in octo("runs", *command, terminal="out").stdout


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("prune",), "`octo runs prune` needs `--older-than` or `--keep`\nhint: for example"),
        (("prune", "--older-than", "soon"), "`--older-than`: expected a span of time, found `soon`\nhint: for example"),
        (
            ("list", "--since", "yesterday"),
            "`--since`: expected a span of time or a date, found `yesterday`\n"
            "hint: for example `2h`, `7d`, `2026-01-31` or `2026-01-31T18:00`\n",
        ),
        (("show", ""), "a blank id names no run\nhint: `octo runs list` shows the runs that there are\n"),
        (("list", "--config", "none.yaml"), "config `none.yaml` does not exist\n"),
        (
            ("show", "x", "--store", "file"),
            "cannot create the store `file`: a file of that name exists\nhint: name another",
        ),
        (("list", "--store", ":memory:"), "a store in memory keeps nothing\nhint: name a directory"),
    ],
    ids=["nothing chosen", "no age", "no time", "no id", "no config", "no store", "in memory"],
)
def test_what_makes_no_sense_ends_with_2(octo: Any, tmp_path: Path, args: tuple[str, ...], error: str) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    stdout, stderr, status = octo("runs", *args, terminal="err")

    assert stderr.startswith(f"error: {error}")
    assert (stdout, status) == ("", 2)


@pytest.mark.parametrize("args", [("--store", ":memory:"), ("--flow", "plain")], ids=["in memory", "no agent"])
def test_what_needs_no_store_makes_none(octo: Any, tmp_path: Path, args: tuple[str, ...]) -> None:
    (tmp_path / "app.yaml").write_text(CONFIG + "  - {name: plain}\n", encoding="utf-8")

    assert octo("invoke", "--config", "app.yaml", "--flow", "ask", *args).status == 0
    assert [path.name for path in tmp_path.iterdir()] == ["app.yaml"]


def test_each_row_is_a_run(octo: Any, invoke: Any, tmp_path: Path) -> None:
    invoke()
    (tmp_path / "rows.jsonl").write_text("1\n2\n3\n", encoding="utf-8")

    lines = octo("invoke", "--config", "app.yaml", "--flow", "ask", "--each", "rows.jsonl").stdout.splitlines()

    assert set(runs_of(octo)[:3]) == {json.loads(line)["event_id"] for line in lines}


WAITS = """\
  - name: waits
    process:
      - {type: flow-ref, flow: ask}
      - {type: python, settings: {file: tools.py, function: wait}}
"""


def test_a_run_is_running_until_its_process_is_killed(octo: Any, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(CONFIG + WAITS, encoding="utf-8")
    (tmp_path / "tools.py").write_text("import time\ndef wait(body): time.sleep(60)\n", encoding="utf-8")
    command = [sys.executable, "-m", "octo_cli", "invoke", "--config", "app.yaml", "--flow", "waits", "--data", "1"]
    with subprocess.Popen(command, cwd=tmp_path) as process:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and '"name":"python"' not in octo("runs", "show", "latest").stdout:
            time.sleep(0.05)
        (run,) = json.loads(octo("runs", "list").stdout)["runs"]
        assert run["outcome"] == "running"
        process.kill()
    (run,) = json.loads(octo("runs", "list", "--failed").stdout)["runs"]

    assert (run["outcome"], run["ended"], run["turns"]) == ("interrupted", None, 2)
    shown = octo("runs", "show", "latest", terminal="out").stdout
    assert "flow waits, interrupted\n" in shown
    assert re.search(r"\n└─ python +unfinished\n", shown)


def test_ctrl_c_leaves_an_interrupted_run(octo: Any, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(CONFIG + WAITS, encoding="utf-8")
    slow = "import asyncio\nasync def wait(body): await asyncio.sleep(60)\n"
    (tmp_path / "tools.py").write_text(slow, encoding="utf-8")
    command = [sys.executable, "-m", "octo_cli", "invoke", "--config", "app.yaml", "--flow", "waits", "--data", "1"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not runs_of(octo):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
    (run,) = json.loads(octo("runs", "list").stdout)["runs"]

    assert (process.returncode, run["outcome"], run["ended"] is None) == (130, "interrupted", False)


def test_several_processes_keep_their_runs_in_one_store(octo: Any, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")
    command = [sys.executable, "-m", "octo_cli", "invoke", "--config", "app.yaml", "--flow", "ask", "--data", "1"]
    processes = [subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    answers = [json.loads(process.communicate()[0])["event_id"] for process in processes]

    assert [process.returncode for process in processes] == [0] * 6
    assert sorted(runs_of(octo)) == sorted(answers)
