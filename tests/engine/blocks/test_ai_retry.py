"""octo/blocks/ai_retry.py: how a model repairs a message, and how it ends when it cannot."""

import pytest

from acting import drop, stop
from fake_model import Listener, call, reply
from octo.errors import BlockError, ProviderError
from octo.llm.chat import ToolResult, Usage
from octo.message import Dropped
from octo.observe import BlockEntered, TurnEnded
from octo.run import RunError
from octo.testing import harness
from one_shot import config_text, problems, run

RETRY = """
type: ai-retry
name: mend
connector: m
prompt: Quantities are numbers.
process:
  - {name: order, type: set-payload, value: '{"ordered": body.qty * 2}'}
"""
ERROR = """
error:
  - {type: set-payload, value: '{"gave up": vars.error, "body": body}'}
"""


def revise(id="c", **arguments):
    return call("revise_message", arguments, id)


def fails(*texts):
    """A step that fails with these texts in turn, and then no more; it leaves a mark on the message each time."""
    left = list(texts)

    async def step(message, run):
        message.vars["runs"] = message.vars.get("runs", 0) + 1
        if left:
            raise RunError(left.pop(0))

    return step


# ---------------------------------------------------------------- what is refused


def test_the_least_that_a_retry_needs():
    assert problems(RETRY) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            "connector: m",
            "connector: ' '",
            'ai-retry "mend": expected the name of a connector, found blank text',
            id="blank",
        ),
        pytest.param("connector: m", "connector: n", 'ai-retry "mend": connector "n" is not configured', id="unknown"),
        pytest.param(
            "connector: m",
            "connector: jobs",
            'ai-retry "mend": connector "jobs" is a `queue`, which is no llm connector',
            id="no model",
        ),
        pytest.param("Quantities are numbers.", "' '", "ai-retry requires a prompt, found none", id="blank prompt"),
        pytest.param("name: mend", "name: mend\ntools: []", 'unknown field "tools" in block `ai-retry`', id="key"),
    ],
)
def test_a_retry_that_cannot_work_is_refused(old, new, expected):
    ((_, message, _),) = problems(RETRY.replace(old, new))

    assert message == expected


def test_all_that_is_wrong_with_a_retry_is_told_at_once():
    block = "type: ai-retry\nconnector: n\nprompt: ' '\nprocess: []\nmaxAttempts: x"

    assert [(line, message) for line, message, _ in problems(block)] == [
        (2, 'ai-retry: connector "n" is not configured'),
        (3, "ai-retry requires a prompt, found none"),
        (4, "`process` needs at least one entry"),
        (5, "`maxAttempts`: expected a whole number, found the text `x`"),
    ]


def test_the_protected_chain_is_not_empty():
    ((_, message, _),) = problems("type: ai-retry\nconnector: m\nprompt: p\nprocess: []")

    assert message == "`process` needs at least one entry"


def test_the_error_chain_is_a_plain_list():
    ((line, _, _),) = problems(f"{RETRY}error: {{process: []}}")

    assert line == 7


def test_the_chains_are_branches_of_addresses():
    (block,) = harness.config(config_text(RETRY + ERROR)).flows[0].process

    assert [(branch.name, [inner.address for inner in branch.chain]) for branch in block.branches()] == [
        ("process", ["f.mend[process].order"]),
        ("error", ["f.mend[error].set-payload"]),
    ]


# ---------------------------------------------------------------- without a failure


async def test_a_chain_that_succeeds_needs_no_model():
    ran = await run(RETRY, body={"qty": 2})

    assert (ran.message.body, ran.message.vars, ran.requests) == ({"ordered": 4.0}, {}, [])


async def test_a_message_that_the_chain_drops_is_dropped_without_a_model_call():
    with pytest.raises(Dropped):
        await run(RETRY, actions={"order": drop})


async def test_a_chain_that_completes_the_flow_completes_it():
    ran = await run(RETRY, actions={"order": stop}, body=1)

    assert (ran.message.stopped, ran.message.body) == (True, 1.0)


