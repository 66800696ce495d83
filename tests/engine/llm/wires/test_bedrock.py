"""octo/llm/wires/bedrock.py: Converse, requests.

octo/llm/thinking.py: how Claude models are told to.

Also octo/llm/facts.py: where models on Bedrock take cache points.
"""

import json
import logging
from base64 import b64encode
from dataclasses import replace

import pytest

from octo.errors import (
    BadRequest,
)
from octo.llm.aws import Frames
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
from octo.llm.facts import cache_places
from octo.llm.wire import Endpoint
from octo.llm.wires import bedrock
from octo.values import Json

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "amazon.nova-pro-v1:0"
LLAMA = "meta.llama3-3-70b-instruct-v1:0"
ADDRESS = "https://bedrock-runtime.us-east-1.amazonaws.com"
CREDENTIALS = Credentials("aws_bedrock", ADDRESS, "authorization", api_key="k")
ENDPOINT = Endpoint(CREDENTIALS, CLAUDE)
LOOKUP = ToolDefinition("lookup", "Find a company", {"type": "object", "properties": {"n": {"minimum": 1.0}}})
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
PDF = File("application/pdf", b"%PDF-1.7", "offer.pdf")


def body(request: ChatRequest, endpoint: Endpoint = ENDPOINT, *, stream: bool = False) -> Json:
    return json.loads(bedrock.encode(request, endpoint, stream=stream).body)


def messages(*turns: ChatMessage) -> Json:
    return body(ChatRequest(turns))["messages"]


def assistant(*parts: Part) -> ChatMessage:
    return ChatMessage("assistant", parts)


def results(*parts: ToolResult) -> ChatMessage:
    return ChatMessage("tool", parts)


def use(id: str, name: str, input: Json) -> Json:
    return {"toolUse": {"toolUseId": id, "name": name, "input": input}}


# ---------------------------------------------------------------- request


def test_the_smallest_request_says_nothing_that_was_not_asked_for():
    call = bedrock.encode(ChatRequest((user("hello"),)), ENDPOINT, stream=False)

    assert (call.method, call.stream, call.framing) == ("POST", False, Frames)
    assert call.url == f"{ADDRESS}/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse"
    assert call.headers == (("content-type", "application/json"), ("authorization", "Bearer k"))
    assert json.loads(call.body) == {"messages": [{"role": "user", "content": [{"text": "hello"}]}]}


def test_a_request_with_everything():
    request = ChatRequest(
        (user("hello"),),
        system="be brief",
        tools=(LOOKUP, ToolDefinition("ping", " ", {"properties": {}})),
        tool_choice=NamedTool("ping"),
        model="anthropic.claude-haiku-4-5-20251001-v1:0",
        max_tokens=100,
        temperature=0.5,
    )
    endpoint = replace(ENDPOINT, credentials=replace(CREDENTIALS, user="o'neil@example.org"), max_tokens=4096)

    assert body(request, endpoint, stream=True) == {
        "system": [{"text": "be brief"}],
        "toolConfig": {
            "tools": [
                {
                    "toolSpec": {
                        "name": "lookup",
                        "description": "Find a company",
                        "inputSchema": {"json": {"type": "object", "properties": {"n": {"minimum": 1}}}},
                    }
                },
                {"toolSpec": {"name": "ping", "inputSchema": {"json": {"type": "object", "properties": {}}}}},
            ],
            "toolChoice": {"tool": {"name": "ping"}},
        },
        "messages": [{"role": "user", "content": [{"text": "hello"}]}],
        "inferenceConfig": {"maxTokens": 100, "temperature": 0.5},
        "requestMetadata": {"user": "o-neil@example.org"},
    }


