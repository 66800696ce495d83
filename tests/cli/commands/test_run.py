"""octo_cli/commands/run.py, octo_cli/serving.py: serving a config as a process does."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from octo.runlog.tree import read

OCTO = [sys.executable, "-m", "octo_cli"]
CONFIG = """\
connectors:
  - {name: out, type: logger, settings: {output: stdout}}
flows:
  - name: tick
    source: {type: cron, settings: {schedule: '@every 1s', payload: '"tick"'}}
    process:
      - {type: log, name: told, logger: out, message: '"BODY"'}
"""
SLOW = """\
flows:
  - name: tick
    workers: 1
    source: {type: cron, settings: {schedule: '@every 1s'}}
    process:
      - {type: test-wait, name: slow, for: 1500ms}
"""


class Program:
    """A running `octo run`, and what it has written so far. The times of log records are cut out."""

    def __init__(self, args: list[str], folder: Path, environ: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [*OCTO, "run", *args],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        self.lines: list[str] = []
        self._open: list[str] = []
        """Those that nobody has waited for."""
        self._arriving: queue.Queue[str] = queue.Queue()
        self._readers = [
            threading.Thread(target=self._read, args=(stream,)) for stream in (self.process.stdout, self.process.stderr)
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: Any) -> None:
        for line in stream:
            self._arriving.put(re.sub(r"^time=\S+Z ", "", line.rstrip("\n")))

    def until(self, pattern: str, seconds: float = 15) -> re.Match[str]:
        """Wait for a line that matches, each line for once: those of the two streams come in any order."""
        end = time.monotonic() + seconds
        while True:
            for index, line in enumerate(self._open):
                if match := re.search(pattern, line):
                    del self._open[index]
                    return match
            try:
                self._open.append(self._arriving.get(timeout=max(0, end - time.monotonic())))
            except queue.Empty:
                raise AssertionError(f"no {pattern!r} in {self.lines}") from None
            self.lines.append(self._open[-1])

    def port(self) -> int:
        return int(self.until(r'msg="admin port open" port=(\d+)')[1])

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; the exit status."""
        self.process.send_signal(number)
        return self.end()

    def end(self) -> int:
        status = self.process.wait(timeout=15)
        for reader in self._readers:
            reader.join()
        while not self._arriving.empty():
            self.lines.append(self._arriving.get())
        return status


Start = Callable[..., Program]


@pytest.fixture
def start(tmp_path: Path, plugin: Path) -> Iterator[Start]:
    """Start `octo run` on `app.yaml`, without an admin port if nothing else is asked for."""
    programs: list[Program] = []

    def started(*args: str, config: str = CONFIG, environ: dict[str, str] | None = None) -> Program:
        (tmp_path / "app.yaml").write_text(config, encoding="utf-8")
        base = {"PATH": os.environ["PATH"], "PYTHONPATH": str(plugin), "OCTO_OBSERVABILITY": "off"}
        programs.append(Program(["--config", "app.yaml", *args], tmp_path, base | (environ or {})))
        return programs[-1]

    yield started
    for program in programs:
        program.process.kill()
        program.end()
        for stream in (program.process.stdout, program.process.stderr):
            assert stream is not None
            stream.close()


READY = r"octo \S+ is ready: 1 flow, 2 connectors"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_it_serves_until_a_signal_ends_it_in_good_order(start: Start, number: int) -> None:
    program = start()
    program.until('level=INFO msg="BODY"')

    assert program.stop(number) == 0
    assert sorted(re.sub(r"workers=\d+", "workers=N", line) for line in program.lines if "BODY" not in line) == [
        'level=INFO msg="flow started" flow=tick source=cron workers=N',
        'level=INFO msg="sources stop, messages that were accepted are finished"',
        f'level=INFO msg="starting runtime" version={octo_version()} flows=1 connectors=2',
        'level=INFO msg="stopped"',
        f"octo {octo_version()} is ready: 1 flow, 2 connectors",
    ]


def octo_version() -> str:
    import octo

    return octo.__version__


