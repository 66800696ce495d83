"""octo/llm/wires/gemini_answer.py: `generateContent`, answers."""

import json
from base64 import b64encode
from contextlib import suppress
from dataclasses import asdict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octo.errors import ProviderError, RateLimited, Truncated
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
    Delta,
    File,
    Part,
    Reasoning,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolInput,
    ToolReady,
    ToolResult,
    ToolStart,
    Usage,
    user,
)
from octo.llm.credentials import Credentials
from octo.llm.framing import DONE
from octo.llm.wire import Endpoint, Unreadable
from octo.llm.wires import gemini
from octo.values import Json

CREDENTIALS = Credentials("googleai", "https://api.example/v1beta", "x-goog-api-key", api_key="k")
ENDPOINT = Endpoint(CREDENTIALS, "gemini-3.5-flash")
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8


def body(request: ChatRequest, endpoint: Endpoint = ENDPOINT) -> Json:
    return json.loads(gemini.encode(request, endpoint, stream=False).body)


def contents(*turns: ChatMessage) -> Json:
    return body(ChatRequest(turns))["contents"]


def assistant(*parts: Part) -> ChatMessage:
    return ChatMessage("assistant", parts)


def results(*parts: ToolResult) -> ChatMessage:
    return ChatMessage("tool", parts)


def own(**fields: str) -> Json:
    return {"wire": "gemini", **fields}


def event(*parts: Json, finish: str | None = None, usage: Json = None, **more: Json) -> Json:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    ended = {"finishReason": finish} if finish else {}
    told = {"usageMetadata": usage} if usage is not None else {}
    return {"candidates": [candidate | ended], **told, "modelVersion": "gemini-x", **more}


def end(finish: str = "STOP", **usage: int) -> Json:
    return event({"text": ""}, finish=finish, usage={"promptTokenCount": 10, "candidatesTokenCount": 5, **usage})


def call_part(name: str = "t", args: Json = None, signature: str | None = None, **more: Json) -> Json:
    part: Json = {"functionCall": {"name": name, **({} if args is None else {"args": args}), **more}}
    return part | ({"thoughtSignature": signature} if signature else {})


def decode(*events: Json, request: ChatRequest | None = None) -> tuple[list[Delta], ChatResponse]:
    decoder = gemini.decoder(request)
    deltas = [delta for one in events for delta in decoder.feed(one)]
    return deltas, decoder.finish()


def parts(*found: Json) -> tuple[Part, ...]:
    return decode(event(*found), end())[1].message.parts


def test_a_streamed_answer():
    deltas, response = decode(
        event({"text": "let me ", "thought": True}),
        event({"text": "see ", "thought": True}),
        event({"text": "", "thought": True, "thoughtSignature": "dGg="}),
        event({"text": "I look"}, usage={"promptTokenCount": 10}),
        event({"text": " it up"}),
        event(call_part(args={"n": 1, "é": "x"}, signature="c2ln"), call_part("u", id="v1")),
        end(thoughtsTokenCount=3, cachedContentTokenCount=4, totalTokenCount=18),
        DONE,
    )
    first = ToolCall("t-1-1", "t", '{"n":1,"é":"x"}', own(signature="c2ln"))
    second = ToolCall("v1", "u", "{}", own(id="v1"))

    assert deltas == [
        ThinkingDelta("let me ", 0),
        ThinkingDelta("see ", 0),
        TextDelta("I look", 1),
        TextDelta(" it up", 1),
        ToolStart("t-1-1", "t", 2),
        ToolInput('{"n":1,"é":"x"}', "t-1-1", "t", 2),
        ToolStart("v1", "u", 3),
        ToolInput("{}", "v1", "u", 3),
        ToolReady(first),
        ToolReady(second),
    ]
    assert response == ChatResponse(
        assistant(Reasoning("let me see ", own(signature="dGg=")), Text("I look it up"), first, second),
        "tool_use",
        "gemini-x",
        Usage(10, 8, 3, 4, prompt_tokens=10),
    )


