"""What a row of `octo invoke --each` costs without a model, and whether many rows take more memory than few.

    python benchmarks/each.py

The flow sets a variable, takes a branch and makes a new body. The rate counts the rows alone, without the start of the
process. Ends with status 1 when it is too low, or when memory grows with the number of rows.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS = (100, 10_000, 100_000)
ROUNDS = 3
LIMIT = 5_000
"""Rows per second that must be reached."""
GROWTH = 8
"""Megabytes by which the longest run may exceed the shortest."""

CONFIG = """\
flows:
  - name: f
    process:
      - type: set-variable
        settings: { name: seen, value: 'true' }
      - type: if
        condition: body.n > 1
        then:
          process:
            - type: set-payload
              settings: { value: '{"n": body.n * 2, "text": body.text}' }
"""
MEASURED = """\
import resource, sys
from octo_cli.startup import run
status = run(sys.argv[1:])
sys.stderr.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
sys.exit(status)
"""


def measure(folder: Path, rows: int) -> tuple[float, float]:
    """Seconds and megabytes of one run."""
    source = folder / f"{rows}.jsonl"
    if not source.exists():
        row = {"text": "a row of some length", "tags": ["a", "b"], "address": {"zip": "12345"}}
        source.write_text("".join(f"{json.dumps({'n': n, **row})}\n" for n in range(rows)), encoding="utf-8")
    command = [sys.executable, "-c", MEASURED, "invoke", "--config", "f.yaml", "--flow", "f", "--each", source.name]
    begun = time.perf_counter()
    with (folder / "out.jsonl").open("wb") as out:
        done = subprocess.run(command, cwd=folder, stdout=out, stderr=subprocess.PIPE, check=True)
    seconds = time.perf_counter() - begun
    assert (folder / "out.jsonl").read_bytes().count(b"\n") == rows
    return seconds, int(done.stderr) / (1024 if sys.platform == "linux" else 1024**2)


def main() -> int:
    best: dict[int, float] = {}
    peak: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "f.yaml").write_text(CONFIG, encoding="utf-8")
        for rows in ROWS:
            for _ in range(ROUNDS if rows < ROWS[-1] else 1):
                seconds, megabytes = measure(Path(name), rows)
                best[rows] = min(best.get(rows, seconds), seconds)
                peak[rows] = max(peak.get(rows, 0), megabytes)
    fewest, most = ROWS[0], ROWS[-1]
    slow = False
    for rows in ROWS[1:]:
        rate = (rows - fewest) / (best[rows] - best[fewest])
        slow |= rate < LIMIT
        sys.stdout.write(f"{rows:,} rows: {rate:,.0f} rows per second, {rate / LIMIT:.1f} of the {LIMIT:,} asked for\n")
    shown = ", ".join(f"{peak[rows]:.0f} MB for {rows:,} rows" for rows in ROWS)
    sys.stdout.write(f"memory: {shown}\n")
    return int(slow or peak[most] - peak[fewest] > GROWTH)


if __name__ == "__main__":
    sys.exit(main())
