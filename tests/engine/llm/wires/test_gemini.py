"""octo/llm/wires/gemini.py: `generateContent`, requests."""

import json
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
from octo.llm.wires import gemini
from octo.values import Json

CREDENTIALS = Credentials("googleai", "https://api.example/v1beta", "x-goog-api-key", api_key="k")
ENDPOINT = Endpoint(CREDENTIALS, "gemini-3.5-flash")
LOOKUP = ToolDefinition("lookup", "Find it", {"type": "object", "properties": {"n": {"minimum": 1.0}}})
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
SKIP = "skip_thought_signature_validator"


def body(request: ChatRequest, endpoint: Endpoint = ENDPOINT) -> Json:
    return json.loads(gemini.encode(request, endpoint, stream=False).body)


def contents(*turns: ChatMessage) -> Json:
    return body(ChatRequest(turns))["contents"]


def config(endpoint: Endpoint = ENDPOINT, **request: Json) -> Json:
    return body(ChatRequest((user("x"),), **request), endpoint).get("generationConfig", {})


def assistant(*parts: Part) -> ChatMessage:
    return ChatMessage("assistant", parts)


def results(*parts: ToolResult) -> ChatMessage:
    return ChatMessage("tool", parts)


def own(**fields: str) -> Json:
    return {"wire": "gemini", **fields}


# ---------------------------------------------------------------- request


def test_a_whole_request():
    request = ChatRequest(
        (
            user("what is this?", File("image/png", PNG, "shot.png"), File("audio/mpeg", b"ID3")),
            assistant(
                Reasoning("hm", own(signature="c2ln")),
                Text("I look."),
                ToolCall("lookup-1-1", "lookup", '{"n": 1.0}', own(signature="c2ln")),
                ToolCall("v1", "lookup", "{}", own(id="v1")),
            ),
            results(ToolResult("lookup-1-1", "lookup", '{"$ref":"#/a"}'), ToolResult("v1", "lookup", "no", True)),
            user("and now?"),
        ),
        system="be brief",
        tools=(LOOKUP, ToolDefinition("stop", " ")),
        max_tokens=500,
        temperature=0.0,
    )

    assert body(request) == {
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"inlineData": {"mimeType": "image/png", "data": b64encode(PNG).decode()}},
                    {"inlineData": {"mimeType": "audio/mp3", "data": "SUQz"}},
                    {"text": "what is this?"},
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True, "thoughtSignature": "c2ln"},
                    {"text": "I look."},
                    {"functionCall": {"name": "lookup", "args": {"n": 1}}, "thoughtSignature": "c2ln"},
                    {"functionCall": {"name": "lookup", "args": {}, "id": "v1"}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "lookup", "response": {"result": '{"$ref":"#/a"}'}}},
                    {"functionResponse": {"name": "lookup", "response": {"error": "no"}, "id": "v1"}},
                ],
            },
            {"role": "user", "parts": [{"text": "and now?"}]},
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "lookup",
                        "description": "Find it",
                        "parameters": {"type": "object", "properties": {"n": {"type": "number", "minimum": 1}}},
                    },
                    {"name": "stop"},
                ]
            }
        ],
        "generationConfig": {"maxOutputTokens": 500, "temperature": 0},
    }