# ---------------------------------------------------------------- repairs


async def test_the_model_repairs_the_body_and_the_chain_runs_again():
    ran = await run(RETRY, reply("", revise(body={"qty": 3})), body={"qty": "3"})

    assert ran.message.body == {"ordered": 6.0}
    assert ran.message.vars["error"]["block"] == "order"


async def test_the_error_tells_message_scope_and_block():
    ran = await run(RETRY, reply("", revise(body={"qty": 3})), actions={"order": fails("no stock")})

    assert ran.message.vars["error"] == {"message": 'block "order": no stock', "flow": "mend", "block": "order"}


async def test_the_model_gets_prompt_error_body_and_all_variables():
    ran = await run(
        RETRY,
        reply("", revise(body=1)),
        actions={"order": fails("no stock")},
        body={"qty": 1},
        vars={"token": "s", "__own": 1},
    )

    (request,) = ran.requests
    assert request.system.endswith("\n\nQuantities are numbers.")
    error = '{"block":"order","flow":"mend","message":"block \\"order\\": no stock"}'
    assert request.messages[0].text == (
        f'Error:\n{error}\n\nBody:\n{{"qty":1}}\n\nVariables:\n{{"error":{error},"runs":1,"token":"s"}}'
    )


async def test_a_tool_is_offered_and_not_forced_and_nothing_is_cached():
    ran = await run(RETRY, reply("", revise(body=1)), actions={"order": fails("x")})

    (request,) = ran.requests
    (tool,) = request.tools
    assert (request.tool_choice, request.cache) == ("auto", False)
    assert (tool.name, tool.input_schema["required"]) == ("revise_message", ["body"])
    assert list(tool.input_schema["properties"]) == ["body", "variables"]


@pytest.mark.parametrize(
    ("arguments", "body", "variables"),
    [
        pytest.param({"body": {"b": 1}}, {"b": 1.0}, {"v": 1.0}, id="body"),
        pytest.param({"body": None}, None, {"v": 1.0}, id="null"),
        pytest.param({}, {"a": 1.0}, {"v": 1.0}, id="neither"),
        pytest.param({"variables": {"v": 2, "w": [1]}}, {"a": 1.0}, {"v": 2.0, "w": [1.0]}, id="variables"),
        pytest.param({"body": 1, "variables": {}}, 1.0, {"v": 1.0}, id="no variables"),
        pytest.param({"body": 1, "variables": None}, 1.0, {"v": 1.0}, id="null variables"),
        pytest.param({"variables": {"__own": 2}}, {"a": 1.0}, {"v": 1.0}, id="variables of the runtime"),
        pytest.param({"variables": {"": 2, " ": 3}}, {"a": 1.0}, {"v": 1.0}, id="variables without a name"),
    ],
)
async def test_what_a_repair_changes(arguments, body, variables):
    ran = await run(RETRY, reply("", revise(**arguments)), actions={"order": fails("x")}, body={"a": 1}, vars={"v": 1})

    own = {name: value for name, value in ran.message.vars.items() if name not in ("error", "runs")}
    assert (ran.message.body, own) == (body, variables)


async def test_a_repair_does_not_change_what_is_told_of_the_failure():
    ran = await run(
        RETRY, reply("", revise(body=1, variables={"error": "none"})), actions={"order": fails("no stock")}, body=0
    )

    assert ran.message.vars["error"] == {"message": 'block "order": no stock', "flow": "mend", "block": "order"}


async def test_an_empty_argument_text_repairs_nothing_and_the_chain_runs_again():
    ran = await run(RETRY, reply("", call("revise_message", "")), actions={"order": fails("x")}, body=1)

    assert (ran.message.body, ran.message.vars["runs"]) == (1.0, 2)


async def test_there_is_no_way_back_to_the_body_before_a_failed_run():
    block = RETRY.replace("process:\n", "process:\n  - {type: set-payload, value: body + 1.0}\n")

    ran = await run(block, reply("", revise()), actions={"order": fails("x")}, body=1)

    assert ran.message.body == 3


