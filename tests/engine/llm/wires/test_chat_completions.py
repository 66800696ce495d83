"""octo/llm/wires/chat_completions.py: Chat Completions, requests."""

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
from octo.llm.providers import PROVIDERS
from octo.llm.wire import Endpoint
from octo.llm.wires.chat_completions import ChatCompletions
from octo.values import Json

WIRE = ChatCompletions("customai")
MISTRAL = ChatCompletions(
    "mistral",
    max_tokens="max_tokens",
    effort_or_temperature=True,
    bare_media=True,
    short_ids=True,
    user_after_answer=True,
)
DEEPSEEK = ChatCompletions("deepseek", max_tokens="max_tokens", switches_thinking=True, echo="reasoning_content")
OPENROUTER = PROVIDERS["openrouter"].wire
KEYED = ChatCompletions("openai", cache_key=True)

CREDENTIALS = Credentials("customai", "http://localhost:8080/v1", "authorization", api_key="k")
ENDPOINT = Endpoint(CREDENTIALS, "qwen3")
LOOKUP = ToolDefinition("lookup", "Find a company", {"type": "object", "properties": {"n": {"minimum": 1.0}}})
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
PDF, WAV, MP3 = b"%PDF-1.7", b"RIFF....WAVE", b"ID3..."


def base64(data: bytes) -> str:
    return b64encode(data).decode()


def body(
    request: ChatRequest, endpoint: Endpoint = ENDPOINT, wire: ChatCompletions = WIRE, *, stream: bool = False
) -> Json:
    return json.loads(wire.encode(request, endpoint, stream=stream).body)


def messages(*turns: ChatMessage, wire: ChatCompletions = WIRE) -> Json:
    return body(ChatRequest(turns), wire=wire)["messages"]


def assistant(*parts: Part) -> ChatMessage:
    return ChatMessage("assistant", parts)


def results(*parts: ToolResult) -> ChatMessage:
    return ChatMessage("tool", parts)


def says(text: str | None, **more: Json) -> Json:
    return {"role": "assistant", "content": text, **more}


def called(id: str = "a", name: str = "t", arguments: str = "{}") -> Json:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


# ---------------------------------------------------------------- request


def test_the_smallest_request_says_nothing_that_was_not_asked_for():
    call = WIRE.encode(ChatRequest((user("hello"),)), ENDPOINT, stream=False)

    assert (call.method, call.url, call.stream) == ("POST", "http://localhost:8080/v1/chat/completions", False)
    assert call.headers == (("content-type", "application/json"), ("authorization", "Bearer k"))
    assert json.loads(call.body) == {"model": "qwen3", "messages": [{"role": "user", "content": "hello"}]}


def test_a_server_without_a_key_is_sent_none():
    endpoint = replace(ENDPOINT, credentials=replace(CREDENTIALS, api_key="", base_url="http://localhost/v1//"))
    call = WIRE.encode(ChatRequest((user("x"),)), endpoint, stream=False)

    assert (call.url, call.headers) == (
        "http://localhost/v1/chat/completions",
        (("content-type", "application/json"),),
    )


def test_a_request_with_everything():
    request = ChatRequest(
        (user("hello"),),
        system="be brief",
        tools=(LOOKUP, ToolDefinition("ping", " ", {"properties": {}})),
        tool_choice=NamedTool("ping"),
        model="llama",
        max_tokens=100,
        temperature=0.5,
        reasoning_effort="high",
    )
    endpoint = replace(ENDPOINT, credentials=replace(CREDENTIALS, user="someone"), reasoning="low")

    assert body(request, endpoint, stream=True) == {
        "model": "llama",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "lookup",
                    "description": "Find a company",
                    "parameters": {"type": "object", "properties": {"n": {"minimum": 1}}},
                },
            },
            {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "ping"}},
        "max_completion_tokens": 100,
        "reasoning_effort": "high",
        "temperature": 0.5,
        "user": "someone",
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", None),
        ("any", "required"),
        ("none", "none"),
        (NamedTool("lookup"), {"type": "function", "function": {"name": "lookup"}}),
    ],
    ids=["auto", "any", "none", "named"],
)
def test_the_choice_of_tools(choice: object, expected: Json):
    request = ChatRequest((user("x"),), tools=(LOOKUP,), tool_choice=choice)  # type: ignore[arg-type]  # from a table

    assert body(request).get("tool_choice") == expected


def test_a_forced_tool_without_tools_is_not_forced():
    assert "tool_choice" not in body(ChatRequest((user("x"),), tool_choice="any"))


