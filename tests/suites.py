"""Runs suites in process, or each case in a process of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

from octo.testing.pairing import pairs
from octo.testing.results import Result
from octo.testing.runner import Runner, Surroundings
from octo.testing.trial import trials

COMMAND = (sys.executable, "-m", "octo_cli")


def write(folder: Path, config: str, suite: str, name: str = "app") -> Path:
    """Write a config and the suite beside it; the suite."""
    (folder / f"{name}.yaml").write_text(dedent(config), encoding="utf-8")
    path = folder / f"{name}_test.yaml"
    path.write_text(dedent(suite), encoding="utf-8")
    return path


async def run(folder: Path, config: str, suite: str, *, isolated: bool = False, **around: Any) -> list[Result]:
    """What becomes of the cases of a suite, in their order."""
    found = trials(pairs([write(folder, config, suite)]))
    if isolated:
        around = {"command": COMMAND, "environ": dict(os.environ), **around}
    runner = Runner(Surroundings(**{"environ": {}, "cwd": folder, "parallel": 2, **around}))
    results: list[Result] = []
    try:
        await runner.run(found, results.append)
    finally:
        runner.workspace.remove()
    return sorted(results, key=lambda result: result.trial.number)


def told(result: Result) -> list[str]:
    """The lines of what a case failed with, each failure with the line and column of its place."""
    lines: list[str] = []
    for failure in result.failures:
        place = failure.location
        assert place is not None
        first, *rest = failure.lines
        lines += [f"{place.line}:{place.column} {first}", *rest]
    return lines