def test_an_answer_that_was_not_streamed_gives_the_same_response():
    signed = {"text": "It is 7", "thoughtSignature": "c2ln"}
    whole = event({"text": "hm", "thought": True}, signed, call_part(args={"n": 1.5}), finish="STOP", usage={})
    streamed = [
        event({"text": "h", "thought": True}),
        event({"text": "m", "thought": True}),
        event({"text": "It is"}),
        event({"text": " 7"}),
        event({"text": "", "thoughtSignature": "c2ln"}),
        event(call_part(args={"n": 1.5})),
        event({"text": ""}, finish="STOP", usage={}),
    ]

    assert decode(whole)[1] == decode(*streamed)[1]


@pytest.mark.parametrize(
    "sent",
    [
        [call_part(signature="c2ln"), call_part()],
        [call_part(), call_part(signature="c2ln", id="v")],
        [{"text": "hm", "thought": True, "thoughtSignature": "c2ln"}, call_part()],
        [{"text": "yes", "thoughtSignature": "c2ln"}, {"text": "no"}],
        [call_part(args={"a": 1}), {"text": "", "thoughtSignature": "c2ln"}],
        [{"text": "", "thoughtSignature": "c2ln"}],
        [{"text": "a", "thoughtSignature": "x"}, {"text": "b", "thoughtSignature": "y"}],
    ],
    ids=["first call", "second call", "thought", "text", "after a call", "alone", "two texts"],
)
def test_parts_go_back_as_they_came(sent: list[Json]):
    turn = decode(*(event(part) for part in sent), end())[1].message
    back = contents(user("q"), turn, user("x"))[1]["parts"]
    plain = [
        {**part, "functionCall": {"args": {}, **part["functionCall"]}} if "functionCall" in part else part
        for part in sent
    ]

    assert back == plain


@pytest.mark.parametrize("chunks", [1, 2], ids=["in one event", "in two"])
def test_two_calls_of_one_tool_have_ids_of_their_own(chunks: int):
    asked = ChatRequest((user("q"), assistant(ToolCall("t-2-1", "t", "{}")), results(), user("x")))
    calls = [call_part(args={"n": 1}), call_part(args={"n": 2}), call_part("u", {"n": 3})]
    events = [event(*calls)] if chunks == 1 else [event(one) for one in calls]
    answer = decode(*events, end(), request=asked)[1]

    assert [(call.id, call.arguments) for call in answer.calls] == [
        ("t-3-1", '{"n":1}'),
        ("t-3-2", '{"n":2}'),
        ("u-3-3", '{"n":3}'),
    ]


@pytest.mark.parametrize(
    ("reason", "found", "expected"),
    [
        ("STOP", [{"text": "x"}], "end_turn"),
        ("STOP", [], "end_turn"),
        ("STOP", [call_part()], "tool_use"),
        ("MAX_TOKENS", [call_part()], "max_tokens"),
        ("MAX_TOKENS", [], "max_tokens"),
        ("SAFETY", [{"text": "x"}], "refusal"),
        ("SAFETY", [call_part()], "tool_use"),
        *((reason, [], "refusal") for reason in ("RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII")),
        ("IMAGE_SAFETY", [], "refusal"),
        ("LANGUAGE", [], "refusal"),
        ("OTHER", [], "refusal"),
        ("OTHER", [{"text": "x"}], "end_turn"),
        ("MALFORMED_FUNCTION_CALL", [], "malformed"),
        ("UNEXPECTED_TOOL_CALL", [{"text": "x"}], "malformed"),
        ("MALFORMED_FUNCTION_CALL", [call_part()], "tool_use"),
        ("A_NEW_ONE", [{"text": "x"}], "end_turn"),
    ],
)
def test_why_the_model_stopped(reason: str, found: list[Json], expected: str):
    assert decode(event(*found, finish=reason))[1].stop_reason == expected


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        ({"candidates": [{"finishReason": "STOP"}]}, ""),
        ({"candidates": [{"finishReason": "MISSING_THOUGHT_SIGNATURE"}]}, "MISSING_THOUGHT_SIGNATURE"),
        ({"candidates": [{"finishReason": "LANGUAGE", "finishMessage": "no Klingon"}]}, "LANGUAGE: no Klingon"),
        ({"promptFeedback": {"blockReason": "BLOCKLIST"}}, "BLOCKLIST"),
        ({"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "a word"}}, "OTHER: a word"),
    ],
)
def test_an_unusual_end_says_its_word_and_why(answer: Json, detail: str):
    assert decode(answer)[1].stop_detail == detail


