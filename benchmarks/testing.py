"""How many cases `octo test` runs in a second: small flows with mocks, spies and expectations.

    python benchmarks/testing.py

Also whether the outcome is the same in another order, one after another, and with a process for each case. Ends with
status 1 when it is not, or when it takes too long.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CASES = 2000
FEW = 24
LIMIT = 400
"""Cases per second that must be reached, reading suites and starting octo included."""

CONFIG = """\
connectors: [ { name: prices, type: http-client, settings: { baseURL: https://prices.invalid } } ]
flows:
  - name: quote
    process:
      - { type: set-variable, settings: { name: order, value: body } }
      - type: rest
        name: price
        settings: { connector: prices, method: GET, path: '"/" + body.sku' }
      - type: set-payload
        name: total
        settings: { value: '{"total": vars.order.qty * body.unit}' }
"""
SUITE = """\
flow: quote
mocks:
  quote.price: { default: { body: { unit: 4 } } }
cases:
"""
CASE = """\
  - name: case {number}
    input: {{ data: {{ sku: K1, qty: {number} }} }}
    expect: {{ body: {{ total: {total} }}, that: [ 'vars.order.sku == "K1"' ] }}
    spies: {{ quote.total: {{ count: 1 }} }}
"""


def main() -> int:
    slow = wrong = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, CASES)
        _, expected = _run(folder)
        for title, options in (
            ("in parallel", ()),
            ("shuffled", ("--shuffle", "1")),
            ("one by one", ("--parallel", "1")),
        ):
            seconds, outcome = _run(folder, *options)
            rate = CASES / seconds
            slow |= rate < LIMIT
            wrong |= outcome != expected
            print(f"{title:14} {rate:7,.0f} cases per second, {rate / LIMIT:.1f} of the {LIMIT} asked for")  # noqa: T201
        _write(folder, FEW)
        _, expected = _run(folder)
        seconds, outcome = _run(folder, "--isolate")
        wrong |= outcome != expected
        print(f"{'isolated':14} {FEW / seconds:7,.1f} cases per second")  # noqa: T201
    print(f"the outcome is {'not ' if wrong else ''}the same")  # noqa: T201
    return int(slow or wrong)


def _write(folder: Path, count: int) -> None:
    """A suite in which every tenth case fails."""
    cases = [CASE.format(number=number, total=number * 4 + (number % 10 == 0)) for number in range(count)]
    (folder / "quote.yaml").write_text(CONFIG, encoding="utf-8")
    (folder / "quote_test.yaml").write_text(SUITE + "".join(cases), encoding="utf-8")


def _run(folder: Path, *options: str) -> tuple[float, list[object]]:
    """The seconds that the command takes, and what it says of each case."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "octo_cli", "test", "quote.yaml", "--report-json", "report.json", *options]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=False)
    seconds = time.perf_counter() - begun
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    shutil.rmtree(report["workDir"])
    return seconds, [
        (case["name"], case["status"], case.get("failures")) for suite in report["suites"] for case in suite["cases"]
    ]


if __name__ == "__main__":
    sys.exit(main())
