"""octo/llm/wires/anthropic.py, octo/llm/wires/anthropic_answer.py: the Messages API, request out and answer in."""

import json
import logging
from base64 import b64encode
from contextlib import suppress
from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octo.errors import AuthenticationFailed, BadRequest, ProviderError, Truncated
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
    CustomDelta,
    Delta,
    File,
    NamedTool,
    Part,
    Reasoning,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolDefinition,
    ToolInput,
    ToolReady,
    ToolResult,
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
LOOKUP = ToolDefinition("lookup", "Find a company", {"type": "object", "properties": {"n": {"minimum": 1.0}}})
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8


def body(request: ChatRequest, endpoint: Endpoint = ENDPOINT, *, stream: bool = False) -> Json:
    return json.loads(anthropic.encode(request, endpoint, stream=stream).body)


def messages(*turns: ChatMessage) -> Json:
    return body(ChatRequest(turns))["messages"]


def assistant(*parts: Part) -> ChatMessage:
    return ChatMessage("assistant", parts)


def results(*parts: ToolResult) -> ChatMessage:
    return ChatMessage("tool", parts)


def text(value: str) -> Json:
    return {"type": "text", "text": value}


# ---------------------------------------------------------------- request


def test_the_smallest_request_says_nothing_that_was_not_asked_for():
    call = anthropic.encode(ChatRequest((user("hello"),)), ENDPOINT, stream=False)

    assert (call.method, call.url, call.stream) == ("POST", "https://api.anthropic.com/v1/messages", False)
    assert call.headers == (
        ("content-type", "application/json"),
        ("x-api-key", "k"),
        ("anthropic-version", "2023-06-01"),
    )
    assert json.loads(call.body) == {
        "model": "claude-sonnet-4-6",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": [text("hello")]}],
    }


def test_a_request_with_everything():
    request = ChatRequest(
        (user("hello"),),
        system="be brief",
        tools=(LOOKUP, ToolDefinition("ping", " ", {"properties": {}})),
        tool_choice=NamedTool("ping"),
        model="claude-haiku-4-5",
        max_tokens=100,
        temperature=0.5,
    )
    endpoint = replace(ENDPOINT, credentials=replace(CREDENTIALS, user="someone"))

    assert body(request, endpoint, stream=True) == {
        "model": "claude-haiku-4-5",
        "max_tokens": 100,
        "system": [text("be brief")],
        "tools": [
            {
                "name": "lookup",
                "description": "Find a company",
                "input_schema": {"type": "object", "properties": {"n": {"minimum": 1}}},
            },
            {"name": "ping", "input_schema": {"type": "object", "properties": {}}},
        ],
        "tool_choice": {"type": "tool", "name": "ping"},
        "messages": [{"role": "user", "content": [text("hello")]}],
        "temperature": 0.5,
        "metadata": {"user_id": "someone"},
        "stream": True,
    }


@pytest.mark.parametrize(
    "base",
    [
        "https://gw.example/claude",
        "https://gw.example/claude/",
        "https://gw.example/claude/v1",
        "https://gw.example/claude/v1/",
        "https://gw.example/claude//v1//",
    ],
)
def test_the_base_url_may_end_in_v1_or_not(base: str):
    assert anthropic.url(base) == "https://gw.example/claude/v1/messages"
    assert anthropic.url(f"{base}?team=a") == "https://gw.example/claude/v1/messages?team=a"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ((), "context-1m-2025-08-07"),
        ((("Anthropic-Beta", "other-1"),), "other-1,context-1m-2025-08-07"),
        ((("anthropic-beta", "context-1m-2025-08-07, other-1"),), "context-1m-2025-08-07,other-1"),
    ],
    ids=["alone", "beside another one", "asked for already"],
)
def test_the_large_context_is_asked_for_in_the_beta_header(headers: tuple[tuple[str, str], ...], expected: str):
    credentials = replace(CREDENTIALS, enable_1m_context=True, custom_headers=headers)
    call = anthropic.encode(ChatRequest((user("x"),)), replace(ENDPOINT, credentials=credentials), stream=False)

    assert {name.lower(): value for name, value in call.headers}["anthropic-beta"] == expected


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", None),
        ("any", {"type": "any"}),
        ("none", {"type": "none"}),
        (NamedTool("lookup"), {"type": "tool", "name": "lookup"}),
    ],
    ids=["auto", "any", "none", "named"],
)
def test_the_choice_of_tools(choice: object, expected: Json):
    request = ChatRequest((user("x"),), tools=(LOOKUP,), tool_choice=choice)  # type: ignore[arg-type]  # from a table

    assert body(request).get("tool_choice") == expected


