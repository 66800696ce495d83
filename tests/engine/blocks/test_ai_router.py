"""octo/blocks/ai_router.py, octo/agent/asking.py: which route a model chooses, and what if it chooses none."""

import json

import pytest

from acting import drop, stop
from fake_model import Listener, call, reply
from octo.errors import BlockError, ProviderError
from octo.llm.chat import ChatMessage, Text, ToolResult, Usage
from octo.message import Dropped
from octo.observe import TurnEnded, TurnStarted
from octo.testing import harness
from one_shot import config_text, problems, run

ROUTER = """
type: ai-router
name: where
connector: m
prompt: Send the message on its way.
routes:
  - name: billing
    description: It is about money.
    process: [{type: set-payload, value: '{"desk": "billing", "was": body}'}]
  - name: as-is
    description: It needs no work.
"""
DEFAULT = """
default:
  process: [{type: set-payload, value: '"nobody"'}]
"""


def choose(route, id="c"):
    return call("select_route", {"route": route}, id)


# ---------------------------------------------------------------- what is refused


def test_a_router_needs_no_more_than_connector_prompt_and_one_route():
    assert problems(ROUTER) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            "connector: m",
            "connector: ' '",
            (3, 'ai-router "where": expected the name of a connector, found blank text'),
            id="blank",
        ),
        pytest.param(
            "connector: m", "connector: n", (3, 'ai-router "where": connector "n" is not configured'), id="unknown"
        ),
        pytest.param(
            "connector: m",
            "connector: jobs",
            (3, 'ai-router "where": connector "jobs" is a `queue`, which is no llm connector'),
            id="no model",
        ),
        pytest.param(
            "Send the message on its way.", "' '", (4, "ai-router requires a prompt, found none"), id="blank prompt"
        ),
        pytest.param("name: billing", "name: ' '", (6, "ai-router requires a name for route 0"), id="no name"),
        pytest.param(
            "description: It needs no work.",
            "description: ''",
            (10, "ai-router route `as-is` requires a description"),
            id="empty description",
        ),
        pytest.param(
            "    description: It needs no work.\n",
            "",
            (9, "ai-router route `as-is` requires a description"),
            id="no description",
        ),
        pytest.param("as-is", "billing", (9, "ai-router route `billing` is declared twice"), id="twice"),
        pytest.param("as-is", "__guardrail__", (9, "ai-router route `__guardrail__`: the name is reserved"), id="name"),
        pytest.param(
            "name: where", "temperature: 1", (2, 'unknown field "temperature" in block `ai-router`'), id="unknown key"
        ),
        pytest.param("set-payload", "set-paylod", (8, 'block "set-paylod" not registered'), id="inside a route"),
    ],
)
def test_a_router_that_cannot_work_is_refused(old, new, expected):
    (found,) = problems(ROUTER.replace(old, new))

    assert found[:2] == expected


def test_all_that_is_wrong_with_a_router_is_told_at_once():
    block = """
      type: ai-router
      connector: n
      prompt: ''
      routes:
        - {name: a, description: x}
        - {name: a, description: ''}
        - {name: __guardrail__, description: x}
        - {name: '', description: x}
    """

    assert [(line, message) for line, message, _ in problems(block)] == [
        (2, 'ai-router: connector "n" is not configured'),
        (3, "ai-router requires a prompt, found none"),
        (6, "ai-router route `a` is declared twice"),
        (6, "ai-router route `a` requires a description"),
        (7, "ai-router route `__guardrail__`: the name is reserved"),
        (8, "ai-router requires a name for route 3"),
    ]


@pytest.mark.parametrize("key", ["connector", "prompt", "routes"])
def test_required_keys_are_asked_for(key):
    blocks = {"connector": "m", "prompt": "p", "routes": [{"name": "a", "description": "b"}]}
    del blocks[key]
    text = json.dumps({"type": "ai-router", **blocks})

    ((_, message, _),) = problems(text)

    assert f"`{key}`" in message or f'"{key}"' in message


def test_there_is_at_least_one_route():
    ((_, message, _),) = problems("type: ai-router\nconnector: m\nprompt: p\nroutes: []")

    assert message == "`routes` needs at least one entry"