@pytest.mark.parametrize(
    "answer",
    [
        {"promptFeedback": {"blockReason": "SAFETY"}},
        {"promptFeedback": {"blockReason": "OTHER"}, "usageMetadata": {"promptTokenCount": 4}},
        {"candidates": [], "usageMetadata": {"promptTokenCount": 4}},
        {"usageMetadata": {"promptTokenCount": 4}, "modelVersion": "m"},
        {"candidates": [{"finishReason": "SAFETY"}]},
    ],
    ids=["blocked", "blocked, with usage", "no candidate", "no candidates", "no content"],
)
def test_a_prompt_that_is_refused(answer: Json):
    response = decode(answer)[1]

    assert (response.stop_reason, response.message) == ("refusal", assistant())


def test_feedback_that_blocks_nothing_is_none():
    feedback = {"blockReason": "BLOCK_REASON_UNSPECIFIED", "safetyRatings": []}

    assert decode(event({"text": "x"}, finish="STOP", promptFeedback=feedback))[1].stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"promptTokenCount": 3}, Usage(input_tokens=3, prompt_tokens=3)),
        ({"candidatesTokenCount": 5}, Usage(output_tokens=5)),
        ({"thoughtsTokenCount": 5}, Usage(output_tokens=5, thinking_tokens=5)),
        ({"promptTokenCount": 3, "toolUsePromptTokenCount": 4}, Usage(input_tokens=7, prompt_tokens=7)),
        ({"promptTokenCount": 0, "candidatesTokenCount": 0}, None),
        ({"promptTokenCount": -1, "candidatesTokenCount": True}, None),
        ({"promptTokenCount": "9", "candidatesTokenCount": float("inf")}, None),
        ({}, None),
        ("x", None),
    ],
    ids=["only read", "only written", "thoughts", "tools", "all zero", "no counts", "no numbers", "empty", "text"],
)
def test_usage(usage: Json, expected: Usage | None):
    assert decode(event({"text": "x"}, finish="STOP", usage=usage))[1].usage == expected


@pytest.mark.parametrize(
    "events",
    [
        [event({"text": "x"}, usage={"promptTokenCount": 1}), event(finish="STOP", usage={"promptTokenCount": 9})],
        [event({"text": "x"}, finish="STOP"), {"usageMetadata": {"promptTokenCount": 9}}],
        [event({"text": "x"}, usage={"promptTokenCount": 9}), event(finish="STOP")],
    ],
    ids=["in each event", "after the end", "before the end"],
)
def test_the_last_report_of_usage_counts(events: list[Json]):
    assert decode(*events)[1].usage == Usage(input_tokens=9, prompt_tokens=9)


def test_reading_goes_on_after_a_reason_to_end():
    decoder = gemini.decoder()
    for _ in range(3):
        decoder.feed(event({"text": "x"}, finish="STOP", usage={"promptTokenCount": 9}))
        assert (decoder.complete, decoder.ended) == (False, True)

    assert decoder.finish().text == "xxx"


def test_files_that_the_model_makes():
    picture = {"inlineData": {"mimeType": "image/jpeg; q=1", "data": b64encode(PNG).decode()}}
    sound = {"inlineData": {"mimeType": "Audio/L16", "data": "AAAA"}}

    assert parts({"text": "here"}, picture, {**picture, "thought": True}, sound) == (
        Text("here"),
        File("image/png", PNG),
        File("audio/l16", b"\0\0\0"),
    )


def test_what_is_unknown_is_ignored():
    unknown = [{"executableCode": {"code": "1"}}, {"brandNew": 1}, 7, {"text": 7}, {"functionCall": "x"}, {"text": ""}]
    more = {"candidates": [*event({"text": "x"})["candidates"], {"content": {"parts": [{"text": "other"}]}}]}

    assert decode(event(*unknown), more, end())[1].message.parts == (Text("x"),)