@pytest.mark.parametrize(
    ("model", "base", "url"),
    [
        ("amazon.nova-lite-v1:0", ADDRESS, f"{ADDRESS}/model/amazon.nova-lite-v1%3A0/converse-stream"),
        (
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.x-v1:0",
            "https://gw.example/aws/",
            "https://gw.example/aws/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.x-v1"
            "%3A0/converse-stream",
        ),
        ("a b/../c?d#e", ADDRESS, f"{ADDRESS}/model/a%20b%2F..%2Fc%3Fd%23e/converse-stream"),
    ],
    ids=["id", "ARN", "odd"],
)
def test_the_model_is_one_segment_of_the_address(model: str, base: str, url: str):
    endpoint = Endpoint(replace(CREDENTIALS, base_url=base), model)

    assert bedrock.encode(ChatRequest((user("x"),)), endpoint, stream=True).url == url


def test_a_request_without_a_model_is_an_error():
    with pytest.raises(BadRequest) as caught:
        body(ChatRequest((user("x"),)), replace(ENDPOINT, model=""))

    assert (str(caught.value), caught.value.hint) == (
        "no model is named",
        "set `model` on the connector or on the agent",
    )


@pytest.mark.parametrize(
    ("choice", "expected"),
    [("auto", None), ("any", {"any": {}}), (NamedTool("lookup"), {"tool": {"name": "lookup"}})],
    ids=["auto", "any", "named"],
)
def test_the_choice_of_tools(choice: object, expected: Json):
    request = ChatRequest((user("x"),), tools=(LOOKUP,), tool_choice=choice)  # type: ignore[arg-type]  # from a table

    assert body(request)["toolConfig"].get("toolChoice") == expected


def test_no_tool_may_be_called_because_none_is_there():
    assert "toolConfig" not in body(ChatRequest((user("x"),), tools=(LOOKUP,), tool_choice="none"))
    assert "toolConfig" not in body(ChatRequest((user("x"),), tool_choice="any"))


@pytest.mark.parametrize(
    ("tools", "choice", "names"),
    [((), "auto", ["gone"]), ((LOOKUP, replace(LOOKUP, name="gone")), "none", ["gone"]), ((LOOKUP,), "none", ["gone"])],
    ids=["no tools", "none of them", "none of others"],
)
def test_tools_that_were_called_are_defined_although_none_may_be_called_now(
    tools: tuple[ToolDefinition, ...], choice: object, names: list[str]
):
    turns = (user("x"), assistant(ToolCall("a", "gone", "{}")), results(ToolResult("a", "gone", "1")))
    sent = body(ChatRequest(turns, tools=tools, tool_choice=choice))  # type: ignore[arg-type]  # from a table

    assert [tool["toolSpec"]["name"] for tool in sent["toolConfig"]["tools"]] == names
    assert "toolChoice" not in sent["toolConfig"]


# ---------------------------------------------------------------- thinking

ADAPTIVE = replace(ENDPOINT, thinking="adaptive")
BUDGETED = replace(ENDPOINT, thinking="budgeted", thinking_budget=2048)
NEWER = "us.anthropic.claude-sonnet-4-6"
NEWEST = "anthropic.claude-opus-4-7"


