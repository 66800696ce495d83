"""octo/llm/wires/responses_answer.py: the Responses API, answers."""

import json
from base64 import b64encode
from contextlib import suppress
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octo.errors import AuthenticationFailed, BadRequest, ProviderError, RateLimited, Truncated
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
    CustomDelta,
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
from octo.llm.wires.responses import Responses
from octo.values import Json

WIRE = Responses("openai")
CREDENTIALS = Credentials("openai", "https://api.openai.com/v1", "authorization", api_key="k")
ENDPOINT = Endpoint(CREDENTIALS, "gpt-5.4")
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8


def body(request: ChatRequest, endpoint: Endpoint = ENDPOINT, *, stream: bool = False) -> Json:
    return json.loads(WIRE.encode(request, endpoint, stream=stream).body)


def items(*turns: ChatMessage, **more: Json) -> Json:
    return body(ChatRequest(turns, **more))["input"]


def results(*parts: ToolResult) -> ChatMessage:
    return ChatMessage("tool", parts)


def said(*content: Json) -> Json:
    return {"type": "message", "role": "user", "content": list(content)}


def text(value: str) -> Json:
    return {"type": "input_text", "text": value}


def answered(place: int, value: str, **more: Json) -> Json:
    content = [{"type": "output_text", "text": value, "annotations": []}]
    return {
        "type": "message",
        "id": f"msg_{place}",
        "status": "completed",
        "role": "assistant",
        "content": content,
        **more,
    }


ITEM = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": " so \n"}],
    "encrypted_content": "gAAA==",
}


COUNTED = {
    "input_tokens": 20,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 9,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 29,
}


def added(index: int, item: Json) -> Json:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, item: Json) -> Json:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def delta(kind: str, value: str, index: int | None = 0, id: str | None = None, **more: Json) -> Json:
    where = {key: one for key, one in (("output_index", index), ("item_id", id)) if one is not None}
    return {"type": f"response.{kind}.delta", **where, "delta": value, **more}


def ended(*output: Json, reason: str | None = None, usage: Json = None) -> Json:
    response = {
        "object": "response",
        "status": "incomplete" if reason else "completed",
        "model": "gpt-x",
        "output": list(output),
        "usage": usage,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
    }
    return {"type": f"response.{response['status']}", "response": response}


def function(id: str = "call_1", name: str = "lookup", arguments: str = "", item: str = "fc_1") -> Json:
    return {"type": "function_call", "id": item, "call_id": id, "name": name, "arguments": arguments}


def message(*content: Json, **more: Json) -> Json:
    return {"type": "message", "id": "msg_9", "role": "assistant", "content": list(content), **more}


def output_text(value: str) -> Json:
    return {"type": "output_text", "text": value, "annotations": []}


def decode(*events: Json) -> tuple[list[Delta], ChatResponse]:
    decoder = WIRE.decoder()
    deltas = [delta for event in events for delta in decoder.feed(event)]
    return deltas, decoder.finish()


def parts(*events: Json) -> tuple[Part, ...]:
    return decode(*events, ended())[1].message.parts