def test_the_keys_of_a_router_stand_beside_its_type():
    ((line, message, _),) = problems("type: ai-router\nsettings: {connector: m}")

    assert (line, message) == (2, "the keys of `ai-router` stand beside `type`, not under `settings`")


# ---------------------------------------------------------------- the conversation


async def test_the_model_is_told_its_role_the_prompt_the_routes_the_way_out_and_the_guardrail_in_this_order():
    ran = await run(f"{ROUTER}guardrail: Never guess.\n", reply("", choose("as-is")))

    (request,) = ran.requests
    parts = request.system.split("\n\n")
    assert "`select_route`" in parts[0]
    assert parts[1:] == [
        "Send the message on its way.",
        "The routes:\n- billing: It is about money.\n- as-is: It needs no work.",
        "If no route is right, or you are not sure which one is, choose `__guardrail__`.",
        "Guardrail: Never guess.",
    ]


async def test_the_body_is_not_in_the_first_turn():
    ran = await run(ROUTER, reply("", choose("as-is")), body={"secret": 7})

    assert ran.requests[0].messages == (ChatMessage("user", (Text("Decide which route the message takes."),)),)


async def test_every_call_forces_a_tool_and_asks_for_no_caching():
    ran = await run(ROUTER, reply("", call("get_body")), reply("", choose("as-is")))

    assert [(request.tool_choice, request.cache, request.model) for request in ran.requests] == [
        ("any", False, None),
        ("any", False, None),
    ]
    assert ran.requests[0].cache_key == "shop/f.where"


async def test_the_model_is_offered_to_look_and_to_decide():
    ran = await run(ROUTER, reply("", choose("as-is")))

    tools = {tool.name: tool.input_schema for tool in ran.requests[0].tools}
    assert list(tools) == ["get_body", "list_variables", "get_variable", "select_route"]
    assert tools["select_route"]["required"] == ["route"]
    assert tools["select_route"]["properties"]["route"]["enum"] == ["billing", "as-is", "__guardrail__"]


@pytest.mark.parametrize(
    ("asked", "text", "is_error"),
    [
        pytest.param(call("get_body"), '{"a":[1]}', False, id="body"),
        pytest.param(call("list_variables"), '["tone","user"]', False, id="variables"),
        pytest.param(call("get_variable", {"name": "user"}), '{"id":1}', False, id="variable"),
        pytest.param(call("get_variable", {"name": "x"}), 'variable "x" is not set', True, id="not set"),
        pytest.param(call("get_variable", {"name": "__own"}), 'variable "__own" is not set', True, id="hidden"),
        pytest.param(
            call("get_variable", {}), "invalid arguments: expected the `name` of a variable", True, id="no name"
        ),
        pytest.param(
            call("get_variable", {"name": 1}), "invalid arguments: expected the `name` of a variable", True, id="number"
        ),
        pytest.param(call("get_variable", "[1]"), "invalid arguments: expected an object", True, id="list"),
        pytest.param(call("get_variable", "{"), None, True, id="not JSON"),
        pytest.param(call("rm"), 'unknown tool "rm"', True, id="unknown tool"),
    ],
)
async def test_what_the_model_finds_when_it_looks(asked, text, is_error):
    variables = {"user": {"id": 1}, "tone": "kind", "__own": 1}

    ran = await run(ROUTER, reply("", asked), reply("", choose("as-is")), body={"a": [1]}, vars=variables)

    ((found, flag),) = ran.results
    assert (found if text is not None else found[:27], flag) == (text or "invalid arguments: not JSON", is_error)


async def test_several_looks_of_one_turn_are_answered_in_order():
    ran = await run(
        ROUTER, reply("", call("get_body", id="a"), call("list_variables", id="b")), reply("", choose("as-is"))
    )

    assert ran.requests[1].messages[-1].parts == (
        ToolResult("a", "get_body", "null"),
        ToolResult("b", "list_variables", "[]"),
    )


# ---------------------------------------------------------------- the decision