def test_a_request_without_a_model_is_an_error():
    with pytest.raises(BadRequest, match=r"^no model is named$") as caught:
        body(ChatRequest((user("x"),)), replace(ENDPOINT, model=""))

    assert caught.value.hint == "set `model` on the connector or on the agent"


SETTINGS = ChatRequest((user("x"),), max_tokens=9, temperature=0.5, reasoning_effort="low")


@pytest.mark.parametrize(
    ("wire", "request_", "endpoint", "expected"),
    [
        (WIRE, ChatRequest((user("x"),)), replace(ENDPOINT, max_tokens=7), {"max_completion_tokens": 7}),
        (WIRE, ChatRequest((user("x"),)), replace(ENDPOINT, reasoning="low"), {"reasoning_effort": "low"}),
        (
            WIRE,
            replace(SETTINGS, reasoning_effort="none"),
            ENDPOINT,
            {"max_completion_tokens": 9, "reasoning_effort": "none", "temperature": 0.5},
        ),
        (MISTRAL, SETTINGS, ENDPOINT, {"max_tokens": 9, "reasoning_effort": "low"}),
        (MISTRAL, replace(SETTINGS, reasoning_effort=None), ENDPOINT, {"max_tokens": 9, "temperature": 0.5}),
        (
            DEEPSEEK,
            replace(SETTINGS, reasoning_effort="none"),
            ENDPOINT,
            {"max_tokens": 9, "thinking": {"type": "disabled"}, "temperature": 0.5},
        ),
        (
            DEEPSEEK,
            SETTINGS,
            ENDPOINT,
            {"max_tokens": 9, "reasoning_effort": "low", "temperature": 0.5},
        ),
        (OPENROUTER, ChatRequest((user("x"),)), ENDPOINT, {"usage": {"include": True}}),
    ],
    ids=[
        "cap of the connector",
        "effort of the connector",
        "an effort of none is passed on",
        "Mistral takes the old cap, and no temperature beside an effort",
        "Mistral without an effort",
        "DeepSeek switches thinking off",
        "DeepSeek with an effort",
        "OpenRouter is asked for its accounts",
    ],
)
def test_what_a_provider_is_told(wire: ChatCompletions, request_: ChatRequest, endpoint: Endpoint, expected: Json):
    sent = body(request_, endpoint, wire)

    assert {key: value for key, value in sent.items() if key not in {"model", "messages"}} == expected


@pytest.mark.parametrize(
    ("model", "effort"),
    [("gpt-5.4", "none"), ("gpt-5.10-mini", "none"), ("gpt-6", "none"), ("gpt-5.2", "low"), ("gpt-5-mini", "low"),
     ("o3", "low"), ("gpt-oss-120b", "low"), ("qwen3", "low"), ("openai/gpt-5.4", "low")],
)  # fmt: skip
def test_later_models_of_openai_take_no_effort_beside_tools(model: str, effort: str):
    request = replace(SETTINGS, model=model, tools=(LOOKUP,))

    assert body(request)["reasoning_effort"] == effort
    assert body(replace(request, tools=()))["reasoning_effort"] == "low"


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("gpt-5-mini", None, {}),
        ("gpt-5.2", "high", {"reasoning_effort": "high"}),
        ("gpt-5.2", "none", {"reasoning_effort": "none", "temperature": 0.5}),
        ("gpt-5.2", None, {"temperature": 0.5}),
        ("gpt-4.1", "none", {"temperature": 0.5}),
        ("gpt-4.1", "high", {"temperature": 0.5}),
        ("gpt-oss-120b", "high", {"reasoning_effort": "high", "temperature": 0.5}),
    ],
)
def test_effort_and_temperature_are_left_out_where_a_model_of_openai_does_not_take_them(
    model: str, effort: str | None, expected: Json
):
    sent = body(ChatRequest((user("x"),), model=model, temperature=0.5, reasoning_effort=effort))

    assert {key: sent[key] for key in ("reasoning_effort", "temperature") if key in sent} == expected


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        ({"stream_options", "usage"}, {"max_completion_tokens", "temperature", "prompt_cache_key", "stream"}),
        ({"prompt_cache_key"}, {"max_completion_tokens", "temperature", "stream", "stream_options", "usage"}),
        ({"max_completion_tokens"}, {"max_tokens", "temperature", "prompt_cache_key", "stream", "stream_options",
                                     "usage"}),
        ({"max_completion_tokens", "max_tokens", "temperature"}, {"max_tokens", "prompt_cache_key", "stream",
                                                                  "stream_options", "usage"}),
    ],
    ids=["usage", "cache key", "cap", "all caps and temperature"],
)  # fmt: skip
def test_what_an_endpoint_refused_is_left_out_or_goes_by_its_other_name(refused: set[str], expected: set[str]):
    wire = replace(OPENROUTER, cache_key=True)
    request = ChatRequest((user("x"),), max_tokens=9, temperature=0.5, cache=True, cache_key="a/b")
    sent = body(request, replace(ENDPOINT, refused=frozenset(refused)), wire, stream=True)

    assert sent.keys() - {"model", "messages"} == expected


