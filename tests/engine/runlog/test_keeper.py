"""octo/runlog/keeper.py, octo/runlog/live.py, octo/runlog/reach.py: what is kept of runs in which an agent works."""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from octo.errors import OctoError
from octo.message import Dropped
from octo.runlog import kept
from octo.runlog.keeper import Keeper
from octo.runlog.kept import Kept
from octo.runlog.reach import flows_with_agents
from octo.runlog.tree import tree
from octo.runtime import Runtime
from octo.store.runs import Spent
from octo.store.store import Store
from octo.testing.harness import config

MODEL = """\
env: [{name: TOKEN, secret: true}]
connectors:
  - name: model
    type: llm-scripted
    settings:
      turns:
        - {calls: [{name: look, args: {at: moon}}], usage: {inputTokens: 1200, outputTokens: 34}}
        - {text: '"done"', usage: {inputTokens: 1300, outputTokens: 5}}
flows:
"""
AGENT = """\
- type: ai-agent
  name: agent
  connector: model
  prompt: Look.
  tools: [{name: look, description: Looks., process: [{type: set-payload, settings: {value: env.TOKEN}}]}]"""

TOOLS = """\
import asyncio
from octo import Dropped

async def wait(body):
    await asyncio.sleep(5)

async def drop(body):
    raise Dropped
"""


def flow(name: str, *blocks: str) -> str:
    """A flow of blocks, each of one line or more."""
    lines = [line for block in blocks for line in block.splitlines()]
    return "\n".join([f"  - name: {name}", "    process:", *(f"      {line}" for line in lines)])


def python(function: str) -> str:
    return f"- {{type: python, settings: {{file: tools.py, function: {function}}}}}"


INNER = "\n".join(f"      {line}" for line in AGENT.splitlines())
CONFIG = MODEL + "\n".join(
    [
        flow("ask", AGENT),
        flow("caller", "- {type: flow-ref, flow: ask}"),
        flow("plain", "- {type: set-payload, settings: {value: '1'}}"),
        flow("maybe", f"- type: if\n  condition: body.ask\n  then:\n    process:\n{INNER}"),
        flow("fails", AGENT, "- {type: set-payload, name: price, settings: {value: '{\"a\": 1}[env.TOKEN]'}}"),
        flow("drops", AGENT, python("drop")),
        flow("waits", AGENT, python("wait")),
        flow("embeds", AGENT, "- {type: ai-embed, connector: model, model: e, text: '\"12345678\"'}"),
        flow("splits", "- {type: split, items: body}", AGENT),
        flow("repeats", AGENT, "- {type: foreach, items: '[1,2,3,4]', body: {process: [{type: log, message: body}]}}"),
    ]
)


class Kitchen:
    """A runtime whose runs are kept, and another look at the same store."""

    def __init__(self, runtime: Runtime, store: Store, warnings: list[str]) -> None:
        self.invoke = runtime.invoke
        self.store = store
        self.warnings = warnings

    async def runs(self) -> list[Kept]:
        return await kept.newest(self.store, limit=100, now=time.time_ns())

    async def run(self) -> Kept:
        """The only run."""
        (found,) = await self.runs()
        return found

    async def log(self, run: Kept) -> list[tuple[int, str, str]]:
        """What happened in a run: how deep, what, and how it ended."""
        records = await kept.records(self.store, run)
        return [(depth, node.name, node.outcome) for root in tree(records) for depth, node in root.walk()]

    async def until(self, *states: str) -> list[Kept]:
        """The runs, newest first, as soon as these are their states, in any order."""
        for _ in range(1000):
            found = await self.runs()
            if sorted(run.state for run in found) == sorted(states):
                return found
            await asyncio.sleep(0.005)
        raise AssertionError([run.state for run in found])


@asynccontextmanager
async def kitchen(folder: Path, **more: Any) -> AsyncIterator[Kitchen]:
    warnings: list[str] = []
    ids = count(1)
    loaded = config(CONFIG, environ={"TOKEN": "s3cret-token"}, files={"tools.py": TOOLS})
    options = {"mask": loaded.environment.mask, "warn": warnings.append, "new_id": lambda: f"spare-{next(ids)}"}
    with Store(folder / ".octo", patience=0.1) as store, Store(folder / ".octo") as other:
        keeper = Keeper(store, flows_with_agents(loaded), "/app.yaml", **(options | more))
        async with Runtime(loaded, store=store, observers=[keeper]) as runtime:
            yield Kitchen(runtime, other, warnings)