async def test_the_chain_of_the_chosen_route_gives_the_result():
    ran = await run(ROUTER, reply("", choose("billing")), body=1)

    assert ran.message.body == {"desk": "billing", "was": 1.0}
    assert ran.message.vars == {}


async def test_a_route_without_blocks_passes_the_message_unchanged():
    ran = await run(ROUTER + DEFAULT, reply("", choose("as-is")), body={"a": 1}, vars={"v": 1})

    assert (ran.message.body, ran.message.vars) == ({"a": 1.0}, {"v": 1.0})


async def test_the_first_choice_of_a_reply_decides_whatever_stands_around_it():
    ran = await run(ROUTER, reply("", call("get_body"), choose("billing", "a"), choose("as-is", "b"), call("x")))

    assert ran.message.body["desk"] == "billing"
    assert len(ran.requests) == 1


BAD_ARGUMENTS = "no route is chosen: the arguments of `select_route` cannot be used: "
NOT_SURE = "no route is chosen: the model is not sure, or finds none right"
NO_ROUTE = "no route is chosen: the model names no route that there is: "
REFUSED = "no route is chosen: the model refused to"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param(reply("", choose("shipping")), f'{NO_ROUTE}"shipping"', id="unknown route"),
        pytest.param(reply("", choose("__guardrail__")), NOT_SURE, id="not sure"),
        pytest.param(reply("", call("select_route", {})), f"{NO_ROUTE}null", id="no route"),
        pytest.param(reply("", choose("")), f'{NO_ROUTE}""', id="empty route"),
        pytest.param(reply("", choose(7)), f"{NO_ROUTE}7", id="no text"),
        pytest.param(
            reply("", call("select_route", "{")),
            f"{BAD_ARGUMENTS}not JSON: expecting property name enclosed in double quotes at line 1, column 2",
            id="not JSON",
        ),
        pytest.param(reply("", call("select_route", "")), f"{NO_ROUTE}null", id="no arguments"),
        pytest.param(
            reply("", call("select_route", '"billing"')), f"{BAD_ARGUMENTS}expected an object", id="no object"
        ),
        pytest.param(reply("billing"), "no route is chosen: the model called no tool", id="prose"),
        pytest.param(reply(""), "no route is chosen: the model called no tool", id="nothing"),
        pytest.param(reply("No.", stop="refusal"), REFUSED, id="refusal"),
        pytest.param(reply("No.", choose("billing"), stop="refusal"), REFUSED, id="refusal with a choice"),
        pytest.param(
            reply("", choose("billing"), stop="max_tokens"),
            "no route is chosen: the output cap (`maxTokens`) cut the call of `select_route` off",
            id="cut off",
        ),
        pytest.param(reply("", choose("__guardrail__", "a"), choose("billing", "b")), NOT_SURE, id="not sure first"),
    ],
)
@pytest.mark.parametrize(("default", "body"), [(DEFAULT, "nobody"), ("", {"a": 1.0})], ids=["default", "none"])
async def test_without_a_usable_choice_the_default_runs_or_the_message_passes_and_the_log_says_why(
    answer, why, default, body
):
    ran = await run(ROUTER + default, answer, body={"a": 1})

    assert (ran.message.body, ran.message.vars) == (body, {})
    assert ran.log == [why]


async def test_five_calls_without_a_choice_are_the_most():
    ran = await run(ROUTER + DEFAULT, *[reply("", call("get_body"))] * 5)

    assert ran.message.body == "nobody"
    assert len(ran.requests) == 5
    assert ran.log == ["no route is chosen: the model came to no decision in 5 calls"]


async def test_a_choice_in_the_fifth_call_counts():
    ran = await run(ROUTER + DEFAULT, *[reply("", call("get_body"))] * 4, reply("", choose("billing")))

    assert ran.message.body["desk"] == "billing"


async def test_a_look_that_was_cut_off_is_told_so():
    ran = await run(
        ROUTER,
        reply("", call("get_body"), call("get_variable", {"name": "user"}), stop="max_tokens"),
        reply("", choose("as-is")),
    )

    assert ran.results == [
        ("null", False),
        ("not read: the output cap (`maxTokens`) cut this call off; make it shorter", True),
    ]


