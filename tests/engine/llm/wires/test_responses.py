"""octo/llm/wires/responses.py: the Responses API, requests."""

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
from octo.llm.wires.responses import Responses
from octo.values import Json

WIRE = Responses("openai")
CREDENTIALS = Credentials("openai", "https://api.openai.com/v1", "authorization", api_key="k")
ENDPOINT = Endpoint(CREDENTIALS, "gpt-5.4")
LOOKUP = ToolDefinition("lookup", "Find a company", {"type": "object", "properties": {"n": {"minimum": 1.0}}})
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
ENCRYPTED = "reasoning.encrypted_content"


def body(request: ChatRequest, endpoint: Endpoint = ENDPOINT, *, stream: bool = False) -> Json:
    return json.loads(WIRE.encode(request, endpoint, stream=stream).body)


def items(*turns: ChatMessage, **more: Json) -> Json:
    return body(ChatRequest(turns, **more))["input"]


def assistant(*parts: Part) -> ChatMessage:
    return ChatMessage("assistant", parts)


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


def called(id: str = "a", name: str = "t", arguments: str = "{}") -> Json:
    return {"type": "function_call", "call_id": id, "name": name, "arguments": arguments}


# ---------------------------------------------------------------- request


def test_the_smallest_request_says_nothing_that_was_not_asked_for():
    call = WIRE.encode(ChatRequest((user("hello"),)), ENDPOINT, stream=False)

    assert (call.method, call.url, call.stream) == ("POST", "https://api.openai.com/v1/responses", False)
    assert call.headers == (("content-type", "application/json"), ("authorization", "Bearer k"))
    assert json.loads(call.body) == {
        "model": "gpt-5.4",
        "store": False,
        "include": [ENCRYPTED],
        "input": [said(text("hello"))],
    }


def test_a_request_with_everything():
    request = ChatRequest(
        (user("hello"),),
        system="be brief",
        tools=(LOOKUP, ToolDefinition("ping", " ", {"properties": {}})),
        tool_choice=NamedTool("ping"),
        model="gpt-5.4-mini",
        max_tokens=100,
        temperature=0.5,
        reasoning_effort="none",
        output_schema={"type": "object", "properties": {"n": {"type": "integer"}}},
        cache=True,
        cache_key="shop/main/ai-agent",
    )
    endpoint = replace(ENDPOINT, credentials=replace(CREDENTIALS, user="someone", organization_id="org"))
    call = WIRE.encode(request, endpoint, stream=True)

    assert ("openai-organization", "org") in call.headers
    assert json.loads(call.body) == {
        "model": "gpt-5.4-mini",
        "store": False,
        "include": [ENCRYPTED],
        "instructions": "be brief",
        "tools": [
            {
                "type": "function",
                "name": "lookup",
                "description": "Find a company",
                "parameters": {"type": "object", "properties": {"n": {"minimum": 1}}},
                "strict": False,
            },
            {
                "type": "function",
                "name": "ping",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            },
        ],
        "tool_choice": {"type": "function", "name": "ping"},
        "input": [said(text("hello"))],
        "max_output_tokens": 100,
        "temperature": 0.5,
        "reasoning": {"effort": "none"},
        "text": {
            "format": {
                "type": "json_schema",
                "name": "structured_output",
                "strict": True,
                "schema": {
                    "type": "object",
                    "properties": {"n": {"type": "integer"}},
                    "required": ["n"],
                    "additionalProperties": False,
                },
            }
        },
        "user": "someone",
        "prompt_cache_key": "shop/main/ai-agent",
        "stream": True,
    }


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("gpt-5.4", "low", {"reasoning": {"effort": "low", "summary": "auto"}}),
        ("gpt-5.4", None, {"temperature": 0.5}),
        ("gpt-5-mini", None, {}),
        ("o3", None, {}),
        ("gpt-5-chat-latest", "high", {"temperature": 0.5}),
        ("gpt-5.2-chat-latest", "none", {"temperature": 0.5}),
        ("gpt-4.1", "none", {"temperature": 0.5}),
    ],
)
def test_effort_and_temperature_are_left_out_where_a_model_does_not_take_them(
    model: str, effort: str | None, expected: Json
):
    sent = body(ChatRequest((user("x"),), model=model, temperature=0.5, reasoning_effort=effort))

    assert {key: sent[key] for key in ("reasoning", "temperature") if key in sent} == expected