@pytest.mark.parametrize(
    ("endpoint", "more", "thinking", "temperature"),
    [
        (ENDPOINT, {}, None, 0.5),
        (ADAPTIVE, {}, {"type": "enabled", "budget_tokens": 8192}, None),
        (ADAPTIVE, {"model": NEWER}, {"type": "adaptive"}, None),
        (BUDGETED, {"model": NEWEST}, {"type": "adaptive"}, None),
        (BUDGETED, {}, {"type": "enabled", "budget_tokens": 2048}, None),
        (BUDGETED, {"max_tokens": 2048}, None, 0.5),
        (ADAPTIVE, {"tool_choice": "any"}, None, 0.5),
        (BUDGETED, {"tool_choice": NamedTool("lookup")}, None, 0.5),
        (ADAPTIVE, {"reasoning_effort": "none"}, {"type": "disabled"}, 0.5),
        (ENDPOINT, {"reasoning_effort": "high"}, {"type": "enabled", "budget_tokens": 24576}, None),
        (ENDPOINT, {"reasoning_effort": "high", "model": NEWER}, {"type": "adaptive", "display": "summarized"}, None),
        (ENDPOINT, {"model": NEWEST}, None, None),
        (BUDGETED, {"model": NOVA}, None, 0.5),
    ],
    ids=[
        "off",
        "adaptive, said in tokens",
        "adaptive",
        "budgeted, said as adaptive",
        "budgeted",
        "budget not below the cap",
        "adaptive, tool forced",
        "budgeted, tool forced",
        "effort none wins",
        "effort wins, said in tokens",
        "effort wins",
        "model without temperature",
        "another vendor",
    ],
)
def test_thinking_and_temperature(endpoint: Endpoint, more: Json, thinking: Json, temperature: float | None):
    sent = body(ChatRequest((user("x"),), tools=(LOOKUP,), temperature=0.5, **more), endpoint)

    found = sent.get("additionalModelRequestFields", {}).get("thinking")
    assert (found, sent.get("inferenceConfig", {}).get("temperature")) == (thinking, temperature)


def test_a_tool_may_be_just_offered_so_that_the_model_can_think_first():
    request = ChatRequest((user("x"),), tools=(LOOKUP,), tool_choice=NamedTool("lookup"), may_think_first=True)
    sent = body(replace(request, model=NEWER), ADAPTIVE)

    assert sent["additionalModelRequestFields"] == {"thinking": {"type": "adaptive"}}
    assert "toolChoice" not in sent["toolConfig"]


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        (
            NEWEST,
            "xhigh",
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "xhigh"}},
        ),
        ("openai.gpt-oss-120b-1:0", "low", {"reasoning_effort": "low"}),
        (LLAMA, "low", None),
        (LLAMA, "none", None),
    ],
    ids=["Claude", "OpenAI", "another", "another, none"],
)
def test_an_effort_goes_to_the_model_in_its_own_form(
    model: str, effort: str, expected: Json, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.WARNING, "octo.llm")
    sent = body(ChatRequest((user("x"),), model=model, reasoning_effort=effort))

    assert sent.get("additionalModelRequestFields") == expected
    warned = [f"the reasoning effort is left out: how the model `{LLAMA}` takes one is not known"]
    assert caplog.messages == (warned if (model, effort) == (LLAMA, "low") else [])


def test_a_word_that_is_no_effort_is_not_sent_to_a_claude_model():
    with pytest.raises(BadRequest, match="as `reasoningEffort`, found `lots`"):
        body(ChatRequest((user("x"),), reasoning_effort="lots"))


def test_a_budget_does_not_start_in_the_middle_of_a_turn_without_thinking():
    turns = (user("x"), assistant(ToolCall("a", "t", "{}")), results(ToolResult("a", "t", "1")))

    assert "additionalModelRequestFields" not in body(ChatRequest(turns), BUDGETED)
    assert "additionalModelRequestFields" in body(ChatRequest((*turns, assistant(Text("y")), user("z"))), BUDGETED)
    signed = (turns[0], assistant(SIGNED, ToolCall("a", "t", "{}")), turns[2])
    assert "additionalModelRequestFields" in body(ChatRequest(signed), BUDGETED)


SIGNED = Reasoning(" so \n", {"wire": "bedrock", "signature": "sig=="})
REDACTED = Reasoning("", {"wire": "bedrock", "data": "b3BhcXVl"})


def test_reasoning_is_echoed_byte_for_byte_and_first():
    sent = messages(user("x"), assistant(Text("hm"), SIGNED, REDACTED, ToolCall("a", "t", "{}")))

    assert sent[1]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": " so \n", "signature": "sig=="}}},
        {"reasoningContent": {"redactedContent": "b3BhcXVl"}},
        {"text": "hm"},
        use("a", "t", {}),
    ]


