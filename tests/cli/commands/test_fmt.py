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