def test_the_least_request():
    call = gemini.encode(ChatRequest((user("hi"),), system=" "), ENDPOINT, stream=False)

    assert json.loads(call.body) == {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    assert call.headers == (("content-type", "application/json"), ("x-goog-api-key", "k"))


@pytest.mark.parametrize(
    ("base", "platform", "model", "stream", "expected"),
    [
        ("https://a/v1beta", "standard", "m", False, "https://a/v1beta/models/m:generateContent"),
        ("https://a/v1beta/", "standard", "models/m", True, "https://a/v1beta/models/m:streamGenerateContent?alt=sse"),
        ("https://a/b?c=d", "standard", "m", True, "https://a/b/models/m:streamGenerateContent?c=d&alt=sse"),
        ("https://a", "standard", "x y?#", False, "https://a/models/x%20y%3F%23:generateContent"),
        ("https://a/v1beta/models/", "standard", "m", False, "https://a/v1beta/models/m:generateContent"),
        ("https://a/models?c=d", "standard", "m", False, "https://a/models/m:generateContent?c=d"),
        ("https://a/models/proxy", "standard", "m", False, "https://a/models/proxy/models/m:generateContent"),
        ("https://a/google", "vertex", "m", False, "https://a/google/models/m:generateContent"),
        (
            "https://a/publishers/google/models",
            "vertex",
            "m",
            False,
            "https://a/publishers/google/models/m:generateContent",
        ),
        (
            "https://a/publishers/google/models/",
            "vertex",
            "m",
            True,
            "https://a/publishers/google/models/m:streamGenerateContent?alt=sse",
        ),
    ],
    ids=[
        "plain",
        "streamed",
        "a query of its own",
        "odd letters",
        "with models",
        "with models and a query",
        "models elsewhere",
        "vertex without models",
        "vertex",
        "vertex, streamed",
    ],
)
def test_where_a_call_goes(base: str, platform: Json, model: str, stream: bool, expected: str):
    endpoint = replace(ENDPOINT, credentials=replace(CREDENTIALS, base_url=base, platform=platform))

    assert gemini.encode(ChatRequest((user("x"),), model=model), endpoint, stream=stream).url == expected


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", None),
        ("any", {"mode": "ANY"}),
        ("none", {"mode": "NONE"}),
        (NamedTool("lookup"), {"mode": "ANY", "allowedFunctionNames": ["lookup"]}),
    ],
    ids=["auto", "any", "none", "named"],
)
def test_the_choice_of_tools(choice: Json, expected: Json):
    sent = body(ChatRequest((user("x"),), tools=(LOOKUP,), tool_choice=choice))

    assert sent.get("toolConfig") == (expected and {"functionCallingConfig": expected})


def test_without_tools_there_is_no_choice():
    assert body(ChatRequest((user("x"),), tool_choice="any")).keys() == {"contents"}


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("gemini-2.5-pro", "low", {"thinkingBudget": 1024, "includeThoughts": True}),
        ("gemini-2.5-flash", "medium", {"thinkingBudget": 8192, "includeThoughts": True}),
        ("gemini-2.5-flash-lite", "high", {"thinkingBudget": 24576, "includeThoughts": True}),
        ("gemini-2.5-pro", "xhigh", {"thinkingBudget": -1, "includeThoughts": True}),
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("gemini-2.5-pro", "none", {"thinkingBudget": 128}),
        ("gemini-3-pro-preview", "low", {"thinkingLevel": "low", "includeThoughts": True}),
        ("gemini-3.5-flash", "medium", {"thinkingLevel": "medium", "includeThoughts": True}),
        ("gemini-3.5-flash", "none", {"thinkingLevel": "minimal"}),
        ("gemini-3-pro", "none", {"thinkingLevel": "low"}),
        ("gemini-12-flash", "low", {"thinkingLevel": "low", "includeThoughts": True}),
        ("gemini-flash-latest", "none", {"thinkingLevel": "minimal"}),
        ("my-own", "high", {"thinkingLevel": "high", "includeThoughts": True}),
    ],
)
def test_how_hard_to_think(model: str, effort: str, expected: Json):
    assert config(model=model, reasoning_effort=effort, temperature=0.5) == {
        "temperature": 0.5,
        "thinkingConfig": expected,
    }


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {}),
        ({"thinking": "adaptive"}, {"thinkingBudget": -1, "includeThoughts": True}),
        ({"thinking": "budgeted", "thinking_budget": 700}, {"thinkingBudget": 700, "includeThoughts": True}),
    ],
    ids=["off", "dynamic", "budgeted"],
)
def test_what_the_connector_says_of_thinking(settings: Json, expected: Json):
    endpoint = replace(ENDPOINT, **settings)

    assert config(endpoint).get("thinkingConfig", {}) == expected
    assert config(endpoint, reasoning_effort="low")["thinkingConfig"] == {
        "thinkingLevel": "low",
        "includeThoughts": True,
    }


