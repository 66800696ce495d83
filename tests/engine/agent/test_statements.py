"""What is said of agents with names as a whole: who owns what, and what is live or fixed or looked up when."""

import pytest

from fake_model import FakeModel, call, reply
from linking import ME, SEARCH, TRIAGE, config_text, linking, results
from octo.agent import versions
from octo.errors import ConfigError, OctoError
from octo.store import memories
from octo.testing import harness

HELPER = {"connector": "m", "prompt": "Help.", "memory": {"kind": "window", "contextLength": 9}}
NESTS = {**TRIAGE, "tools": [{"name": "helper", "agent": "helper"}]}
TEXT_FILE = '[{"mimeType": "text/plain", "data": "%s"}]'


async def kept_for(octo):
    """The blocks that have a memory, with how many messages each."""
    rows = await octo.store.read(memories.rows, [])
    return sorted((row.place.block, row.messages) for row in rows)


# ---------------------------------------------------------------- who owns what


@pytest.mark.parametrize(
    ("keys", "files"),
    [
        pytest.param("", [b"hi"], id="not set"),
        pytest.param("attachments:", [b"hi"], id="null is not set"),
        pytest.param("attachments: ''", [b"hi"], id="empty text is not set"),
        pytest.param(f"attachments: '{TEXT_FILE % 'eW8='}'", [b"yo"], id="an expression"),
        pytest.param("attachments: 'null'", [], id="an expression is set, whatever it gives"),
        pytest.param("attachments: []", [], id="an empty list is set"),
    ],
)
async def test_which_files_go_along_is_said_by_the_block_else_by_the_agent(keys, files):
    agent = {**TRIAGE, "input": "body", "attachments": TEXT_FILE % "aGk="}
    async with linking(f"agent: triage\n{keys}", agents={"triage": agent}) as octo:
        (request,) = await octo.run(body="read")

    assert [part.data for part in request.messages[0].files] == files


@pytest.mark.parametrize("key", ["input", "attachments", "enabledTools", "memoryId", "previousMessages"])
def test_the_model_fills_in_no_input_of_a_block(key):
    with pytest.raises(ConfigError) as caught:
        harness.config(config_text(f"agent: triage\n{key}: {{ai: true}}"))

    assert [(problem.message, problem.hint) for problem in caught.value.problems] == [
        ("`{ai: true}` is for parameters of tools", "write a value or an expression")
    ]


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param("user_message: body.q\nenabled_tools: [search]\nmemory_id: body.who", id="with underscores"),
        pytest.param("input: body.q\nenabledTools: [search]\nmemoryId: body.who", id="in camel case"),
    ],
)
async def test_the_inputs_of_a_block_have_two_spellings(keys):
    agent = {**HELPER, "tools": [SEARCH, {"name": "other", "process": []}]}
    async with linking(f"agent: triage\n{keys}", agents={"triage": agent}) as octo:
        (request,) = await octo.run(body={"q": "why?", "who": "ann"})
        kept = await kept_for(octo)

    assert ([turn.text for turn in request.messages], [tool.name for tool in request.tools]) == (["why?"], ["search"])
    assert kept == [("f.ag", 2)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("input", "user_message"),
        ("attachments", "user_images"),
        ("enabledTools", "enabled_tools"),
        ("memoryId", "memory_id"),
        ("previousMessages", "previous_messages"),
        ("toolInputs", "tool_inputs"),
    ],
)
def test_one_input_of_a_block_in_both_spellings_is_refused_with_both(one, other):
    with pytest.raises(ConfigError) as caught:
        harness.config(config_text(f"agent: triage\n{one}: {{}}\n{other}: {{}}"))

    assert [problem.message for problem in caught.value.problems] == [
        f"`{one}` and `{other}` are two spellings of one key"
    ]


async def test_what_the_block_and_the_model_hand_over_is_never_taken_for_a_reference():
    keys = "agent: triage\ntoolInputs: {search: {tenant: {expr: body.tenant}}}"
    async with linking(keys, environ={"REGION": "eu"}) as octo:
        requests = await octo.run(
            reply("", call("search", {"query": "${REGION} ${GONE}"})), reply("ok"), body={"tenant": "${TONE}"}
        )

    assert results(requests) == [
        ({"got": {"query": "${REGION} ${GONE}", "index": "all_docs", "tenant": "${TONE}"}}, False)
    ]


# ---------------------------------------------------------------- tools


