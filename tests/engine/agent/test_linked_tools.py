"""octo/agent/linked.py, octo/agent/references.py: what looked-up agents refer to, and agents as their tools."""

import pytest

from fake_model import FakeModel, Listener, call, reply
from linking import ME, SEARCH, TRIAGE, linking, results
from octo.agent import versions

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
            {"process": [{"type": "python", "file": "gone.py", "function": "f"}]},
            "tool `search`: `process.0.file`: resource `gone.py` does not exist",
            id="file",
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