def test_a_forced_tool_without_tools_is_not_forced():
    assert "tool_choice" not in body(ChatRequest((user("x"),), tool_choice="any"))


def test_tools_that_were_called_are_defined_although_none_may_be_called_now():
    turns = (user("x"), assistant(ToolCall("a", "gone", "{}")), results(ToolResult("a", "gone", "1")))
    sent = body(ChatRequest(turns))

    assert sent["tools"] == [{"name": "gone", "input_schema": {"type": "object"}}]
    assert sent["tool_choice"] == {"type": "none"}


# ---------------------------------------------------------------- thinking

ADAPTIVE = replace(ENDPOINT, thinking="adaptive")
BUDGETED = replace(ENDPOINT, thinking="budgeted", thinking_budget=2048)


@pytest.mark.parametrize(
    ("endpoint", "more", "thinking", "temperature"),
    [
        (ENDPOINT, {}, None, 0.5),
        (ADAPTIVE, {}, {"type": "adaptive"}, None),
        (BUDGETED, {}, {"type": "enabled", "budget_tokens": 2048}, None),
        (BUDGETED, {"max_tokens": 2048}, None, 0.5),
        (ADAPTIVE, {"tool_choice": "any"}, None, 0.5),
        (BUDGETED, {"tool_choice": NamedTool("lookup")}, None, 0.5),
        (ADAPTIVE, {"reasoning_effort": "none"}, {"type": "disabled"}, 0.5),
        (ENDPOINT, {"reasoning_effort": "high"}, {"type": "adaptive", "display": "summarized"}, None),
        (ENDPOINT, {"model": "claude-opus-4-7"}, None, None),
    ],
    ids=[
        "off",
        "adaptive",
        "budgeted",
        "budget not below the cap",
        "adaptive, tool forced",
        "budgeted, tool forced",
        "effort none wins",
        "effort wins",
        "model without temperature",
    ],
)
def test_thinking_and_temperature(endpoint: Endpoint, more: Json, thinking: Json, temperature: float | None):
    sent = body(ChatRequest((user("x"),), tools=(LOOKUP,), temperature=0.5, **more), endpoint)

    assert (sent.get("thinking"), sent.get("temperature")) == (thinking, temperature)


def test_an_effort_is_sent_as_the_vendors_own_word():
    assert body(ChatRequest((user("x"),), reasoning_effort="xhigh"))["output_config"] == {"effort": "xhigh"}


def test_a_word_that_is_no_effort_is_not_sent():
    with pytest.raises(BadRequest) as caught:
        body(ChatRequest((user("x"),), reasoning_effort="lots"))

    assert str(caught.value) == (
        "expected one of `none`, `low`, `medium`, `high`, `xhigh`, `max` as `reasoningEffort`, found `lots`"
    )


def test_a_budget_that_does_not_fit_is_logged(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "octo.llm")
    body(ChatRequest((user("x"),), max_tokens=1000), BUDGETED)

    assert caplog.messages == ["thinking is left out: its budget 2048 is not below maxTokens 1000"]


def test_a_budget_does_not_start_in_the_middle_of_a_turn_without_thinking():
    turns = (user("x"), assistant(ToolCall("a", "t", "{}")), results(ToolResult("a", "t", "1")))

    assert "thinking" not in body(ChatRequest(turns), BUDGETED)
    assert "thinking" in body(ChatRequest((*turns, assistant(Text("y")), user("z"))), BUDGETED)


SIGNED = Reasoning(" so \n", {"wire": "anthropic", "signature": "sig=="})
REDACTED = Reasoning("", {"wire": "anthropic", "data": "opaque"})


def test_reasoning_is_echoed_byte_for_byte_and_first():
    sent = messages(user("x"), assistant(Text("hm"), SIGNED, REDACTED, ToolCall("a", "t", "{}")))

    assert sent[1]["content"] == [
        {"type": "thinking", "thinking": " so \n", "signature": "sig=="},
        {"type": "redacted_thinking", "data": "opaque"},
        text("hm"),
        {"type": "tool_use", "id": "a", "name": "t", "input": {}},
    ]


@pytest.mark.parametrize(
    "reasoning",
    [
        Reasoning("thoughts"),
        Reasoning("thoughts", {"wire": "anthropic"}),
        Reasoning("thoughts", {"wire": "gemini", "signature": "s"}),
        Reasoning("thoughts", "what an older version stored"),
    ],
    ids=["no replay data", "no signature", "of another wire", "unknown form"],
)
def test_reasoning_that_this_wire_did_not_sign_is_left_out(reasoning: Reasoning):
    assert messages(user("x"), assistant(reasoning, Text("y")))[1]["content"] == [text("y")]