def test_the_banner_is_all_that_octo_itself_writes_to_standard_output(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text("flows: [{name: a}, {name: b}]", encoding="utf-8")
    environ = {"PATH": os.environ["PATH"], "OCTO_OBSERVABILITY": "no"}
    with subprocess.Popen(
        [*OCTO, "run", "--config", "app.yaml"], cwd=tmp_path, env=environ, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.terminate()
        rest = process.stdout.read()

    assert (first, rest, process.returncode) == (f"octo {octo_version()} is ready: 2 flows, 0 connectors\n", "", 0)


ASKING = """\
flows:
  - name: price
    source: {type: queue, settings: {subject: price}}
    process:
      - {type: set-payload, name: look, value: body.price}
  - name: tick
    workers: 1
    source: {type: cron, settings: {schedule: '@every 1s', payload: '{}'}}
    process:
      - {type: queue-dispatch, subject: '"price"', awaitReply: true}
"""


def test_a_failure_is_logged_once_with_its_place_and_what_to_do(start: Start) -> None:
    program = start(config=ASKING)
    program.until("level=ERROR")

    assert program.stop() == 0
    errors = [re.sub(r"event_id=\w+", "event_id=…", line) for line in program.lines if "level=ERROR" in line]
    assert set(errors) == {
        'level=ERROR msg="block \\"look\\": set-payload value: evaluate expression: no such key: price" flow=price '
        "event_id=… file=app.yaml line=5 column=9 address=price.look "
        'hint="`has(body.price)` tells whether it is there, `body.?price.orValue(…)` reads it if it is there, '
        'or something else"'
    }


def test_work_that_was_accepted_is_finished(start: Start) -> None:
    program = start(config=SLOW)
    program.until("^waiting$")

    assert program.stop() == 0
    assert "left" in program.lines


def test_a_second_signal_ends_it_at_once(start: Start) -> None:
    program = start(config=SLOW.replace("1500ms", "60s"))
    program.until("^waiting$")
    program.process.send_signal(signal.SIGTERM)
    program.until("sources stop")

    assert program.stop() == 130
    assert "left" not in program.lines


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ("flows: [{name: a, process: [{type: lgo}]}]", 'block "lgo" not registered'),
        ("connectors: [{name: l, type: logger, settings: {output: no/where}}]", 'connector "l" (logger): cannot open'),
    ],
    ids=["a config with problems", "a connector that does not open"],
)
def test_what_cannot_start_ends_with_status_2_and_no_banner(start: Start, config: str, error: str) -> None:
    program = start(config=config)

    assert program.end() == 2
    assert not any(line.startswith("octo ") for line in program.lines)
    (last,) = [line for line in program.lines if "level=ERROR" in line]
    assert error in last.replace('\\"', '"')


# ---------------------------------------------------------------- admin port


def get(port: int, path: str) -> tuple[int, str]:
    answer = httpx.get(f"http://127.0.0.1:{port}{path}", trust_env=False)
    return answer.status_code, answer.text


ADMIN = ("--observability", "--observability-addr", "127.0.0.1:0")


def test_the_admin_port_tells_how_far_it_is(start: Start) -> None:
    program = start(
        *ADMIN,
        "--metrics",
        "--metrics-blocks",
        "tick.told",
        config=SLOW.replace("test-wait, name: slow, for: 1500ms", "test-wait, name: told, for: 1500ms"),
    )
    port = program.port()
    program.until("is ready")
    assert get(port, "/readyz") == (200, "ready")
    program.until("^waiting$")
    metrics = get(port, "/metrics")[1]
    assert 'octo_flow_in_flight{flow="tick"} 1\n' in metrics
    program.process.send_signal(signal.SIGTERM)
    program.until("sources stop")
    assert get(port, "/readyz") == (503, "draining")
    assert get(port, "/healthz") == (200, "ok")

    assert program.end() == 0


def test_counters_survive_a_reload_and_count_blocks(start: Start, tmp_path: Path) -> None:
    program = start(*ADMIN, "--watch", environ={"OCTO_METRICS": "1", "OCTO_METRICS_BLOCKS": "*"})
    port = program.port()
    program.until("BODY")
    (tmp_path / "app.yaml").write_text(CONFIG.replace("BODY", "NEW"), encoding="utf-8")
    program.until("NEW")
    metrics = get(port, "/metrics")[1]

    assert program.stop() == 0
    counted = re.search(
        r'octo_block_invocations_total\{flow="tick",path="tick.told",type="log",outcome="ok"\} (\d+)', metrics
    )
    assert counted is not None
    assert int(counted[1]) >= 2


