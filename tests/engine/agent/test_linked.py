"""octo/agent/linked.py, octo/agent/working.py: agents that are looked up when a block starts."""

import asyncio
import json

import pytest

from fake_model import FakeModel, FakeRuntime, Listener, call, reply
from linking import ME, SEARCH, TRIAGE, config_text, linking, results
from octo.agent import versions
from octo.errors import OctoError
from octo.observe import LogLine
from octo.store.store import Store
from octo.testing import harness

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
            "the store is in memory; `--store DIR` names one that keeps agents",
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


async def test_a_value_of_a_newer_octo_runs_without_the_keys_that_are_not_known():
    value = {**TRIAGE, "mood": 1, "memoryId": "${WHERE}", "tools": [{**SEARCH, "colour": "red"}]}
    async with linking(agents={"triage": value}) as octo:
        (request,) = await octo.run()

    assert [tool.name for tool in request.tools] == ["search"]
    assert octo.log == ["keys that this octo does not know are left out"]


# ---------------------------------------------------------------- the same as in a block


WHOLE = {
    "connector": "m",
    "prompt": "Sort it out.",
    "guardrail": "Stop when lost.",
    "model": "x-1",
    "temperature": 0.5,
    "maxTokens": 100,
    "reasoningEffort": "low",
    "maxIterations": 3,
    "maxParallelTools": 2,
    "outputSchema": {"type": "object", "properties": {"team": {"type": "string"}}},
    "memory": {"kind": "window", "contextLength": 9},
    "tools": [
        SEARCH,
        {"name": "order", "description": "Order.", "flow": "order"},
        {"name": "helper", "agent": {"connector": "m", "prompt": "Help.", "description": "Helps."}},
        {"webSearch": True},
    ],
}
OF_BLOCK = "input: body.q\nmemoryId: body.who\nenabledTools: [search, order, helper]\n"


async def test_an_agent_does_the_same_linked_as_in_its_block():
    replies = [
        reply("", call("search", {"query": "x"}), call("helper", {"user_message": "y"})),
        reply("helped"),
        reply('{"team": "a"}'),
    ]
    more = "  - {name: order, description: Orders., process: []}\n"
    body = {"q": "why?", "who": "ann"}
    sent = []
    for keys in ("agent: whole\n", "\n".join(f"{key}: {json.dumps(item)}" for key, item in WHOLE.items()) + "\n"):
        async with linking(keys + OF_BLOCK, agents={"whole": WHOLE}, more=more) as octo:
            sent.append(await octo.run(*replies, body=body))

    linked, inline = sent
    assert linked == inline


async def test_a_draft_is_bound_by_the_block_as_what_is_deployed_is():
    keys = "agent: triage\ntoolInputs: {search: {index: {value: eu_docs}}}"
    async with linking(keys, drafts_of="ann") as octo:
        await versions.put_draft(octo.store, "triage", {**TRIAGE, "prompt": "Try this."}, ME)
        requests = await octo.run(reply("", call("search", {"query": "x"})), reply("ok"))

    assert results(requests) == [({"got": {"query": "x", "index": "eu_docs"}}, False)]


async def test_a_draft_of_an_agent_that_is_not_deployed_runs():
    async with linking(agents={}, drafts_of="ann") as octo:
        await versions.put_draft(octo.store, "triage", TRIAGE, ME)
        await octo.run()

    assert [(stamp.source, stamp.version) for stamp in octo.stamps] == [("draft", None)]


# ---------------------------------------------------------------- stores


async def test_a_deploy_of_another_process_reaches_the_next_run(tmp_path):
    config = harness.config(config_text("agent: triage"))
    with Store(tmp_path) as mine, Store(tmp_path) as theirs:
        await versions.deploy(theirs, "triage", TRIAGE, ME)
        async with FakeRuntime(config, store=mine) as runtime:
            runtime.model = FakeModel([reply("one"), reply("two")])
            await runtime.invoke("f")
            await versions.deploy(theirs, "triage", {**TRIAGE, "prompt": "Think twice."}, ME)
            await runtime.invoke("f")

    assert [request.system.rpartition("\n")[2] for request in runtime.model.requests] == [
        "Sort it out.",
        "Think twice.",
    ]


async def test_an_agent_of_the_config_works_where_nothing_can_be_stored(tmp_path):
    (tmp_path / "taken").write_text("", encoding="utf-8")
    more = "agents:\n  - {name: triage, connector: m, prompt: Sort it out.}\n"
    heard = Listener(LogLine)
    with Store(tmp_path / "taken" / "store") as store:
        config = harness.config(config_text("agent: triage", more))
        async with FakeRuntime(config, store=store, observers=[heard]) as runtime:
            runtime.model = FakeModel([reply("ok")])
            await runtime.invoke("f")

    assert runtime.model.requests[0].system.endswith("Sort it out.")
    warned = [event.text for event in heard.events if event.level == "warn"]
    assert [text.partition(":")[0] for text in warned] == ['agent "triage" runs as declared, and no version is kept']


async def test_what_many_runs_at_once_work_with_is_read_once(tmp_path):
    async with linking() as octo:
        octo.runtime.model = FakeModel([reply("ok")] * 20)
        await asyncio.gather(*(octo.runtime.invoke("f") for _ in range(20)))
        kept = [key for key in octo.runtime.kept if isinstance(key, tuple) and key[-1] == "triage"]

    assert (len(octo.stamps), len(kept)) == (20, 1)