def test_a_streamed_answer():
    thought = {**ITEM, "summary": [{"type": "summary_text", "text": one} for one in ("let me ", "see")], "status": None}
    call = function(arguments='{"n": 1}')
    events = [
        {"type": "response.created", "response": {"status": "in_progress"}},
        added(0, {**thought, "summary": [], "encrypted_content": "unfinished"}),
        {"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0},
        delta("reasoning_summary_text", "let ", 0, "rs_1"),
        delta("reasoning_summary_text", "me ", 0, "rs_1"),
        {"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1},
        delta("reasoning_summary_text", "see", 0, "rs_1"),
        done(0, thought),
        added(1, message()),
        delta("output_text", "I look", 1, "msg_9"),
        delta("output_text", "", 1, "msg_9"),
        delta("output_text", " it up", 1, "msg_9"),
        {"type": "response.output_text.annotation.added", "output_index": 1, "annotation": {}},
        done(1, message(output_text("I look it up"), phase="commentary")),
        added(2, function()),
        delta("function_call_arguments", '{"n": ', 2, "fc_1"),
        delta("function_call_arguments", "1}", 2, "fc_1"),
        {
            "type": "response.function_call_arguments.done",
            "output_index": 2,
            "item_id": "fc_1",
            "arguments": '{"n": 1}',
        },
        done(2, call),
    ]
    whole = ended(thought, message(output_text("I look it up"), phase="commentary"), call, usage=COUNTED)
    deltas, response = decode(*events, whole)
    ready = ToolCall("call_1", "lookup", '{"n": 1}')
    mark = {"wire": "responses", "dialect": "openai"}

    assert deltas == [
        ThinkingDelta("let ", 0),
        ThinkingDelta("me ", 0),
        ThinkingDelta("\n\n", 0),
        ThinkingDelta("see", 0),
        TextDelta("I look", 1),
        TextDelta(" it up", 1),
        ToolStart("call_1", "lookup", 2),
        ToolInput('{"n": ', "call_1", "lookup", 2),
        ToolInput("1}", "call_1", "lookup", 2),
        ToolReady(ready),
    ]
    echoed = {key: one for key, one in thought.items() if key != "status"}
    assert response == ChatResponse(
        ChatMessage(
            "assistant",
            (
                Reasoning("let me \n\nsee", {**mark, "item": echoed}),
                Text("I look it up", {**mark, "phase": "commentary"}),
                ready,
            ),
        ),
        "tool_use",
        "gpt-x",
        Usage(20, 9, thinking_tokens=2, cached_tokens=4, prompt_tokens=20),
    )
    assert decode(whole["response"])[1] == response
    assert items(user("q"), response.message)[1:3] == [echoed, answered(2, "I look it up", phase="commentary")]


@pytest.mark.parametrize(
    "events",
    [
        [delta("output_text", "Hel", 0), delta("output_text", "lo", 0)],
        [delta("output_text", "Hel", None), delta("output_text", "lo", None)],
        [delta("output_text", "Hel", None, "m"), delta("output_text", "lo", None, "m")],
        [added(0, message()), delta("output_text", "Hel", 0, "other"), delta("output_text", "lo", 0, "another")],
        [added(0, message()), done(0, message(output_text("Hel"), output_text("lo")))],
        [done(0, message(output_text("Hello")))],
        [delta("output_text", "Hello", 0), done(0, message(output_text("Hello"))), DONE],
    ],
    ids=["by place", "by nothing", "by id", "ids that change", "only its end", "never announced", "said twice"],
)
def test_a_text_however_its_events_say_where_it_belongs(events: list[Json]):
    assert parts(*events) == (Text("Hello"),)


def test_an_item_that_only_the_end_tells_of():
    deltas, response = decode(ended(message(output_text("Hello")), function(arguments="{}")))

    assert deltas == [
        TextDelta("Hello", 0),
        ToolStart("call_1", "lookup", 1),
        ToolInput("{}", "call_1", "lookup", 1),
        ToolReady(ToolCall("call_1", "lookup", "{}")),
    ]
    assert response.message.parts == (Text("Hello"), ToolCall("call_1", "lookup", "{}"))


WHOLE = done(0, function(arguments='{"a":1}'))


@pytest.mark.parametrize(
    ("events", "arguments"),
    [
        ([added(0, function())], "{}"),
        ([added(0, function()), delta("function_call_arguments", '{"a": 1', 0)], '{"a": 1'),
        ([added(0, function()), delta("function_call_arguments", '{"a"', 0), WHOLE], '{"a":1}'),
        ([added(0, function()), delta("function_call_arguments", "wrong", 0), WHOLE], '{"a":1}'),
        ([delta("function_call_arguments", '{"a"', 0), WHOLE], '{"a":1}'),
        ([added(0, function(arguments=" "))], "{}"),
    ],
    ids=["none", "open at the end", "more at the end", "the end is right", "the name at the end", "blank"],
)  # fmt: skip
def test_the_argument_text_of_a_call(events: list[Json], arguments: str):
    deltas, response = decode(*events, ended())

    assert response.message.parts == (ToolCall("call_1", "lookup", arguments),)
    assert deltas[-1] == ToolReady(ToolCall("call_1", "lookup", arguments))
    assert sum(isinstance(one, ToolStart | ToolReady) for one in deltas) == 2


def test_parallel_calls_that_come_mixed():
    events = [added(n, function(f"call_{n}", item=f"fc_{n}")) for n in (0, 1)]
    for fragment in ('{"n"', ": 7}"):
        events += [delta("function_call_arguments", fragment, None, f"fc_{n}") for n in (1, 0)]

    assert parts(*events) == tuple(ToolCall(f"call_{n}", "lookup", '{"n": 7}') for n in (0, 1))


@pytest.mark.parametrize(
    ("item", "id"), [(function(id=""), "fc_1"), (function(id="", item=""), "call_0")], ids=["id of the item", "none"]
)
def test_a_call_without_an_id_gets_one(item: Json, id: str):
    assert parts(done(0, item)) == (ToolCall(id, "lookup", "{}"),)


def test_a_call_without_a_name_is_none():
    deltas, response = decode(done(0, function(name="")), ended())

    assert (deltas, response.message.parts, response.stop_reason) == ([], (), "end_turn")


@pytest.mark.parametrize(
    ("item", "replayed"),
    [
        ({"type": "reasoning", "id": "rs_1", "encrypted_content": "x"}, {"summary": []}),
        ({"type": "reasoning", "id": "rs_1", "content": [{"type": "reasoning_text", "text": "so"}]}, {"summary": []}),
        ({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "so"}]}, None),
        ({"type": "reasoning", "encrypted_content": "x", "summary": [{"type": "summary_text", "text": "so"}]}, None),
    ],
    ids=["encrypted", "readable", "kept by the vendor", "without an id"],
)
def test_reasoning_that_can_be_sent_back(item: Json, replayed: Json):
    (reasoning,) = parts(done(0, item))

    assert isinstance(reasoning, Reasoning)
    assert (reasoning.replay and reasoning.replay["item"]) == (None if replayed is None else item | replayed)


