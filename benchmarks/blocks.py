"""What running a block costs: cheap blocks through `Runtime.invoke`, beside the same work as a plain Python function.

    python benchmarks/blocks.py

A message passes 30 blocks (`set-variable`, `if`, `set-payload`, over and over), each with one small expression.
Measured with nobody listening, with an observer of every block, and for messages that run at the same time. All is time
of the processor. Ends with status 1 when the limit is missed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Any

from octo.observe import BlockEntered, BlockLeft, Event, Observer
from octo.runtime import Runtime
from octo.testing import harness

REPEATS = 10
MESSAGES = 300
ROUNDS = 5
LIMIT = 40_000
"""Blocks per second that must be reached."""

STEP = """
      - type: set-variable
        settings: { name: n, value: 'body.n + 1.0' }
      - type: if
        condition: 'vars.n > 1.0'
        then:
          process:
            - type: set-payload
              settings: { value: '{"n": vars.n, "text": "n"}' }
"""
CONFIG = f"flows:\n  - name: f\n    process:{STEP * REPEATS}"
BLOCKS = 3 * REPEATS


class Blocks:
    """Wants to know of every block."""

    kinds: Sequence[type[Event]] = (BlockEntered, BlockLeft)

    def notify(self, event: Event) -> None:
        pass


async def octo(observers: Sequence[Observer] = (), *, at_once: int = 1) -> float:
    """Blocks per second, the best of some rounds."""
    async with Runtime(harness.config(CONFIG), observers=observers) as runtime:
        best = 0.0
        for _ in range(ROUNDS):
            started = time.process_time()
            for _ in range(MESSAGES // at_once):
                message, *_ = await asyncio.gather(*(runtime.invoke("f", {"n": 1.0}) for _ in range(at_once)))
            best = max(best, MESSAGES // at_once * at_once * BLOCKS / (time.process_time() - started))
        assert message.body == {"n": 1.0 + REPEATS, "text": "n"}
    return best


def plain() -> float:
    """The same steps per second, written in Python."""

    def flow(body: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        for _ in range(REPEATS):
            variables["n"] = body["n"] + 1.0
            if variables["n"] > 1.0:
                body = {"n": variables["n"], "text": "n"}
        return body

    best = 0.0
    for _ in range(ROUNDS):
        started = time.process_time()
        for _ in range(MESSAGES):
            assert flow({"n": 1.0}, {})["n"] == 1.0 + REPEATS
        best = max(best, MESSAGES * BLOCKS / (time.process_time() - started))
    return best


def main() -> int:
    baseline = plain()
    results = {
        "nobody listens": asyncio.run(octo()),
        "every block observed": asyncio.run(octo([Blocks()])),
        "100 messages at once": asyncio.run(octo(at_once=100)),
    }
    sys.stdout.write(f"plain Python: {baseline:,.0f} steps per second\n")
    for name, rate in results.items():
        compared = f"{baseline / rate:.0f} times plain Python, {rate / LIMIT:.1f} of the {LIMIT:,} asked for"
        sys.stdout.write(f"{name}: {rate:,.0f} blocks per second, {compared}\n")
    return int(min(results.values()) < LIMIT)


if __name__ == "__main__":
    sys.exit(main())
