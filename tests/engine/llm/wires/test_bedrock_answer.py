"""octo/llm/wires/bedrock_answer.py: Converse, answers."""

import json
from base64 import b64encode
from contextlib import suppress
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octo.errors import (
    AuthenticationFailed,
    BadRequest,
    ContextTooLong,
    ProviderError,
    RateLimited,
    Truncated,
)
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
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
from octo.llm.wires import bedrock
from octo.values import Json

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
ADDRESS = "https://bedrock-runtime.us-east-1.amazonaws.com"
CREDENTIALS = Credentials("aws_bedrock", ADDRESS, "authorization", api_key="k")
ENDPOINT = Endpoint(CREDENTIALS, CLAUDE)


def body(request: ChatRequest, endpoint: Endpoint = ENDPOINT, *, stream: bool = False) -> Json:
    return json.loads(bedrock.encode(request, endpoint, stream=stream).body)


def messages(*turns: ChatMessage) -> Json:
    return body(ChatRequest(turns))["messages"]


def use(id: str, name: str, input: Json) -> Json:
    return {"toolUse": {"toolUseId": id, "name": name, "input": input}}


REDACTED = Reasoning("", {"wire": "bedrock", "data": "b3BhcXVl"})


def event(kind: str, index: int | None = None, **payload: Json) -> Json:
    place = {} if index is None else {"contentBlockIndex": index}
    return {"event": kind, "payload": {**payload, **place, "p": "ab"}}


def delta(index: int, **content: Json) -> Json:
    return event("contentBlockDelta", index, delta=content)


def stop(index: int) -> Json:
    return event("contentBlockStop", index)


def text_block(index: int, *fragments: str) -> list[Json]:
    return [*(delta(index, text=fragment) for fragment in fragments), stop(index)]


def call_block(index: int, *fragments: str, id: str = "tooluse_1", name: str = "lookup") -> list[Json]:
    start = event("contentBlockStart", index, start={"toolUse": {"toolUseId": id, "name": name}})
    return [start, *(delta(index, toolUse={"input": fragment}) for fragment in fragments), stop(index)]


def reasoning(index: int, *fragments: Json) -> list[Json]:
    return [*(delta(index, reasoningContent=fragment) for fragment in fragments), stop(index)]


def end(reason: str = "end_turn", **usage: Json) -> list[Json]:
    return [event("messageStop", stopReason=reason), event("metadata", usage=usage, metrics={"latencyMs": 7})]


START = event("messageStart", role="assistant")


def decode(*events: Json) -> tuple[list[Delta], ChatResponse]:
    decoder = bedrock.decoder(ChatRequest(()))
    deltas = [delta for event in events for delta in decoder.feed(event)]
    return deltas, decoder.finish()


def parts(*events: Json) -> tuple[Part, ...]:
    return decode(START, *events, *end())[1].message.parts


USAGE = {
    "inputTokens": 10,
    "outputTokens": 20,
    "totalTokens": 30,
    "cacheReadInputTokens": 4,
    "cacheWriteInputTokens": 6,
}


def test_a_streamed_answer():
    deltas, response = decode(
        START,
        *reasoning(0, {"text": "let me "}, {"text": "see "}, {"signature": "sig"}),
        *reasoning(1, {"redactedContent": "b3BhcXVl"}),
        *text_block(2, "I look", "", " it up"),
        *call_block(3, "", '{"n": ', "1}"),
        *end("tool_use", **USAGE),
    )
    ready = ToolCall("tooluse_1", "lookup", '{"n":1}')

    assert deltas == [
        ThinkingDelta("let me ", 0),
        ThinkingDelta("see ", 0),
        TextDelta("I look", 2),
        TextDelta(" it up", 2),
        ToolStart("tooluse_1", "lookup", 3),
        ToolInput('{"n": ', "tooluse_1", "lookup", 3),
        ToolInput("1}", "tooluse_1", "lookup", 3),
        ToolReady(ready),
    ]
    assert response == ChatResponse(
        ChatMessage(
            "assistant",
            (
                Reasoning("let me see ", {"wire": "bedrock", "signature": "sig"}),
                Reasoning("", {"wire": "bedrock", "data": "b3BhcXVl"}),
                Text("I look it up"),
                ready,
            ),
        ),
        "tool_use",
        usage=Usage(input_tokens=10, output_tokens=20, cached_tokens=4, cache_write_tokens=6, prompt_tokens=20),
    )