async def test_the_whole_chain_runs_again():
    listener = Listener(BlockEntered)
    block = RETRY.replace("process:\n", "process:\n  - {name: first, type: log, message: body}\n")

    await run(block, reply("", revise(body=1)), actions={"order": fails("x")}, observers=[listener])

    assert [event.address for event in listener.events] == [
        "f.mend",
        "f.mend[process].first",
        "f.mend[process].order",
        "f.mend[process].first",
        "f.mend[process].order",
    ]


async def test_a_repair_that_does_not_help_is_told_as_a_failed_result_of_its_call():
    ran = await run(
        RETRY,
        reply("Let me see.", revise("a", body=1), revise("b", body=9), call("rm", id="c")),
        reply("", revise("d", body=2)),
        actions={"order": fails("one", "two")},
        body=0,
    )

    first, again = ran.requests
    error = '{"block":"order","flow":"mend","message":"block \\"order\\": two"}'
    assert again.messages[:1] == first.messages
    assert again.messages[1].text == "Let me see."
    assert again.messages[2].parts == (
        ToolResult(
            "a",
            "revise_message",
            f'the step failed again\n\nError:\n{error}\n\nBody:\n1\n\nVariables:\n{{"error":{error},"runs":2}}',
            is_error=True,
        ),
        ToolResult("b", "revise_message", "not run: only one `revise_message` is", is_error=True),
        ToolResult("c", "rm", "not run: only one `revise_message` is", is_error=True),
    )
    assert ran.message.body == 2


async def test_a_message_that_the_repaired_chain_drops_is_dropped():
    calls = []

    async def once(message, run):
        calls.append(1)
        await (drop(message, run) if len(calls) > 1 else fails("x")(message, run))

    with pytest.raises(Dropped):
        await run(RETRY, reply("", revise(body=1)), actions={"order": once})


# ---------------------------------------------------------------- how often


@pytest.mark.parametrize(
    ("keys", "most"),
    [("", 3), ("maxAttempts: 0", 3), ("maxAttempts: -2", 3), ("maxAttempts: 1", 1), ("maxAttempts: 5", 5)],
    ids=["default", "zero", "negative", "one", "five"],
)
async def test_the_message_is_repaired_so_many_times(keys, most):
    texts = [f"failure {number}" for number in range(most + 1)]

    ran = await run(f"{RETRY}{keys}{ERROR}", *[reply("", revise(body=1))] * most, actions={"order": fails(*texts)})

    assert len(ran.requests) == most
    assert ran.message.vars["runs"] == most + 1
    assert ran.message.body["gave up"]["message"] == f'block "order": failure {most}'


async def test_without_an_error_chain_the_last_failure_of_the_chain_is_that_of_the_block():
    with pytest.raises(BlockError) as error:
        await run(f"{RETRY}maxAttempts: 1", reply("", revise(body=1)), actions={"order": fails("one", "two")})

    assert error.value.message == 'block "mend": block "order": two'
    assert error.value.address == "f.mend[process].order"