@pytest.mark.parametrize(
    "reasoning",
    [
        Reasoning("thoughts"),
        Reasoning("thoughts", {"wire": "bedrock"}),
        Reasoning("thoughts", {"wire": "anthropic", "signature": "s"}),
        Reasoning("thoughts", "what an older version stored"),
    ],
    ids=["no replay data", "no signature", "of another wire", "unknown form"],
)
def test_reasoning_that_this_wire_did_not_sign_is_left_out(reasoning: Reasoning):
    assert messages(user("x"), assistant(reasoning, Text("y")))[1]["content"] == [{"text": "y"}]


def test_a_turn_of_nothing_but_reasoning_gets_a_text():
    content = messages(user("x"), assistant(SIGNED), user("y"))[1]["content"]

    assert content[1:] == [{"text": "(no content)"}]


# ---------------------------------------------------------------- conversation


def test_results_and_the_next_user_turn_are_one_message():
    turns = (
        user("x"),
        assistant(ToolCall("a", "t", '{"n": 1}'), ToolCall("b", "t", "[]")),
        results(ToolResult("a", "t", "one"), ToolResult("b", "t", "no", is_error=True)),
        user("and?", File("image/png", PNG)),
    )

    assert messages(*turns)[1:] == [
        {"role": "assistant", "content": [use("a", "t", {"n": 1}), use("b", "t", {})]},
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "a", "content": [{"text": "one"}]}},
                {"toolResult": {"toolUseId": "b", "content": [{"text": "no"}], "status": "error"}},
                {"image": {"format": "png", "source": {"bytes": b64encode(PNG).decode()}}},
                {"text": "and?"},
            ],
        },
    ]


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
        [{"text": "(no content)"}],
        [use("a", "t", {})],
        [{"toolResult": {"toolUseId": "a", "content": [{"text": "(no content)"}]}}],
        [{"text": "(no content)"}],
        [{"text": "z"}],
    ]


def test_long_ids_become_short_ones_and_stay_the_same():
    id = "x" * 80
    sent = messages(user("x"), assistant(ToolCall(id, "t", "{}")), results(ToolResult(id, "t", "1")))
    made = sent[1]["content"][0]["toolUse"]["toolUseId"]

    assert len(made) == 64
    assert sent[2]["content"][0]["toolResult"]["toolUseId"] == made


def test_a_document_alone_gets_a_sentence_beside_it():
    assert messages(user("", PDF))[0]["content"] == [
        {"document": {"format": "pdf", "name": "offer-pdf", "source": {"bytes": "JVBERi0xLjc="}}},
        {"text": "The documents are attached."},
    ]
    assert len(messages(user("read it", PDF))[0]["content"]) == 2
    assert len(messages(user("", File("image/png", PNG)))[0]["content"]) == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Offer (2) [final].pdf", "Offer (2) [final]-pdf"),
        ("  my \t\n offer  ", "my offer"),
        ("prix_été.pdf", "prix--t--pdf"),
        ("", "document"),
        (" ", "document"),
        ("x" * 300, "x" * 190),
        ("a \u00a0 b", "a b"),
    ],
    ids=["plain", "space", "other letters", "none", "blank", "long", "no-break space"],
)
def test_the_name_of_a_document(name: str, expected: str):
    assert messages(user("x", replace(PDF, name=name)))[0]["content"][0]["document"]["name"] == expected


def test_names_of_documents_are_unlike_in_the_whole_request():
    files = [replace(PDF, name=name) for name in ("a.b", "a b", "a_b", "a-b (2)", "")]
    sent = messages(user("x", *files), assistant(Text("y")), user("z", files[0], files[-1]))

    names = [block["document"]["name"] for turn in sent for block in turn["content"] if "document" in block]
    assert names == ["a-b", "a b", "a-b (2)", "a-b (2) (2)", "document", "a-b (3)", "document (2)"]


