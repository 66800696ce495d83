"""octo_cli/recording.py: `--log` and `--events`."""

import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from octo.runlog.record import Record
from octo.runlog.tree import read

CONFIG = """\
env: [{name: API_KEY}]
flows:
  - name: double
    process:
      - {type: set-payload, settings: {value: '{"n": body.n * 2, "key": env.API_KEY}'}}
  - name: fails
    process:
      - {type: set-payload, name: price, settings: {value: body.price}}
"""


@pytest.fixture
def invoke(octo: Any, tmp_path: Path) -> Any:
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")

    def call(*args: str, flow: str = "double", data: str = '{"n": 4}', **more: Any) -> Any:
        environ = {"API_KEY": "s3cret-value"}
        return octo("invoke", "--config", "app.yaml", "--flow", flow, "--data", data, *args, environ=environ, **more)

    return call


def records_of(file: Path) -> list[Record]:
    """The records of a log, which holds nothing else."""
    records, faulty = read(file)
    assert not faulty
    return records


def kinds(file: Path) -> list[str]:
    return [record.kind for record in records_of(file)]


RUN = ["flow.started", "block.pre-invoke", "block.post-invoke", "flow.completed"]


def test_a_log_holds_the_records_of_the_run_and_changes_nothing_else(invoke: Any, tmp_path: Path) -> None:
    stdout, stderr, status = invoke("--log", "run.jsonl")

    assert kinds(tmp_path / "run.jsonl") == RUN
    assert json.loads(stdout)["body"] == {"n": 8, "key": "***"}
    assert (stderr, status) == ("", 0)


def test_only_its_owner_can_read_a_log(invoke: Any, tmp_path: Path) -> None:
    old = tmp_path / "old.jsonl"
    old.write_text('{"seq":1,"kind":"k"}\n', encoding="utf-8")
    old.chmod(0o644)
    invoke("--log", "new.jsonl", "--events", "old.jsonl")

    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("new.jsonl", "old.jsonl")] == [0o600, 0o600]
    assert (tmp_path / "new.jsonl").read_bytes() == old.read_bytes()


def test_secrets_are_masked(invoke: Any, tmp_path: Path) -> None:
    invoke("--log", "run.jsonl")

    text = (tmp_path / "run.jsonl").read_text(encoding="utf-8")
    assert '"key":"***"' in text
    assert "s3cret" not in text


def test_a_log_of_a_run_that_failed_tells_why(invoke: Any, tmp_path: Path) -> None:
    assert invoke("--log", "run.jsonl", flow="fails").status == 1
    assert records_of(tmp_path / "run.jsonl")[-1].error == (
        'block "price": set-payload value: evaluate expression: no such key: price'
    )


def test_events_on_standard_output_come_before_the_answer(invoke: Any) -> None:
    *records, answer = map(json.loads, invoke("--events", "-").stdout.splitlines())

    assert [record["kind"] for record in records] == RUN
    assert answer["body"] == {"n": 8, "key": "***"}


def test_events_may_go_into_a_pipe(invoke: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend((tmp_path / "pipe").read_text(encoding="utf-8").splitlines()))
    reader.start()
    invoke("--events", "pipe")
    reader.join(10)

    assert [json.loads(line)["kind"] for line in lines] == RUN


def test_every_row_of_each_is_a_run_of_its_own(invoke: Any, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"n": 1}\n{"n": 2}\n', encoding="utf-8")
    invoke("--each", "rows.jsonl", "--log", "run.jsonl", data="")

    records = records_of(tmp_path / "run.jsonl")
    assert sorted(record.kind for record in records) == sorted(RUN * 2)
    assert len({record.trace_id for record in records}) == 2


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (
            ("--log", "app.yaml"),
            "`--log`: `app.yaml` is a file that `--config` reads\nhint: name another file",
        ),
        (
            ("--log", ".env"),
            "`--log`: `.env` exists and is no run log\n"
            "hint: only a run log is written over; name another file, or remove this one",
        ),
        (("--log", "no/run.jsonl"), "`--log`: cannot write `no/run.jsonl`: no such file or directory"),
        (("--events", "."), "`--events`: cannot write `.`: is a directory"),
        (("--log", "-"), "`--log` writes a file\nhint: `--events -` writes the same to standard output"),
        (
            ("--log", "a", "--events", "a"),
            "`--log` and `--events` name the same file\nhint: one of them is enough",
        ),
        (("--each", "rows", "--events", "-"), "`--events -` is about one call, `--each` makes many"),
    ],
    ids=["a config", "another file", "no directory", "a directory", "standard output", "one file twice", "each"],
)
def test_a_log_that_cannot_be_written_ends_with_2(
    invoke: Any, tmp_path: Path, args: tuple[str, ...], error: str
) -> None:
    data = "" if "--each" in args else "{}"
    (tmp_path / ".env").write_text("A=1\n", encoding="utf-8")

    assert invoke(*args, data=data, terminal="err") == ("", f"error: {error}\n", 2)
    assert (tmp_path / "app.yaml").read_text(encoding="utf-8") == CONFIG


def test_a_config_that_cannot_be_loaded_leaves_the_old_log_alone(invoke: Any, tmp_path: Path) -> None:
    invoke("--log", "run.jsonl")
    before = (tmp_path / "run.jsonl").read_bytes()
    (tmp_path / "app.yaml").write_text("flows: [{nam: x}]\n", encoding="utf-8")

    assert invoke("--log", "run.jsonl").status == 2
    assert (tmp_path / "run.jsonl").read_bytes() == before


def test_a_log_that_cannot_be_written_to_the_end_is_a_warning(invoke: Any) -> None:
    stdout, stderr, status = invoke("--log", "/dev/full")

    assert json.loads(stdout)["body"]["n"] == 8
    assert stderr == 'level=WARN msg="the run log `/dev/full` is not complete: no space left on device"\n'
    assert status == 0
