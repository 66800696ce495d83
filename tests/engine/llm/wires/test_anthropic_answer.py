"""octo/llm/wires/anthropic_answer.py: the Messages API, answers."""

import json
from contextlib import suppress
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octo.errors import AuthenticationFailed, ProviderError, Truncated
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
    CustomDelta,
    Delta,
    Part,
    Reasoning,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolInput,
    ToolReady,
    ToolStart,
    Usage,
    user,
)
from octo.llm.credentials import Credentials
from octo.llm.wire import Endpoint, Unreadable
from octo.llm.wires import anthropic
from octo.values import Json

CREDENTIALS = Credentials("anthropic", "https://api.anthropic.com/v1", "x-api-key", api_key="k")
ENDPOINT = Endpoint(CREDENTIALS, "claude-sonnet-4-6", max_tokens=4096)


def body(request: ChatRequest, endpoint: Endpoint = ENDPOINT, *, stream: bool = False) -> Json:
    return json.loads(anthropic.encode(request, endpoint, stream=stream).body)


def messages(*turns: ChatMessage) -> Json:
    return body(ChatRequest(turns))["messages"]


def text(value: str) -> Json:
    return {"type": "text", "text": value}


def start(**message: Json) -> Json:
    usage = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 6}
    return {"type": "message_start", "message": {"model": "claude-x", "usage": usage, **message}}


def block(index: int, content: Json, *deltas: Json) -> list[Json]:
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def end(reason: str | None = "end_turn", **usage: int) -> list[Json]:
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage},
        {"type": "message_stop"},
    ]


def text_block(index: int, *fragments: str) -> list[Json]:
    return block(index, text(""), *({"type": "text_delta", "text": fragment} for fragment in fragments))


def call_block(index: int, *fragments: str, id: str = "toolu_1", name: str = "lookup") -> list[Json]:
    deltas = ({"type": "input_json_delta", "partial_json": fragment} for fragment in fragments)
    return block(index, {"type": "tool_use", "id": id, "name": name, "input": {}}, *deltas)


def decode(*events: Json) -> tuple[list[Delta], ChatResponse]:
    decoder = anthropic.decoder()
    deltas = [delta for event in events for delta in decoder.feed(event)]
    return deltas, decoder.finish()


def parts(*events: Json) -> tuple[Part, ...]:
    return decode(start(), *events, *end())[1].message.parts


def test_a_streamed_answer():
    deltas, response = decode(
        start(),
        *block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "let me "},
            {"type": "thinking_delta", "thinking": "see "},
            {"type": "signature_delta", "signature": "sig"},
        ),
        *block(1, {"type": "redacted_thinking", "data": "opaque"}),
        {"type": "ping"},
        *text_block(2, "I look", "", " it up"),
        *call_block(3, "", '{"n": ', "1}"),
        *end("tool_use", output_tokens=20),
    )
    ready = ToolCall("toolu_1", "lookup", '{"n":1}')

    assert deltas == [
        ThinkingDelta("let me ", 0),
        ThinkingDelta("see ", 0),
        TextDelta("I look", 2),
        TextDelta(" it up", 2),
        ToolStart("toolu_1", "lookup", 3),
        ToolInput('{"n": ', "toolu_1", "lookup", 3),
        ToolInput("1}", "toolu_1", "lookup", 3),
        ToolReady(ready),
    ]
    assert response == ChatResponse(
        ChatMessage(
            "assistant",
            (
                Reasoning("let me see ", {"wire": "anthropic", "signature": "sig"}),
                Reasoning("", {"wire": "anthropic", "data": "opaque"}),
                Text("I look it up"),
                ready,
            ),
        ),
        "tool_use",
        "claude-x",
        Usage(input_tokens=10, output_tokens=20, cached_tokens=4, cache_write_tokens=6, prompt_tokens=20),
    )


def test_an_answer_that_was_not_streamed_gives_the_same_response():
    streamed = [
        start(),
        *block(
            0,
            {"type": "thinking", "thinking": ""},
            {"type": "thinking_delta", "thinking": "hm"},
            {"type": "signature_delta", "signature": "s"},
        ),
        *text_block(1, "It is", " 7"),
        *call_block(2, '{"name": "Añe",  "n": 1.50}'),
        *call_block(3, id="toolu_2"),
        *end("tool_use", output_tokens=20),
    ]
    whole = {
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            text("It is 7"),
            {"type": "tool_use", "id": "toolu_1", "name": "lookup", "input": {"name": "Añe", "n": 1.5}},
            {"type": "tool_use", "id": "toolu_2", "name": "lookup", "input": {}},
        ],
        "stop_reason": "tool_use",
        "usage": start()["message"]["usage"] | {"output_tokens": 20},
    }

    assert decode(whole)[1] == decode(*streamed)[1]


def test_an_answer_can_be_sent_back_as_it_came():
    _, response = decode(
        start(),
        *block(0, {"type": "thinking", "thinking": " x ", "signature": "s"}),
        *call_block(1, '{"n":1}'),
        *end("tool_use"),
    )

    assert messages(user("q"), response.message)[1]["content"] == [
        {"type": "thinking", "thinking": " x ", "signature": "s"},
        {"type": "tool_use", "id": "toolu_1", "name": "lookup", "input": {"n": 1}},
    ]


