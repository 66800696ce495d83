"""octo/agent/memory/window.py: the newest part of a conversation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import TOOLS
from octo.agent.memory import window
from octo.agent.memory.repair import settled
from octo.llm.chat import ChatMessage, ChatRequest, File, Text, ToolCall, ToolResult, user
from vendor.doubles import DOUBLES, Offline, Said

ROLES = {"u": "user", "a": "assistant", "t": "tool"}


def turns(roles):
    """A conversation of turns with these roles, each with its own text."""
    return [ChatMessage(ROLES[role], (Text(str(at)),)) for at, role in enumerate(roles)]


@pytest.mark.parametrize(
    ("roles", "most", "kept"),
    [
        pytest.param("", 3, 0, id="nothing"),
        pytest.param("uaua", 4, 4, id="all fits"),
        pytest.param("uaua", 9, 4, id="more than fits"),
        pytest.param("uaua", 3, 2, id="cut inside an exchange"),
        pytest.param("uaua", 2, 2, id="one exchange"),
        pytest.param("uaua", 1, 2, id="less than an exchange"),
        pytest.param("uauatata", 3, 6, id="the newest exchange is longer"),
        pytest.param("uuaua", 4, 4, id="two questions in a row"),
        pytest.param("uaat", 2, 4, id="only one exchange, and it is longer"),
        pytest.param("ata", 2, 0, id="no question at all"),
    ],
)
def test_only_whole_exchanges_are_kept(roles, most, kept):
    conversation = turns(roles)

    assert window.newest(conversation, most) == conversation[len(conversation) - kept :]


@given(st.text("uat", max_size=30), st.integers(1, 12))
def test_what_is_kept_begins_with_a_question_and_is_no_longer_than_it_must_be(roles, most):
    conversation = turns(roles)
    kept = window.newest(conversation, most)

    assert kept == conversation[len(conversation) - len(kept) :]
    assert kept == [] if "u" not in roles else kept[0].role == "user"
    assert len(kept) <= most or [turn.role for turn in kept].count("user") == 1


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.integers(1, 8))
def test_a_cut_never_parts_a_call_from_its_result(rounds, most):
    conversation = []
    for exchange, calls in enumerate(rounds):
        conversation.append(user(str(exchange)))
        for at in range(calls):
            call = ToolCall(f"c{exchange}{at}", "t", "{}")
            conversation += [ChatMessage("assistant", (call,)), ChatMessage("tool", (ToolResult(call.id, "t", "1"),))]
        conversation.append(ChatMessage("assistant", (Text("done"),)))

    kept = window.newest(conversation, most)

    whole, faults = settled(kept)
    assert (whole, bool(faults)) == (kept, False)


@pytest.mark.parametrize(("room", "kept"), [(99, "uauatu"), (5, "uatu"), (4, "uatu"), (3, "u"), (1, "u"), (0, "")])
def test_the_oldest_exchanges_go_until_the_rest_fits(room, kept):
    conversation = turns("uauatu")

    found = window.fitting(conversation, lambda some: len(some) <= room)

    assert found == conversation[len(conversation) - len(kept) :]


def test_of_a_file_its_name_type_and_size_are_kept():
    turn = ChatMessage("user", (File("image/png", b"12345", "plan.png"), File("audio/wav", b""), Text("Where?")))

    assert window.without_bytes(turn).text == (
        "[file: plan.png, image/png, 5 bytes]\n[file: audio/wav, 0 bytes]\nWhere?"
    )


def test_a_turn_without_files_stays_the_turn_that_it_is():
    turn = user("Where?")

    assert window.without_bytes(turn) is turn


def four_exchanges():
    """Four exchanges, each with a call and its result."""
    conversation = []
    for n in range(4):
        call = ToolCall(f"c{n}", "t", '{"n": 1}')
        conversation += [
            user(f"question {n}"),
            ChatMessage("assistant", (call,)),
            ChatMessage("tool", (ToolResult(call.id, "t", f"result {n}"),)),
            ChatMessage("assistant", (Text(f"answer {n}"),)),
        ]
    return conversation


@pytest.mark.parametrize("double", DOUBLES, ids=lambda double: double.name)
@pytest.mark.parametrize("most", range(1, 17))
async def test_every_vendor_takes_what_a_window_keeps(double, most):
    kept = window.newest(four_exchanges(), most)
    server = double.serve(lambda _: double.say(Said("ok")))
    model = double.asked("http://double", Offline(server), **double.settings)

    assert kept == four_exchanges()[-max(4, most // 4 * 4) :]
    answer = await model.complete(ChatRequest((*kept, user("go on")), tools=TOOLS), session={})
    assert answer.text == "ok"
