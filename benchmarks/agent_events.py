"""What it costs to be told what an agent does: nothing without `events`, little for events that are not listed.

    python benchmarks/agent_events.py

The same run of many turns with one tool call each, by an agent without `events`, by one that lists events which do not
happen, by one whose chain is told of every step, and by one that is told of every piece of the answers. All is time of
the processor. Ends with status 1 when the limit is exceeded.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Final

from octo.runtime import Runtime
from octo.testing import harness

TURNS: Final = 40
ROUNDS: Final = 40
MOST: Final = 1.1
"""How much longer a turn may take with events that do not happen than without `events`."""

KEYS: Final = {
    "without events": "",
    "no event is listed that happens": "emit: [thread_title]",
    "every step": "emit: [turn_start, turn_end, tool_call, tool_result, done]",
    "every piece, 8 characters each": "stream: true",
}
TURN: Final = "{text: Some eighty characters of text which say what is done next - ten pieces of a stream., \
calls: [{name: count, args: {n: 1}}]}"


def config(keys: str) -> str:
    chain = "events: {process: [{type: set-variable, name: hear, value: body.type, settings: {name: seen}}]}"
    return f"""
connectors:
  - name: model
    type: llm-scripted
    settings:
      turns: [{", ".join([TURN] * (TURNS - 1))}, {{text: done}}]
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
            process:
              - type: set-payload
                settings: {{value: '{{"n": body.n + 1.0}}'}}
        {keys}
        {chain if keys else ""}
"""


async def milliseconds() -> dict[str, float]:
    """The best of some rounds for each, which take turns so that all meet the same machine."""
    best = dict.fromkeys(KEYS, float("inf"))
    runtimes = {name: Runtime(harness.config(config(keys))) for name, keys in KEYS.items()}
    for runtime in runtimes.values():
        await runtime.__aenter__()
    for _ in range(ROUNDS):
        for name, runtime in runtimes.items():
            started = time.process_time()
            message = await runtime.invoke("f", {})
            best[name] = min(best[name], time.process_time() - started)
            assert message.body == "done"
    for runtime in runtimes.values():
        await runtime.__aexit__(None, None, None)
    return {name: seconds * 1000 / TURNS for name, seconds in best.items()}


def main() -> int:
    costs = asyncio.run(milliseconds())
    plain = costs["without events"]
    for name, cost in costs.items():
        print(f"{name}: {cost:.3f} ms per turn, {cost / plain:.2f} of one without events")  # noqa: T201
    ratio = costs["no event is listed that happens"] / plain
    print(f"what is not listed costs {ratio / MOST:.2f} of the most that it may")  # noqa: T201
    return int(ratio > MOST)


if __name__ == "__main__":
    sys.exit(main())
