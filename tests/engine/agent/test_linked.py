"""octo/agent/linked.py, octo/agent/link.py, octo/agent/working.py: agents that are looked up when a block starts."""

import asyncio
import json
from contextlib import asynccontextmanager
from textwrap import dedent, indent

import pytest

from fake_model import FakeModel, FakeRuntime, Listener, call, reply
from octo.agent import versions
from octo.agent.versions import Change
from octo.errors import ConfigError, OctoError
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


async def test_a_value_of_a_newer_octo_runs_without_the_keys_that_are_not_known():
    value = {**TRIAGE, "mood": 1, "memoryId": "${WHERE}", "tools": [{**SEARCH, "colour": "red"}]}
    async with linking(agents={"triage": value}) as octo:
        (request,) = await octo.run()

    assert [tool.name for tool in request.tools] == ["search"]
    assert octo.log == ["keys that this octo does not know are left out"]


# ---------------------------------------------------------------- references


async def test_references_in_the_brain_are_those_of_the_running_config():
    value = {**TRIAGE, "prompt": "Answer ${TONE}.", "temperature": "${REGION}"}
    async with linking(agents={"triage": value}, environ={"REGION": "0.5"}) as octo:
        (request,) = await octo.run()

    assert (request.system.rpartition("\n")[2], request.temperature) == ("Answer kindly.", 0.5)


async def test_a_question_that_looks_like_a_reference_reaches_the_model_as_it_is():
    async with linking("agent: triage\ninput: body.q", environ={"REGION": "eu"}) as octo:
        (request,) = await octo.run(body={"q": "what is ${REGION}, and ${WHERE}?"})

    assert request.messages[0].text == "what is ${REGION}, and ${WHERE}?"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            {"inputs": {"index": {"value": "${REGION}"}}},
            'tool `search`: environment variable "REGION" is referenced but not set and has no default',
            id="variable in a binding",
        ),
        pytest.param(
            {"process": [{"type": "rest", "settings": {"connector": "nowhere", "method": "GET", "path": "/"}}]},
            'tool `search`: `process.0.connector`: connector "nowhere" is not configured',
            id="connector",
        ),
        pytest.param(
            {"process": [{"ref": "gone"}]},
            'tool `search`: `process.0`: block ref "gone" is not a defined processor',
            id="processor",
        ),
        pytest.param(
            {"inputs": {"index": {"expr": "body.("}}},
            'tool `search`: `inputs.index.expr`: compile expression "body.(": expected a name after `.`, found `(`',
            id="expression",
        ),
    ],
)
async def test_what_a_tool_refers_to_is_missed_only_by_a_call_of_it(change, message):
    async with linking(agents={"triage": {**TRIAGE, "tools": [{**SEARCH, **change}]}}) as octo:
        (unused,) = await octo.run()
        used = await octo.run(reply("", call("search", {"query": "x"})), reply("ok"))

    assert [tool.name for tool in unused.tools] == ["search"]
    assert results(used) == [(message, True)]


async def test_a_missing_flow_is_missed_only_by_a_call_of_it():
    tool = {"name": "ask", "flow": "gone"}
    async with linking(agents={"triage": {**TRIAGE, "tools": [tool]}}) as octo:
        requests = await octo.run(reply("", call("ask")), reply("ok"))

    assert results(requests) == [('flow "gone" is not registered', True)]


async def test_variables_in_a_tool_are_filled_in_when_it_is_called():
    tool = {**SEARCH, "inputs": {"index": {"value": "${REGION}"}, "tenant": {"expr": '"${TONE}" + body.who'}}}
    async with linking(agents={"triage": {**TRIAGE, "tools": [tool]}}, environ={"REGION": "eu"}) as octo:
        requests = await octo.run(reply("", call("search", {"query": "x"})), reply("ok"), body={"who": "!"})

    assert requests[0].tools[0].input_schema["properties"] == {"query": {"type": "string"}}
    assert results(requests) == [({"got": {"query": "x", "index": "eu", "tenant": "kindly!"}}, False)]


async def test_what_an_agent_is_stored_as_holds_the_reference_and_not_the_value():
    async with linking(agents={"triage": {**TRIAGE, "prompt": "Use ${REGION}."}}, environ={"REGION": "eu"}) as octo:
        await octo.run()
        found = await versions.resolve(octo.store, "triage")

    assert found.value["prompt"] == "Use ${REGION}."


async def test_the_blocks_of_a_tool_are_told_by_their_addresses():
    from octo.observe import BlockEntered

    heard = Listener(BlockEntered)
    async with linking() as octo:
        octo.runtime._observers = (*octo.runtime._observers, heard)
        await octo.run(reply("", call("search", {"query": "x"})), reply("ok"))

    assert [event.address for event in heard.events] == ["f.ag", "f.ag[search].set-payload"]


