"""`octo agents` of a person, in a directory with a config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from desks import APP, FIRST, SECOND


@pytest.fixture
def agents(octo: Any, tmp_path: Path) -> Any:
    """`octo agents …` of ann, in a directory with a config and two agent files."""
    for name, text in {"app.yaml": APP, "one.agent.yaml": FIRST, "two.agent.yaml": SECOND}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    def run(line: str, **options: Any) -> Any:
        return octo("agents", *line.split(), environ={"OCTO_USER": "ann"} | options.pop("environ", {}), **options)

    return run
