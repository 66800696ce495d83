"""octo/agent/memory/codec.py: turns as JSON, and back without the loss of a byte."""

import json

import pytest
from hypothesis import given, settings

from histories import histories
from octo.agent.memory import codec
from octo.llm.chat import ChatMessage, Citation, File, Reasoning, Search, Text, ToolCall, ToolResult, user
from octo.values import clean_text, dumps, parse

TURNS = [
    ChatMessage("user", (File("image/png", b"\x89PNG", "a.png"), Text("look"))),
    ChatMessage(
        "assistant",
        (
            Reasoning("hm ", {"wire": "anthropic", "z": 1, "a": [1, 2.5, 1e3], "signature": "s<&>\u2028"}),
            Search("news", {"wire": "anthropic"}),
            Text(
                "I look.",
                {"wire": "gemini", "n": 12345678901234567890},
                (Citation("http://x", "X", 0, 6), Citation("y")),
            ),
            ToolCall("c1", "t", '{"n": 1}', {"wire": "gemini", "signature": "x"}),
        ),
    ),
    ChatMessage("tool", (ToolResult("c1", "t", "none", is_error=True),)),
]


def stored(turns, **options):
    """What comes back from the store."""
    return codec.decode(parse(dumps(codec.encode(turns, **options))))


def test_turns_come_back_as_they_were():
    assert stored(TURNS, files=True) == TURNS


def test_opaque_data_comes_back_with_the_same_bytes():
    (assistant,) = stored(TURNS[1:2])

    assert [json.dumps(part.replay) for part in assistant.parts] == [json.dumps(part.replay) for part in TURNS[1].parts]


def test_files_are_left_out_unless_they_are_to_be_kept():
    assert stored(TURNS)[0] == user("look")


@settings(max_examples=60, deadline=None)
@given(histories([{"wire": "anthropic", "signature": "é\ud83d"}]))
def test_any_history_comes_back_but_for_halves_of_characters(turns):
    assert stored(turns, files=True) == stored(stored(turns, files=True), files=True)
    assert [[type(part) for part in turn.parts] for turn in stored(turns, files=True)] == [
        [type(part) for part in turn.parts] for turn in turns
    ]
    assert [turn.text for turn in stored(turns)] == [
        "".join(clean_text(p.text) for p in t.parts if isinstance(p, Text)) for t in turns
    ]


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({}, "expected a list of messages, found a mapping"),
        ([1.0], "message 0: expected a mapping, found a number"),
        ([{"role": "system", "parts": []}], "message 0: its role is none of `user`, `assistant` and `tool`"),
        ([{"role": "user"}], "message 0: `parts` must be a list, found null"),
        ([{"role": "user", "parts": ["x"]}], "message 0, part 0: expected a mapping, found text"),
        ([{"role": "user", "parts": [{"text": 1.0}]}], "message 0, part 0: `text` must be text, found a number"),
        (
            [{"role": "user", "parts": [{"sound": "x"}]}],
            "message 0, part 0: it is neither text, reasoning, a call, a result, a search nor a file",
        ),
        (
            [{"role": "user", "parts": [{"text": "x", "replay": "{"}]}],
            "message 0, part 0: `replay` is no JSON: "
            "expecting property name enclosed in double quotes at line 1, column 2",
        ),
        (
            [{"role": "user", "parts": [{"text": "x", "citations": [None]}]}],
            "message 0, part 0: a citation must be a list of address, title, start and end",
        ),
        (
            [{"role": "user", "parts": [{"file": "é", "mimeType": "a/b"}]}],
            "message 0, part 0: `file` must be base64",
        ),
    ],
    ids=["no list", "no mapping", "role", "no parts", "part", "text", "unknown", "opaque data", "citation", "file"],
)
def test_what_is_no_conversation_is_refused_with_its_place(value, fault):
    with pytest.raises(ValueError, match=r".") as caught:
        codec.decode(value)

    assert str(caught.value) == fault