def test_a_turn_of_nothing_but_reasoning_gets_a_text():
    content = messages(user("x"), assistant(SIGNED), user("y"))[1]["content"]

    assert [block["type"] for block in content] == ["thinking", "text"]
    assert content[-1] == text("(no content)")


# ---------------------------------------------------------------- conversation


def test_results_and_the_next_user_turn_are_one_message():
    turns = (
        user("x"),
        assistant(ToolCall("a", "t", '{"n": 1}'), ToolCall("b", "t", '{"n": 12345678901234567890}')),
        results(ToolResult("a", "t", "one"), ToolResult("b", "t", "no", is_error=True)),
        user("and?", File("image/png", PNG)),
    )

    assert messages(*turns)[1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "a", "name": "t", "input": {"n": 1}},
                {"type": "tool_use", "id": "b", "name": "t", "input": {"n": 12345678901234567890}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                {"type": "tool_result", "tool_use_id": "b", "content": "no", "is_error": True},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": b64encode(PNG).decode()},
                },
                text("and?"),
            ],
        },
    ]


@pytest.mark.parametrize(
    "arguments",
    ["", "nonsense", '{"a":', "[1]", '"text"', "null", '{"a": NaN}', "[" * 100_000, '{"a":' * 300 + "1" + "}" * 300],
    ids=["empty", "not JSON", "cut", "list", "text", "null", "NaN", "endless nesting", "deep nesting"],
)
def test_arguments_that_are_no_json_object_are_sent_as_an_empty_one(arguments: str):
    assert messages(user("x"), assistant(ToolCall("a", "t", arguments)))[1]["content"][0]["input"] == {}


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u00a0"], ids=["empty", "space", "lines", "no-break space"])
def test_blank_text_is_never_sent(blank: str):
    sent = body(
        ChatRequest(
            (
                user(blank),
                assistant(Text(blank), ToolCall("a", "t", "{}")),
                results(ToolResult("a", "t", blank)),
                assistant(Text(blank)),
                ChatMessage("user", (Text(blank), Text("z"))),
            ),
            system=blank,
        )
    )

    assert "system" not in sent
    assert [turn["content"] for turn in sent["messages"]] == [
        [text("(no content)")],
        [{"type": "tool_use", "id": "a", "name": "t", "input": {}}],
        [{"type": "tool_result", "tool_use_id": "a", "content": "(no content)"}],
        [text("(no content)")],
        [text("z")],
    ]


def test_a_file_alone_needs_no_text_and_a_document_carries_its_name():
    pdf = File("application/pdf", b"%PDF-1.7", "offer.pdf")

    assert messages(user("", pdf, replace(pdf, name="")))[0]["content"] == [
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjc="},
            "title": "offer.pdf",
        },
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjc="}},
    ]


def test_files_of_the_assistant_are_not_sent():
    assert messages(user("x"), assistant(File("image/png", PNG), Text("there")))[1]["content"] == [text("there")]


def test_the_start_of_an_answer_loses_its_trailing_space():
    assert messages(user("x"), assistant(Text("So \n")))[1]["content"] == [text("So")]


def test_half_an_emoji_becomes_a_replacement_character():
    assert messages(user("\ud83d!"))[0]["content"] == [text("�!")]


def test_a_conversation_without_a_user_turn_is_an_error():
    with pytest.raises(BadRequest, match="the conversation has no user turn"):
        anthropic.encode(ChatRequest((assistant(Text("x")),)), ENDPOINT, stream=False)


# ---------------------------------------------------------------- caching

MARK = {"cache_control": {"type": "ephemeral"}}


def test_breakpoints_stand_after_system_tools_and_the_last_message():
    request = ChatRequest(
        (user("x"), assistant(ToolCall("a", "lookup", "{}")), results(ToolResult("a", "lookup", "1"))),
        system="be brief",
        tools=(LOOKUP, replace(LOOKUP, name="other")),
        cache=True,
    )
    sent = body(request)

    assert sent["system"] == [text("be brief") | MARK]
    assert [tool.get("cache_control") for tool in sent["tools"]] == [None, MARK["cache_control"]]
    assert sent["messages"][-1]["content"] == [{"type": "tool_result", "tool_use_id": "a", "content": "1"} | MARK]
    assert json.dumps(sent).count("cache_control") == 3


def test_a_prompt_that_is_not_cached_carries_no_marks():
    request = ChatRequest((user("x"),), system="s", tools=(LOOKUP,), cache=True)

    assert b"cache_control" not in anthropic.encode(request, replace(ENDPOINT, prompt_cache="off"), stream=False).body


# ---------------------------------------------------------------- answer


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