@pytest.mark.parametrize(
    ("mime_type", "kind", "format"),
    [
        ("image/jpeg", "image", "jpeg"),
        ("image/gif", "image", "gif"),
        ("image/webp", "image", "webp"),
        ("text/csv", "document", "csv"),
        ("text/html", "document", "html"),
        ("text/plain", "document", "txt"),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "document", "docx"),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "document", "xlsx"),
    ],
)
def test_the_format_of_a_file(mime_type: str, kind: str, format: str):
    assert messages(user("x", File(mime_type, b"1")))[0]["content"][0][kind]["format"] == format


def test_files_of_the_assistant_are_not_sent():
    turns = (user("x"), assistant(File("image/png", PNG), Text("there")))

    assert messages(*turns)[1]["content"] == [{"text": "there"}]


def test_the_start_of_an_answer_loses_its_trailing_space():
    assert messages(user("x"), assistant(Text("So \n")))[1]["content"] == [{"text": "So"}]


def test_half_an_emoji_becomes_a_replacement_character():
    assert messages(user("\ud83d!"))[0]["content"] == [{"text": "�!"}]


def test_a_conversation_without_a_user_turn_is_an_error():
    with pytest.raises(BadRequest, match="the conversation has no user turn"):
        body(ChatRequest((assistant(Text("x")),)))


# ---------------------------------------------------------------- caching

POINT = {"cachePoint": {"type": "default"}}
CACHED = ChatRequest(
    (user("x"), assistant(ToolCall("a", "lookup", "{}")), results(ToolResult("a", "lookup", "1"))),
    system="be brief",
    tools=(LOOKUP,),
    cache=True,
)


def test_cache_points_stand_after_system_tools_and_the_last_message():
    sent = body(CACHED)

    assert sent["system"] == [{"text": "be brief"}, POINT]
    assert sent["toolConfig"]["tools"][1:] == [POINT]
    assert [turn["content"][-1] == POINT for turn in sent["messages"]] == [False, False, True]
    assert json.dumps(sent).count("cachePoint") == 3


@pytest.mark.parametrize(
    ("model", "prompt_cache", "count"),
    [(CLAUDE, "off", 0), (NOVA, "auto", 2), (LLAMA, "on", 0)],
    ids=["off", "Nova", "Llama"],
)
def test_a_prompt_is_marked_where_the_model_takes_it(model: str, prompt_cache: str, count: int):
    endpoint = replace(ENDPOINT, model=model, prompt_cache=prompt_cache)  # type: ignore[arg-type]  # from a table

    assert json.dumps(body(CACHED, endpoint)).count("cachePoint") == count


ALL, WITHOUT_TOOLS = {"system", "tools", "messages"}, {"system", "messages"}


@pytest.mark.parametrize(
    ("model", "places"),
    [
        ("anthropic.claude-3-7-sonnet-20250219-v1:0", ALL),
        ("anthropic.claude-3-5-haiku-20241022-v1:0", ALL),
        ("anthropic.claude-opus-9-v1:0", ALL),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", ALL),
        ("eu.anthropic.claude-sonnet-4-20250514-v1:0", ALL),
        ("apac.anthropic.claude-sonnet-4-20250514-v1:0", ALL),
        ("au.anthropic.claude-sonnet-4-5-20250929-v1:0", ALL),
        ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", ALL),
        ("arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-sonnet-4-20250514-v1:0", ALL),
        ("arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-20250514-v1:0", ALL),
        ("anthropic.claude-3-haiku-20240307-v1:0", set()),
        ("anthropic.claude-3-5-sonnet-20240620-v1:0", set()),
        ("anthropic.claude-v2:1", set()),
        ("anthropic.claude-instant-v1", set()),
        ("us.amazon.nova-lite-v1:0", WITHOUT_TOOLS),
        ("amazon.nova-canvas-v1:0", set()),
        ("meta.llama3-3-70b-instruct-v1:0", set()),
        ("arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/x1y2", set()),
    ],
)
def test_where_a_model_takes_cache_points(model: str, places: set[str]):
    assert cache_places(model) == places