@pytest.mark.parametrize(
    ("fragments", "arguments"),
    [((), "{}"), (("", ""), "{}"), ((" ",), "{}"), (('{"a": "x',), '{"a": "x'), (("nonsense",), "nonsense")],
    ids=["none", "empty", "blank", "cut off", "not JSON"],
)
def test_the_argument_text_of_a_call(fragments: tuple[str, ...], arguments: str):
    assert parts(*call_block(0, *fragments)) == (ToolCall("toolu_1", "lookup", arguments),)


def test_a_call_without_an_id_gets_one():
    assert parts(*call_block(2, id="")) == (ToolCall("call_2", "lookup", "{}"),)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", "end_turn"),
        ("stop_sequence", "end_turn"),
        ("tool_use", "tool_use"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("refusal", "refusal"),
        ("pause_turn", "pause"),
        ("a new one", "end_turn"),
        (None, "end_turn"),
    ],
)
def test_why_the_model_stopped(reason: str | None, expected: str):
    assert decode(start(), *end(reason))[1].stop_reason == expected


@pytest.mark.parametrize(
    ("reason", "details", "expected"),
    [
        ("end_turn", None, ""),
        ("refusal", None, "refusal"),
        ("refusal", {"type": "refusal", "category": "cyber", "explanation": None}, "refusal: cyber"),
        ("refusal", {"type": "refusal", "category": "cyber", "explanation": "too risky"}, "refusal: too risky"),
        ("a new one", None, "a new one"),
    ],
)
def test_what_is_said_of_an_unusual_stop(reason: str, details: Json, expected: str):
    delta = {"stop_reason": reason, "stop_details": details}
    streamed = decode(start(), {"type": "message_delta", "delta": delta}, {"type": "message_stop"})[1]
    whole = decode({"type": "message", "content": [], **delta})[1]

    assert (streamed.stop_detail, whole.stop_detail) == (expected, expected)


@pytest.mark.parametrize(("reason", "fills"), [("model_context_window_exceeded", True), ("max_tokens", False)])
def test_an_answer_says_whether_the_context_window_cut_it_off(reason: str, fills: bool):
    assert decode(start(), *end(reason))[1].fills_window is fills


@pytest.mark.parametrize(
    ("begun", "ended", "expected"),
    [
        ({"input_tokens": 3}, {}, Usage(input_tokens=3, prompt_tokens=3)),
        ({}, {"output_tokens": 5}, Usage(output_tokens=5)),
        ({"input_tokens": 3, "output_tokens": 1}, {"input_tokens": 4}, Usage(4, 1, prompt_tokens=4)),
        ({"input_tokens": 0, "output_tokens": 0}, {}, None),
        ({"input_tokens": None, "output_tokens": "7"}, {}, None),
        ({"input_tokens": -4, "output_tokens": True}, {}, None),
        ({"input_tokens": float("inf"), "output_tokens": 5.0}, {}, Usage(output_tokens=5)),
        (None, {}, None),
    ],
    ids=[
        "only read",
        "only written",
        "later numbers replace",
        "all zero",
        "no numbers",
        "no counts",
        "endless",
        "nothing",
    ],
)
def test_usage(begun: Json, ended: dict[str, int], expected: Usage | None):
    assert decode(start(usage=begun), *end("end_turn", **ended))[1].usage == expected


def test_what_is_unknown_is_ignored():
    events = [
        {"type": "brand_new", "index": 0},
        *block(0, {"type": "server_tool_use", "name": "x"}, {"type": "input_json_delta", "partial_json": "{}"}),
        *text_block(1, "hi"),
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": " after its end"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "thinking_delta", "thinking": "misplaced"}},
        {"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": "nowhere"}},
        {"type": "content_block_start", "index": 1, "content_block": text("again")},
        {"type": "content_block_stop", "index": 9},
    ]

    assert parts(*events) == (Text("hi"),)


def test_deltas_of_unknown_kinds_are_passed_on_under_the_vendors_name():
    deltas, _ = decode(
        start(),
        *block(0, text(""), {"type": "mood_delta", "mood": "calm"}, {"type": "scent_delta", "scent": {"a": 1}}),
        *end(),
    )

    assert deltas == [
        CustomDelta("mood_delta", "calm", 0),
        CustomDelta("scent_delta", '{"scent":{"a":1}}', 0),
    ]


def test_text_that_comes_with_the_start_of_a_block_counts():
    deltas, response = decode(start(), *block(0, text("Hel"), {"type": "text_delta", "text": "lo"}), *end())

    assert (deltas, response.text) == ([TextDelta("Hel", 0), TextDelta("lo", 0)], "Hello")


@pytest.mark.parametrize("length", range(8))
def test_a_stream_without_its_end_mark_is_no_answer(length: int):
    events = [start(), *text_block(0, "half"), *call_block(1, "{}"), *end()[:1]]

    with pytest.raises(Truncated, match="the answer broke off before its end") as caught:
        decode(*events[:length])

    assert caught.value.retryable