# ---------------------------------------------------------------- what is kept


async def test_a_run_leaves_a_row_and_its_log(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as octo:
        began = time.time_ns()
        answer = await octo.invoke("ask", {"n": 1})
        await octo.until("completed")

        run = await octo.run()
        row, (agent,) = run.row, run.agents
        assert (row.id, row.flow, row.config, row.host, row.pid) == (
            *(answer.event_id, "ask", "/app.yaml", socket.gethostname(), os.getpid()),
        )
        assert began <= row.began <= (row.ended or 0) <= time.time_ns()
        assert (row.outcome, row.error, row.records, row.spent) == ("completed", "", 12, Spent(2, 1, 2500, 39))
        assert (agent.address, agent.name, agent.source, agent.version, agent.connector, agent.reason) == (
            *("ask.agent", "", "inline", None, "model", ""),
        )
        assert (agent.spent, len(agent.hash)) == (Spent(2, 1, 2500, 39), 32)
        assert await octo.log(run) == [
            (0, "ask", "completed"),
            (1, "agent", "completed"),
            (2, "turn 1", "completed"),
            (2, "look", "completed"),
            (3, "set-payload", "completed"),
            (2, "turn 2", "completed"),
        ]


@pytest.mark.parametrize("flow", ["plain", "maybe"])
async def test_a_run_without_an_agent_touches_no_store(tmp_path: Path, flow: str) -> None:
    async with kitchen(tmp_path) as octo:
        await octo.invoke(flow, {"ask": False})

    assert list(tmp_path.iterdir()) == []


async def test_vectors_of_texts_count_as_read_and_are_no_turns(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as octo:
        await octo.invoke("embeds")
        await octo.until("completed")

        run = await octo.run()
        assert (run.row.spent, run.agents[0].spent) == (Spent(2, 1, 2502, 39), Spent(2, 1, 2500, 39))


async def test_what_happened_before_the_agent_began_is_in_the_log(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as octo:
        await octo.invoke("maybe", {"ask": True})
        await octo.until("completed")

        assert (await octo.log(await octo.run()))[:3] == [
            (0, "maybe", "completed"),
            (1, "if", "completed"),
            (2, "agent", "completed"),
        ]


async def test_a_run_is_that_of_the_flow_that_was_called_from_outside(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as octo:
        await octo.invoke("caller")
        await octo.until("completed")

        run = await octo.run()
        assert run.row.flow == "caller"
        assert [name for _, name, _ in await octo.log(run)][:4] == ["caller", "flow-ref", "ask", "agent"]


async def test_a_failure_is_kept_without_its_secrets(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as octo:
        with pytest.raises(OctoError, match="s3cret-token"):
            await octo.invoke("fails")
        (run,) = await octo.until("failed")

        assert run.row.error.endswith("no such key: ***")
    assert b"s3cret" not in (tmp_path / ".octo" / "octo.db").read_bytes()


async def test_a_message_that_was_dropped_is_kept_as_dropped(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as octo:
        with pytest.raises(Dropped):
            await octo.invoke("drops")

        await octo.until("dropped")


async def test_a_run_that_was_called_off_is_kept_as_interrupted(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as octo:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await octo.invoke("waits")

        (run,) = await octo.until("interrupted")
        assert run.row.ended is not None


async def test_a_secret_in_a_name_hides_the_name_and_nothing_else(tmp_path: Path) -> None:
    async with kitchen(tmp_path, mask=lambda text: text.replace("agent", "***")) as octo:
        await octo.invoke("ask")
        (run,) = await octo.until("completed")

        assert [(agent.address, agent.spent) for agent in run.agents] == [("ask.***", Spent(2, 1, 2500, 39))]


# ---------------------------------------------------------------- while it goes on


async def test_a_run_is_there_while_it_goes_on(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as octo:
        task = asyncio.create_task(octo.invoke("waits"))
        (run,) = await octo.until("running")
        for _ in range(1000):
            if (1, "python", "unfinished") in await octo.log(run):
                break
            await asyncio.sleep(0.005)

        assert (await octo.log(run))[-1] == (1, "python", "unfinished")
        assert (await octo.run()).row.spent == Spent(2, 1, 2500, 39)
        task.cancel()
        await asyncio.wait([task])


async def test_many_runs_at_once_do_not_mix(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as octo:
        answers = await asyncio.gather(*(octo.invoke("ask", {"n": n}) for n in range(30)))
        found = await octo.until(*["completed"] * 30)

        assert {run.row.id for run in found} == {answer.event_id for answer in answers}
        assert {len(await kept.records(octo.store, run)) for run in found} == {12}
        assert [sorted({record.event_id for record in await kept.records(octo.store, run)}) for run in found] == [
            [run.row.id] for run in found
        ]


async def test_elements_that_have_an_outcome_of_their_own_are_runs_of_their_own(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as octo:
        await octo.invoke("splits", [1, 2])
        found = await octo.until("failed", "completed")  # for one message, the model has the replies for one agent

        assert [run.row.flow for run in found] == ["splits", "splits"]
        assert [len(run.agents) for run in found] == [1, 1]


async def test_the_same_message_twice_makes_two_runs(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as octo:
        loaded = config(CONFIG, environ={"TOKEN": "s3cret-token"}, files={"tools.py": TOOLS})
        options: dict[str, Any] = {"mask": str, "warn": octo.warnings.append, "new_id": lambda: "spare"}
        for _ in range(2):
            keeper = Keeper(octo.store, flows_with_agents(loaded), "/app.yaml", **options)
            async with Runtime(loaded, store=octo.store, observers=[keeper], new_id=lambda: "same") as runtime:
                await runtime.invoke("ask")

        assert [run.row.id for run in await octo.runs()] == ["spare", "same"]


# ---------------------------------------------------------------- limits and faults


async def test_a_log_that_is_too_long_ends_with_what_was_left_out(tmp_path: Path) -> None:
    async with kitchen(tmp_path, longest=4000) as octo:
        await octo.invoke("repeats")
        (run,) = await octo.until("completed")

        records = await kept.records(octo.store, run)
        assert run.row.records > len(records)
        assert run.row.log_size < 5000
        assert [record.kind for record in records[-2:]] == ["trace.dropped", "flow.completed"]
        assert records[-2].attrs == {"count": run.row.records - len(records) + 1}
        assert (await octo.log(run))[0] == (0, "repeats", "completed")


async def test_a_store_that_fails_costs_a_warning_and_not_the_run(tmp_path: Path) -> None:
    (tmp_path / ".octo").write_text("precious", encoding="utf-8")

    async with kitchen(tmp_path) as octo:
        answers = [await octo.invoke("ask", number) for number in range(3)]

    assert [answer.body for answer in answers] == ["done"] * 3
    assert octo.warnings == [
        f"runs are no longer recorded: cannot create the store `{tmp_path / '.octo'}`: a file of that name exists"
    ]
    assert (tmp_path / ".octo").read_text(encoding="utf-8") == "precious"


async def test_a_store_that_is_locked_for_a_while_gets_the_runs_later(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as octo:
        await octo.invoke("ask")
        await octo.until("completed")
        db = sqlite3.connect(tmp_path / ".octo" / "octo.db", isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        await octo.invoke("ask")
        await asyncio.sleep(0.05)
        db.close()

        await octo.until("completed", "completed")
    assert octo.warnings == []


# ---------------------------------------------------------------- which flows


def test_flows_may_come_to_an_agent_by_calling_another() -> None:
    loaded = config(CONFIG, files={"tools.py": TOOLS})

    assert flows_with_agents(loaded) == {flow.name for flow in loaded.flows} - {"plain"}


def test_a_config_without_an_agent_has_no_such_flow() -> None:
    loaded = config("flows: [{name: a, process: [{type: flow-ref, flow: b}]}, {name: b}]")

    assert flows_with_agents(loaded) == frozenset()