def test_an_answer_that_was_not_streamed_gives_the_same_response():
    streamed = [
        START,
        *reasoning(0, {"text": "hm"}, {"signature": "s"}),
        *reasoning(1, {"redactedContent": "b3BhcXVl"}),
        *text_block(2, "It is", " 7"),
        *call_block(3, '{"name": "Añe",  "n": 1.50}'),
        *call_block(4, id="tooluse_2"),
        *end("tool_use", **USAGE),
    ]
    whole = {
        "output": {
            "message": {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
                    {"reasoningContent": {"redactedContent": "b3BhcXVl"}},
                    {"text": "It is 7"},
                    use("tooluse_1", "lookup", {"name": "Añe", "n": 1.5}),
                    use("tooluse_2", "lookup", {}),
                ],
            }
        },
        "stopReason": "tool_use",
        "usage": USAGE,
        "metrics": {"latencyMs": 7},
    }

    assert decode(whole)[1] == decode(*streamed)[1]


def test_an_answer_can_be_sent_back_as_it_came():
    _, response = decode(START, *reasoning(0, {"text": " x "}, {"signature": "s"}), *call_block(1, '{"n":1}'), *end())

    assert messages(user("q"), response.message)[1]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": " x ", "signature": "s"}}},
        use("tooluse_1", "lookup", {"n": 1}),
    ]


def test_redacted_reasoning_in_pieces_is_joined_byte_by_byte():
    pieces = [{"redactedContent": b64encode(piece).decode()} for piece in (b"op", b"aque")]

    assert parts(*reasoning(0, *pieces)) == (REDACTED,)


def test_calls_at_once_keep_their_arguments_apart_and_text_does_not_shift_them():
    calls = [call_block(index, id=f"c{index}", name="t") for index in (1, 3)]
    events = [
        *text_block(0, "so"),
        calls[0][0],
        calls[1][0],
        delta(3, toolUse={"input": '{"b":'}),
        delta(1, toolUse={"input": '{"a":1}'}),
        delta(3, toolUse={"input": "2}"}),
        delta(2, text="then"),
        stop(3),
        stop(1),
    ]

    assert parts(*events) == (
        Text("so"),
        ToolCall("c1", "t", '{"a":1}'),
        Text("then"),
        ToolCall("c3", "t", '{"b":2}'),
    )


@pytest.mark.parametrize(
    ("fragments", "arguments"),
    [((), "{}"), (("", ""), "{}"), ((" ",), "{}"), (('{"a": "x',), '{"a": "x'), (("nonsense",), "nonsense")],
    ids=["none", "empty", "blank", "cut off", "not JSON"],
)
def test_the_argument_text_of_a_call(fragments: tuple[str, ...], arguments: str):
    assert parts(*call_block(0, *fragments)) == (ToolCall("tooluse_1", "lookup", arguments),)


def test_a_call_that_is_open_at_the_end_is_whole():
    deltas, response = decode(START, *call_block(0, "{}")[:-1], *end("tool_use"))

    assert deltas[-1] == ToolReady(ToolCall("tooluse_1", "lookup", "{}"))
    assert response.calls == (ToolCall("tooluse_1", "lookup", "{}"),)


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
        ("content_filtered", "refusal"),
        ("guardrail_intervened", "refusal"),
        ("malformed_tool_use", "malformed"),
        ("malformed_model_output", "malformed"),
        ("a new one", "end_turn"),
    ],
)
def test_why_the_model_stopped(reason: str, expected: str):
    assert decode(START, *end(reason))[1].stop_reason == expected


@pytest.mark.parametrize(
    ("reason", "detail"),
    [("end_turn", ""), ("guardrail_intervened", "guardrail_intervened"), ("a new one", "a new one")],
)
def test_an_unusual_stop_says_its_word(reason: str, detail: str):
    assert decode(START, *end(reason))[1].stop_detail == detail