# ---------------------------------------------------------------- what the block adds


@pytest.mark.parametrize(
    ("keys", "agent", "asked"),
    [
        pytest.param("", {}, 'The input of the task, as JSON:\n{"q":"why?"}', id="neither"),
        pytest.param("", {"input": "body.q"}, "why?", id="the agent's own"),
        pytest.param("input: '\"block\"'", {"input": "body.q"}, "block", id="the block's"),
        pytest.param("input: {value: as it is}", {}, "as it is", id="a fixed text"),
        pytest.param("input: ''", {"input": "body.q"}, "why?", id="empty text is not set"),
        pytest.param("input:", {"input": "body.q"}, "why?", id="null is not set"),
        pytest.param("input: 'null'", {"input": "body.q"}, "null", id="an expression is set, whatever it gives"),
    ],
)
async def test_what_is_asked_is_said_by_the_block_else_by_the_agent(keys, agent, asked):
    async with linking(f"agent: triage\n{keys}", agents={"triage": {**TRIAGE, **agent}}) as octo:
        (request,) = await octo.run(body={"q": "why?"})

    assert request.messages[0].text == asked


TWO_TOOLS = {**TRIAGE, "tools": [SEARCH, {"name": "other", "process": []}]}


@pytest.mark.parametrize(
    ("keys", "agent", "offered"),
    [
        pytest.param("", {}, ["search", "other"], id="not set"),
        pytest.param("", {"enabledTools": ["other"]}, ["other"], id="the agent's own"),
        pytest.param("enabledTools: [search]", {"enabledTools": ["other"]}, ["search"], id="the block's"),
        pytest.param("enabledTools: 'null'", {"enabledTools": ["other"]}, ["search", "other"], id="an expression"),
        pytest.param("enabledTools: []", {}, [], id="none"),
        pytest.param("enabledTools: [other, search, other]", {}, ["search", "other"], id="the order is the agent's"),
    ],
)
async def test_which_tools_are_offered_is_said_by_the_block_else_by_the_agent(keys, agent, offered):
    async with linking(f"agent: triage\n{keys}", agents={"triage": {**TWO_TOOLS, **agent}}) as octo:
        (request,) = await octo.run()

    assert [tool.name for tool in request.tools] == offered


async def test_files_of_the_block_go_with_a_question_of_the_agent():
    keys = 'agent: triage\nattachments: \'[{"mimeType": "text/plain", "data": "aGk="}]\''
    async with linking(keys, agents={"triage": {**TRIAGE, "input": "body"}}) as octo:
        (request,) = await octo.run(body="read")

    assert [part.data for part in request.messages[0].files] == [b"hi"]


async def test_files_without_a_question_fail_the_block():
    async with linking("agent: triage\nattachments: '[]'") as octo:
        with pytest.raises(OctoError, match="`attachments` requires `input`"):
            await octo.run()


async def test_the_block_binds_parameters_in_its_own_way_and_the_agent_stays_as_it_is():
    keys = """
    agent: triage
    toolInputs:
      search:
        index: {value: eu_docs}
        tenant: {expr: body.tenant}
    """
    async with linking(keys) as octo:
        requests = await octo.run(reply("", call("search", {"query": "x"})), reply("ok"), body={"tenant": "t1"})
        stored = await versions.resolve(octo.store, "triage")

    assert results(requests) == [({"got": {"query": "x", "index": "eu_docs", "tenant": "t1"}}, False)]
    assert stored.value == TRIAGE


async def test_a_bound_parameter_can_be_given_back_to_the_model():
    keys = "agent: triage\ntoolInputs: {search: {index: {ai: true}}}"
    async with linking(keys) as octo:
        requests = await octo.run(reply("", call("search", {"query": "x", "index": "mine"})), reply("ok"))

    assert "index" in requests[0].tools[0].input_schema["properties"]
    assert results(requests) == [({"got": {"query": "x", "index": "mine"}}, False)]


async def test_names_in_tool_inputs_that_no_tool_has_are_counted():
    async with linking("agent: triage\ntoolInputs: {gone: {x: 1}}") as octo:
        await octo.run()

    assert octo.log == ["names in toolInputs that no tool has"]


async def test_memory_of_the_agent_and_a_thread_of_the_block_do_not_go_together():
    keys = "agent: triage\nmemoryThreadId: '\"t\"'"
    async with linking(keys, agents={"triage": {**TRIAGE, "memory": {"kind": "window", "contextLength": 9}}}) as octo:
        with pytest.raises(OctoError) as caught:
            await octo.run()

    assert caught.value.message == (
        'block "ag": ai-agent: `memory` of agent "triage" and `memoryThreadId` of the block are two ways to remember'
    )


