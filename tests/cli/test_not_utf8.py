"""octo/encoding.py, octo_cli/inputs.py, octo_cli/rows.py: what is given that is not UTF-8."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FLOWS = """
flows:
  - name: same
    process:
      - type: set-payload
        settings: { value: 'body' }
"""
WARNING = (
    'level=WARN msg="byte 0xe9 is not UTF-8, read as U+FFFD" file={} line={} column={} hint="save the file as UTF-8"\n'
)
REFUSED = 'level=ERROR msg="cli stopped with error" error="{}, expected UTF-8" hint="save the file as UTF-8"\n'


@pytest.fixture(autouse=True)
def flows(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(FLOWS, encoding="utf-8")


def invoke(octo: Any, *args: str, stdin: bytes = b"") -> tuple[list[object], str, int]:
    stdout, stderr, status = octo("invoke", "--config", "app.yaml", "--flow", "same", *args, stdin=stdin)
    return [json.loads(line)["body"] for line in stdout.splitlines()], stderr, status


@pytest.mark.parametrize(
    ("content", "args", "bodies", "place"),
    [
        (b'\n {"a":"caf\xe9"}', ("--data", "@in"), [{"a": "caf\ufffd"}], (2, 11)),
        (b'{"a":1}\n{"a":"\xe9\xe9"}\n"\xe9"', ("--each", "in"), [{"a": 1}, {"a": "\ufffd\ufffd"}, "\ufffd"], (2, 7)),
    ],
    ids=["data", "JSON lines"],
)
def test_bytes_that_are_not_utf_8_are_replaced_and_warned_of_once(
    octo: Any, tmp_path: Path, content: bytes, args: tuple[str, str], bodies: list[object], place: tuple[int, int]
) -> None:
    (tmp_path / "in").write_bytes(content)
    assert invoke(octo, *args) == (bodies, WARNING.format("in", *place), 0)


@pytest.mark.parametrize(
    ("content", "bodies", "place"),
    [
        (b"a,b\n1,2\n\xe2\x82\xe9,3\n\xe9,4\n", [("1", "2"), ("\ufffd\ufffd", "3"), ("\ufffd", "4")], (3, 1)),
        (b"\xef\xbb\xbfa,b\n1,\xc3\xa9\xe9\n", [("1", "é\ufffd")], (2, 4)),
    ],
    ids=["no mark", "mark"],
)
def test_so_are_those_in_a_csv_file(
    octo: Any, tmp_path: Path, content: bytes, bodies: list[tuple[str, str]], place: tuple[int, int]
) -> None:
    (tmp_path / "in.csv").write_bytes(content)
    found, stderr, status = invoke(octo, "--each", "in.csv")
    assert [(body["a"], body["b"]) for body in found] == bodies
    assert (stderr.replace("0xe2", "0xe9"), status) == (WARNING.format("in.csv", *place), 0)


@pytest.mark.parametrize("args", [(), ("--data", "-"), ("--each", "-")], ids=["piped", "asked for", "rows"])
def test_so_are_those_of_standard_input(octo: Any, args: tuple[str, ...]) -> None:
    assert invoke(octo, *args, stdin=b'"\xe9"') == (["\ufffd"], WARNING.format("stdin", 1, 2), 0)


def test_the_warning_shows_the_line_to_a_person(octo: Any, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_bytes(b'"caf\xe9"')
    outcome = octo("invoke", "--config", "app.yaml", "--flow", "same", "--data", "@in.json", terminal="err")
    assert outcome.stderr.startswith(
        "warning: in.json:1:5: byte 0xe9 is not UTF-8, read as U+FFFD\n"
        '    1 | "caf\ufffd"\n'
        "      |     ^\n"
        "hint: save the file as UTF-8\n"
    )


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-32"])
@pytest.mark.parametrize(
    ("args", "what"),
    [
        (("--data", "@in"), "`--data`: `in` is"),
        (("--vars", "@in"), "`--vars`: `in` is"),
        (("--each", "in"), "`--each`: `in` is"),
        (("--each", "in.csv"), "`--each`: `in.csv` is"),
        (("--data", "-"), "stdin is"),
        (("--each", "-"), "`--each`: stdin is"),
    ],
    ids=["data", "variables", "JSON lines", "CSV", "standard input", "rows of standard input"],
)
def test_a_file_in_another_encoding_is_refused(
    octo: Any, tmp_path: Path, encoding: str, args: tuple[str, str], what: str
) -> None:
    content = '{"a": 1}\n'.encode(encoding)
    (tmp_path / "in").write_bytes(content)
    (tmp_path / "in.csv").write_bytes(content)
    assert invoke(octo, *args, stdin=content) == ([], REFUSED.format(f"{what} {encoding}"), 2)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_config_in_another_encoding_is_refused_at_its_beginning(octo: Any, tmp_path: Path, encoding: str) -> None:
    (tmp_path / "app.yaml").write_bytes(("\ufeff" + FLOWS).encode(encoding))
    assert octo("validate", "--config", "app.yaml").stderr == (
        'level=ERROR msg="cli stopped with error" error="app.yaml:1:1: parse config: the file is UTF-16" '
        'file=app.yaml line=1 column=1 hint="save the file as UTF-8"\n'
    )
