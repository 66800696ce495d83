"""octo/agent/linked.py, octo/agent/link.py, octo/agent/working.py: agents that are looked up when a block starts."""

import json
from contextlib import asynccontextmanager
from textwrap import dedent, indent

import pytest

from fake_model import FakeModel, FakeRuntime, Listener, call, reply
from octo.agent import versions
from octo.agent.versions import Change
from octo.errors import OctoError
from octo.observe import AgentStarted, LogLine
from octo.store.store import Store
from octo.testing import harness

ME = Change("ann", 0)
SEARCH = {
    "name": "search",
    "description": "Search the documents.",
    "inputSchema": {
        "type": "object",
        "required": ["query"],
        "properties": {"query": {"type": "string"}, "index": {"type": "string"}, "tenant": {"type": "string"}},
    },
    "inputs": {"index": "all_docs"},
    "process": [{"type": "set-payload", "settings": {"value": '{"got": body}'}}],
}
TRIAGE = {"connector": "m", "prompt": "Sort it out.", "tools": [SEARCH]}

CONFIG = """
env:
  - name: REGION
  - name: TONE
    default: kindly
connectors:
  - name: m
    type: llm-scripted
    settings: {turns: [{text: hi}]}
flows:
  - name: f
    process:
      - type: ai-agent
        name: ag
"""


def config_text(keys, more=""):
    return CONFIG + indent(dedent(keys).strip("\n"), "        ") + "\n" + more


class Linking:
    """A runtime with a store, whose model answers from a list."""

    def __init__(self, runtime, store):
        self.runtime, self.store = runtime, store
        self.listener = runtime.heard

    async def deploy(self, name, value):
        return (await versions.deploy(self.store, name, value, ME)).version

    async def run(self, *replies, body=None, vars=None):
        self.runtime.model = FakeModel(list(replies) or [reply("ok")])
        await self.runtime.invoke("f", body, vars=vars)
        return self.runtime.model.requests

    @property
    def stamps(self):
        return [event.stamp for event in self.listener.events if isinstance(event, AgentStarted)]

    @property
    def log(self):
        return [event.text for event in self.listener.events if isinstance(event, LogLine) and event.level != "debug"]


@asynccontextmanager
async def linking(keys="agent: triage", *, more="", environ=None, agents=None, **options):
    heard = Listener(AgentStarted, LogLine)
    config = harness.config(config_text(keys, more), environ=environ)
    with Store() as store:
        runtime = FakeRuntime(config, store=store, observers=[heard], **options)
        runtime.heard = heard
        async with runtime:
            found = Linking(runtime, store)
            for name, value in (agents if agents is not None else {"triage": TRIAGE}).items():
                await found.deploy(name, value)
            yield found


def results(requests):
    """What the model was told of its tool calls."""
    return [
        (json.loads(part.text) if part.text.startswith(("{", "[")) else part.text, part.is_error)
        for turn in requests[-1].messages
        if turn.role == "tool"
        for part in turn.parts
    ]


# ---------------------------------------------------------------- which agent


async def test_a_block_that_names_an_agent_works_with_its_prompt_and_tools():
    async with linking() as octo:
        (request,) = await octo.run()

    assert request.system.endswith("Sort it out.")
    assert [tool.name for tool in request.tools] == ["search"]


async def test_a_deploy_reaches_the_next_run_of_the_block():
    async with linking() as octo:
        await octo.run()
        await octo.deploy("triage", {**TRIAGE, "prompt": "Think twice."})
        (request,) = await octo.run()

    assert request.system.endswith("Think twice.")
    assert [(stamp.name, stamp.source, stamp.version) for stamp in octo.stamps] == [
        ("triage", "deployed", 1),
        ("triage", "deployed", 2),
    ]


async def test_a_deploy_during_a_run_of_the_block_does_not_change_that_run():
    async with linking() as octo:

        class Deploys(FakeModel):
            async def complete(self, request, *, session, on_delta=None):
                await octo.deploy("triage", {**TRIAGE, "prompt": "Think twice.", "tools": []})
                return await super().complete(request, session=session)

        octo.runtime.model = Deploys([reply("", call("search", {"query": "x"})), reply("ok")])
        await octo.runtime.invoke("f")

    first, second = octo.runtime.model.requests
    assert (second.system, second.tools) == (first.system, first.tools)
    assert results([second]) == [({"got": {"query": "x", "index": "all_docs"}}, False)]