async def test_the_policy_is_the_agents_and_the_id_is_the_blocks():
    agent = {**TRIAGE, "memory": {"kind": "window", "contextLength": 9}}
    async with linking("agent: triage\nmemoryId: body.who\ninput: body.q", agents={"triage": agent}) as octo:
        await octo.run(body={"q": "one", "who": "ann"})
        (second,) = await octo.run(body={"q": "two", "who": "ann"})
        (other,) = await octo.run(body={"q": "three", "who": "bob"})

    assert [turn.text for turn in second.messages] == ["one", "ok", "two"]
    assert [turn.text for turn in other.messages] == ["three"]


async def test_a_tool_cannot_have_a_name_that_facts_about_people_need():
    keys = """
    agent: triage
    memoryThreadId: '"t"'
    agentId: a
    userId: '"u"'
    userMemory: true
    """
    async with linking(keys, agents={"triage": {**TRIAGE, "tools": [{"name": "remember", "process": []}]}}) as octo:
        with pytest.raises(OctoError, match='agent "triage": tool `remember`: the name is reserved while `userMemory`'):
            await octo.run()


async def test_a_guardrail_of_the_agent_leads_to_the_default_path_of_the_block():
    keys = """
    agent: triage
    default:
      process:
        - type: set-payload
          settings: {value: '"default"'}
    """
    async with linking(keys, agents={"triage": {**TRIAGE, "guardrail": "Stop when lost."}}) as octo:
        octo.runtime.model = FakeModel([reply("", call("take_default_path", {"reason": "lost"}))])
        message = await octo.runtime.invoke("f")

    assert message.body == "default"


async def test_an_agent_without_tools_works():
    async with linking(agents={"triage": {"connector": "m", "prompt": "x"}}) as octo:
        (request,) = await octo.run()

    assert request.tools == ()


# ---------------------------------------------------------------- what the block may not say


@pytest.mark.parametrize(
    "key",
    [
        *("connector: m", "model: x", "reasoningEffort: low", "prompt: x", "guardrail: x", "temperature: 1"),
        *(
            "maxTokens: 9",
            "outputType: text",
            "outputSchema: {}",
            "memory: {kind: window, contextLength: 9}",
            "maxIterations: 3",
        ),
        *("maxParallelTools: 1", "contextMaxTokens: 9", "memoryCompaction: prune"),
        "skills: [{name: s, description: d, resource: r}]",
        "tools: [{name: t, description: d, process: []}]",
    ],
)
def test_what_belongs_to_the_agent_is_refused_on_a_block_that_links_it(key):
    name = key.partition(":")[0]
    with pytest.raises(ConfigError) as caught:
        harness.config(config_text(f"agent: support/triage\n{key}"))

    (problem,) = [one for one in caught.value.problems if one.severity == "error"]
    assert (problem.message, problem.hint) == (
        f'ai-agent: `{name}` belongs to agent "support/triage", which the block links',
        "change the agent, or put all of it into the block: `octo agents unlink` shows how",
    )


def test_an_empty_list_of_tools_is_no_list():
    harness.config(config_text("agent: triage\ntools: []"))


@pytest.mark.parametrize(
    ("link", "message", "hint"),
    [
        pytest.param(
            "../x",
            "`../x` is no name of an agent",
            "a name is made of segments with `/` between them; a segment has letters, digits, `_`, `.` and `-`, "
            "and begins with a letter, a digit or `_`",
            id="dots",
        ),
        pytest.param(
            "x@", "`x@` names no version", "a pin ends with the number of a version, as in `NAME@7`", id="no version"
        ),
        pytest.param(
            "x@new",
            "`x@new` names no version",
            "a pin ends with the number of a version, as in `NAME@7`",
            id="no number",
        ),
        pytest.param("{name: x, version: 0}", "versions count from 1, found 0", None, id="zero"),
        pytest.param("{version: 2}", "missing key `name`", "add `name:`", id="no name"),
    ],
)
def test_links_that_cannot_be_are_refused(link, message, hint):
    with pytest.raises(ConfigError) as caught:
        harness.config(config_text(f"agent: {link}"))

    assert [(problem.message, problem.hint) for problem in caught.value.problems] == [(message, hint)]


# ---------------------------------------------------------------- agents as tools