def test_a_cached_prompt_names_its_key_where_the_provider_has_keys():
    request = ChatRequest((user("x"),), cache=True, cache_key="leads/enrich.agent")

    assert body(request, wire=KEYED)["prompt_cache_key"] == "leads/enrich.agent"
    assert "prompt_cache_key" not in body(replace(request, cache=False), wire=KEYED)
    assert "prompt_cache_key" not in body(request)


MARKED = {"cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("last", "content"),
    [
        (user("hello"), [{"type": "text", "text": "hello"} | MARKED]),
        (
            user("look", File("image/png", PNG)),
            [
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{b64encode(PNG).decode()}"}},
                {"type": "text", "text": "look"} | MARKED,
            ],
        ),
        (user("", File("image/png", PNG)), None),
    ],
    ids=["text", "a file and text", "a file"],
)
def test_prompts_of_claude_models_on_openrouter_are_marked_for_caching(last: ChatMessage, content: Json):
    request = ChatRequest(
        (user("x"), assistant(Text("y")), last), system="be brief", model="anthropic/claude-sonnet-4.5"
    )
    sent = body(replace(request, cache=True), wire=OPENROUTER)["messages"]

    assert sent[0] == {"role": "system", "content": [{"type": "text", "text": "be brief"} | MARKED]}
    assert [message["content"] for message in sent[1:3]] == ["x", "y"]
    plain = body(request, wire=OPENROUTER)["messages"]
    assert sent[-1]["content"] == (plain[-1]["content"] if content is None else content)
    assert "cache_control" not in json.dumps(plain)


def test_results_of_tools_are_marked_for_caching_too():
    turns = (user("x"), assistant(ToolCall("a", "t", "{}")), ChatMessage("tool", (ToolResult("a", "t", "found"),)))
    request = ChatRequest(turns, model="anthropic/claude-sonnet-4.5", cache=True)

    assert body(request, wire=OPENROUTER)["messages"][-1]["content"] == [{"type": "text", "text": "found"} | MARKED]


def test_other_models_on_openrouter_cache_by_themselves():
    assert "cache_control" not in json.dumps(
        body(ChatRequest((user("x"),), model="openai/gpt-5", cache=True), wire=OPENROUTER)
    )


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}}, "required": ["a"]}


def test_a_schema_of_the_answer_goes_out_in_its_strict_form():
    assert body(ChatRequest((user("x"),), output_schema=SCHEMA))["response_format"] == {
        "type": "json_schema",
        "json_schema": {
            "name": "structured_output",
            "schema": {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": ["number", "null"]}},
                "required": ["a", "b"],
                "additionalProperties": False,
            },
            "strict": True,
        },
    }


def test_an_answer_of_a_certain_form_is_not_streamed_where_that_cannot_be():
    groq = ChatCompletions("groq", unstreamed_schemas=True)
    call = groq.encode(ChatRequest((user("x"),), output_schema=SCHEMA), ENDPOINT, stream=True)

    assert (call.stream, json.loads(call.body).keys()) == (False, {"model", "messages", "response_format"})
    assert groq.encode(ChatRequest((user("x"),)), ENDPOINT, stream=True).stream


CLAUDE = "anthropic/claude-sonnet-4.5"