async def test_a_binding_sees_the_body_as_it_came_and_the_variables_as_they_are_now():
    remember = {
        "name": "remember",
        "process": [
            {"type": "set-variable", "settings": {"name": "index", "value": '"new"'}},
            {"type": "set-payload", "settings": {"value": '{"tenant": "changed"}'}},
        ],
    }
    bound = {**SEARCH, "inputs": {"index": {"expr": "vars.index"}, "tenant": {"expr": "body.tenant"}}}
    async with linking(agents={"triage": {**TRIAGE, "tools": [remember, bound]}}) as octo:
        requests = await octo.run(
            reply("", call("remember", {})),
            reply("", call("search", {"query": "x"})),
            reply("ok"),
            body={"tenant": "t1"},
            vars={"index": "old"},
        )

    assert results(requests)[-1] == ({"got": {"query": "x", "index": "new", "tenant": "t1"}}, False)


async def test_a_binding_of_what_this_flow_has_not_fails_only_the_call():
    bound = {**SEARCH, "inputs": {"tenant": {"expr": "body.tenant"}}}
    async with linking(agents={"triage": {**TRIAGE, "tools": [bound, {"name": "other", "process": []}]}}) as octo:
        requests = await octo.run(reply("", call("search", {"query": "x"}), call("other", {})), reply("ok"), body={})

    assert results(requests) == [
        ("input `tenant`: evaluate expression: no such key: tenant", True),
        ({}, False),
    ]


async def test_what_a_block_binds_of_a_tool_that_is_off_is_unused():
    keys = "agent: triage\nenabledTools: [other]\ntoolInputs: {search: {index: {expr: body.gone}}, other: {n: 1}}"
    agent = {**TRIAGE, "tools": [SEARCH, {"name": "other", "process": []}]}
    async with linking(keys, agents={"triage": agent}) as octo:
        requests = await octo.run(reply("", call("other", {})), reply("ok"), body={})

    assert results(requests) == [({"n": 1}, False)]
    assert octo.log == []


async def test_nothing_is_bound_of_the_search_of_the_web():
    keys = "agent: triage\ntoolInputs: {__octo_web_search: {query: x}}"
    async with linking(keys, agents={"triage": {**TRIAGE, "tools": [SEARCH, {"webSearch": True}]}}) as octo:
        (request,) = await octo.run()

    assert ([tool.name for tool in request.tools], request.web_search) == (["search"], True)
    assert octo.log == ["names in toolInputs that no tool has"]


@pytest.mark.parametrize(
    ("tool", "told"),
    [
        pytest.param(
            "webSearch: true",
            ("ai-agent: the search of the web takes no inputs, so none is bound", "remove it"),
            id="search",
        ),
        pytest.param(
            "name: t, description: d, process: []",
            ("ai-agent: no tool `__octo_web_search` is there to bind", "known names: `t`"),
            id="none",
        ),
    ],
)
def test_what_is_bound_of_the_search_of_the_web_is_warned_of(tool, told):
    keys = f"connector: m\nprompt: x\ntools: [{{{tool}}}]\ntoolInputs: {{__octo_web_search: {{query: x}}}}"
    (warning,) = harness.config(config_text(keys)).warnings

    assert (warning.message, warning.hint) == told


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        pytest.param(
            {"name": "__octo_web_search", "process": []},
            "`tools.0.name`: ai-agent tool `__octo_web_search`: the name is reserved",
            id="the search of the web",
        ),
        pytest.param(
            {"name": "take_default_path", "process": []},
            "`tools.0.name`: ai-agent tool `take_default_path`: the name is reserved",
            id="a name of octo",
        ),
        pytest.param({"process": []}, "`tools.0`: ai-agent requires a name for tool 0", id="none"),
        pytest.param(
            {"name": "x" * 65, "process": []},
            f"`tools.0.name`: ai-agent tool `{'x' * 65}`: a name has 1 to 64 letters, digits and `_`",
            id="too long",
        ),
    ],
)
async def test_no_tool_is_left_out_for_its_name_but_the_block_fails(tool, message):
    async with linking(agents={"triage": {**TRIAGE, "tools": [tool]}}) as octo:
        with pytest.raises(OctoError) as caught:
            await octo.run()

    assert caught.value.message == f'block "ag": agent "triage": {message}'
    assert octo.runtime.model.requests == []


@pytest.mark.parametrize(
    ("tool", "described"),
    [
        pytest.param({"description": "Its own."}, "Its own.", id="its own words"),
        pytest.param({"description": " "}, "Orders.", id="those of the flow"),
        pytest.param({"flow": "plain"}, "ask", id="its name"),
    ],
)
async def test_a_tool_is_described_by_itself_or_by_its_flow_or_by_its_name(tool, described):
    more = "  - {name: order, description: Orders., process: []}\n  - {name: plain, process: []}\n"
    agent = {**TRIAGE, "tools": [{"name": "ask", "flow": "order", **tool}]}
    async with linking(more=more, agents={"triage": agent}) as octo:
        (request,) = await octo.run()

    assert request.tools[0].description == described