def test_an_admin_port_that_is_taken_is_told_of_and_flows_run(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        program = start("--observability", environ={"OCTO_OBSERVABILITY_ADDR": address})
        program.until(f'level=WARN msg="there is no admin port: cannot listen on `{address}`: address already in use"')
        program.until(READY)

        assert program.stop() == 0


def test_without_the_extra_it_runs_and_says_so(start: Start, tmp_path: Path, plugin: Path) -> None:
    hidden = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "uvicorn" else find(name, *more)
"""
    (plugin / "sitecustomize.py").write_text(hidden, encoding="utf-8")
    program = start("--observability", "--observability-addr", "127.0.0.1:0")
    program.until('level=INFO msg="there is no admin port without the extra `server`" hint="install it: pip install')
    program.until(READY)

    assert program.stop() == 0


# ---------------------------------------------------------------- watching


def test_a_changed_config_is_loaded_anew(start: Start, tmp_path: Path) -> None:
    program = start("--watch")
    program.until(READY)
    program.until("BODY")
    (tmp_path / "app.yaml").write_text(CONFIG.replace("BODY", "NEW"), encoding="utf-8")
    program.until("config changed, loading it anew")
    program.until(READY)
    program.until("NEW")

    assert program.stop() == 0


def test_a_config_that_cannot_run_waits_for_the_next_change(start: Start, tmp_path: Path) -> None:
    program = start(*ADMIN, "--watch", config="flows: [{name: a, process: [{type: lgo}]}]")
    port = program.port()
    error = program.until('level=ERROR msg="config cannot run, waiting for it to change" error=(.*)')[1]
    assert error.startswith(r'"app.yaml:1:36: block \"lgo\" not registered"')
    assert get(port, "/readyz") == (503, "reloading")
    (tmp_path / "app.yaml").write_text("flows: [{", encoding="utf-8")
    program.until("level=ERROR")
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")
    program.until(READY)
    (tmp_path / "app.yaml").unlink()
    program.until("config `app.yaml` does not exist")
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")
    program.until(READY)

    assert program.stop() == 0


def test_files_beside_the_config_count_even_before_they_exist(start: Start, tmp_path: Path) -> None:
    config = CONFIG.replace(
        "connectors:", "env: [{name: WHO, default: nobody}]\nresources:\n  templates: [{resource: t.txt}]\nconnectors:"
    )
    config = config.replace("""'"BODY"'""", """'templateResource("t.txt")'""")
    program = start("--watch", config=config)
    program.until("cannot run")
    (tmp_path / "t.txt").write_text("hello {{ env.WHO }}", encoding="utf-8")
    program.until('msg="hello nobody"')
    (tmp_path / ".env").write_text("WHO=world", encoding="utf-8")
    program.until('msg="hello world"')
    (tmp_path / "t.txt").write_text("bye {{ env.WHO }}", encoding="utf-8")
    program.until('msg="bye world"')

    assert program.stop() == 0


def test_messages_that_wait_in_a_queue_survive_a_reload(start: Start, tmp_path: Path) -> None:
    send = CONFIG.replace("- {type: log", "- {type: queue-dispatch, subject: '\"later\"'}\n      - {type: log")
    take = CONFIG.partition("flows:")[0] + (
        "flows:\n  - name: take\n    source: {type: queue, settings: {subject: later}}\n"
        "    process: [{type: log, logger: out, message: '\"took \" + body'}]\n"
    )
    program = start("--watch", config=send)
    program.until("BODY")
    (tmp_path / "app.yaml").write_text(take, encoding="utf-8")
    program.until('msg="took tick"')

    assert program.stop() == 0


# ---------------------------------------------------------------- runs of agents

AGENT = """\
connectors:
  - name: model
    type: llm-scripted
    settings: {turns: [{text: '"done"'}]}
flows:
  - name: tick
    source: {type: cron, settings: {schedule: '@every 1s', payload: '"tick"'}}
    process:
      - type: ai-agent
        connector: model
        prompt: Say so.
        tools: [{name: look, description: Looks., process: [{type: log, settings: {message: body}}]}]
      - {type: log, settings: {message: '"BODY"'}}
"""


def test_runs_of_agents_are_kept(start: Start, octo: Any) -> None:
    program = start(config=AGENT)
    program.until("BODY")
    assert program.stop() == 0

    runs = json.loads(octo("runs", "list").stdout)["runs"]
    assert {(run["flow"], run["outcome"], run["turns"]) for run in runs} == {("tick", "completed", 1)}


SPENDS = (
    AGENT.replace("{turns: [{text: '\"done\"'}]}", "{onExhausted: repeat, turns: [{calls: [{name: look}]}]}")
    .replace(
        "        tools:",
        "        default: {process: [{type: set-payload, settings: {value: '\"spent\"'}}]}\n        tools:",
    )
    .replace("""'"BODY"'""", "body")
)


def test_each_message_has_the_budget_for_itself(start: Start) -> None:
    program = start("--budget", "maxTokens=1", config=SPENDS)

    assert program.until("spent")
    assert program.until("spent")
    assert program.stop() == 0


def test_a_budget_that_is_none_is_refused(octo: Any, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")
    outcome = octo("run", "--config", "app.yaml", "--budget", "maxToken=1")

    assert outcome.status == 2
    assert "`--budget`: there is no limit `maxToken`" in outcome.stderr


# ---------------------------------------------------------------- run log


def test_a_log_holds_what_flows_did_and_goes_on_where_it_ended(start: Start, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for _ in range(2):
        program = start("--log", "logs/run.jsonl", "--no-traces-vars")
        program.until("BODY")
        assert program.stop() == 0

    records, _ = read(tmp_path / "logs" / "run.jsonl")
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    kinds = [record.kind for record in records]
    assert kinds[:5] == ["source.emit", "flow.started", "block.pre-invoke", "block.post-invoke", "flow.completed"]
    assert {record.body for record in records if record.kind == "flow.started"} == {"tick"}
    assert stat.S_IMODE((tmp_path / "logs" / "run.jsonl").stat().st_mode) == 0o600


def test_options_and_variables_say_what_goes_into_it(start: Start, tmp_path: Path) -> None:
    environ = {
        "OCTO_TRACING": "yes",
        "OCTO_TRACING_BODIES": "off",
        "OCTO_TRACING_FILE": "t.jsonl",
        "OCTO_METRICS": "perhaps",
    }
    program = start(
        "--traces-blocks", "tick.second", config=CONFIG + "      - {type: log, name: second}\n", environ=environ
    )
    program.until("OCTO_METRICS` is `perhaps`, expected `true` or `false`; it is ignored")
    program.until("level=INFO msg=.*tick.*event_id")
    assert program.stop() == 0

    records = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {record["path"] for record in records if "path" in record} == {"tick.second"}
    assert not any("body" in record for record in records)
    started = next(record for record in records if record["kind"] == "flow.started")
    block = next(record for record in records if record["kind"] == "block.pre-invoke")
    assert block["parentId"] == started["spanId"]


def test_without_a_name_the_file_is_called_after_time_and_process(start: Start, tmp_path: Path) -> None:
    program = start("--traces")
    program.until(READY)
    assert program.stop() == 0

    (file,) = tmp_path.glob("octo-trace-*.jsonl")
    assert re.fullmatch(rf"octo-trace-\d{{8}}-\d{{6}}-{program.process.pid}\.jsonl", file.name)


def test_a_file_that_cannot_be_opened_is_told_of_and_flows_run(start: Start) -> None:
    program = start("--log", "app.yaml/run.jsonl")
    program.until('level=WARN msg="nothing is recorded: cannot write `app.yaml/run.jsonl`: ')
    program.until(READY)

    assert program.stop() == 0


# ---------------------------------------------------------------- usage, in process


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["--observability-addr", "here"], "`--observability-addr`: expected `host:port`, found `here`"),
        (["--log", "a", "--traces-file", "b"], "`--log` and `--traces-file` name two files"),
        (["--log", "app.yaml"], "`--log`: `app.yaml` exists and is no run log"),
        (["--log", "no/such/log"], "`--log`: there is no directory `no/such`"),
        (["--traces-buffer", "0"], "`--traces-buffer`: 0 is not in the range x>=1"),
        (["--metrics", "--metrics-blocks", "tick.no"], '`--metrics-blocks`: `tick.no`: no block "no" in that chain'),
        (["--log", "l", "--traces-blocks", "x"], "`--traces-blocks`: `x`: that is no block address"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_line_that_makes_no_sense_is_refused(octo: Any, tmp_path: Path, args: list[str], error: str) -> None:
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")

    stdout, stderr, status = octo("run", "--config", "app.yaml", "--no-observability", *args)

    assert (stdout, status) == ("", 2)
    assert error in stderr.replace('\\"', '"')


def test_invoke_calls_a_flow_by_name_whatever_its_source_is(octo: Any, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(
        CONFIG.replace("type: cron, settings", "connector: c, type: cron, settings").replace(
            "connectors:", "connectors:\n  - {name: c, type: cron}"
        ),
        encoding="utf-8",
    )

    stdout, stderr, status = octo("invoke", "--config", "app.yaml", "--flow", "tick", "--data", '"x"')

    assert json.loads(stdout.splitlines()[-1])["body"] == "x"
    assert stderr == 'level=INFO msg="connector \\"c\\" is not started, for flows have it as source"\n'
    assert status == 0