@pytest.mark.parametrize(("reason", "fills"), [("model_context_window_exceeded", True), ("max_tokens", False)])
def test_an_answer_says_whether_the_context_window_cut_it_off(reason: str, fills: bool):
    assert decode(START, *end(reason))[1].fills_window is fills


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"inputTokens": 3}, Usage(input_tokens=3, prompt_tokens=3)),
        ({"outputTokens": 5}, Usage(output_tokens=5)),
        ({"inputTokens": 3, "cacheReadInputTokens": 0}, Usage(input_tokens=3, cached_tokens=0, prompt_tokens=3)),
        ({"inputTokens": 0, "outputTokens": 0}, None),
        ({"inputTokens": None, "outputTokens": "7"}, None),
        ({"inputTokens": -4, "outputTokens": True}, None),
        ({"inputTokens": float("inf"), "outputTokens": 5.0}, Usage(output_tokens=5)),
        ({}, None),
    ],
    ids=["only read", "only written", "nothing cached", "all zero", "no numbers", "no counts", "endless", "nothing"],
)
def test_usage(usage: dict[str, Json], expected: Usage | None):
    assert decode(START, *end(**usage))[1].usage == expected


def test_reading_goes_on_until_the_usage_has_come():
    decoder = bedrock.decoder(ChatRequest(()))
    seen = []
    for one in (START, *text_block(0, "hi"), *end()):
        decoder.feed(one)
        seen.append(decoder.complete)

    assert seen == [False, False, False, False, True]


def test_the_model_that_a_router_chose_is_told():
    trace = {"promptRouter": {"invokedModelId": "arn:x"}}

    assert decode(START, end()[0], event("metadata", usage={}, trace=trace))[1].model == "arn:x"


def test_what_is_unknown_is_ignored():
    events = [
        event("brandNew", 0, delta={"text": "x"}),
        {"event": "initial-response", "payload": None},
        event("contentBlockStart", 0, start={"image": {"format": "png"}}),
        event("contentBlockStart", 4, start={"toolUse": {"toolUseId": "a", "name": "b", "type": "server_tool_use"}}),
        delta(4, toolUse={"input": "{}"}),
        delta(5, image={"source": {"bytes": "AA=="}}),
        *text_block(1, "hi"),
        delta(1, text=" after its end"),
        delta(1, reasoningContent={"text": "misplaced"}),
        delta(9, toolUse={"input": "nowhere"}),
        event("contentBlockStart", 1, start={"toolUse": {"toolUseId": "a", "name": "again"}}),
        stop(9),
    ]

    assert parts(*events) == (Text("hi"),)


@pytest.mark.parametrize("length", range(8))
def test_a_stream_without_its_end_mark_is_no_answer(length: int):
    events = [START, *text_block(0, "half"), *call_block(1, "{}")]

    with pytest.raises(Truncated, match="the answer broke off before its end") as caught:
        decode(*events[:length])

    assert caught.value.retryable


def test_a_stream_that_breaks_after_its_end_mark_is_an_answer_of_unknown_cost():
    assert decode(START, *text_block(0, "hi"), end()[0])[1] == ChatResponse(
        ChatMessage("assistant", (Text("hi"),)), "end_turn"
    )


@pytest.mark.parametrize(
    ("kind", "status", "retryable", "error"),
    [
        ("throttlingException", 429, True, RateLimited),
        ("ThrottlingException", 429, True, RateLimited),
        ("serviceUnavailableException", 503, True, ProviderError),
        ("modelStreamErrorException", 424, True, ProviderError),
        ("internalServerException", 500, True, ProviderError),
        ("modelTimeoutException", 408, True, ProviderError),
        ("validationException", 400, False, BadRequest),
        ("accessDeniedException", 403, False, AuthenticationFailed),
        ("aNewException", None, True, ProviderError),
    ],
)
def test_an_exception_inside_the_stream(kind: str, status: int | None, retryable: bool, error: type[ProviderError]):
    with pytest.raises(ProviderError) as caught:
        decode(START, {"exception": kind, "payload": {"message": "Oops"}})

    told = "an error" if status is None else f"status {status}"
    assert str(caught.value) == f"{told} in the answer: Oops"
    assert (type(caught.value), caught.value.status, caught.value.retryable) == (error, status, retryable)