# ---------------------------------------------------------------- live, and pinned


async def test_a_pin_holds_the_agent_and_nothing_that_it_names():
    more = "  - {name: order, description: Orders., process: [{type: set-payload, settings: {value: '\"new\"'}}]}\n"
    agent = {**NESTS, "prompt": "In ${REGION}.", "tools": [*NESTS["tools"], {"name": "order", "flow": "order"}]}
    agents = {"triage": agent, "helper": HELPER}
    async with linking("agent: triage@1", more=more, agents=agents, environ={"REGION": "eu"}) as octo:
        await octo.deploy("triage", {**agent, "prompt": "Changed."})
        await octo.deploy("helper", {**HELPER, "prompt": "Help better."})
        requests = await octo.run(
            reply("", call("helper", {"user_message": "x"}), call("order", {})), reply("y"), reply("z")
        )

    assert [request.system.rpartition("\n")[2] for request in requests] == ["In eu.", "Help better.", "In eu."]
    assert results(requests)[1] == ('"new"', False)
    assert [(stamp.name, stamp.source, stamp.version) for stamp in octo.stamps] == [
        ("triage", "pinned", 1),
        ("helper", "deployed", 2),
    ]


async def test_an_agent_without_a_draft_stays_live_where_drafts_count():
    more = "      - {type: ai-agent, name: again, agent: other}"
    async with linking(more=more, agents={"triage": TRIAGE, "other": TRIAGE}, drafts_of="ann") as octo:
        await versions.put_draft(octo.store, "triage", {**TRIAGE, "prompt": "Try this."}, ME)
        await octo.run(reply("one"), reply("two"))

    assert [(stamp.name, stamp.source, stamp.version) for stamp in octo.stamps] == [
        ("triage", "draft", 1),
        ("other", "deployed", 1),
    ]


async def test_what_a_draft_may_not_say_fails_its_block_as_a_deployed_value_does():
    async with linking(drafts_of="ann") as octo:
        await versions.put_draft(octo.store, "triage", {**TRIAGE, "connector": "x"}, ME)
        with pytest.raises(OctoError) as caught:
            await octo.run()

    assert caught.value.message == 'block "ag": agent "triage": `connector`: connector "x" is not configured'


async def test_a_nested_agent_that_is_deleted_meanwhile_is_a_failed_call():
    async with linking(agents={"triage": NESTS, "helper": HELPER}) as octo:

        class Deletes(FakeModel):
            async def complete(self, request, *, session, on_delta=None):
                if not self.requests:
                    await versions.delete(octo.store, "helper")
                return await super().complete(request, session=session)

        octo.runtime.model = Deletes([reply("", call("helper", {"user_message": "x"})), reply("z")])
        await octo.runtime.invoke("f")

    assert [(text.partition(": ")[2], failed) for text, failed in results(octo.runtime.model.requests)] == [
        ('agent "helper" not found', True)
    ]


async def test_the_tools_of_a_block_are_those_that_were_loaded_with_it():
    """Another block of the run links an agent, which is changed in between."""
    keys = "connector: m\nprompt: Mine.\ntools: [{name: mine, description: M., process: []}]"
    more = "      - {type: ai-agent, name: again, agent: triage}"
    async with linking(keys, more=more) as octo:
        await octo.run(reply("one"), reply("two"))
        await octo.deploy("triage", {**TRIAGE, "tools": []})
        requests = await octo.run(reply("one"), reply("two"))

    assert [[tool.name for tool in request.tools] for request in requests] == [["mine"], []]
    assert [stamp.source for stamp in octo.stamps] == ["inline", "deployed"] * 2


# ---------------------------------------------------------------- memory of agents that are linked and nested


async def test_two_blocks_that_link_one_agent_share_no_memory():
    more = "      - {type: ai-agent, name: again, agent: triage, input: '\"two\"', memoryId: '\"k\"'}"
    keys = "agent: triage\ninput: '\"one\"'\nmemoryId: '\"k\"'"
    async with linking(keys, more=more, agents={"triage": HELPER}) as octo:
        await octo.run(reply("1"), reply("2"))
        first, second = await octo.run(reply("3"), reply("4"))
        kept = await kept_for(octo)

    assert [turn.text for turn in first.messages] == ["one", "1", "one"]
    assert [turn.text for turn in second.messages] == ["two", "2", "two"]
    assert kept == [("f.ag", 4), ("f.again", 4)]


