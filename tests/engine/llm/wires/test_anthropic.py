"""octo/llm/wires/anthropic.py: the Messages API, requests."""

import json
import logging
from base64 import b64encode
from dataclasses import replace

import pytest

from octo.errors import BadRequest
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    File,
    NamedTool,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolDefinition,
    ToolResult,
    user,
)
from octo.llm.credentials import Credentials
from octo.llm.wire import Endpoint
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
    body(ChatRequest((user("x"),), max_tokens=1000), replace(BUDGETED, connector="claude"))

    assert caplog.messages == ['connector "claude": thinking is left out: its budget 2048 is not below maxTokens 1000']


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
