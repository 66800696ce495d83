"""octo/llm/conversation.py: what must hold between the turns of a conversation."""

import logging
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octo.errors import BadRequest
from octo.llm import conversation
from octo.llm.chat import ChatMessage, Part, Text, ToolCall, ToolResult, user

LOST = "interrupted, outcome unknown"


def assistant(*parts: Part | str) -> ChatMessage:
    return ChatMessage("assistant", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def results(*parts: ToolResult) -> ChatMessage:
    return ChatMessage("tool", parts)


def call(id: str, name: str = "t") -> ToolCall:
    return ToolCall(id, name, "{}")


def result(id: str, text: str = "ok", name: str = "t") -> ToolResult:
    return ToolResult(id, name, text)


def test_a_valid_conversation_stays_as_it_is():
    turns = [
        user("q"),
        assistant("let me see", call("a"), call("b")),
        results(result("a"), result("b")),
        assistant("x"),
    ]

    assert conversation.valid(turns) == turns


def test_a_call_without_a_result_gets_a_failed_one():
    turns = [user("q"), assistant(call("a"), call("b")), results(result("b")), user("and now?")]

    assert conversation.valid(turns) == [
        user("q"),
        assistant(call("a"), call("b")),
        results(ToolResult("a", "t", LOST, is_error=True), result("b")),
        user("and now?"),
    ]


def test_calls_of_the_last_turn_get_failed_results_too():
    assert conversation.valid([user("q"), assistant(call("a"))]) == [
        user("q"),
        assistant(call("a")),
        results(ToolResult("a", "t", LOST, is_error=True)),
    ]


def test_a_result_without_its_call_is_left_out():
    turns = [user("q"), results(result("z")), assistant(call("a")), results(result("a"), result("a"), result("y"))]

    assert conversation.valid(turns) == [user("q"), assistant(call("a")), results(result("a"))]


def test_a_result_after_another_turn_has_lost_its_call():
    turns = [user("q"), assistant(call("a")), user("hurry"), results(result("a"))]

    assert conversation.valid(turns) == [
        user("q"),
        assistant(call("a")),
        results(ToolResult("a", "t", LOST, is_error=True)),
        user("hurry"),
    ]


def test_results_follow_the_order_of_the_calls():
    turns = [user("q"), assistant(call("a"), call("b")), results(result("b", "2")), results(result("a", "1"))]

    assert conversation.valid(turns)[2] == results(result("a", "1"), result("b", "2"))


def test_calls_with_a_blank_name_are_left_out_with_their_results():
    turns = [user("q"), assistant("hm", call("a", " "), call("b")), results(result("a"), result("b"))]

    assert conversation.valid(turns) == [user("q"), assistant("hm", call("b")), results(result("b"))]


def test_ids_that_occur_again_are_made_unique_with_their_results():
    turns = [
        user("q"),
        assistant(call("t"), call("t")),
        results(result("t", "first"), result("t", "second")),
        assistant(call("t")),
        results(result("t", "third")),
    ]

    assert conversation.valid(turns) == [
        user("q"),
        assistant(call("t"), call("t-2")),
        results(result("t", "first"), result("t-2", "second")),
        assistant(call("t-3")),
        results(result("t-3", "third")),
    ]


def test_ids_are_brought_into_letters_that_every_vendor_takes():
    turns = [user("q"), assistant(call("a:1/ü"), call("")), results(result("a:1/ü"), result(""))]

    assert conversation.valid(turns)[1:] == [
        assistant(call("a_1__"), call("call")),
        results(result("a_1__"), result("call")),
    ]


def test_neighbours_of_one_role_become_one():
    turns = [user("a"), user("b"), assistant("c"), assistant("d")]

    assert conversation.valid(turns) == [
        ChatMessage("user", (Text("a"), Text("b"))),
        ChatMessage("assistant", (Text("c"), Text("d"))),
    ]


def test_turns_before_the_first_user_turn_are_left_out_with_one_line_in_the_log(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "octo.llm")
    turns = [assistant("welcome"), assistant(call("a")), results(result("a")), user("q")]

    assert conversation.valid(turns) == [user("q")]
    assert caplog.messages == ["3 turns before the first user turn are not sent"]


def test_turns_before_the_first_user_turn_stay_where_a_vendor_takes_them():
    turns = [assistant("welcome"), user("q")]

    assert conversation.valid(turns, user_first=False) == turns


def test_an_unknown_role_is_an_error():
    with pytest.raises(BadRequest, match="unknown message role `system`"):
        conversation.valid([ChatMessage("system", (Text("x"),))])  # type: ignore[arg-type]  # what a store may hold


def test_names_that_a_model_made_up_are_brought_into_letters_that_every_vendor_takes():
    turns = [user("q"), assistant(call("a", "functions.é:1"), call("b", "x" * 70)), results(result("a"), result("b"))]

    assert [one.name for one in conversation.valid(turns)[1].calls] == ["functions___1", "x" * 64]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", {}),
        (' {"a": [1.5, null]}\n', {"a": [1.5, None]}),
        ("", None),
        ('{"a":', None),
        ("[1]", None),
        ("null", None),
        ('{"a": NaN}', None),
        ('{"a":' * 199 + "1" + "}" * 199, "read"),
        ('{"a":' * 201 + "1" + "}" * 201, None),
        ('{"a":' * 100_000, None),
    ],
    ids=["empty", "spaced", "no text", "cut", "list", "null", "NaN", "deep", "too deep", "endless"],
)
def test_arguments_are_an_object_or_nothing(text: str, expected: object):
    found = conversation.arguments(text)

    assert (found if expected != "read" else found and "read") == expected


IDS = st.sampled_from(["a", "b", "c", ""])
TURNS = st.lists(
    st.one_of(
        st.just(user("q")),
        st.just(user("")),
        st.lists(st.one_of(st.just(Text("x")), st.builds(call, IDS)), max_size=3).map(lambda p: assistant(*p)),
        st.lists(st.builds(result, IDS), max_size=3).map(lambda p: results(*p)),
    ),
    max_size=8,
)


@given(turns=TURNS)
@settings(max_examples=200, deadline=None)
def test_whatever_comes_in_a_valid_conversation_goes_out(turns: list[ChatMessage]):
    valid = conversation.valid(turns)

    assert not valid or valid[0].role == "user"
    assert all(a.role != b.role for a, b in pairwise(valid))
    ids = [call.id for turn in valid for call in turn.calls]
    assert len(set(ids)) == len(ids)
    for place, turn in enumerate(valid):
        answered = [part.call_id for part in valid[place + 1].parts] if turn.calls else []  # type: ignore[union-attr]
        assert answered == [call.id for call in turn.calls]
        assert turn.role != "tool" or valid[place - 1].calls
    assert conversation.valid(valid) == valid