def test_an_effort_of_a_model_that_does_not_think_is_warned_of(caplog: pytest.LogCaptureFixture):
    body(ChatRequest((user("x"),), model="gpt-4.1", reasoning_effort="high"))
    body(ChatRequest((user("x"),), model="gpt-4.1", reasoning_effort="none"))

    assert caplog.messages == ["the reasoning effort is left out: the model `gpt-4.1` does not think"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [("auto", None), ("any", "required"), ("none", "none"), (NamedTool("x"), {"type": "function", "name": "x"})],
    ids=["auto", "any", "none", "named"],
)
def test_the_choice_of_tools(choice: object, expected: Json):
    request = ChatRequest((user("x"),), tools=(LOOKUP,), tool_choice=choice)  # type: ignore[arg-type]  # from a table

    assert body(request).get("tool_choice") == expected
    assert "tool_choice" not in body(replace(request, tools=()))


@pytest.mark.parametrize(
    ("setting", "effort", "refused", "expected"),
    [
        ("", None, (), None),
        ("low", None, (), {"effort": "low", "summary": "auto"}),
        ("low", "xhigh", (), {"effort": "xhigh", "summary": "auto"}),
        ("low", "none", (), {"effort": "none"}),
        ("none", None, (), {"effort": "none"}),
        ("", "low", ("reasoning.summary",), {"effort": "low"}),
    ],
    ids=["nothing", "setting", "effort wins", "none wins", "none", "no summary"],
)
def test_reasoning(setting: str, effort: str | None, refused: tuple[str, ...], expected: Json):
    endpoint = replace(ENDPOINT, reasoning=setting, refused=frozenset(refused))

    assert body(ChatRequest((user("x"),), reasoning_effort=effort), endpoint).get("reasoning") == expected


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("gpt-5.4", True),
        ("o3-mini", True),
        ("gpt-oss-120b", True),
        ("gpt-40", True),
        ("my-deployment", True),
        ("gpt-4o-mini", False),
        ("GPT-4.1", False),
        ("chatgpt-4o-latest", False),
        ("gpt-5.2-chat-latest", False),
        ("gpt-3.5-turbo", False),
    ],
)
def test_encrypted_reasoning_is_asked_of_models_that_think(model: str, asked: bool):
    sent = body(ChatRequest((user("x"), assistant(THOUGHT, Text("y")), user("z")), model=model))

    assert ("include" in sent, "reasoning" in [item["type"] for item in sent["input"]]) == (asked, asked)


def test_what_was_refused_is_left_out():
    endpoint = replace(ENDPOINT, refused=frozenset({"temperature", "prompt_cache_key", "include"}))
    turns = (user("x"), assistant(THOUGHT, Text("y")), user("z"))
    sent = body(ChatRequest(turns, temperature=0.5, cache=True, cache_key="k"), endpoint)

    assert sent.keys() == {"model", "store", "input"}
    assert [item["type"] for item in sent["input"]] == ["message"] * 3


@pytest.mark.parametrize(("own", "connector", "sent"), [(None, 5, 5), (7, 5, 7), (None, None, None), (0, 5, 5)])
def test_the_cap_of_an_answer(own: int | None, connector: int | None, sent: int | None):
    found = body(ChatRequest((user("x"),), max_tokens=own), replace(ENDPOINT, max_tokens=connector))

    assert found.get("max_output_tokens") == sent


def test_an_image_is_asked_for_by_its_tool_and_not_streamed():
    request = ChatRequest((user("a cat"),), output_type="image", reasoning_effort="high")
    call = WIRE.encode(request, ENDPOINT, stream=True)

    assert not call.stream
    assert json.loads(call.body) == {
        "model": "gpt-5.4",
        "store": False,
        "include": [ENCRYPTED],
        "tools": [{"type": "image_generation", "quality": "low"}],
        "tool_choice": {"type": "image_generation"},
        "input": [said(text("a cat"))],
    }


def test_a_request_without_a_model_is_an_error():
    with pytest.raises(BadRequest) as caught:
        body(ChatRequest((user("x"),)), replace(ENDPOINT, model=""))

    assert (str(caught.value), caught.value.hint) == (
        "no model is named",
        "set `model` on the connector or on the agent",
    )


def test_a_conversation_that_holds_nothing_is_an_error():
    with pytest.raises(BadRequest, match="the conversation has no user turn"):
        body(ChatRequest(()))


# ---------------------------------------------------------------- conversation

ITEM = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": " so \n"}],
    "encrypted_content": "gAAA==",
}
THOUGHT = Reasoning(" so \n", {"wire": "responses", "dialect": "openai", "item": ITEM})


