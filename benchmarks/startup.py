"""How long commands take to start, as multiples of `python -c pass`: `python benchmarks/startup.py`.

Ratios, because they survive a change of machine. Ends with status 1 when a budget is exceeded.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
ROUNDS = 25
FLOW = """\
flows:
  - name: order
    process:
      - type: set-variable
        settings: { name: qty, value: 'body.qty' }
      - type: set-payload
        settings: { value: '{"total": vars.qty * 3}' }
      - type: log
        settings: { message: 'body.total', level: debug }
"""


class Measured(NamedTuple):
    """One command line and how many times the bare interpreter it may take."""

    title: str
    command: list[str]
    budget: float | None = None


def main() -> int:
    for source in ("engine", "cli"):
        compileall.compile_dir(ROOT / source, quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "order.yaml"
        config.write_text(FLOW, encoding="utf-8")
        octo = [sys.executable, "-m", "octo_cli"]
        invoke = [*octo, "invoke", "--config", str(config), "--flow", "order", "--data", '{"qty": 2}']
        libraries = "import typer, asyncio, yaml, pydantic; pydantic.BaseModel; pydantic.TypeAdapter"
        rows = [
            Measured("python -c pass", [sys.executable, "-c", "pass"]),
            Measured("octo --version", [*octo, "--version"], 3),
            Measured("octo --help", [*octo, "--help"], 9),
            Measured("octo expr", [*octo, "expr", "1 + 1"]),
            Measured("octo validate", [*octo, "validate", "--config", str(config)]),
            Measured("octo invoke", invoke, 22),
            Measured("typer, asyncio, yaml, pydantic", [sys.executable, "-c", libraries]),
        ]
        times = _measure([row.command for row in rows])
    bare = times[0]
    late = False
    for row, seconds in zip(rows, times, strict=True):
        ratio = seconds / bare
        late |= row.budget is not None and ratio > row.budget
        limit = f"of at most {row.budget:g}x" if row.budget else ""
        print(f"{row.title:32} {seconds * 1000:7.1f} ms {ratio:6.1f}x {limit}")  # noqa: T201
    own = (times[5] - times[6]) / bare
    print(f"{'octo invoke without libraries':32} {'':10} {own:6.1f}x of at most 7x")  # noqa: T201
    return int(late or own > 7)


def _measure(commands: list[list[str]]) -> list[float]:
    """The best time of each command; the rounds are interleaved, so that a busy moment hits all alike."""
    best = [float("inf")] * len(commands)
    environ = {**os.environ, "LOG_LEVEL": "error"}
    for _ in range(ROUNDS):
        for index, command in enumerate(commands):
            begun = time.perf_counter()
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environ, check=True)
            best[index] = min(best[index], time.perf_counter() - begun)
    return best


if __name__ == "__main__":
    sys.exit(main())