@pytest.mark.parametrize(
    ("wire", "model", "effort", "may_think_first", "expected"),
    [
        (OPENROUTER, CLAUDE, "low", False, {"tool_choice": "required"}),
        (OPENROUTER, CLAUDE, "low", True, {"reasoning_effort": "low"}),
        (OPENROUTER, CLAUDE, "none", True, {"tool_choice": "required", "reasoning_effort": "none"}),
        (OPENROUTER, CLAUDE, None, True, {"tool_choice": "required"}),
        (OPENROUTER, "qwen3", "low", True, {"tool_choice": "required", "reasoning_effort": "low"}),
        (DEEPSEEK, "deepseek-chat", "low", False, {"tool_choice": "required", "thinking": {"type": "disabled"}}),
        (DEEPSEEK, "deepseek-chat", None, True, {"tool_choice": "required", "thinking": {"type": "disabled"}}),
        (DEEPSEEK, "deepseek-chat", "low", True, {"reasoning_effort": "low"}),
    ],
)
def test_a_tool_is_not_forced_on_a_model_that_thinks(
    wire: ChatCompletions, model: str, effort: str | None, may_think_first: bool, expected: Json
):
    request = ChatRequest((user("x"),), tools=(LOOKUP,), tool_choice="any", model=model, reasoning_effort=effort)
    sent = body(replace(request, may_think_first=may_think_first), wire=wire)

    assert {key: value for key, value in sent.items() if key not in {"model", "messages", "tools", "usage"}} == expected


@pytest.mark.parametrize(
    ("model", "schema"),
    [("qwen3", {"type": "object"}), ("qwen3", None), ("anthropic/Claude-x", SCHEMA)],
    ids=["no properties", "no schema", "Claude"],
)
def test_the_form_of_the_answer_is_free(model: str, schema: Json):
    assert "response_format" not in body(ChatRequest((user("x"),), model=model, output_schema=schema))


# ---------------------------------------------------------------- conversation


def test_results_are_messages_and_failed_ones_say_so():
    turns = (
        user("x"),
        assistant(Text("hm"), ToolCall("a", "t", '{"n":  1}'), ToolCall("b", "t", "{}")),
        results(ToolResult("a", "t", "one"), ToolResult("b", "t", "no", is_error=True)),
        user("and?"),
    )

    assert messages(*turns) == [
        {"role": "user", "content": "x"},
        says("hm", tool_calls=[called("a", arguments='{"n":  1}'), called("b")]),
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "tool_call_id": "b", "content": "ERROR: no"},
        {"role": "user", "content": "and?"},
    ]


@pytest.mark.parametrize(
    "arguments",
    ["", "nonsense", '{"a":', "[1]", '"text"', "null", '{"a": NaN}', "[" * 100_000],
    ids=["empty", "not JSON", "cut", "list", "text", "null", "NaN", "endless nesting"],
)
def test_arguments_that_are_no_json_object_are_sent_as_an_empty_one(arguments: str):
    sent = messages(user("x"), assistant(ToolCall("a", "t", arguments)))

    assert sent[1]["tool_calls"] == [called("a")]


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u00a0"], ids=["empty", "space", "lines", "no-break space"])
def test_blank_text_is_never_sent(blank: str):
    request = ChatRequest(
        (
            user(blank),
            assistant(Text(blank), ToolCall("a", "t", "{}"), ToolCall("b", "t", "{}")),
            results(ToolResult("a", "t", blank), ToolResult("b", "t", blank, is_error=True)),
            assistant(Text(blank)),
            ChatMessage("user", (Text(blank), Text("y"), Text("z"))),
        ),
        system=blank,
    )

    assert body(request)["messages"] == [
        {"role": "user", "content": "(no content)"},
        says(None, tool_calls=[called("a"), called("b")]),
        {"role": "tool", "tool_call_id": "a", "content": "(no content)"},
        {"role": "tool", "tool_call_id": "b", "content": "ERROR: (no content)"},
        says("(no content)"),
        {"role": "user", "content": "y\n\nz"},
    ]


def test_files_come_before_the_text_in_their_order():
    files = (File("image/png", PNG), File("application/pdf", PDF, "offer.pdf"), File("application/pdf", PDF))
    sounds = (File("audio/wav", WAV), File("audio/mpeg", MP3))

    assert messages(user("what?", *files, *sounds))[0]["content"] == [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64(PNG)}"}},
        {"type": "file", "file": {"filename": "offer.pdf", "file_data": f"data:application/pdf;base64,{base64(PDF)}"}},
        {
            "type": "file",
            "file": {"filename": "document.pdf", "file_data": f"data:application/pdf;base64,{base64(PDF)}"},
        },
        {"type": "input_audio", "input_audio": {"data": base64(WAV), "format": "wav"}},
        {"type": "input_audio", "input_audio": {"data": base64(MP3), "format": "mp3"}},
        {"type": "text", "text": "what?"},
    ]


def test_mistral_has_forms_of_its_own_for_documents_and_audio():
    sent = messages(user("", File("application/pdf", PDF), File("audio/wav", WAV)), wire=MISTRAL)

    assert sent[0]["content"] == [
        {"type": "document_url", "document_url": f"data:application/pdf;base64,{base64(PDF)}"},
        {"type": "input_audio", "input_audio": base64(WAV)},
    ]