async def test_a_memory_stays_when_the_agent_is_deployed_or_pinned_anew():
    keys = "agent: triage\ninput: body\nmemoryId: '\"k\"'"
    async with linking(keys, agents={"triage": HELPER}) as octo:
        await octo.run(reply("1"), body="one")
        await octo.deploy("triage", {**HELPER, "prompt": "Other."})
        (request,) = await octo.run(reply("2"), body="two")
        await versions.delete(octo.store, "triage")
        kept = await kept_for(octo)

    assert [turn.text for turn in request.messages] == ["one", "1", "two"]
    assert kept == [("f.ag", 4)]


@pytest.mark.parametrize(
    ("inputs", "overlay", "seen"),
    [
        pytest.param({}, "", ["x", "y", "x"], id="that of the run"),
        pytest.param({"memoryId": {"expr": "body.who"}}, "", ["x"], id="that of the binding"),
        pytest.param({"memoryId": {"ai": True}}, "", ["x", "y", "x"], id="never one that the model chooses"),
        pytest.param(
            {"memoryId": {"expr": "body.who"}},
            "toolInputs: {helper: {memoryId: {ai: true}}}",
            ["x", "y", "x"],
            id="nor when the block hands it to the model",
        ),
        pytest.param({}, "toolInputs: {helper: {memoryId: {expr: body.who}}}", ["x"], id="that which the block binds"),
        pytest.param({"memoryId": {"expr": "null"}}, "", ["x"], id="none"),
    ],
)
async def test_a_linked_agent_that_is_a_tool_remembers_under_the_id(inputs, overlay, seen):
    agents = {"triage": {**TRIAGE, "tools": [{"name": "helper", "agent": "helper", "inputs": inputs}]}}
    async with linking(f"agent: triage\n{overlay}", agents={**agents, "helper": HELPER}) as octo:
        for who in ("ann", "bob"):
            octo.runtime.model = FakeModel([reply("", call("helper", {"user_message": "x"})), reply("y"), reply("z")])
            await octo.runtime.invoke("f", {"who": who}, memory_id="run")

    outer, inner, _ = octo.runtime.model.requests
    assert sorted(outer.tools[0].input_schema["properties"]) == ["user_message"]
    assert [turn.text for turn in inner.messages] == seen


async def test_tools_of_two_blocks_that_run_one_agent_share_no_memory():
    more = "      - {type: ai-agent, name: again, agent: triage}"
    async with linking(more=more, agents={"triage": NESTS, "helper": HELPER}) as octo:
        octo.runtime.model = FakeModel([reply("", call("helper", {"user_message": "x"})), reply("y"), reply("z")] * 2)
        await octo.runtime.invoke("f", memory_id="run")
        kept = await kept_for(octo)

    assert [turn.text for turn in octo.runtime.model.requests[4].messages] == ["x"]
    assert kept == [("f.ag[helper]", 2), ("f.again[helper]", 2)]


async def test_the_outer_agent_remembers_none_of_the_words_of_the_inner_one():
    agents = {"triage": {**NESTS, "memory": HELPER["memory"]}, "helper": {**HELPER, "memory": None}}
    async with linking("agent: triage\ninput: body", agents=agents) as octo:
        octo.runtime.model = FakeModel([reply("", call("helper", {"user_message": "x"})), reply("y"), reply("z")])
        await octo.runtime.invoke("f", "one", memory_id="run")
        kept = await kept_for(octo)

    assert kept == [("f.ag", 4)]


@pytest.mark.parametrize("blank", ["", " ", None], ids=["empty", "a space", "null"])
async def test_a_fixed_id_that_is_blank_is_none_also_for_a_tool(blank):
    helper = {"name": "helper", "agent": "helper", "inputs": {"memoryId": {"value": blank}}}
    async with linking(agents={"triage": {**TRIAGE, "tools": [helper]}, "helper": HELPER}) as octo:
        octo.runtime.model = FakeModel([reply("", call("helper", {"user_message": "x"})), reply("y"), reply("z")])
        await octo.runtime.invoke("f", memory_id="run")
        kept = await kept_for(octo)

    assert kept == [("f.ag[helper]", 2)]


@pytest.mark.parametrize("value", [42.0, "text", True, ["a"], {"a": 1}], ids=str)
async def test_an_id_may_be_of_any_kind(value):
    keys = "agent: triage\ninput: body.q\nmemoryId: body.who"
    async with linking(keys, agents={"triage": HELPER}) as octo:
        await octo.run(body={"q": "one", "who": value})
        kept = await kept_for(octo)

    assert kept == [("f.ag", 2)]
