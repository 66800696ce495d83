"""octo_cli/commands/fmt.py: config files laid out, all of them or none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

UGLY = "flows:\n- name: f\n  process: [{settings: {value: '1'}, type: set-payload}] # all\n"
NEAT = "flows:\n  - name: f\n    process: # all\n      - type: set-payload\n        settings:\n          value: '1'\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    for name, text in {"ugly.yaml": UGLY, "neat.yml": NEAT, "bad.yaml": "a: [1\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return {name: tmp_path / name for name in ("ugly.yaml", "neat.yml", "bad.yaml")}


def test_files_are_laid_out(octo, files):
    ran = octo("fmt", "ugly.yaml", "neat.yml")

    assert json.loads(ran.stdout) == {
        "files": [{"path": "ugly.yaml", "changed": True}, {"path": "neat.yml", "changed": False}]
    }
    assert (files["ugly.yaml"].read_text(encoding="utf-8"), ran.status) == (NEAT, 0)


def test_people_are_told_what_was_changed(octo, files):
    assert octo("fmt", "ugly.yaml", "neat.yml", terminal="out").stdout == "laid out ugly.yaml\n"
    assert octo("fmt", "ugly.yaml", "neat.yml", terminal="out").stdout == "nothing to do in 2 files\n"


def test_a_check_writes_nothing_and_fails_when_there_is_something_to_do(octo, files):
    ran = octo("fmt", "--check", "ugly.yaml", terminal="out")

    assert (ran.stdout, ran.status) == ("would lay out ugly.yaml\n", 1)
    assert files["ugly.yaml"].read_text(encoding="utf-8") == UGLY
    assert octo("fmt", "--check", "neat.yml").status == 0


def test_a_directory_stands_for_the_yaml_files_in_it(octo, files):
    files["bad.yaml"].unlink()

    assert octo("fmt", ".", "ugly.yaml", "--check", "--json").stdout == (
        '{"files":[{"changed":false,"path":"neat.yml"},{"changed":true,"path":"ugly.yaml"}]}\n'
    )


def test_no_file_is_written_when_one_cannot_be_read(octo, files):
    ran = octo("fmt", "ugly.yaml", "bad.yaml", terminal="err")

    assert ran.stderr.startswith("error: bad.yaml:2:1: parse file: expected `,` or `]`")
    assert ran.status == 2
    assert files["ugly.yaml"].read_text(encoding="utf-8") == UGLY


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["no.yaml"], "error: cannot read `no.yaml`: no such file or directory\n"),
        (["a.json"], "error: `a.json` is no YAML file\nhint: its name ends in `.yaml` or `.yml`\n"),
        (["empty"], "error: directory `empty` holds no YAML file\n"),
        ([], "error: `octo fmt` needs `FILE...`\nhint: see `octo fmt --help`\n"),
    ],
    ids=["missing", "json", "empty", "none"],
)
def test_what_is_no_yaml_file_is_refused(octo, tmp_path, args, message):
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.json").write_text("{}", encoding="utf-8")

    ran = octo("fmt", *args, terminal="err")

    assert (ran.stderr, ran.status) == (message, 2)


def test_standard_input_is_not_taken(octo):
    assert octo("fmt", "-", terminal="err") == (
        "",
        "error: `octo fmt` takes files, not standard input\nhint: name a file or a directory\n",
        2,
    )


OLD = """\
flows:
  - name: f
    process:
      - type: ai-agent
        memory: {kind: auto, contextLength: 5, memoryId: 0c3f4b5e-0000-4000-8000-00000000000a}
"""


def test_older_spellings_are_rewritten_on_request(octo, tmp_path):
    (tmp_path / "old.yaml").write_text(OLD, encoding="utf-8")

    assert octo("fmt", "old.yaml", "--upgrade", "--keep-as-memory-id", terminal="out").stdout == "laid out old.yaml\n"
    assert (tmp_path / "old.yaml").read_text(encoding="utf-8") == (
        "flows:\n  - name: f\n    process:\n      - type: ai-agent\n"
        "        memory:\n          kind: window\n          contextLength: 5\n"
        "        memoryId:\n          value: 0c3f4b5e-0000-4000-8000-00000000000a\n"
    )


def test_an_id_in_memory_asks_what_is_to_become_of_it(octo, tmp_path):
    (tmp_path / "old.yaml").write_text(OLD, encoding="utf-8")
    ran = octo("fmt", "old.yaml", "--upgrade", terminal="err")

    assert (ran.stdout, ran.status) == ("", 2)
    assert ran.stderr.splitlines()[0] == (
        "error: old.yaml:5:58: `memory` has an id of its own, `0c3f4b5e-0000-4000-8000-00000000000a`"
    )
    assert ran.stderr.splitlines()[-1] == (
        "hint: `--keep-as-memory-id` keeps it for every run, `--use-run-memory-id` leaves it to the runs"
    )
    assert (tmp_path / "old.yaml").read_text(encoding="utf-8") == OLD


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["--upgrade", "--keep-as-memory-id", "--use-run-memory-id"],
            "`--keep-as-memory-id` and `--use-run-memory-id` exclude each other\nhint: give one of them",
        ),
        (["--keep-as-memory-id"], "`--keep-as-memory-id` and `--use-run-memory-id` go with `--upgrade`"),
    ],
)
def test_what_becomes_of_an_id_is_said_once_and_with_the_upgrade(octo, files, args, message):
    assert octo("fmt", "neat.yml", *args, terminal="err") == ("", f"error: {message}\n", 2)