def test_a_turn_is_echoed_item_by_item():
    turns = (
        user("x"),
        assistant(THOUGHT, Text("hm"), ToolCall("a", "t", '{"n":  1}'), ToolCall("b", "t", "[]")),
        results(ToolResult("a", "t", "one"), ToolResult("b", "t", "no", is_error=True)),
        user("and?"),
    )

    assert items(*turns) == [
        said(text("x")),
        ITEM,
        answered(2, "hm"),
        called("a", arguments='{"n":  1}'),
        called("b"),
        {"type": "function_call_output", "call_id": "a", "output": "one"},
        {"type": "function_call_output", "call_id": "b", "output": "ERROR: no"},
        said(text("and?")),
    ]


def test_reasoning_keeps_its_place_between_calls():
    second = Reasoning("", {"wire": "responses", "dialect": "openai", "item": {**ITEM, "id": "rs_2"}})
    sent = items(user("x"), assistant(THOUGHT, ToolCall("a", "t", "{}"), second, ToolCall("b", "t", "{}")))

    assert [item["type"] for item in sent[1:5]] == ["reasoning", "function_call", "reasoning", "function_call"]


@pytest.mark.parametrize(
    "replay",
    [
        None,
        "what an older version stored",
        {"wire": "anthropic", "signature": "s"},
        {"wire": "responses", "dialect": "azure_openai", "item": ITEM},
        {"wire": "responses", "dialect": "openai"},
    ],
    ids=["none", "unknown form", "of another wire", "of another provider", "without an item"],
)
def test_reasoning_that_the_provider_cannot_read_is_left_out(replay: Json):
    assert items(user("x"), assistant(Reasoning("thoughts", replay), Text("y")))[1:] == [answered(1, "y")]


def test_reasoning_is_followed_by_something_and_stands_once():
    assert items(user("x"), assistant(THOUGHT), user("y"), assistant(THOUGHT), user("z"))[1:-1] == [
        ITEM,
        answered(2, "(no content)"),
        said(text("y")),
        answered(4, "(no content)"),
    ]


def test_the_phase_of_an_answer_goes_back_with_it():
    replay = {"wire": "responses", "dialect": "openai", "phase": "commentary"}

    assert items(user("x"), assistant(Text("hm", replay)))[1] == answered(1, "hm", phase="commentary")
    assert items(user("x"), assistant(Text("hm", {**replay, "wire": "gemini"})))[1] == answered(1, "hm")


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u00a0"], ids=["empty", "space", "lines", "no-break space"])
def test_blank_text_is_never_sent(blank: str):
    turns = (
        user(blank),
        assistant(Text(blank), ToolCall("a", "t", blank)),
        results(ToolResult("a", "t", blank)),
        assistant(Text(blank)),
        user(blank, File("image/png", PNG)),
    )
    sent = body(ChatRequest(turns, system=blank))

    assert "instructions" not in sent
    assert sent["input"] == [
        said(text("(no content)")),
        called(),
        {"type": "function_call_output", "call_id": "a", "output": "(no content)"},
        answered(3, "(no content)"),
        said(
            {"type": "input_image", "image_url": f"data:image/png;base64,{b64encode(PNG).decode()}", "detail": "auto"}
        ),
    ]


def test_documents_carry_their_name():
    pdf = File("application/pdf", b"%PDF-1.7", "offer.pdf")
    url = "data:application/pdf;base64,JVBERi0xLjc="

    assert items(user("x", pdf, replace(pdf, name=" ")))[0]["content"] == [
        {"type": "input_file", "filename": "offer.pdf", "file_data": url},
        {"type": "input_file", "filename": "document.pdf", "file_data": url},
        text("x"),
    ]


def test_ids_that_are_too_long_are_shortened_alike():
    id = "x" * 100
    _, call, result = items(user("x"), assistant(ToolCall(id, "t", "{}")), results(ToolResult(id, "t", "1")))

    assert (len(call["call_id"]), call["call_id"]) == (64, result["call_id"])


def test_the_start_of_a_request_is_the_same_in_every_run():
    turns = (user("x"), assistant(Text("y"), ToolCall("a", "t", "{}")), results(ToolResult("a", "t", "1")))
    first = WIRE.encode(ChatRequest(turns, tools=(LOOKUP,)), ENDPOINT, stream=False).body
    longer = WIRE.encode(ChatRequest((*turns, user("z")), tools=(LOOKUP,)), ENDPOINT, stream=False).body

    assert longer.startswith(first[:-2])
