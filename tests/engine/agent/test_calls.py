"""octo/agent/calls.py: the tool calls of one turn, one after another or together."""

import asyncio
from typing import Any

import pytest

from fake_model import FakeModel, FakeRuntime, Listener, call, config_text, reply, run
from octo.agent.calls import Calls
from octo.agent.loop import Task
from octo.agent.nested import Entry
from octo.agent.tools import Surroundings
from octo.agent.watch import Watch
from octo.block import Block, Place
from octo.blocks.ai_agent import AiAgent
from octo.errors import OctoError
from octo.message import Dropped, Message
from octo.observe import ToolCalled, ToolReturned
from octo.run import Run
from octo.testing import harness


class Step(Block, type="test-step"):
    """Does what a function says."""

    act: Any

    async def execute(self, message: Message, run: Run) -> Message:
        result = self.act(message)
        if asyncio.iscoroutine(result):
            await result
        return message


def tool(name, act):
    step = Step(act=act)
    step.put_at(Place(name="step", label="step", selector="step"))
    return Entry(name=name, description=name, process=(step,))


def write(**values):
    return lambda message: message.vars.update(values)


def remove(name):
    return lambda message: message.vars.pop(name, None)


def stop(message):
    message.body = "stopped"
    message.stop()


def fail(message):
    message.vars["before"] = True
    raise OctoError("it broke")


def drop(message):
    message.vars["before"] = True
    raise Dropped


async def outcome(tools, calls, *, at_once=10, observers=(), **vars):
    """The message after one turn of calls, the results, and whether a stop was asked for."""
    config = harness.config(config_text("tools: [{name: t, description: t, process: []}]"))
    runtime = FakeRuntime(config, observers=observers)
    runtime.model = FakeModel([])
    message = Message("in", dict(vars), event_id="id")
    async with runtime:
        turn = Calls(
            tools,
            message,
            Surroundings(Run(runtime, "f"), "in", "run-1"),
            at_once=at_once,
            watch=Watch(Task("f.ag", json_only=False, opening=None), message, Run(runtime, "f")),
        )
        results = await turn.run(calls)
    assert not message.stopped
    return message, [(result.call_id, result.text, result.is_error) for result in results], turn.stop_requested


def visible(message):
    return {name: value for name, value in message.vars.items() if not name.startswith("tool")}


BOTH = pytest.mark.parametrize("at_once", [1, 2], ids=["one after another", "together"])


@BOTH
async def test_the_message_afterwards_holds_the_effects_of_all_calls_in_call_order(at_once):
    tools = [tool("a", write(x=1, y="a")), tool("b", write(y="b"))]
    message, _, _ = await outcome(tools, [call("a", {"n": 1}), call("b", {"n": 2})], at_once=at_once, old=True)

    assert message.body == {"n": 2.0}
    assert message.vars == {
        "old": True,
        "x": 1,
        "y": "b",
        "toolName": "b",
        "toolCallId": "call_b",
        "toolScope": "run-1/b",
    }
    assert type(message.vars) is dict


@BOTH
@pytest.mark.parametrize(
    ("first", "second", "after"),
    [
        pytest.param(write(on=True), write(on=False), {"on": False}, id="set, then set back"),
        pytest.param(remove("on"), write(on=False), {"on": False}, id="removed, then set to what it was"),
        pytest.param(write(on=True), remove("on"), {}, id="set, then removed"),
        pytest.param(write(new=1), remove("new"), {"on": False}, id="made, then removed"),
        pytest.param(remove("on"), lambda message: None, {}, id="removed"),
    ],
)
async def test_a_later_call_wins_also_with_a_value_that_is_no_change_to_itself(at_once, first, second, after):
    tools = [tool("a", first), tool("b", second)]
    message, _, _ = await outcome(tools, [call("a"), call("b")], at_once=at_once, on=False)

    assert visible(message) == after


async def test_variables_are_merged_when_a_block_replaced_all_of_them():
    def replace(message):
        message.vars = {**message.vars, "new": 1}
        del message.vars["old"]

    message, _, _ = await outcome([tool("a", replace), tool("b", write(b=1))], [call("a"), call("b")], old=0)

    assert visible(message) == {"new": 1, "b": 1}