def test_an_exception_about_the_length_of_the_prompt():
    message = "The model returned the following errors: Input is too long for requested model."
    with pytest.raises(ContextTooLong):
        decode({"exception": "validationException", "payload": {"message": message}})


@pytest.mark.parametrize("payload", [None, {}, "x", {"message": ""}], ids=["none", "empty", "text", "blank"])
def test_an_exception_without_words_is_told_by_its_kind(payload: Json):
    with pytest.raises(RateLimited, match="status 429 in the answer: throttlingException"):
        decode({"exception": "throttlingException", "payload": payload})


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ([], "expected a message under `output`, found `[]`"),
        (None, "expected a message under `output`, found `null`"),
        ({}, "expected a message under `output`, found `{}`"),
        ({"event": 7}, 'expected a message under `output`, found `{"event":7}`'),
        (
            {"output": {"message": {"content": "hi"}}},
            'expected a message under `output`, found `{"output":{"message":{"content":"hi"}}}`',
        ),
        (
            {"output": {"message": {"content": [7]}}},
            "expected a block in `content` to be a mapping, found `7`",
        ),
        (
            {"event": "contentBlockDelta", "payload": "x"},
            'expected the payload of `contentBlockDelta` to be a mapping, found `"x"`',
        ),
        ({"event": "contentBlockDelta", "payload": {}}, "expected `delta` to be a mapping, found `null`"),
        (
            {"event": "contentBlockStop", "payload": {"contentBlockIndex": True}},
            "expected a whole number as `contentBlockIndex`, found `true`",
        ),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, (dict, list)) else "",
)
def test_events_of_no_known_shape(event: Json, text: str):
    with pytest.raises(Unreadable) as caught:
        bedrock.decoder(ChatRequest(())).feed(event)

    assert str(caught.value) == text


ODD = st.recursive(
    st.sampled_from([None, True, -1, 0, 2, 1.5, float("inf"), float("nan"), 10**400, "", "x", "end_turn", "\ud83d"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["text", "toolUse", "a"]), inner, max_size=2)
    ),
    max_leaves=4,
)
CALL = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(["toolUseId", "name", "input", "type"], ODD | st.text(max_size=2))
)
THOUGHT = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(["text", "signature", "redactedContent", "reasoningText"], ODD | st.text(max_size=2))
)
CONTENT = st.fixed_dictionaries(
    {}, optional={"text": ODD | st.text(max_size=2), "toolUse": ODD | CALL, "reasoningContent": ODD | THOUGHT}
)
NUMBERS = st.dictionaries(st.sampled_from(["inputTokens", "outputTokens", "cacheReadInputTokens"]), ODD, max_size=3)
KINDS = ["contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata", "messageStart", "new"]
PAYLOADS = st.fixed_dictionaries(
    {},
    optional={
        "contentBlockIndex": ODD | st.integers(0, 2),
        "start": ODD | CONTENT,
        "delta": ODD | CONTENT,
        "stopReason": ODD,
        "usage": ODD | NUMBERS,
        "trace": ODD,
        "message": ODD,
    },
)
HOSTILE = st.one_of(
    ODD,
    st.builds(lambda kind, payload: {"event": kind, "payload": payload}, st.sampled_from(KINDS) | ODD, PAYLOADS | ODD),
    st.builds(lambda kind, payload: {"exception": kind, "payload": payload}, ODD, PAYLOADS | ODD),
    st.builds(
        lambda content, more: {"output": {"message": {"content": content}}, **more},
        st.lists(CONTENT | ODD, max_size=3) | ODD,
        PAYLOADS,
    ),
)


@given(events=st.lists(HOSTILE, max_size=8))
@settings(max_examples=300, deadline=None)
def test_whatever_a_server_sends_is_an_answer_or_an_error_that_octo_knows(events: list[Json]):
    decoder = bedrock.decoder(ChatRequest(()))
    for one in events:
        with suppress(Unreadable, ProviderError):
            decoder.feed(one)
    with suppress(Truncated):
        answer = decoder.finish()
        assert all(number is None or number >= 0 for number in asdict(answer.usage or Usage()).values())
        assert messages(user("q"), answer.message, user("go on"))
