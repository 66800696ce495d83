"""octo_cli/output.py: one JSON document, for a pipe or for a person."""

from __future__ import annotations

import errno
import io
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from octo_cli import output
from octo_cli.session import Session
from octo_cli.startup import NotWritten, ReaderGone


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Full(io.StringIO):
    """A stream that takes nothing."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    def write(self, text: str) -> int:
        raise self._error


def printed(stream: io.StringIO, parts: dict[str, Any], *, json: bool = False, **environ: str) -> str:
    output.document(Session(environ, out=stream), parts, json=json)
    return stream.getvalue()


def test_the_top_level_keeps_its_order_and_all_below_is_sorted() -> None:
    parts = {"z": {"b": 1.0, "a": [True, None, "é<"]}, "a": 2.5}

    assert printed(io.StringIO(), parts) == '{"z":{"a":[true,null,"é\\u003c"],"b":1},"a":2.5}\n'
    assert printed(Terminal(), parts, json=True) == printed(io.StringIO(), parts)


def test_a_person_sees_it_laid_out() -> None:
    assert printed(Terminal(), {"z": {"b": 1.0, "a": []}, "e": {}, "l": [1.0, [2.0]]}, NO_COLOR="1") == (
        '{\n  "z": {\n    "a": [],\n    "b": 1\n  },\n  "e": {},\n  "l": [\n    1,\n    [\n      2\n    ]\n  ]\n}\n'
    )


def test_a_person_sees_it_in_colour() -> None:
    assert printed(Terminal(), {"n": 1.0}, TERM="xterm") == (
        '\x1b[1m{\x1b[0m\n  \x1b[1;34m"n"\x1b[0m: \x1b[1;36m1\x1b[0m\n\x1b[1m}\x1b[0m\n'
    )


def test_control_characters_do_not_reach_a_terminal() -> None:
    shown = printed(Terminal(), {"t": "\x1b[2J\x07\x9b\x7f"}, NO_COLOR="1")

    assert shown == '{\n  "t": "\\u001b[2J\\u0007\\u009b\\u007f"\n}\n'


def test_control_characters_of_one_line_do_not_reach_a_terminal_either() -> None:
    shown = {"t": "\x1b[2J\x07\x9b\x7f"}

    assert printed(Terminal(), shown, json=True) == '{"t":"\\u001b[2J\\u0007\\u009b\\u007f"}\n'
    assert printed(io.StringIO(), shown) == '{"t":"\\u001b[2J\\u0007\x9b\x7f"}\n'


def test_secrets_are_hidden_in_texts_keys_and_numbers() -> None:
    stream = io.StringIO()
    session = Session({}, out=stream, mask=lambda text: text.replace("123456", "***"))

    output.document(session, {"body": {"123456": ["a 123456", 123456.0, 7.0, True]}})

    assert stream.getvalue() == '{"body":{"***":["a ***","***",7,true]}}\n'


def test_a_reader_that_went_away_is_told_apart_from_a_full_disk() -> None:
    with pytest.raises(ReaderGone):
        printed(Full(BrokenPipeError()), {})
    with pytest.raises(NotWritten, match=r"^cannot write standard output: no space left on device$"):
        printed(Full(OSError(errno.ENOSPC, "No space left on device")), {})


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ("invoke F --envelope-out ./app.yaml", "`--envelope-out`: `app.yaml` is a file that `--config` reads"),
        ("invoke F --envelope-out link.yaml", "`--envelope-out`: `link.yaml` is a file that `--config` reads"),
        ("invoke F --envelope-out words.j2", "`--envelope-out`: `words.j2` is a file that the config reads"),
        ("invoke F --envelope-out .env", "`--envelope-out`: `.env` is a file that the config reads"),
        (
            "invoke F --data @in --envelope-out in",
            "`--envelope-out`: `in` is a file that `--data` reads",
        ),
        (
            "invoke F --vars @in --envelope-out in",
            "`--envelope-out`: `in` is a file that `--vars` reads",
        ),
        (
            "invoke F --attach in --envelope-out in",
            "`--envelope-out`: `in` is a file that `--attach` reads",
        ),
        (
            "invoke F --run-debug-config debug.yaml --envelope-out debug.yaml",
            "`--envelope-out`: `debug.yaml` is a file that `--run-debug-config` reads",
        ),
        ("invoke F --envelope-out new --log ./new", "`--envelope-out` and `--log` name the same file"),
        ("invoke F --each in --errors new --log new", "`--errors` and `--log` name the same file"),
        ("invoke F --log new --events ./new", "`--log` and `--events` name the same file"),
        ("graph C --out app.yaml", "`--out`: `app.yaml` is a file that `--config` reads"),
        ("graph C --out words.j2 --format tree", "`--out`: `words.j2` is a file that the config reads"),
        ("graph --config . --out app.yaml", "`--out`: `app.yaml` is a file that `--config` reads"),
        ("test --junit app_test.yaml", "`--junit`: `app_test.yaml` is a file that `octo test` reads"),
        ("test --report-json app.yaml", "`--report-json`: `app.yaml` is a file that `octo test` reads"),
        ("test --report-json words.j2", "`--report-json`: `words.j2` is a file that the config reads"),
        ("test --env-file in.env --junit in.env", "`--junit`: `in.env` is a file that `--env-file` reads"),
        ("test --junit new --report-json new", "`--report-json` and `--junit` name the same file"),
        ("runs show run.jsonl --html run.jsonl", "`--html`: `run.jsonl` is a file that `octo runs show` reads"),
        (
            "runs show run.jsonl --config app.yaml --html app.yaml",
            "`--html`: `app.yaml` is a file that `--config` reads",
        ),
        ("runs show run.jsonl --html app.yaml", "`--html`: `app.yaml` exists and is no web page"),
        ("runs show run.jsonl --html in.env", "`--html`: `in.env` exists and is no web page"),
        ("memory export --out app.yaml", "`--out`: `app.yaml` exists and is no memory export"),
        ("memory export --config app.yaml --out app.yaml", "`--out`: `app.yaml` is a file that `--config` reads"),
        ("invoke F --each run.jsonl --log run.jsonl", "`--log`: `run.jsonl` is a file that `--each` reads"),
        ("invoke F --data @in --events in", "`--events`: `in` is a file that `--data` reads"),
        ("schema --out app.yaml", "`--out`: `app.yaml` exists and is no schema"),
    ],
    ids=lambda value: value if value.startswith(("invoke", "graph", "test", "runs", "schema", "memory")) else "",
)
def test_what_a_command_reads_is_not_written_over(octo: Any, tmp_path: Path, args: str, error: str) -> None:
    files = {
        "app.yaml": (
            "resources: {templates: [{resource: words.j2}]}\n"
            "flows: [{name: f, process: [{type: template-resource, settings: {id: words.j2}}]}]\n"
        ),
        "app_test.yaml": "flow: f\ncases: [{name: one, expect: {that: [body == 'hi']}}]\n",
        "words.j2": "hi",
        "in": '{"a": 1}',
        "in.env": "A=1\n",
        ".env": "",
        "debug.yaml": "spies: []\n",
        "run.jsonl": '{"seq":1,"kind":"flow.started"}\n',
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "link.yaml").symlink_to("app.yaml")

    words = args.replace("F", "--config app.yaml --flow f").replace("C", "--config app.yaml").split()
    ran = octo(*words, terminal="err")

    assert (ran.stdout, ran.stderr.split("\n")[0], ran.status) == ("", f"error: {error}", 2)
    assert {name: (tmp_path / name).read_text(encoding="utf-8") for name in files} == files
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["kept/octo.db", "kept/octo.db-wal", "kept/octo.db-shm", "link"])
@pytest.mark.parametrize(
    "args",
    [
        "invoke F --envelope-out",
        "invoke F --log",
        "invoke F --events",
        "invoke F --each in --errors",
        "graph C --format html --out",
        "test --junit",
        "test --report-json",
        "runs show run.jsonl --html",
        "runs show run.jsonl --store kept --html",
        "schema --out",
        "memory export --store kept --out",
        "memory export --store other --out",
    ],
)
def test_no_file_of_a_store_is_written_over(octo: Any, tmp_path: Path, args: str, name: str) -> None:
    (tmp_path / "app.yaml").write_text("flows: [{name: f, process: [{type: set-payload, value: '1'}]}]\n")
    (tmp_path / "app_test.yaml").write_text("flow: f\ncases: [{name: one, expect: {that: [body == 1]}}]\n")
    (tmp_path / "in").write_text('{"a": 1}')
    (tmp_path / "run.jsonl").write_text('{"seq":1,"kind":"flow.started"}\n')
    (tmp_path / "link").symlink_to("kept/octo.db")
    (tmp_path / "kept").mkdir()
    with closing(sqlite3.connect(tmp_path / "kept" / "octo.db")) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE one (two)")
        before = {file.name: file.read_bytes() for file in (tmp_path / "kept").iterdir()}

        words = args.replace("F", "--config app.yaml --flow f").replace("C", "--config app.yaml").split()
        ran = octo(*words, name, terminal="err")

        after = {file.name: file.read_bytes() for file in (tmp_path / "kept").iterdir()}
    error = f"`{words[-1]}`: `{name}` belongs to an SQLite database"
    assert ran == ("", f"error: {error}\nhint: name another file\n", 2)
    assert after == before
    assert sorted(after) == ["octo.db", "octo.db-shm", "octo.db-wal"]


def test_what_octo_wrote_before_is_written_over(octo: Any) -> None:
    for _ in range(2):
        assert octo("schema", "--out", "all.json").status == 0
        assert octo("schema", "--kind", "suite", "--format", "yaml", "--out", "suite.yaml").status == 0
