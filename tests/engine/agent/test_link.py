"""octo/agent/link.py: what a block that links an agent adds to it, and what it may not say."""

import pytest

from fake_model import FakeModel, call, reply
from linking import SEARCH, TRIAGE, config_text, linking, results
from octo.agent import versions
from octo.errors import ConfigError, OctoError
from octo.testing import harness

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
