"""octo_cli/__main__.py, octo_cli/startup.py, octo_cli/signals.py: the process, its streams and its signals."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CONFIG = """\
flows:
  - name: slow
    process: [{type: test-wait, for: 30s}]
  - name: stubborn
    process: [{type: test-stubborn}]
  - name: same
  - name: fails
    process: [{type: set-payload, value: 'body["é"]'}]
"""
OCTO = [sys.executable, "-m", "octo_cli"]


@pytest.fixture
def environ(plugin: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(plugin), "TERM": "xterm"}


@pytest.fixture(autouse=True)
def config(tmp_path: Path) -> Path:
    path = tmp_path / "app.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


@pytest.fixture
def octo(tmp_path: Path, environ: dict[str, str]) -> Any:
    def run(*args: str | bytes, **more: Any) -> subprocess.CompletedProcess[bytes]:
        more.setdefault("stdin", subprocess.DEVNULL)
        more.setdefault("stdout", subprocess.PIPE)
        more["env"] = environ | more.get("env", {})
        return subprocess.run([*OCTO, *args], cwd=tmp_path, stderr=subprocess.PIPE, check=False, **more)

    return run


@pytest.fixture
def slow(tmp_path: Path, environ: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A flow that waits, having begun to."""
    command = [*OCTO, "invoke", "--config", "app.yaml", "--flow", "slow"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"waiting\n"
        yield process
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_ends_a_flow_in_good_order(slow: subprocess.Popen[bytes], number: int) -> None:
    slow.send_signal(number)
    stdout, stderr = slow.communicate(timeout=10)

    assert stdout == b"left\n"
    assert stderr.endswith(b' level=ERROR msg="cli stopped with error" error="interrupted"\n')
    assert slow.returncode == 130


def test_a_second_signal_ends_it_at_once(tmp_path: Path, environ: dict[str, str]) -> None:
    command = [*OCTO, "invoke", "--config", "app.yaml", "--flow", "stubborn"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"waiting\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"cleaning up\n"
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=10)

    assert (stderr, process.returncode) == (b"", 130)


@pytest.mark.parametrize("delay", [0.005, 0.02, 0.04, 0.06, 0.09, 0.13, 0.2])
def test_ctrl_c_while_starting_shows_no_traceback(tmp_path: Path, environ: dict[str, str], delay: float) -> None:
    program = (
        "import os, signal, sys, threading\n"
        "from octo_cli.__main__ import main\n"
        f"threading.Timer({delay}, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "sys.argv = ['octo', 'invoke', '--config', 'app.yaml', '--flow', 'slow']\n"
        "main()\n"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )

    assert b"Traceback" not in outcome.stderr
    assert outcome.returncode == 130


@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "POSIX", "PYTHONIOENCODING": "latin-1"},
    ],
    ids=["as it is", "ascii streams", "C locale", "latin-1 streams"],
)
def test_the_locale_changes_no_byte(octo: Any, tmp_path: Path, setting: dict[str, str]) -> None:
    (tmp_path / "naïve.yaml").write_text(CONFIG, encoding="utf-8")
    text = "é日本🎈"

    done = octo("invoke", "--config", "naïve.yaml", "--flow", "same", "--data", f'{{"t": "{text}"}}', env=setting)
    failed = octo("invoke", "--config", "naïve.yaml", "--flow", "fails", "--data", "{}", env=setting)

    missing = octo("invoke", "--config", "nö.yaml", "--flow", "fails", env=setting)

    assert done.stderr == b""
    assert done.stdout.endswith(f',"body":{{"t":"{text}"}}}}\n'.encode())
    assert "no such key: é".encode() in failed.stderr
    assert failed.returncode == 1
    assert "config `nö.yaml` does not exist".encode() in missing.stderr


def test_bytes_that_are_no_text_become_replacement_characters(octo: Any) -> None:
    outcome = octo("invoke", "--config", "app.yaml", "--flow", "same", "--data", b'"a\xff"')

    assert outcome.stdout.endswith(b',"body":"a\xef\xbf\xbd"}\n')


