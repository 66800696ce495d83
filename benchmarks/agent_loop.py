"""What the agent's loop adds to a model call: a run of many turns with the scripted model, which costs next to nothing.

    python benchmarks/agent_loop.py

Each turn calls one tool with a checked argument; its one block sets the body. Measured with nobody listening, as
under `octo invoke | jq`, and with an observer of every event. All is time of the processor. Ends with status 1 when the
limit is exceeded.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence

from octo.observe import Event, Observer
from octo.runtime import Runtime
from octo.testing import harness

TURNS = 200
ROUNDS = 5
LIMIT = 0.8
"""Milliseconds per model call."""

CONFIG = f"""
connectors:
  - name: model
    type: llm-scripted
    settings:
      turns: [{", ".join(["{calls: [{name: count, args: {n: 1}}]}"] * (TURNS - 1))}, {{text: done}}]
flows:
  - name: f
    process:
      - type: ai-agent
        connector: model
        prompt: Count.
        maxIterations: {TURNS}
        tools:
          - name: count
            description: Count.
            inputSchema: {{type: object, required: [n], properties: {{n: {{type: integer}}}}}}
            process:
              - type: set-payload
                settings: {{value: '{{"n": body.n + 1.0}}'}}
"""


class Everything:
    """Wants all events."""

    kinds: Sequence[type[Event]] = tuple(Event.__subclasses__())

    def notify(self, event: Event) -> None:
        pass


async def milliseconds_per_call(observers: Sequence[Observer]) -> float:
    """The best of some rounds."""
    best = float("inf")
    async with Runtime(harness.config(CONFIG), observers=observers) as runtime:
        for _ in range(ROUNDS):
            started = time.process_time()
            message = await runtime.invoke("f", {})
            best = min(best, time.process_time() - started)
            assert message.body == "done"
    return best * 1000 / TURNS


def main() -> int:
    wrong = False
    for name, observers in {"nobody listens": (), "all events": (Everything(),)}.items():
        cost = asyncio.run(milliseconds_per_call(observers))
        wrong |= cost > LIMIT
        print(f"{name}: {cost:.3f} ms per model call, {cost / LIMIT:.2f} of the limit of {LIMIT} ms")  # noqa: T201
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