@pytest.mark.parametrize(
    ("model", "tools", "sent"),
    [
        ("gemini-3.5-flash", (), True),
        ("gemini-3.5-flash", (LOOKUP,), True),
        ("gemini-2.5-flash", (), True),
        ("gemini-2.5-flash", (LOOKUP,), False),
    ],
    ids=["alone", "beside tools", "alone, earlier model", "beside tools, earlier model"],
)
def test_the_schema_of_an_answer(model: str, tools: tuple[ToolDefinition, ...], sent: bool):
    schema = {"properties": {"a": {"type": "string", "format": "email"}}, "additionalProperties": False}
    expected = {
        "responseMimeType": "application/json",
        "responseSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
    }

    assert config(model=model, tools=tools, output_schema=schema) == (expected if sent else {})


@pytest.mark.parametrize(
    ("of_request", "of_connector", "expected"),
    [(None, None, {}), (None, 9, {"maxOutputTokens": 9}), (7, 9, {"maxOutputTokens": 7}), (0, 0, {})],
    ids=["none", "the connector's", "the request's wins", "zero"],
)
def test_the_cap(of_request: int | None, of_connector: int | None, expected: Json):
    assert config(replace(ENDPOINT, max_tokens=of_connector), max_tokens=of_request) == expected


# ---------------------------------------------------------------- history


def test_calls_of_another_model_get_the_skip_value_and_no_id():
    turn = assistant(
        Reasoning("hm", {"wire": "anthropic", "signature": "s"}),
        ToolCall("toolu_1", "t", '{"a":1}'),
        ToolCall("toolu_2", "t", "broken", {"wire": "chat_completions"}),
    )

    assert contents(user("q"), turn, results(ToolResult("toolu_1", "t", "1")))[1:] == [
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": "t", "args": {"a": 1}}, "thoughtSignature": SKIP},
                {"functionCall": {"name": "t", "args": {}}, "thoughtSignature": SKIP},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "t", "response": {"result": "1"}}},
                {"functionResponse": {"name": "t", "response": {"error": "interrupted, outcome unknown"}}},
            ],
        },
    ]


def test_signatures_stay_on_parts_whose_text_is_empty():
    turn = assistant(Reasoning("", own(signature="a+/=")), Text("yes"), Text("", own(signature="_-")))

    assert contents(user("q"), turn, user("x"))[1]["parts"] == [
        {"text": "", "thought": True, "thoughtSignature": "a+/="},
        {"text": "yes"},
        {"text": "", "thoughtSignature": "_-"},
    ]


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        (assistant(), [{"text": "(no content)"}]),
        (assistant(Text(" ")), [{"text": "(no content)"}]),
        (assistant(File("image/png", PNG)), [{"text": "(no content)"}]),
        (assistant(Reasoning("hm", own())), [{"text": "hm", "thought": True}, {"text": "(no content)"}]),
        (assistant(Reasoning("hm", {"wire": "anthropic"}), Text("x")), [{"text": "x"}]),
        (assistant(Text("x", {"wire": "other", "signature": "s"})), [{"text": "x"}]),
    ],
    ids=["nothing", "blank", "a file", "only a thought", "another model's thought", "another model's signature"],
)
def test_turns_that_say_little(turn: ChatMessage, expected: Json):
    assert contents(user("q"), turn, user("x"))[1]["parts"] == expected


def test_a_blank_result_says_so():
    turns = (user("q"), assistant(ToolCall("a", "t", "{}", own())), results(ToolResult("a", "t", " \n")))

    assert contents(*turns)[2]["parts"] == [{"functionResponse": {"name": "t", "response": {"result": "(no content)"}}}]


def test_a_conversation_without_a_user_turn_is_refused():
    with pytest.raises(BadRequest, match="the conversation has no user turn"):
        gemini.encode(ChatRequest((assistant(Text("x")),)), ENDPOINT, stream=False)