async def test_a_call_in_a_form_that_cannot_be_read_is_asked_for_once_more():
    ran = await run(ROUTER, reply("", stop="malformed"), reply("", choose("billing")))

    assert ran.message.body["desk"] == "billing"
    assert ran.requests[0] == ran.requests[1]


async def test_calls_without_a_readable_form_count_as_calls():
    ran = await run(ROUTER + DEFAULT, *[reply("", call("get_body"))] * 4, reply("", stop="malformed"))

    assert ran.message.body == "nobody"


async def test_a_failed_model_call_fails_the_block_and_the_default_is_not_taken():
    with pytest.raises(BlockError) as error:
        await run(ROUTER + DEFAULT, ProviderError("llm-x complete: status 500: down", hint="wait"))

    assert error.value.message == 'block "where": ai-router: llm-x complete: status 500: down'
    assert error.value.hint == "wait"


async def test_an_error_of_the_chosen_chain_is_that_of_the_block():
    with pytest.raises(BlockError) as error:
        await run(
            ROUTER.replace("process: [{type: set-payload", "process: [{name: bill, type: set-payload").replace(
                '"was": body', '"was": body.x'
            ),
            reply("", choose("billing")),
            body={},
        )

    assert error.value.message == (
        'block "where": block "bill": set-payload value: evaluate expression: no such key: x'
    )
    assert error.value.address == "f.where[billing].bill"


async def test_a_message_that_the_chosen_chain_drops_is_dropped():
    block = ROUTER.replace("{type: set-payload", "{name: sift, type: set-payload")

    with pytest.raises(Dropped):
        await run(block, reply("", choose("billing")), actions={"sift": drop})


async def test_a_chain_that_completes_the_flow_completes_it():
    block = ROUTER.replace("{type: set-payload", "{name: end, type: set-payload")

    ran = await run(block, reply("", choose("billing")), actions={"end": stop}, body=3)

    assert (ran.message.stopped, ran.message.body) == (True, 3.0)


# ---------------------------------------------------------------- budgets, events, addresses


@pytest.mark.parametrize(("default", "body"), [(DEFAULT, "nobody"), ("", 1.0)], ids=["default", "none"])
async def test_without_a_budget_the_default_is_taken(default, body):
    ran = await run(ROUTER + default, body=1, limits={"maxTokens": 0})

    assert ran.message.body == body
    assert ran.requests == []
    assert ran.log == ["no route is chosen: budget exceeded (`maxTokens` is 0, 0 are used up)"]


async def test_calls_are_charged_to_the_budget():
    look = reply("", call("get_body"), usage=Usage(input_tokens=60, output_tokens=50))

    ran = await run(ROUTER + DEFAULT, look, limits={"maxTokens": 100})

    assert ran.message.body == "nobody"
    assert len(ran.requests) == 1


async def test_each_call_is_told_with_what_it_cost():
    listener = Listener(TurnStarted, TurnEnded)
    usage = Usage(input_tokens=10, output_tokens=2, prompt_tokens=10, reported_cost_usd=0.5)

    await run(ROUTER, reply("", call("get_body")), reply("", choose("as-is"), usage=usage), observers=[listener])

    assert [(type(event).__name__, event.address, event.iteration) for event in listener.events] == [
        ("TurnStarted", "f.where", 1),
        ("TurnEnded", "f.where", 1),
        ("TurnStarted", "f.where", 2),
        ("TurnEnded", "f.where", 2),
    ]
    last = listener.events[-1]
    assert (last.tool_calls, last.stop_reason, last.usage.cost_usd) == (1, "tool_use", 0.5)


def test_routes_and_default_are_branches_of_addresses():
    loaded = harness.config(config_text(ROUTER + DEFAULT))
    (router,) = loaded.flows[0].process

    assert [(branch.name, [block.address for block in branch.chain]) for branch in router.branches()] == [
        ("billing", ["f.where[billing].set-payload"]),
        ("as-is", []),
        ("default", ["f.where[default].set-payload"]),
    ]