@pytest.mark.parametrize(
    ("kind", "status", "retryable"),
    [
        ("overloaded_error", 503, True),
        ("api_error", 500, True),
        ("rate_limit_error", 429, True),
        ("timeout_error", 504, True),
        ("invalid_request_error", 400, False),
        ("billing_error", 402, False),
        ("a_new_error", None, False),
    ],
)
def test_an_error_inside_the_stream(kind: str, status: int | None, retryable: bool):
    with pytest.raises(ProviderError) as caught:
        decode(start(), {"type": "error", "error": {"type": kind, "message": "Oops"}})

    told = "an error" if status is None else f"status {status}"
    assert str(caught.value) == f"{told} in the answer: Oops"
    assert (caught.value.status, caught.value.retryable) == (status, retryable)


def test_an_error_without_a_type_around_it():
    with pytest.raises(AuthenticationFailed, match="status 401 in the answer: who are you"):
        decode({"error": {"code": 401, "message": "who are you"}})


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ([], "expected a message with a `type`, found `[]`"),
        ("text", 'expected a message with a `type`, found `"text"`'),
        (None, "expected a message with a `type`, found `null`"),
        ({}, "expected a message with a `type`, found `{}`"),
        ({"type": 7}, 'expected a message with a `type`, found `{"type":7}`'),
        ({"type": "message_start"}, 'expected an event with its content, found `{"type":"message_start"}`'),
        (
            {"type": "content_block_start", "content_block": "x"},
            'expected an event with its content, found `{"type":"content_block_start","content_block":"x"}`',
        ),
        (
            {"type": "content_block_delta", "delta": {}},
            'expected an event with its content, found `{"type":"content_block_delta","delta":{}}`',
        ),
        ({"type": "message_delta"}, 'expected an event with its content, found `{"type":"message_delta"}`'),
        (
            {"type": "content_block_stop", "index": "x"},
            'expected a whole number as `index` of a block, found `"x"`',
        ),
        (
            {"type": "content_block_stop", "index": True},
            "expected a whole number as `index` of a block, found `true`",
        ),
        ({"type": "message", "content": "hi"}, 'expected `content` to be a list of blocks, found `"hi"`'),
        ({"type": "message", "content": None}, "expected `content` to be a list of blocks, found `null`"),
        ({"type": "message", "content": [7]}, "expected a block with a `type` in `content`, found `7`"),
        ({"type": "message", "content": [{}]}, "expected a block with a `type` in `content`, found `{}`"),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, (dict, list)) else "",
)
def test_events_of_no_known_shape(event: Json, text: str):
    with pytest.raises(Unreadable) as caught:
        anthropic.decoder().feed(event)

    assert str(caught.value) == text


ODD = st.recursive(
    st.sampled_from([None, True, -1, 0, 2, 1.5, float("inf"), float("nan"), 10**400, "", "x", "end_turn", "\ud83d"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "a"]), inner, max_size=2)
    ),
    max_leaves=4,
)
USAGE = st.dictionaries(st.sampled_from(["input_tokens", "output_tokens", "cache_read_input_tokens"]), ODD, max_size=3)
BLOCK_TYPES = st.sampled_from(["text", "tool_use", "thinking", "redacted_thinking", "server_tool_use"])
DELTA_TYPES = st.sampled_from(["text_delta", "thinking_delta", "signature_delta", "input_json_delta", "new_delta"])


def mapping(types: st.SearchStrategy[Json], **fields: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    """Mappings of one of some types, in which any field may hold anything, or be missing."""
    return st.fixed_dictionaries({"type": types}, optional={name: ODD | kind for name, kind in fields.items()})


BLOCKS = mapping(
    BLOCK_TYPES, **dict.fromkeys(["text", "thinking", "signature", "data", "id", "name", "input"], st.text(max_size=2))
)
HOSTILE = st.one_of(
    ODD,
    mapping(
        st.sampled_from(["content_block_start", "content_block_delta", "content_block_stop"]),
        index=st.integers(0, 2),
        content_block=BLOCKS,
        delta=mapping(DELTA_TYPES, text=ODD, partial_json=ODD, thinking=ODD, signature=ODD),
    ),
    mapping(
        st.sampled_from(["message", "message_start", "message_delta", "message_stop", "ping", "error"]),
        message=mapping(st.just("message"), model=ODD, usage=USAGE),
        content=st.lists(BLOCKS | ODD, max_size=3),
        delta=st.fixed_dictionaries({"stop_reason": ODD}),
        stop_reason=ODD,
        usage=USAGE,
        error=mapping(ODD, message=ODD, code=ODD),
    ),
)


@given(events=st.lists(HOSTILE, max_size=8))
@settings(max_examples=300, deadline=None)
def test_whatever_a_server_sends_is_an_answer_or_an_error_that_octo_knows(events: list[Json]):
    decoder = anthropic.decoder()
    for event in events:
        with suppress(Unreadable, ProviderError):
            decoder.feed(event)
    with suppress(Truncated):
        answer = decoder.finish()
        assert all(number is None or number >= 0 for number in asdict(answer.usage or Usage()).values())
        assert messages(user("q"), answer.message, user("go on"))
