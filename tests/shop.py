"""A small shop with the flows that most suites here are about."""

from __future__ import annotations

from pathlib import Path

from suites import run

SHOP = """
    env:
      - { name: CITY, default: Oslo }
      - { name: API_KEY, default: placeholder }
    connectors:
      - { name: prices, type: http-client, settings: { baseURL: https://prices.invalid } }
    flows:
      - name: quote
        process:
          - { type: set-variable, name: order, settings: { name: order, value: body } }
          - type: rest
            name: price
            settings: { connector: prices, method: GET, path: '"/x"' }
          - { type: set-payload, name: total, settings: { value: '{"total": vars.order.qty * body.unit}' } }
      - name: drops
        process: [ { type: set-payload, name: it, settings: { value: '1' } } ]
      - name: tells
        process:
          - { type: set-payload, settings: { value: '{"city": env.CITY, "key": env.API_KEY, "n": body}' } }
      - name: counts
        process:
          - type: object-read
            settings: { key: '"n"', as: n, default: '0' }
          - type: object-write
            settings: { key: '"n"', value: vars.n + 1 }
      - name: many
        process:
          - type: foreach
            items: body
            as: item
            mode: map
            body:
              process: [ { type: set-payload, name: each, settings: { value: 'vars.item * 2.0' } } ]
      - name: recovers
        process: [ { type: set-payload, settings: { value: body.none } } ]
        error: [ { type: set-payload, settings: { value: '"saved"' } } ]
"""

PRICED = "mocks: { quote.price: { default: { body: { unit: 4 }, vars: { status: 200 } } } }"


async def statuses(folder: Path, suite: str, **around) -> list[str]:
    return [result.status for result in await run(folder, SHOP, suite, **around)]


async def failures(folder: Path, flow: str, case: str, more: str = "") -> list[str]:
    """What one case on the config above fails with, without places."""
    suite = f"flow: {flow}\n{more}\ncases:\n  - {{ name: one, {case} }}\n"
    (result,) = await run(folder, SHOP, suite, environ={"API_KEY": "s3cret-value"})
    assert result.status in ("failed", "passed"), result.error
    return [line for failure in result.failures for line in failure.lines]


SLOW = """
    flows:
      - name: hangs
        process: [ { type: python, name: sleep, settings: { file: slow.py, function: hang } } ]
      - name: deaf
        process: [ { type: python, name: sleep, settings: { file: slow.py, function: deaf } } ]
"""

FUNCTIONS = """
import asyncio

async def hang(body):
    await asyncio.sleep(60)

async def deaf(body):
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
"""
