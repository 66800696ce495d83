"""octo_cli/each.py: one call of a flow for each row of a file."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

CONFIG = """\
env:
  - name: API_KEY
    default: placeholder
flows:
  - name: double
    process:
      - type: set-variable
        settings: { name: seen, value: 'has(vars.seen) ? vars.seen + 1 : 1' }
      - type: set-payload
        settings: { value: 'body.n * 2' }
  - name: same
  - name: key
    process:
      - type: set-payload
        settings: { value: 'env.API_KEY' }
  - name: fails
    process:
      - type: set-payload
        name: price
        settings: { value: 'body[env.API_KEY]' }
"""
PLUGIN_CONFIG = """\
flows:
  - name: waits
    process:
      - type: if
        condition: body == "slow"
        then:
          process: [{type: test-wait, for: 30s}]
  - name: drops
    process:
      - type: if
        condition: body == "drop"
        then:
          process: [{type: test-drop}]
  - name: short
    process: [{type: test-wait, for: 200ms}]
"""
NO_DOUBLE = 'block "set-payload": set-payload value: evaluate expression: no such key: n'


@pytest.fixture
def each(octo: Any, tmp_path: Path) -> Any:
    """Call a flow for rows, which are lines of standard input."""
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")

    def call(flow: str, rows: str, *args: str, **more: Any) -> Any:
        return octo("invoke", "--config", "app.yaml", "--flow", flow, "--each", "-", *args, stdin=rows, **more)

    return call


def answers(stdout: str) -> list[Any]:
    """The lines, without the ids of events."""
    lines = [json.loads(line) for line in stdout.splitlines()]
    for line in lines:
        line.pop("event_id", None)
    return lines


def test_each_row_gives_a_line_in_order(each: Any) -> None:
    stdout, stderr, status = each("double", "".join(f'{{"n": {n}}}\n' for n in range(500)))

    assert answers(stdout) == [{"variables": {"seen": 1}, "body": n * 2} for n in range(500)]
    assert (stderr, status) == ("", 0)


def test_a_line_is_what_plain_invoke_prints_in_a_pipe(each: Any) -> None:
    stdout, _, _ = each("double", '{"n": 4}', terminal="out")

    assert re.sub("[0-9a-f]{32}", "…", stdout) == '{"event_id":"…","variables":{"seen":1},"body":8}\n'


def test_variables_and_settings_hold_for_each_row_anew(each: Any) -> None:
    stdout, _, status = each("double", '{"n": 1}\nnull\n', "--vars", '{"seen": 5}', "--set", "n=3")

    assert answers(stdout) == [{"variables": {"seen": 6}, "body": 6}] * 2
    assert status == 0


def test_attachments_are_added_to_each_row(each: Any, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hi", encoding="utf-8")

    stdout, _, _ = each("same", '{"q": 1}\n{"q": 2}\n', "--attach", "note.txt")

    file = {"mimeType": "text/plain", "data": "aGk=", "name": "note.txt"}
    assert answers(stdout) == [{"body": {"q": n, "files": [file]}} for n in (1, 2)]


def test_lines_may_be_raw_content(each: Any) -> None:
    stdout, _, _ = each("same", "a;b\nc", "--content-type", "text/csv")

    assert answers(stdout) == [
        {"body": {"contentType": "text/csv", "rawData": text}, "raw_content": True} for text in ("a;b", "c")
    ]


def test_csv_gives_mappings_of_texts(octo: Any, each: Any, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('name,n\n"Lovelace, Ada",1\n', encoding="utf-8")

    stdout, _, status = octo("invoke", "--config", "app.yaml", "--flow", "same", "--each", "rows.csv")

    assert answers(stdout) == [{"body": {"name": "Lovelace, Ada", "n": "1"}}]
    assert status == 0


def test_mocks_hold_for_each_row(each: Any) -> None:
    stdout, _, _ = each("double", "1\n2\n", "--mocks", '{"double.set-payload": {"default": {"body": "m"}}}')

    assert [line["body"] for line in answers(stdout)] == ["m", "m"]


def test_no_rows_give_no_lines(each: Any) -> None:
    assert each("double", "\n") == ("", "", 0)


# ---------------------------------------------------------------- rows that fail


def test_rows_that_fail_are_told_and_the_others_go_on(each: Any) -> None:
    stdout, stderr, status = each("double", '{"n": 1}\n{"m": 1}\n\n{"n"\n{"n": 2}\n')

    no_json = "the row is not valid JSON: expecting ':' delimiter at column 5"
    assert answers(stdout) == [
        {"variables": {"seen": 1}, "body": 2},
        {"error": NO_DOUBLE},
        {"error": no_json},
        {"variables": {"seen": 1}, "body": 4},
    ]
    *failed, end = stderr.splitlines()
    assert sorted(failed) == [  # they are told as they fail, and rows run at the same time
        f'level=ERROR msg="row failed" row=2 line=2 error={json.dumps(NO_DOUBLE)}',
        f'level=ERROR msg="row failed" row=3 line=4 error="{no_json}"',
    ]
    assert end == (
        'level=ERROR msg="cli stopped with error" error="2 of 4 rows failed" '
        'hint="give `--errors FILE` to keep the rows that failed"'
    )
    assert status == 1


def test_failed_rows_are_kept_in_a_file_of_their_own(each: Any, tmp_path: Path) -> None:
    errors = tmp_path / "errors.jsonl"
    errors.write_text("from the last time\n", encoding="utf-8")
    errors.chmod(0o644)

    stdout, stderr, status = each("double", '{"m": 1.5}\n{"n": 1}\n{"n"\n', "--errors", "errors.jsonl", "--set", "x=1")

    failed = [json.loads(line) for line in errors.read_text(encoding="utf-8").splitlines()]
    assert sorted(failed, key=lambda one: one["row"]) == [
        {"row": 1, "line": 1, "error": NO_DOUBLE, "input": {"m": 1.5}},
        {
            "row": 3,
            "line": 3,
            "error": "the row is not valid JSON: expecting ':' delimiter at column 5",
            "input": '{"n"',
        },
    ]
    assert stat.S_IMODE(errors.stat().st_mode) == 0o600
    assert [sorted(line) for line in answers(stdout)] == [["error"], ["body", "variables"], ["error"]]
    assert stderr == (
        'level=ERROR msg="cli stopped with error" error="2 of 3 rows failed" '
        'hint="`jq -c .input errors.jsonl` prints the rows that failed, to try them again"\n'
    )
    assert status == 1


def test_the_file_of_failed_rows_is_empty_when_none_failed(each: Any, tmp_path: Path) -> None:
    (tmp_path / "errors.jsonl").write_text("from the last time\n", encoding="utf-8")

    assert each("same", "1", "--errors", "errors.jsonl").status == 0
    assert (tmp_path / "errors.jsonl").read_text(encoding="utf-8") == ""


def test_the_file_of_failed_rows_stays_as_it_is_when_nothing_is_started(each: Any, tmp_path: Path) -> None:
    (tmp_path / "errors.jsonl").write_text("from the last time\n", encoding="utf-8")

    assert each("sane", "1", "--errors", "errors.jsonl", terminal="err") == (
        "",
        'error: flow "sane" is not registered\nhint: did you mean `same`?\n',
        2,
    )
    assert (tmp_path / "errors.jsonl").read_text(encoding="utf-8") == "from the last time\n"


def test_failed_rows_may_go_to_a_device(each: Any) -> None:
    assert each("double", "1", "--errors", os.devnull).status == 1
    assert not Path(os.devnull).is_file()


def test_a_row_for_which_a_setting_has_no_place_fails_alone(each: Any) -> None:
    stdout, _, status = each("same", '"text"\n{}\n', "--set", "a=1")

    assert answers(stdout) == [{"error": "`--set a=1`: `body` is text, not a mapping"}, {"body": {"a": 1}}]
    assert status == 1


def test_secrets_are_masked_wherever_a_row_is_told(each: Any, tmp_path: Path) -> None:
    secret = {"API_KEY": "s3cret-value"}

    stdout, stderr, _ = each("fails", '{"x": "s3cret-value"}', "--errors", "errors.jsonl", environ=secret)
    masked, _, _ = each("key", "1", environ=secret)

    written = (tmp_path / "errors.jsonl").read_text(encoding="utf-8")
    assert "s3cret" not in stdout + stderr + written
    assert json.loads(written)["input"] == {"x": "***"}
    assert answers(masked) == [{"body": "***"}]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["--each", "-", "--data", "1"], "`--data` is about one call, `--each` makes many"),
        (["--each", "-", "--envelope"], "`--envelope` is about one call, `--each` makes many"),
        (["--each", "-", "--spies", "same.x"], "`--spies` is about one call, `--each` makes many"),
        (["--parallel", "2"], "`--parallel` goes with `--each`"),
        (["--errors", "e.jsonl"], "`--errors` goes with `--each`"),
        (["--each", "none.jsonl"], "`--each`: cannot read `none.jsonl`: no such file or directory"),
        (["--each", "-", "--errors", "no/e.jsonl"], "`--errors`: there is no directory `no`"),
        (["--each", "app.yaml", "--errors", "./app.yaml"], "`--errors`: `app.yaml` is a file that `--config` reads"),
        (
            ["--each", "rows", "--errors", "/dev/stdout"],
            "`--errors`: `/dev/stdout` is standard output, which takes the answers",
        ),
        (["--each", "rows", "--errors", "./rows"], "`--errors`: `rows` is a file that `--each` reads"),
        (["--each", "-", "--set", "a"], "`--set a`: expected `PATH=VALUE`"),
        (
            ["--each", "-", "--set", "a=1", "--content-type", "text/csv"],
            "`--set` and `--attach` change a JSON body, `--content-type` takes the body as it is",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_refused_before_anything_runs(octo: Any, each: Any, args: list[str], error: str) -> None:
    stdout, stderr, status = octo("invoke", "--config", "app.yaml", "--flow", "same", *args, stdin="1", terminal="err")

    assert (stdout, stderr.splitlines()[0], status) == ("", f"error: {error}", 2)


def test_parallel_is_at_least_one(each: Any) -> None:
    assert each("same", "1", "--parallel", "0").status == 2


# ---------------------------------------------------------------- a person who looks


def test_a_terminal_shows_how_far_it_is(each: Any) -> None:
    _, stderr, status = each("double", '{"n": 1}\n{"m": 1}\n', terminal="err")

    written = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stderr)
    assert f"error: row failed  row=2  line=2  error={NO_DOUBLE}" in written
    assert re.search(r"row failed[^\n]*\n\W*\d rows? done, 1 failed", written)
    assert re.search(r"(?m)2 rows done, 1 failed, [\d,.]+ rows/s, \d\.\d s$", written)
    assert status == 1


# ---------------------------------------------------------------- as a process


@pytest.fixture
def start(tmp_path: Path, plugin: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a process whose rows come through a pipe."""
    (tmp_path / "app.yaml").write_text(PLUGIN_CONFIG, encoding="utf-8")
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(plugin)}
    command = [sys.executable, "-m", "octo_cli", "invoke", "--config", "app.yaml", "--each", "-", "--flow"]
    begun: list[subprocess.Popen[bytes]] = []

    def run(flow: str, *args: str) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [*command, flow, *args], cwd=tmp_path, env=environ, stdin=pipe, stdout=pipe, stderr=pipe
        )
        begun.append(process)
        return process

    yield run
    for process in begun:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()