def test_files_of_the_assistant_are_not_sent():
    assert messages(user("x"), assistant(File("image/png", PNG), Text("there")))[1] == says("there")


def test_half_an_emoji_becomes_a_replacement_character():
    assert messages(user("\ud83d!"))[0]["content"] == "�!"


def test_a_conversation_may_begin_with_the_assistant():
    assert messages(assistant(Text("welcome")), user("x"))[0] == says("welcome")


def test_a_conversation_that_holds_nothing_is_an_error():
    with pytest.raises(BadRequest, match="the conversation has no user turn"):
        messages()


def test_long_ids_become_short_ones_and_stay_the_same():
    long = "x" * 41
    turns = (user("x"), assistant(ToolCall(long, "t", "{}"), ToolCall("y" * 40, "t", "{}")))
    sent = messages(*turns, results(ToolResult(long, "t", "1")))

    ids = [call["id"] for call in sent[1]["tool_calls"]]
    assert ids == ["xxxxxxxxxxxxxxxxxxxxxxxxxxx-3164596df4fd", "y" * 40]
    assert [message["tool_call_id"] for message in sent[2:]] == ids


def test_mistral_takes_ids_of_nine_letters_and_no_user_turn_after_results():
    turns = (
        user("x"),
        assistant(ToolCall("toolu_01", "t", "{}"), ToolCall("abcdefgh1", "t", "{}")),
        results(ToolResult("toolu_01", "t", "1"), ToolResult("abcdefgh1", "t", "2")),
        user("y"),
    )
    sent = messages(*turns, wire=MISTRAL)

    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool", "assistant", "user"]
    assert [call["id"] for call in sent[1]["tool_calls"]] == ["7a95b7039", "abcdefgh1"]
    assert [message["tool_call_id"] for message in sent[2:4]] == ["7a95b7039", "abcdefgh1"]
    assert sent[4] == says("(no content)")


# ---------------------------------------------------------------- reasoning that goes back


def thought(text: str, dialect: str, **more: Json) -> Reasoning:
    return Reasoning(text, {"wire": "chat_completions", "dialect": dialect, **more})


SIGNED = [{"type": "reasoning.text", "text": "hm", "signature": "s", "index": 0}]


def test_reasoning_details_go_back_as_they_came():
    turn = assistant(thought("hm", "openrouter", details=SIGNED), Text("so"))

    assert messages(user("x"), turn, wire=OPENROUTER)[1] == says("so", reasoning_details=SIGNED)


def test_reasoning_text_goes_back_while_tools_run_only():
    turn = assistant(thought("hm", "deepseek"), ToolCall("a", "t", "{}"))
    answered = (user("x"), turn, results(ToolResult("a", "t", "1")))

    assert messages(*answered, wire=DEEPSEEK)[1] == says(None, tool_calls=[called()], reasoning_content="hm")
    assert messages(*answered, user("y"), wire=DEEPSEEK)[1] == says(None, tool_calls=[called()])


@pytest.mark.parametrize(
    ("wire", "reasoning"),
    [
        (OPENROUTER, thought("hm", "deepseek", details=SIGNED)),
        (DEEPSEEK, thought("hm", "openrouter", details=SIGNED)),
        (WIRE, thought("hm", "customai", details=SIGNED)),
        (OPENROUTER, thought("hm", "openrouter")),
        (DEEPSEEK, Reasoning("hm", {"wire": "anthropic", "signature": "s"})),
        (DEEPSEEK, Reasoning("hm")),
        (DEEPSEEK, Reasoning("hm", "what an older version stored")),
    ],
    ids=["of another", "of another still", "not wanted", "no details", "another wire", "no data", "unknown form"],
)
def test_reasoning_of_others_is_left_out(wire: ChatCompletions, reasoning: Reasoning):
    assert messages(user("x"), assistant(reasoning, Text("so")), wire=wire)[1] == says("so")


def test_what_rides_on_a_call_goes_back_on_it():
    signature = {"google": {"thought_signature": "s=="}}
    replay = {"wire": "chat_completions", "dialect": "customai", "extra_content": signature}
    turn = assistant(ToolCall("a", "t", "{}", replay), ToolCall("b", "t", "{}"))

    assert messages(user("x"), turn)[1]["tool_calls"] == [called("a") | {"extra_content": signature}, called("b")]
    assert messages(user("x"), turn, wire=KEYED)[1]["tool_calls"] == [called("a"), called("b")]
