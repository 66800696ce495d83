"""octo/agent/memory/repair.py: stored conversations that are not whole."""

import pytest
from hypothesis import given, settings

from histories import histories
from octo.agent.memory.repair import repaired, settled
from octo.llm.chat import ChatMessage, Reasoning, Text, ToolCall, ToolResult, user

ASKED = ChatMessage("assistant", (Text("I look."), ToolCall("a", "t", "{}"), ToolCall("b", "u", "{}")))
GIVEN = ChatMessage("tool", (ToolResult("a", "t", "1"), ToolResult("b", "u", "2")))
LOST_A = ToolResult("a", "t", "interrupted, outcome unknown", is_error=True)
LOST_B = ToolResult("b", "u", "interrupted, outcome unknown", is_error=True)


def told(turns):
    warnings = []
    return repaired(turns, warnings.append), warnings


def test_a_conversation_that_is_whole_stays_as_it_is_and_nothing_is_told():
    turns = [user("go"), ASKED, GIVEN, ChatMessage("assistant", (Reasoning("", {"signature": "x"}), Text("done")))]
    whole, warnings = told(turns)

    assert [id(turn) for turn in whole] == [id(turn) for turn in turns]
    assert warnings == []


@pytest.mark.parametrize(
    ("turns", "expected", "what"),
    [
        (
            [user("go"), ASKED],
            [user("go"), ASKED, ChatMessage("tool", (LOST_A, LOST_B))],
            "calls without a result: 2",
        ),
        (
            [user("go"), ASKED, ChatMessage("tool", GIVEN.parts[1:]), user("and?")],
            [user("go"), ASKED, ChatMessage("tool", (LOST_A, GIVEN.parts[1])), user("and?")],
            "calls without a result: 1",
        ),
        (
            [user("go"), ASKED, user("and?"), GIVEN],
            [user("go"), ASKED, ChatMessage("tool", (LOST_A, LOST_B)), user("and?")],
            "calls without a result: 2, results without a call: 2",
        ),
        ([GIVEN, user("go")], [user("go")], "results without a call: 2"),
        (
            [user("go"), ASKED, ChatMessage("tool", (*GIVEN.parts, GIVEN.parts[0]))],
            [user("go"), ASKED, GIVEN],
            "results without a call: 1",
        ),
        (
            [user(" "), user("go"), ChatMessage("assistant", ()), ChatMessage("assistant", (Text("\n"), Text("so")))],
            [user("go"), ChatMessage("assistant", (Text("so"),))],
            "parts that are blank or out of place: 3",
        ),
        (
            [ChatMessage("user", (ToolCall("a", "t", "{}"), Text("go"))), ChatMessage("assistant", GIVEN.parts[:1])],
            [user("go")],
            "parts that are blank or out of place: 2",
        ),
    ],
    ids=["cut off", "one lost", "late", "no call", "twice", "blank", "out of place"],
)
def test_a_broken_conversation_is_repaired_with_one_warning(turns, expected, what):
    assert told(turns) == (
        expected,
        [f"the stored conversation was not whole and has been repaired: {what}"],
    )


def test_results_in_two_turns_become_one_turn_in_call_order():
    turns = [ASKED, ChatMessage("tool", GIVEN.parts[1:]), ChatMessage("tool", GIVEN.parts[:1])]

    assert told(turns) == ([ASKED, GIVEN], [])


@settings(max_examples=100, deadline=None)
@given(histories([]))
def test_what_is_repaired_needs_no_repair(turns):
    whole, _ = settled(turns)
    again, faults = settled(whole)

    assert (again, bool(faults)) == (whole, False)
    assert all(turn.parts for turn in whole)