def feed(process: subprocess.Popen[bytes], *rows: str) -> None:
    assert process.stdin is not None
    process.stdin.write("".join(f'"{row}"\n' for row in rows).encode())
    process.stdin.flush()


def line_of(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return re.sub(rb"[0-9a-f]{32}", "…".encode(), process.stdout.readline())


def message(text: str) -> bytes:
    return f'{{"event_id":"…","body":"{text}"}}\n'.encode()


def test_a_dropped_row_gives_a_line_too(start: Any) -> None:
    process = start("drops")
    feed(process, "a", "drop", "b")
    process.stdin.close()

    assert [line_of(process) for _ in range(4)] == [message("a"), b'{"dropped":true}\n', message("b"), b""]
    assert process.wait(timeout=10) == 0


def test_a_row_is_answered_before_the_next_one_is_written(start: Any) -> None:
    process = start("waits")
    for row in ("a", "b"):
        feed(process, row)
        assert line_of(process) == message(row)


def test_rows_run_at_once_but_only_so_many(start: Any) -> None:
    process = start("short", "--parallel", "5")
    feed(process, *"abcdefghij")
    began = time.monotonic()
    out, _ = process.communicate(timeout=20)

    waits = [line.decode() for line in out.splitlines() if not line.startswith(b"{")]
    running = most = 0
    for word in waits:
        running += 1 if word == "waiting" else -1
        most = max(most, running)
    assert (len(waits), most) == (20, 5)
    assert time.monotonic() - began < 10 * 0.2 + 5


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_what_is_finished_is_printed_when_the_work_is_interrupted(start: Any, tmp_path: Path, number: int) -> None:
    process = start("waits", "--errors", "errors.jsonl")
    feed(process, "a", "slow", "b", "slow")
    assert [line_of(process) for _ in range(3)] in (
        [message("a"), b"waiting\n", b"waiting\n"],
        [b"waiting\n", message("a"), b"waiting\n"],
        [b"waiting\n", b"waiting\n", message("a")],
    )

    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=10)

    assert re.sub(rb"[0-9a-f]{32}", "…".encode(), stdout) == (b'left\nleft\n{"error":"interrupted"}\n' + message("b"))
    assert (tmp_path / "errors.jsonl").read_bytes() == b'{"row":2,"line":2,"error":"interrupted","input":"slow"}\n'
    assert stderr.endswith(b' level=ERROR msg="cli stopped with error" error="interrupted"\n')
    assert process.returncode == 130


def test_a_pipe_that_is_waited_for_does_not_hold_up_ctrl_c(start: Any) -> None:
    process = start("waits")
    feed(process, "a")
    assert line_of(process) == message("a")

    process.send_signal(signal.SIGINT)

    assert process.wait(timeout=5) == 130


def test_the_work_ends_when_nobody_reads_the_answers(start: Any) -> None:
    process = start("waits")
    feed(process, "a", "slow")
    process.stdout.close()
    feed(process, "b")

    assert process.wait(timeout=5) == 0
    assert process.stderr.read() == b""


def test_rows_are_not_read_faster_than_they_are_answered(start: Any) -> None:
    """A row that takes long holds up those behind it once enough of them are done."""
    process = start("waits", "--parallel", "2")
    rows = ["slow", *["x" * 1000] * 500]
    assert process.stdin is not None
    os.set_blocking(process.stdin.fileno(), False)
    content = "".join(f'"{row}"\n' for row in rows).encode()
    written = 0
    end = time.monotonic() + 2
    while written < len(content) and time.monotonic() < end:
        try:
            written += os.write(process.stdin.fileno(), content[written:])
        except BlockingIOError:
            time.sleep(0.05)

    assert written < 400_000
