"""octo_cli/dolphin.py: `octo test` under a name of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import octo
from octo_cli.dolphin import arguments


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], ["test", "--help"]),
        (["--help"], ["test", "--help"]),
        (["a.yaml", "-v"], ["test", "a.yaml", "-v"]),
        (["test", "a.yaml"], ["test", "a.yaml"]),
        (["-v"], ["test", "-v"]),
        (["schema", "--format", "yaml"], ["schema", "--kind", "suite", "--format", "yaml"]),
    ],
)
def test_a_command_line_stands_for_one_of_octo(given, expected):
    assert arguments(given) == expected


def run(folder: Path, *args: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "octo_cli.dolphin", *args],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout


def test_the_program_tells_its_version_and_its_help_and_runs_suites(tmp_path):
    (tmp_path / "a.yaml").write_text("flows: [ { name: a, process: [] } ]", encoding="utf-8")
    (tmp_path / "a_test.yaml").write_text("flow: a\ncases: [ { name: one } ]", encoding="utf-8")

    status, text = run(tmp_path)
    assert (status, "--isolate" in text) == (0, True)
    assert run(tmp_path, "version") == run(tmp_path, "--version") == (0, f"dolphin {octo.__version__}\n")
    status, text = run(tmp_path, "a.yaml")
    assert (status, text[:20]) == (0, "ok   a_test.yaml  (a")