@pytest.mark.parametrize(
    ("stdin", "body"), [(subprocess.DEVNULL, None), (subprocess.PIPE, {"n": 1})], ids=["a null device", "a pipe"]
)
def test_a_body_is_read_from_a_pipe_but_not_from_a_null_device(octo: Any, stdin: int, body: Any) -> None:
    more = {"input": b'{"n": 1}', "stdin": None} if stdin == subprocess.PIPE else {}

    assert json.loads(octo("invoke", "--config", "app.yaml", "--flow", "same", **more).stdout).get("body") == body


def test_a_closed_standard_input_is_no_body(tmp_path: Path, environ: dict[str, str]) -> None:
    command = f"exec {sys.executable} -m octo_cli invoke --config app.yaml --flow same <&-"
    outcome = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environ, capture_output=True, check=False)

    assert (outcome.stderr, outcome.returncode) == (b"", 0)


WRITERS = [
    "version",
    "--help",
    "invoke --help",
    "schema --kind suite",
    "expr 1",
    "invoke --config app.yaml --flow same",
]


@pytest.mark.parametrize("args", WRITERS)
def test_an_answer_that_nobody_can_take_is_an_error(tmp_path: Path, environ: dict[str, str], args: str) -> None:
    def run(end: str) -> tuple[bytes, int]:
        command = f"exec {sys.executable} -m octo_cli {args} {end}"
        outcome = subprocess.run(
            ["sh", "-c", command],
            cwd=tmp_path,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return outcome.stderr.partition(b" ")[2], outcome.returncode

    error = b'level=ERROR msg="cli stopped with error" error="cannot write standard output: %s"\n'
    assert run(">&-") == (error % b"it is closed", 1)
    assert run(">&- 2>&-") == (b"", 1)
    assert run(">/dev/full") == (error % b"no space left on device", 1)
    assert run(">/dev/full 2>/dev/full") == (b"", 1)


def test_standard_output_may_be_closed_when_there_is_no_answer(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "app.yaml").write_text("flows: [{name: drop, process: [{type: test-drop}]}]", encoding="utf-8")
    command = f"exec {sys.executable} -m octo_cli invoke --config app.yaml --flow drop >&- 2>&-"

    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environ, check=False).returncode == 0


