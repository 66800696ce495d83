"""octo/invocation.py: how a call with doubles may end, and its envelope."""

from __future__ import annotations

import asyncio
from pathlib import Path
from textwrap import dedent

import pytest

from doubled import SHOP, Call, message
from octo.config.load import load
from octo.doubles import Doubles
from octo.errors import ConnectorError, UsageError
from octo.invocation import Outcome, envelope, invoke
from octo.message import Message
from octo.runtime import Runtime
from octo.testing.harness import config


@pytest.fixture
def call(tmp_path: Path) -> Call:
    return Call(tmp_path)


HANGS = """
  flows:
    - name: main
      process:
        - { type: cli-run, name: sleep, settings: { program: '"sleep"', args: '["20"]' } }
    - name: quick
      process: [ { type: log } ]
"""


async def test_the_time_limit_is_an_outcome_and_spies_tell_where_the_time_went(call: Call) -> None:
    envelope = await call(HANGS, spies=["main.sleep"], limit=0.1)

    (record,) = envelope["spies"][0]["records"]
    assert record["error"] == "cancelled before it was done"
    assert envelope["error"] == 'call flow "main": context deadline exceeded'


async def test_a_time_limit_that_was_not_needed_changes_nothing(call: Call) -> None:
    assert await call(HANGS, flow="quick", limit=20) == {"result": message()}


async def test_an_unknown_flow_is_an_outcome(call: Call) -> None:
    assert await call(SHOP, flow="mian") == {"error": 'flow "mian" is not registered'}


async def test_work_beside_the_flow_is_given_up_when_the_time_is_over(call: Call) -> None:
    text = HANGS + (
        "    - name: beside\n"
        "      process: [ { type: flow-ref, flow: main, oneWay: true }, { type: flow-ref, flow: main } ]\n"
    )
    async with asyncio.timeout(10):
        envelope = await call(text, flow="beside", limit=0.1)

    assert envelope == {"error": 'call flow "beside": context deadline exceeded'}


async def test_what_keeps_a_runtime_from_opening_is_raised(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("", encoding="utf-8")
    loaded = config(f"""
      connectors: [ {{ name: log, type: logger, settings: {{ output: {tmp_path}/there/app.log }} }} ]
      flows: [ {{ name: main }} ]
    """)

    with pytest.raises(ConnectorError):
        await invoke(Runtime(loaded), "main")


def test_an_envelope_without_doubles() -> None:
    assert envelope(Outcome(Message(1, event_id="1"))) == {"result": message(1)}
    assert envelope(Outcome()) == {"dropped": True}
    assert envelope(Outcome(error=UsageError("no"))) == {"error": "no"}


def test_without_doubles_there_is_no_stage(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(dedent(SHOP), encoding="utf-8")

    assert Doubles().on(load(tmp_path / "a.yaml", environ={})) is None