async def test_two_blocks_of_one_run_may_have_two_versions():
    async with linking(more="      - {type: ai-agent, name: again, agent: triage}") as octo:

        class Deploys(FakeModel):
            async def complete(self, request, *, session, on_delta=None):
                await octo.deploy("triage", {**TRIAGE, "prompt": "Think twice."})
                return await super().complete(request, session=session)

        octo.runtime.model = Deploys([reply("one"), reply("two")])
        await octo.runtime.invoke("f")

    assert [stamp.version for stamp in octo.stamps] == [1, 2]


@pytest.mark.parametrize("link", ["triage@1", "{name: triage, version: 1}"])
async def test_a_pin_keeps_the_version(link):
    async with linking(f"agent: {link}") as octo:
        await octo.deploy("triage", {**TRIAGE, "prompt": "Think twice."})
        (request,) = await octo.run()

    assert request.system.endswith("Sort it out.")
    assert [(stamp.source, stamp.version) for stamp in octo.stamps] == [("pinned", 1)]


async def test_the_hash_of_the_value_is_told():
    from octo.agent.authored import digest

    async with linking() as octo:
        await octo.run()

    assert [stamp.hash for stamp in octo.stamps] == [digest(TRIAGE)]


async def test_drafts_count_when_they_are_asked_for():
    async with linking(drafts_of="ann") as octo:
        await versions.put_draft(octo.store, "triage", {**TRIAGE, "prompt": "Try this."}, ME)
        (request,) = await octo.run()

    assert request.system.endswith("Try this.")
    assert [(stamp.source, stamp.version) for stamp in octo.stamps] == [("draft", 1)]


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        pytest.param("agent: triage", {}, id="no drafts asked for"),
        pytest.param("agent: triage", {"drafts_of": "bob"}, id="of another user"),
        pytest.param("agent: triage@1", {"drafts_of": "ann"}, id="a pin"),
    ],
)
async def test_drafts_do_not_count_otherwise(keys, options):
    async with linking(keys, **options) as octo:
        await versions.put_draft(octo.store, "triage", {**TRIAGE, "prompt": "Try this."}, ME)
        (request,) = await octo.run()

    assert request.system.endswith("Sort it out.")


async def test_what_the_store_could_not_take_counts_as_the_config_declares_it():
    async with linking(agents={}, declared_agents={"triage": TRIAGE}) as octo:
        (request,) = await octo.run()

    assert request.system.endswith("Sort it out.")


@pytest.mark.parametrize(
    ("keys", "agents", "message", "hint"),
    [
        pytest.param(
            "agent: triag",
            {"triage": TRIAGE},
            'agent "triag" not found',
            "did you mean `triage`?",
            id="near",
        ),
        pytest.param(
            "agent: triage",
            {},
            'agent "triage" not found',
            "the store is in memory; `--store DIR` names one that keeps agents",
            id="in memory",
        ),
        pytest.param(
            "agent: triage@7",
            {"triage": TRIAGE},
            'agent "triage" has no version 7: version 1 is kept',
            "`octo agents history triage` lists them",
            id="pin",
        ),
        pytest.param(
            "agent: triage",
            {"triage": {**TRIAGE, "tools": [SEARCH, {"name": "a-b", "process": []}]}},
            'agent "triage": `tools.1.name`: ai-agent tool `a-b`: a name has 1 to 64 letters, digits and `_`',
            None,
            id="name of a tool",
        ),
        pytest.param(
            "agent: triage",
            {"triage": {**TRIAGE, "tools": 5}},
            'agent "triage": `tools`: expected a list, found a number',
            None,
            id="tools",
        ),
        pytest.param(
            "agent: triage",
            {"triage": {**TRIAGE, "connector": "x"}},
            'agent "triage": `connector`: connector "x" is not configured',
            "known names: `m`",
            id="connector",
        ),
        pytest.param(
            "agent: triage",
            {"triage": {**TRIAGE, "connector": "${REGION}"}},
            'agent "triage": `connector`: environment variable "REGION" is referenced but not set and has no default',
            "run `export REGION=…`, or put `REGION=…` into `.env` in the directory where you run octo",
            id="variable",
        ),
        pytest.param(
            "agent: triage",
            {"triage": {**TRIAGE, "prompt": "${WHERE}"}},
            'agent "triage": `prompt`: config references undeclared environment variable "WHERE"',
            "declare it under `env:` as `- name: WHERE`",
            id="undeclared variable",
        ),
    ],
)
async def test_what_cannot_be_had_fails_the_block_before_any_model_call(keys, agents, message, hint):
    async with linking(keys, agents=agents) as octo:
        with pytest.raises(OctoError) as caught:
            await octo.run()

    assert (caught.value.message, caught.value.hint) == (f'block "ag": {message}', hint)
    assert octo.runtime.model.requests == []