@BOTH
async def test_a_call_that_reached_no_tool_leaves_the_body_alone(at_once):
    message, results, _ = await outcome(
        [tool("a", write(x=1))], [call("a", {"n": 1}), call("nope"), call("a", "{", "c3")], at_once=at_once
    )

    assert message.body == {"n": 1.0}
    assert message.vars == {"x": 1, "toolName": "a", "toolCallId": "c3", "toolScope": "run-1/a"}
    assert results == [
        ("call_a", '{"n":1}', False),
        ("call_nope", 'unknown tool "nope"', True),
        (
            "c3",
            "invalid arguments: not JSON: expecting property name enclosed in double quotes at line 1, column 2",
            True,
        ),
    ]


@BOTH
@pytest.mark.parametrize(
    ("act", "text"),
    [
        pytest.param(fail, 'block "step": it broke', id="failure"),
        pytest.param(drop, 'tool "bad" gave no result: it filtered the call out', id="drop"),
    ],
)
async def test_after_a_failed_call_the_message_goes_on_as_the_blocks_left_it(at_once, act, text):
    message, results, _ = await outcome(
        [tool("ok", write(x=1)), tool("bad", act)], [call("ok"), call("bad", {"n": 2})], at_once=at_once
    )

    assert results == [("call_ok", "{}", False), ("call_bad", text, True)]
    assert message.body == {"n": 2.0}
    assert visible(message) == {"x": 1, "before": True}


@BOTH
async def test_a_stop_lets_the_other_calls_of_the_turn_run(at_once):
    message, results, stop_requested = await outcome(
        [tool("halt", stop), tool("b", write(b=1))], [call("halt"), call("b", {"n": 1})], at_once=at_once
    )

    assert stop_requested
    assert results == [("call_halt", '"stopped"', False), ("call_b", '{"n":1}', False)]
    assert (message.body, visible(message)) == ({"n": 1.0}, {"b": 1})


async def test_calls_of_one_turn_do_not_see_each_other():
    seen = []
    tools = [tool("a", write(x=1)), tool("b", lambda message: seen.append(message.vars.get("x")))]
    await outcome(tools, [call("a"), call("b")])

    assert seen == [None]


async def test_one_after_another_each_call_sees_what_the_one_before_left():
    seen = []
    tools = [tool("a", write(x=1)), tool("b", lambda message: seen.append(message.vars.get("x")))]
    await outcome(tools, [call("a"), call("b")], at_once=1)

    assert seen == [1]


async def test_no_more_calls_run_at_once_than_are_allowed_and_none_is_left_out():
    running, most = 0, 0

    async def work(message):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1

    _, results, _ = await outcome([tool("w", work)], [call("w", None, str(n)) for n in range(9)], at_once=3)

    assert most == 3
    assert [id for id, _, _ in results] == list("012345678")


async def test_results_are_in_call_order_and_events_in_the_order_of_completion():
    listener = Listener(ToolCalled, ToolReturned)

    async def slow(message):
        await asyncio.sleep(0.01)

    tools = [tool("slow", slow), tool("quick", lambda message: None)]
    _, results, _ = await outcome(tools, [call("slow"), call("quick")], observers=[listener])

    assert [id for id, _, _ in results] == ["call_slow", "call_quick"]
    assert [(type(event), event.tool) for event in listener.events] == [
        (ToolCalled, "slow"),
        (ToolCalled, "quick"),
        (ToolReturned, "quick"),
        (ToolReturned, "slow"),
    ]


async def test_two_calls_with_one_id_keep_their_own_results():
    _, results, _ = await outcome(
        [tool("a", lambda message: None)], [call("a", {"n": 1}, "c"), call("a", {"n": 2}, "c")]
    )

    assert results == [("c", '{"n":1}', False), ("c", '{"n":2}', False)]


async def test_two_writers_of_one_variable_are_logged():
    keys = """
        tools:
          - name: t
            description: A tool.
            process:
              - {type: set-variable, settings: {name: last, value: body.n}}
    """
    ran = await run(keys, reply("", call("t", {"n": 1}), call("t", {"n": 2})), reply("done"))

    assert ran.message.vars["last"] == 2.0
    assert ran.log.count("two tool calls of one turn wrote one variable, the later wins") == 1


async def test_a_stop_ends_the_run_and_completes_the_flow():
    runtime = FakeRuntime(harness.config(config_text("tools: [{name: t, description: t, process: []}]")))
    runtime.model = FakeModel([reply("", call("halt"))])
    agent = AiAgent(connector="m", prompt="Do it.", tools=(tool("halt", stop),))
    async with runtime:
        message = await agent.execute(Message("in", event_id="id"), Run(runtime, "f"))

    assert (message.body, message.stopped) == ("stopped", True)