@pytest.mark.parametrize("args", WRITERS)
def test_a_reader_that_went_away_has_seen_enough(octo: Any, args: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        outcome = octo(*args.split(), stdout=writing)
    finally:
        os.close(writing)

    assert (outcome.stderr, outcome.returncode) == (b"", 0)


def test_a_reader_of_errors_that_went_away_changes_nothing(tmp_path: Path, environ: dict[str, str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [*OCTO, "invoke", "--config", "app.yaml", "--flow", "none"]
    outcome = subprocess.run(
        command,
        cwd=tmp_path,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=writing,
        check=False,
    )
    os.close(writing)

    assert (outcome.stdout, outcome.returncode) == (b"", 2)


def test_child_processes_inherit_the_environment_as_it_was(tmp_path: Path, environ: dict[str, str]) -> None:
    program = (
        "import os; before = dict(os.environ)\n"
        "from octo_cli import startup; startup.run(['invoke', '--config', 'app.yaml', '--flow', 'same'])\n"
        "print(dict(os.environ) == before)"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )

    assert outcome.stdout.splitlines()[-1] == b"True"


def test_on_a_terminal_errors_are_written_for_people(tmp_path: Path, environ: dict[str, str]) -> None:
    shown, status = on_a_terminal(["invoke", "--config", "app.yaml", "--flow", "sam"], tmp_path, environ)

    assert shown == (
        '\x1b[31m\x1b[1merror:\x1b[0m flow "sam" is not registered\n\x1b[36m\x1b[1mhint:\x1b[0m did you mean `same`?\n'
    )
    assert status == 2


AGENT = """\
connectors:
  - name: model
    type: llm-scripted
    settings:
      turns:
        - calls: [{name: look, args: {q: x}}]
          usage: {inputTokens: 1200, outputTokens: 30}
        - text: '{"n": 42}'
          delay: 300ms
          usage: {inputTokens: 1300, outputTokens: 20}
flows:
  - name: ask
    process:
      - type: ai-agent
        name: helper
        connector: model
        prompt: You help.
        tools:
          - name: look
            description: Look something up
            process: [{type: set-payload, value: '"\\u001b[2Jfound"'}]
"""


def test_an_agent_at_work_is_shown_live_and_summed_up(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "agent.yaml").write_text(AGENT, encoding="utf-8")

    shown, status = on_a_terminal(["invoke", "--config", "agent.yaml", "--flow", "ask"], tmp_path, environ)

    live, answer = re.split(r"2 turns, 1 tool call, 2,500 tokens read and 50 tokens written, [01]\.\d s\n", shown)
    assert re.search(r"ask\.helper  turn 2  0\.\d s  1,230 tokens  thinking", live)
    assert "\x1b[2J" not in shown
    assert '"n"' in answer
    assert status == 0


def test_completion_knows_commands_and_options(octo: Any) -> None:
    words = {"octo inv": b"invoke", "octo validate --str": b"--strict"}
    for line, expected in words.items():
        count = len(line.split()) - 1
        setting = {"_OCTO_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(count)}

        assert octo(env=setting).stdout.split() == [expected]


def on_a_terminal(args: list[str], folder: Path, environ: dict[str, str]) -> tuple[str, int]:
    """What a command writes when all its streams are one terminal, and its exit status."""
    main, other = pty.openpty()
    process = subprocess.Popen([*OCTO, *args], cwd=folder, env=environ, stdin=other, stdout=other, stderr=other)
    os.close(other)
    shown = b""
    while select.select([main], [], [], 10)[0]:
        try:
            chunk = os.read(main, 4096)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(main)
    return shown.decode().replace("\r\n", "\n"), process.wait(timeout=10)


# ---------------------------------------------------------------- a working directory that was removed


@pytest.fixture
def lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Run a command line in a directory that does not exist any more."""
    gone = tmp_path / "gone"

    def run(*args: str | Path) -> tuple[str, str, int]:
        gone.mkdir()
        script = f"import os, sys; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); from octo_cli.main import main; "
        script += "sys.exit(main(sys.argv[1:], environ=dict(os.environ)))"
        environ = {"PATH": os.environ["PATH"]}
        command = [sys.executable, "-c", script, *args]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environ, stdin=subprocess.DEVNULL, check=False
        )
        return done.stdout, re.sub(r"(?m)^time=\S+Z ", "", done.stderr), done.returncode

    return run


def test_a_config_with_an_absolute_path_needs_no_working_directory(lost: Any, tmp_path: Path) -> None:
    config = tmp_path / "one.yaml"
    config.write_text("flows: [{name: f, process: [{type: set-payload, value: '1'}]}]\n", encoding="utf-8")
    suite = tmp_path / "one_test.yaml"
    suite.write_text("flow: f\ncases: [{name: one, expect: {that: [body == 1]}}]\n", encoding="utf-8")

    stdout, stderr, status = lost("invoke", "--config", config, "--flow", "f")
    assert (json.loads(stdout)["body"], stderr, status) == (1, "", 0)
    assert lost("validate", "--config", config)[1:] == ("", 0)
    assert lost("graph", "--config", config)[1:] == ("", 0)
    assert lost("test", suite)[1:] == ("", 0)


def test_a_relative_path_needs_one(lost: Any) -> None:
    assert lost("new", "agent") == (
        "",
        'level=ERROR msg="cli stopped with error" error="the working directory does not exist any more" '
        'hint="change to one that does"\n',
        2,
    )