def test_a_refusal_is_told_and_becomes_the_text():
    said = [added(0, message()), delta("refusal", "I can", 0), delta("refusal", "not", 0)]
    deltas, response = decode(*said, ended(message({"type": "refusal", "refusal": "I cannot"})))

    assert deltas == [CustomDelta("refusal", "I can"), CustomDelta("refusal", "not")]
    assert (response.stop_reason, response.message.parts) == ("refusal", (Text("I cannot"),))
    assert decode(ended(message({"type": "refusal", "refusal": "I cannot"}))["response"])[1] == response


@pytest.mark.parametrize(
    ("output", "reason", "expected"),
    [
        ([message(output_text("x"))], None, "end_turn"),
        ([function()], None, "tool_use"),
        ([function()], "max_output_tokens", "max_tokens"),
        ([function()], "content_filter", "refusal"),
        ([message({"type": "refusal", "refusal": "no"}), function()], None, "refusal"),
        ([message(output_text("x"))], "a new one", "end_turn"),
        ([], None, "end_turn"),
    ],
    ids=["text", "call", "cap", "filter", "refused", "unknown", "nothing"],
)
def test_why_the_model_stopped(output: list[Json], reason: str | None, expected: str):
    assert decode(ended(*output, reason=reason))[1].stop_reason == expected


