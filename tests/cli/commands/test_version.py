"""octo_cli/commands/version.py: what version this is."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("args", [["version"], ["--version"], ["version", "--"]], ids=" ".join)
def test_the_version_is_that_of_the_distribution(octo: Any, args: list[str]) -> None:
    project = Path(__file__).parents[3] / "pyproject.toml"
    version = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"]

    assert octo(*args) == (f"octo {version}\n", "", 0)