async def test_a_tool_that_names_an_agent_is_described_by_it_and_runs_it():
    helper = {"connector": "m", "prompt": "Help.", "description": "Helps with orders."}
    agents = {"triage": {**TRIAGE, "tools": [{"name": "helper", "agent": "desk/helper"}]}, "desk/helper": helper}
    async with linking(agents=agents) as octo:
        requests = await octo.run(
            reply("", call("helper", {"user_message": "help me"})), reply("helped"), reply("done")
        )

    outer, inner, _ = requests
    assert outer.tools[0].description == "Helps with orders."
    assert inner.system.endswith("Help.")
    assert [turn.text for turn in inner.messages] == ["help me"]
    assert results(requests) == [('"helped"', False)]
    assert [(stamp.name, stamp.version) for stamp in octo.stamps] == [("triage", 1), ("desk/helper", 1)]


async def test_a_tool_of_an_agent_in_a_block_may_name_one():
    keys = """
    connector: m
    prompt: x
    tools: [{name: helper, agent: desk/helper}]
    """
    agents = {"desk/helper": {"connector": "m", "prompt": "Help.", "description": "Helps with orders."}}
    async with linking(keys, agents=agents) as octo:
        requests = await octo.run(reply("", call("helper", {"user_message": "help me"})), reply("helped"), reply("ok"))

    assert requests[0].tools[0].description == "Helps with orders."
    assert results(requests) == [('"helped"', False)]


async def test_an_agent_that_is_a_tool_is_looked_up_when_it_is_called():
    agents = {
        "triage": {**TRIAGE, "tools": [{"name": "helper", "agent": "helper"}]},
        "helper": {"connector": "m", "prompt": "Help."},
    }
    async with linking(agents=agents) as octo:

        class Deploys(FakeModel):
            async def complete(self, request, *, session, on_delta=None):
                if not self.requests:
                    await octo.deploy("helper", {"connector": "m", "prompt": "Help better."})
                return await super().complete(request, session=session)

        octo.runtime.model = Deploys([reply("", call("helper", {"user_message": "x"})), reply("y"), reply("z")])
        await octo.runtime.invoke("f")

    assert octo.runtime.model.requests[1].system.endswith("Help better.")


async def test_an_agent_that_is_a_tool_and_is_gone_is_a_failed_call():
    async with linking(agents={"triage": {**TRIAGE, "tools": [{"name": "helper", "agent": "gone"}]}}) as octo:
        requests = await octo.run(reply("", call("helper", {"user_message": "x"})), reply("ok"))

    assert requests[0].tools[0].description == "helper"
    assert [(text.partition(": ")[2], failed) for text, failed in results(requests)] == [
        ('agent "gone" not found', True)
    ]


async def test_agents_nest_one_level_deep_and_tools_below_that_are_not_offered():
    agents = {
        "triage": {**TRIAGE, "tools": [{"name": "helper", "agent": "helper"}]},
        "helper": {"connector": "m", "prompt": "Help.", "tools": [{"name": "deeper", "agent": "triage"}, SEARCH]},
    }
    async with linking(agents=agents) as octo:
        requests = await octo.run(reply("", call("helper", {"user_message": "x"})), reply("y"), reply("z"))

    assert [tool.name for tool in requests[1].tools] == ["search"]


async def test_an_agent_that_has_itself_as_a_tool_ends():
    async with linking(agents={"triage": {**TRIAGE, "tools": [{"name": "me", "agent": "triage"}]}}) as octo:
        requests = await octo.run(reply("", call("me", {"user_message": "x"})), reply("y"), reply("z"))

    assert [len(request.tools) for request in requests] == [1, 0, 1]


async def test_a_nested_agent_with_drafts_asked_for_is_the_draft():
    agents = {
        "triage": {**TRIAGE, "tools": [{"name": "helper", "agent": "helper"}]},
        "helper": {"connector": "m", "prompt": "Help."},
    }
    async with linking(agents=agents, drafts_of="ann") as octo:
        await versions.put_draft(octo.store, "helper", {"connector": "m", "prompt": "Draft."}, ME)
        requests = await octo.run(reply("", call("helper", {"user_message": "x"})), reply("y"), reply("z"))

    assert requests[1].system.endswith("Draft.")


async def test_the_inputs_of_a_nested_agent_come_from_bindings_that_the_block_may_lay_over():
    helper = {"connector": "m", "prompt": "Help.", "tools": [SEARCH, {"name": "other", "process": []}]}
    tool = {"name": "helper", "agent": "helper", "inputs": {"enabledTools": {"value": ["search"]}}}
    keys = "agent: triage\ntoolInputs: {helper: {enabledTools: {value: [other]}}}"
    agents = {"triage": {**TRIAGE, "tools": [tool]}, "helper": helper}
    async with linking(keys, agents=agents) as octo:
        requests = await octo.run(reply("", call("helper", {"user_message": "x"})), reply("y"), reply("z"))

    assert [tool.name for tool in requests[1].tools] == ["other"]


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