def test_an_answer_that_was_filtered_says_so():
    filtered = decode(ended(message(output_text("I wou")), reason="content_filter"))[1]
    refused = decode(ended(message({"type": "refusal", "refusal": "no"}), reason="content_filter"))[1]

    assert (filtered.stop_reason, filtered.stop_detail) == ("refusal", "content_filter")
    assert (refused.stop_reason, refused.text, refused.stop_detail) == ("refusal", "no", "")


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (COUNTED, Usage(20, 9, 2, 4, prompt_tokens=20)),
        ({"input_tokens": 3}, Usage(3, prompt_tokens=3)),
        ({"input_tokens": 0, "output_tokens": 0}, None),
        ({"input_tokens": -4, "output_tokens": True}, None),
        ({"input_tokens": "7", "input_tokens_details": 4, "output_tokens": float("inf")}, None),
        ({}, None),
        (None, None),
        ([], None),
    ],
    ids=["all", "only read", "all zero", "no counts", "no numbers", "empty", "nothing", "a list"],
)
def test_usage(usage: Json, expected: Usage | None):
    assert decode(ended(usage=usage))[1].usage == expected


def test_an_image_is_a_file():
    results = (b64encode(PNG).decode(), "no base64", None)
    calls = ({"type": "image_generation_call", "id": f"ig_{n}", "result": result} for n, result in enumerate(results))

    assert parts(*(done(index, call) for index, call in enumerate(calls))) == (File("image/png", PNG),)


def test_what_is_unknown_is_ignored():
    events = [
        {"type": "response.brand_new", "output_index": 0},
        {"type": "something.else"},
        done(0, {"type": "file_search_call", "id": "fs_1", "status": "completed"}),
        delta("output_text", "hi", 1),
        delta("audio", "hm", 2),
    ]

    assert parts(*events) == (Text("hi"),)


def test_the_bare_end_mark_of_other_servers_ends_an_answer():
    assert decode(delta("output_text", "hi"), {"type": "response.done"})[1].text == "hi"


@pytest.mark.parametrize("length", range(6))
def test_a_stream_without_its_end_mark_is_no_answer(length: int):
    events = [
        added(0, message()),
        delta("output_text", "half"),
        done(0, message(output_text("half"))),
        added(1, function()),
        DONE,
    ]

    with pytest.raises(Truncated, match="the answer broke off before its end") as caught:
        decode(*events[:length])

    assert caught.value.retryable


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_response_that_is_not_finished_is_no_answer(status: str):
    with pytest.raises(Truncated):
        decode({"object": "response", "status": status, "output": []})


@pytest.mark.parametrize(
    ("event", "kind", "text", "retryable"),
    [
        (
            {"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None},
            RateLimited,
            "status 429 in the answer: slow down",
            True,
        ),
        (
            {"type": "error", "error": {"type": "invalid_request_error", "code": None, "message": "bad tool"}},
            BadRequest,
            "status 400 in the answer: bad tool",
            False,
        ),
        (
            {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "Oops"}}},
            ProviderError,
            "status 500 in the answer: Oops",
            True,
        ),
        (
            {"type": "response.failed", "response": {"error": None}},
            ProviderError,
            "an error in the answer: the response is failed",
            True,
        ),
        (
            {"type": "error", "code": "insufficient_quota", "message": "pay first"},
            RateLimited,
            "status 429 in the answer: pay first",
            False,
        ),
        (
            {"status": "failed", "output": [], "error": {"code": "server_error", "message": "Oops"}},
            ProviderError,
            "status 500 in the answer: Oops",
            True,
        ),
        (
            {"object": "response", "status": "cancelled", "output": []},
            ProviderError,
            "an error in the answer: the response is cancelled",
            False,
        ),
        ({"error": {"code": 401, "message": "who?"}}, AuthenticationFailed, "status 401 in the answer: who?", False),
    ],
    ids=["flat", "nested", "failed", "failed without a word", "quota", "whole and failed", "cancelled", "bare"],
)  # fmt: skip
def test_an_error_inside_the_answer(event: Json, kind: type[ProviderError], text: str, retryable: bool):
    with pytest.raises(ProviderError) as caught:
        decode(delta("output_text", "half"), event)

    assert (type(caught.value), str(caught.value), caught.value.retryable) == (kind, text, retryable)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ([], "expected an event with a `type`, or a response with `output`, found `[]`"),
        (None, "expected an event with a `type`, or a response with `output`, found `null`"),
        ("x", 'expected an event with a `type`, or a response with `output`, found `"x"`'),
        ({"type": 7}, 'expected an event with a `type`, or a response with `output`, found `{"type":7}`'),
        (
            {"type": "response.output_item.done", "item": 7},
            'expected an event with `item` as a mapping, found `{"type":"response.output_item.done","item":7}`',
        ),
        (
            {"type": "response.completed"},
            'expected an event with `response` as a mapping, found `{"type":"response.completed"}`',
        ),
        ({"output": [7]}, "expected a list of mappings, found `[7]`"),
        ({"output": "x"}, 'expected a list of mappings, found `"x"`'),
    ],
    ids=["list", "null", "text", "no type", "no item", "no response", "no mappings", "no list"],
)
def test_events_of_no_known_shape(event: Json, text: str):
    with pytest.raises(Unreadable) as caught:
        WIRE.decoder().feed(event)

    assert str(caught.value) == text


