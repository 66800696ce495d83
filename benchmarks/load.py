"""What reading a config costs: a very large one, one with very many problems, and one of ordinary size.

    python benchmarks/load.py

Ends with status 1 when a figure is missed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZE = 5_000_000
"""Bytes of the very large config."""
KEYS = 100_000
ROUNDS = 15

LARGE_SECONDS, LARGE_MEGABYTES = 10.0, 400.0
PROBLEMS_SECONDS = 2.0
RATIO = 1.15
"""How much longer checking 200 lines may take than checking three."""

FLOW = """\
  - name: flow{n}
    description: flow number {n} of many
    process:
      - type: set-variable
        settings: {{ name: count, value: 'body.n + {n}.0' }}
      - type: if
        condition: 'body.n > {n}.0 && has(body.text)'
        then:
          process:
            - type: set-payload
              settings: {{ value: '{{"n": body.n * 2.0, "text": "{n} " + body.text}}' }}
        else:
          process:
            - type: log
              settings: {{ message: '"small " + string(body.n)' }}
    error:
      - type: set-payload
        settings: {{ value: '{{"failed": vars.error.message}}' }}
"""
SMALL = "flows:\n  - name: flow\n    process: [{ type: set-payload, value: body.n }]\n"
MEASURED = """\
import resource, sys
from octo_cli.startup import run
status = run(sys.argv[1:])
sys.stderr.write("\\n" + str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
sys.exit(status)
"""


def flows(lines: int = 10**9, size: int = 10**9) -> str:
    """A config of so many lines or bytes."""
    parts = ["flows:\n"]
    written = 0
    for number in range(min(lines // FLOW.count("\n"), size // 500)):
        parts.append(FLOW.format(n=number))
        written += len(parts[-1])
        if written >= size:
            break
    return "".join(parts)


def validate(folder: Path, text: str, status: int = 0) -> tuple[float, float]:
    """Seconds and megabytes of `octo validate`."""
    (folder / "app.yaml").write_text(text, encoding="utf-8")
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, "validate", "--config", "app.yaml"],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    seconds = time.perf_counter() - begun
    assert done.returncode == status, done.stderr
    peak = int(done.stderr.rsplit(b"\n", 1)[1])
    return seconds, peak / (1024 if sys.platform == "linux" else 1024**2)


def main() -> int:
    missed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seconds, megabytes = validate(folder, flows(size=SIZE))
        missed |= seconds > LARGE_SECONDS or megabytes > LARGE_MEGABYTES
        report(
            f"{SIZE / 1e6:.0f} MB: {seconds:.1f} s of {LARGE_SECONDS:.0f}, {megabytes:.0f} MB of {LARGE_MEGABYTES:.0f}"
        )

        unknown = "".join(f"          key{number}: 1\n" for number in range(KEYS))
        faulty = f"flows:\n  - name: f\n    process:\n      - type: log\n        settings:\n{unknown}"
        seconds, _ = validate(folder, faulty, status=2)
        missed |= seconds > PROBLEMS_SECONDS
        report(f"{KEYS:,} unknown keys: {seconds:.2f} s of {PROBLEMS_SECONDS:.0f}")

        lines = flows(lines=200)
        pairs = [(validate(folder, SMALL)[0], validate(folder, lines)[0]) for _ in range(ROUNDS)]
        small, large = (min(column) for column in zip(*pairs, strict=True))
        missed |= large > small * RATIO
        report(
            f"{lines.count(chr(10))} lines: {large * 1000:.0f} ms, {large / small:.2f} of three lines ({RATIO} allowed)"
        )
    return int(missed)


def report(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