@pytest.mark.parametrize("length", range(4))
def test_a_stream_without_its_end_mark_is_no_answer(length: int):
    events = [event({"text": "half"}), event(call_part()), event({"text": ""}, usage={"promptTokenCount": 1})]

    with pytest.raises(Truncated, match="the answer broke off before its end") as caught:
        decode(*events[:length])

    assert caught.value.retryable


@pytest.mark.parametrize(
    ("error", "text", "retryable"),
    [
        ({"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}, "status 503 in the answer: overloaded", True),
        ({"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}, "status 400 in the answer: bad", False),
        ({"message": "odd"}, "an error in the answer: odd", True),
    ],
    ids=["overloaded", "invalid", "no code"],
)
def test_an_error_inside_the_stream(error: Json, text: str, retryable: bool):
    with pytest.raises(ProviderError) as caught:
        decode(event({"text": "x"}), {"error": error})

    assert (str(caught.value), caught.value.retryable) == (text, retryable)


def test_a_limit_inside_the_stream_says_how_long_to_wait():
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.5s"}]

    with pytest.raises(RateLimited) as caught:
        decode({"error": {"code": 429, "message": "slow down", "details": details}})

    assert (caught.value.retry_after, caught.value.retryable) == (7.5, True)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ([], "expected an answer with `candidates`, found `[]`"),
        ("text", 'expected an answer with `candidates`, found `"text"`'),
        (None, "expected an answer with `candidates`, found `null`"),
        ({}, "expected an answer with `candidates`, found `{}`"),
        ({"type": "ping"}, 'expected an answer with `candidates`, found `{"type":"ping"}`'),
        ({"candidates": "x"}, 'expected `candidates` to be a list of mappings, found `"x"`'),
        ({"candidates": [7]}, "expected `candidates` to be a list of mappings, found `[7]`"),
        (
            {"candidates": [{"content": {"parts": "x"}}]},
            'expected `parts` to be a list, found `"x"`',
        ),
        (
            {"candidates": [{"content": {"parts": [{"inlineData": {"data": "?"}}]}}]},
            'expected the data of a file in base64, found `"?"`',
        ),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, (dict, list)) else "",
)
def test_events_of_no_known_shape(event: Json, text: str):
    with pytest.raises(Unreadable) as caught:
        gemini.decoder().feed(event)

    assert str(caught.value) == text


ODD = st.recursive(
    st.sampled_from([None, True, -1, 0, 2, 1.5, float("inf"), float("nan"), "", "x", "STOP", "\ud83d", "AAAA"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["text", "name", "a"]), inner, max_size=2)
    ),
    max_leaves=4,
)
HOSTILE_PARTS = st.fixed_dictionaries(
    {},
    optional={
        "text": ODD,
        "thought": ODD,
        "thoughtSignature": ODD,
        "functionCall": st.fixed_dictionaries({}, optional={"name": ODD, "args": ODD, "id": ODD}) | ODD,
        "inlineData": st.fixed_dictionaries({}, optional={"mimeType": ODD, "data": ODD}) | ODD,
    },
)
HOSTILE = ODD | st.fixed_dictionaries(
    {},
    optional={
        "candidates": ODD
        | st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "content": ODD | st.fixed_dictionaries({"parts": ODD | st.lists(HOSTILE_PARTS, max_size=3)}),
                    "finishReason": ODD,
                },
            ),
            max_size=1,
        ),
        "promptFeedback": ODD | st.fixed_dictionaries({"blockReason": ODD}),
        "usageMetadata": ODD | st.dictionaries(st.sampled_from(["promptTokenCount", "thoughtsTokenCount"]), ODD),
        "modelVersion": ODD,
        "error": ODD,
    },
)


@given(events=st.lists(HOSTILE, max_size=6))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_a_server_sends_is_an_answer_or_an_error_that_octo_knows(events: list[Json]):
    decoder = gemini.decoder()
    for one in events:
        with suppress(Unreadable, ProviderError):
            decoder.feed(one)
    with suppress(Truncated):
        answer = decoder.finish()
        assert all(number is None or number >= 0 for number in asdict(answer.usage or Usage()).values())
        assert contents(user("q"), answer.message, user("go on"))