ODD = st.recursive(
    st.sampled_from([None, True, -1, 0, 2, 1.5, float("inf"), float("nan"), 10**400, "", "x", "\ud83d"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "id"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def mapping(**fields: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    """Mappings in which any field may hold anything, or be missing."""
    return st.fixed_dictionaries({}, optional={name: kind | ODD for name, kind in fields.items()})


ITEMS = mapping(
    type=st.sampled_from(["message", "function_call", "reasoning", "image_generation_call", "new"]),
    id=st.sampled_from(["rs_1", "fc_1"]),
    call_id=st.just("c"),
    name=st.just("t"),
    arguments=st.sampled_from(["{}", '{"a"']),
    content=st.lists(mapping(text=st.text(max_size=2), refusal=st.text(max_size=1)), max_size=2),
    summary=st.lists(mapping(text=st.text(max_size=2)), max_size=2),
    encrypted_content=st.just("e"),
    phase=st.just("commentary"),
    result=st.just("aGk="),
)
RESPONSES = mapping(
    status=st.sampled_from(["completed", "incomplete", "failed"]),
    output=st.lists(ITEMS | ODD, max_size=3),
    usage=mapping(input_tokens=st.integers(0, 9), output_tokens=ODD, input_tokens_details=mapping(cached_tokens=ODD)),
    incomplete_details=mapping(reason=st.just("max_output_tokens")),
)
HOSTILE = st.one_of(
    ODD,
    RESPONSES,
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(
                [
                    *("response.output_item.added", "response.output_item.done", "response.output_text.delta"),
                    *("response.function_call_arguments.delta", "response.function_call_arguments.done"),
                    *("response.reasoning_summary_text.delta", "response.reasoning_summary_part.added"),
                    *("response.refusal.delta", "response.completed", "response.done", "response.failed", "error"),
                ]
            )
        },
        optional={
            "item": ITEMS | ODD,
            "response": RESPONSES | ODD,
            "output_index": st.integers(0, 2) | ODD,
            "item_id": st.sampled_from(["rs_1", "fc_1"]) | ODD,
            "delta": st.text(max_size=2) | ODD,
            "arguments": ODD,
            "summary_index": ODD,
            "error": ODD,
            "code": ODD,
        },
    ),
)


@given(events=st.lists(HOSTILE, max_size=8))
@settings(max_examples=300, deadline=None)
def test_whatever_a_server_sends_is_an_answer_or_an_error_that_octo_knows(events: list[Json]):
    decoder = WIRE.decoder()
    for event in events:
        with suppress(Unreadable, ProviderError):
            decoder.feed(event)
    with suppress(Truncated):
        answer = decoder.finish()
        assert all(number is None or number >= 0 for number in asdict(answer.usage or Usage()).values())
        assert items(user("q"), answer.message, user("go on"))