NO_CALL = "the model did not call `revise_message`"
BAD_ARGUMENTS = "the arguments of `revise_message` cannot be used: "


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param(reply("It cannot be repaired."), NO_CALL, id="prose"),
        pytest.param(reply(""), NO_CALL, id="nothing"),
        pytest.param(reply("", call("other")), NO_CALL, id="another tool"),
        pytest.param(
            reply("", call("revise_message", "{")),
            f"{BAD_ARGUMENTS}not JSON: expecting property name enclosed in double quotes at line 1, column 2",
            id="not JSON",
        ),
        pytest.param(reply("", call("revise_message", "[1]")), f"{BAD_ARGUMENTS}expected an object", id="no object"),
        pytest.param(
            reply("", revise(body=1, variables=[])),
            f"{BAD_ARGUMENTS}`variables` is a list, no object",
            id="variables are a list",
        ),
        pytest.param(
            reply("", revise(body=1, variables="x")),
            f"{BAD_ARGUMENTS}`variables` is text, no object",
            id="variables are text",
        ),
        pytest.param(reply("", revise(body=1), stop="refusal"), "the model refused to", id="refusal"),
        pytest.param(
            reply("", revise(body=1), stop="max_tokens"),
            "the output cap (`maxTokens`) cut the call of `revise_message` off",
            id="cut off",
        ),
        pytest.param(ProviderError("down"), "ai-retry: down", id="failed call"),
    ],
)
async def test_an_answer_without_a_usable_repair_ends_the_attempts_and_the_log_says_why(answer, why):
    actions = {"order": fails("one")}

    ran = await run(RETRY + ERROR, answer, actions=actions, body=7)

    assert ran.message.body["gave up"]["message"] == 'block "order": one'
    assert ran.message.body["body"] == 7
    assert ran.message.vars["runs"] == 1
    assert ran.log == [f"the message cannot be repaired: {why}"]


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        pytest.param([1], "1 repair did not help, and then: the model did not call `revise_message`", id="one"),
        pytest.param([1, 2, 3], "3 repairs did not help", id="all"),
    ],
)
async def test_the_log_counts_the_repairs_that_did_not_help(answers, why):
    replies = [reply("", revise(body=body)) for body in answers]
    given_up = [reply("I give up.")] if len(answers) < 3 else []

    ran = await run(RETRY + ERROR, *replies, *given_up, actions={"order": fails("a", "b", "c", "d")})

    assert ran.log == [f"the message cannot be repaired: {why}"]


async def test_a_failed_model_call_never_surfaces_but_in_the_log():
    with pytest.raises(BlockError) as error:
        await run(RETRY, ProviderError("llm-x complete: down"), actions={"order": fails("one")})

    assert error.value.message == 'block "mend": block "order": one'


async def test_a_call_that_cannot_be_read_is_asked_for_once_more_within_the_attempts():
    ran = await run(
        f"{RETRY}maxAttempts: 2",
        reply("", stop="malformed"),
        reply("", revise(body=5)),
        actions={"order": fails("one")},
    )

    assert ran.message.body == 5


# ---------------------------------------------------------------- the error chain


async def test_the_error_of_the_error_chain_is_that_of_the_block():
    with pytest.raises(BlockError) as error:
        await run(
            f"{RETRY}error:\n  - {{name: last, type: set-payload, value: body.x}}\n",
            reply("no"),
            actions={"order": fails("one")},
            body={},
        )

    assert error.value.message == (
        'block "mend": ai-retry error path: block "last": set-payload value: evaluate expression: no such key: x'
    )
    assert error.value.address == "f.mend[error].last"


async def test_an_empty_error_chain_counts_as_none():
    with pytest.raises(BlockError) as error:
        await run(f"{RETRY}error: []", reply("no"), actions={"order": fails("one")})

    assert error.value.message == 'block "mend": block "order": one'


# ---------------------------------------------------------------- budgets and events


async def test_without_a_budget_the_block_fails_and_says_both():
    with pytest.raises(BlockError) as error:
        await run(RETRY, actions={"order": fails("one")}, limits={"maxTokens": 0})

    assert error.value.message == 'block "mend": ai-retry: budget exceeded, and the chain failed: block "order": one'


async def test_without_a_budget_the_error_chain_recovers():
    ran = await run(RETRY + ERROR, actions={"order": fails("one")}, limits={"maxTokens": 0})

    assert ran.message.body["gave up"]["message"] == 'block "order": one'


async def test_calls_are_charged_and_told():
    listener = Listener(TurnEnded)
    usage = Usage(input_tokens=60, output_tokens=50)

    await run(
        RETRY + ERROR,
        reply("", revise(body=1), usage=usage),
        actions={"order": fails("one", "two")},
        limits={"maxTokens": 100},
        observers=[listener],
    )

    assert [(event.address, event.iteration, event.tool_calls) for event in listener.events] == [("f.mend", 1, 1)]
