"""octo/llm/refusals.py, octo/llm/thinking.py: what a model refuses is left out, and the call is made again."""

from dataclasses import replace
from typing import Any

import pytest

from octo.errors import ProviderError
from octo.llm.chat import ChatRequest, ToolDefinition, user
from octo.llm.credentials import Credentials
from octo.llm.model import HttpModel
from octo.llm.refusals import refused
from octo.llm.transport import Transport
from octo.llm.wire import Endpoint, HttpCall, to_bytes
from octo.values import Json
from vendor import anthropic, bedrock, gemini

ASKED = ChatRequest((user("x"),), temperature=0.5)


async def bodies(
    server: Any, provider: str, header: str, model: str, requests: list[ChatRequest], path: str = "", **settings: Any
) -> list[Json]:
    """What the vendor was sent for some requests of one session."""
    session: dict[object, Any] = {}
    async with Transport({}) as transport:
        ask = HttpModel(
            Endpoint(Credentials(provider, server.url + path, header, api_key="secret-key"), model, **settings),
            transport,
        )
        for request in requests:
            await ask.complete(request, session=session)
    return [request.json for request in server.requests]


async def test_a_refused_temperature_is_left_out_on_anthropic_for_the_rest_of_the_session():
    refusal = anthropic.error(400, "`temperature` is deprecated for this model.")
    with anthropic.AnthropicServer([refusal, anthropic.reply("a"), anthropic.reply("b")]) as server:
        sent = await bodies(server, "anthropic", "x-api-key", "claude-sonnet-4-6", [ASKED, ASKED])

    assert [body.get("temperature") for body in sent] == [0.5, None, None]


async def test_a_refused_temperature_is_left_out_on_gemini_for_the_rest_of_the_session():
    refusal = gemini.error(400, "Unsupported value: temperature is not supported by this model")
    with gemini.GeminiServer([refusal, gemini.reply("a"), gemini.reply("b")]) as server:
        sent = await bodies(server, "googleai", "x-goog-api-key", "gemini-3.5-flash", [ASKED, ASKED], "/v1beta")

    assert [body.get("generationConfig", {}).get("temperature") for body in sent] == [0.5, None, None]


async def test_a_refused_temperature_is_left_out_on_bedrock_for_the_rest_of_the_session():
    refusal = bedrock.error(400, "The model returned the following errors: `temperature` is deprecated for this model.")
    with bedrock.BedrockServer([refusal, anthropic.reply("a"), anthropic.reply("b")]) as server:
        sent = await bodies(server, "aws_bedrock", "authorization", "amazon.nova-pro-v1:0", [ASKED, ASKED])

    assert [body.get("inferenceConfig", {}).get("temperature") for body in sent] == [0.5, None, None]


async def test_tools_are_just_offered_on_bedrock_where_the_model_cannot_be_made_to_call_one():
    """It is known of some; others say it."""
    text = (
        "This model doesn't support the toolConfig.toolChoice.any field. "
        "Remove toolConfig.toolChoice.any and try again."
    )
    forced = ChatRequest((user("x"),), tools=(ToolDefinition("t", "A tool."),), tool_choice="any")
    script = [bedrock.error(400, text), anthropic.reply("a"), anthropic.reply("b")]
    with bedrock.BedrockServer(script) as server:
        sent = await bodies(server, "aws_bedrock", "authorization", "writer.palmyra-x5-v1:0", [forced, forced])
    with bedrock.BedrockServer([anthropic.reply("a")]) as server:
        known = await bodies(server, "aws_bedrock", "authorization", "us.meta.llama3-3-70b-instruct-v1:0", [forced])

    assert [body["toolConfig"].get("toolChoice") for body in sent] == [{"any": {}}, None, None]
    assert [body["toolConfig"].get("toolChoice") for body in known] == [None]


TEMPERATURE = {"temperature": 0.5}


@pytest.mark.parametrize(
    ("body", "status", "words", "expected"),
    [
        (TEMPERATURE, 400, "`temperature` is deprecated for this model.", {"temperature"}),
        ({"inferenceConfig": TEMPERATURE}, 400, "temperature is not supported", {"temperature"}),
        ({"generationConfig": TEMPERATURE}, 400, "Unknown name: temperature", {"temperature"}),
        (TEMPERATURE, 400, "the tool get_temperature_now is unknown", set()),
        (TEMPERATURE, 400, "temperature: Input should be less than or equal to 1", set()),
        (TEMPERATURE, 500, "temperature is not supported", set()),
        ({}, 400, "temperature is not supported", set()),
        (TEMPERATURE, 400, "top_k is not supported", set()),
    ],
    ids=["top", "bedrock", "gemini", "a longer name", "out of range", "no refusal", "not sent", "something else"],
)
def test_what_a_refusal_is_about(body: Json, status: int, words: str, expected: set[str]):
    error = ProviderError("", status=status, body=words)

    assert refused(error, HttpCall("http://h", (), to_bytes(body))) == expected


# ---------------------------------------------------------------- how hard to think


def thought(body: Json) -> Json:
    """What a body says of thinking, without what is shown of it."""
    fields = body.get("additionalModelRequestFields", body)
    thinking = {key: value for key, value in fields.get("thinking", {}).items() if key != "display"}
    return thinking.get("budget_tokens", thinking.get("type")), fields.get("output_config", {}).get("effort")


THINKS = ChatRequest((user("x"),), max_tokens=20000)


@pytest.mark.parametrize(
    ("model", "effort", "sent"),
    [
        ("claude-sonnet-4-6", "max", [("adaptive", "max")]),
        ("claude-sonnet-4-6", "xhigh", [("adaptive", "xhigh"), ("adaptive", "high")]),
        ("claude-sonnet-4-5", "low", [(1024, None)]),
        ("claude-3-7-sonnet-20250219", "low", [(1024, None)]),
        ("claude-opus-4-20250514", "medium", [(8192, None)]),
        ("claude-opus-4-1-20250805", "max", [(19999, None)]),
        ("claude-sonnet-4-5", "none", [("disabled", None)]),
        ("claude-opus-4-7", "xhigh", [("adaptive", "xhigh")]),
    ],
    ids=["known", "a newer word", "earlier", "much earlier", "with a date", "up to the cap", "none", "newest"],
)
async def test_an_effort_is_said_as_an_earlier_claude_model_knows_it(
    model: str, effort: str, sent: list[tuple[str | int, str | None]]
):
    """What is known of models is said at once, the rest once more in another way when it is refused."""
    request = replace(THINKS, reasoning_effort=effort)
    with anthropic.AnthropicServer(lambda _: anthropic.reply("a")) as server:
        found = await bodies(server, "anthropic", "x-api-key", model, [request, request])

    assert [thought(body) for body in found] == [*sent, sent[-1]]


@pytest.mark.parametrize(
    ("setting", "model", "sent"),
    [
        ("adaptive", "claude-sonnet-4-5", [8192, 8192]),
        ("adaptive", "claude-sonnet-4-6", ["adaptive", "adaptive"]),
        ("budgeted", "claude-sonnet-4-6", [2048, 2048]),
        ("budgeted", "claude-opus-4-7", ["adaptive", "adaptive"]),
        ("budgeted", "claude-mythos-6", ["adaptive", "adaptive"]),
    ],
)
async def test_thinking_of_the_connector_is_said_as_the_model_knows_it(setting: Any, model: str, sent: list[Any]):
    with anthropic.AnthropicServer(lambda _: anthropic.reply("a")) as server:
        settings = {"thinking": setting, "thinking_budget": 2048}
        found = await bodies(server, "anthropic", "x-api-key", model, [THINKS, THINKS], **settings)

    assert [thought(body)[0] for body in found] == sent


@pytest.mark.parametrize(
    ("setting", "refusal", "sent"),
    [
        ("adaptive", "adaptive thinking is not supported on this model", ["adaptive", 8192, 8192]),
        (
            "budgeted",
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
            '"output_config.effort" to control thinking behavior.',
            [2048, "adaptive", "adaptive"],
        ),
    ],
)
async def test_thinking_that_a_model_of_an_unknown_name_refuses_is_said_in_another_way(
    setting: Any, refusal: str, sent: list[Any]
):
    script = [anthropic.error(400, refusal), anthropic.reply("a"), anthropic.reply("b")]
    with anthropic.AnthropicServer(script) as server:
        settings = {"thinking": setting, "thinking_budget": 2048}
        found = await bodies(server, "anthropic", "x-api-key", "ours", [THINKS, THINKS], **settings)

    assert [thought(body)[0] for body in found] == sent


async def test_an_effort_is_said_in_tokens_to_an_earlier_claude_model_on_bedrock():
    text = "The model returned the following errors: adaptive thinking is not supported on this model"
    script = [bedrock.error(400, text), anthropic.reply("a"), anthropic.reply("b")]
    request = replace(THINKS, reasoning_effort="low")
    with bedrock.BedrockServer(script) as server:
        found = await bodies(
            server,
            "aws_bedrock",
            "authorization",
            "anthropic.claude-later-v1:0",
            [request] * 2,
        )

    assert [thought(body) for body in found] == [("adaptive", "low"), (1024, None), (1024, None)]


SHOWN = {"includeThoughts": True}


@pytest.mark.parametrize(
    ("model", "effort", "sent"),
    [
        ("gemini-3.5-flash", "minimal", [{"thinkingLevel": "minimal", **SHOWN}]),
        ("gemini-3-pro", "minimal", [{"thinkingLevel": "minimal", **SHOWN}, {"thinkingLevel": "low", **SHOWN}]),
        ("gemini-3-pro", "xhigh", [{"thinkingLevel": "xhigh", **SHOWN}, {"thinkingLevel": "high", **SHOWN}]),
        ("gemini-2.5-flash", "low", [{"thinkingBudget": 1024, **SHOWN}]),
        ("gemini-2.5-flash", "none", [{"thinkingBudget": 0}]),
    ],
    ids=["known", "too little", "a word of others", "in tokens", "off"],
)
async def test_an_effort_is_said_as_a_gemini_model_knows_it(model: str, effort: str, sent: list[Json]):
    request = replace(THINKS, reasoning_effort=effort)
    with gemini.GeminiServer(lambda _: gemini.reply("a")) as server:
        found = await bodies(server, "googleai", "x-goog-api-key", model, [request, request], "/v1beta")

    assert [body["generationConfig"]["thinkingConfig"] for body in found] == [*sent, sent[-1]]


@pytest.mark.parametrize(
    ("effort", "text", "expected"),
    [
        ("low", "Thinking level is not supported for this model.", {"thinkingBudget": 1024, **SHOWN}),
        ("none", "Thinking level is not supported for this model.", {"thinkingBudget": 0}),
    ],
    ids=["low", "none"],
)
async def test_a_gemini_model_of_an_unknown_name_may_want_tokens(effort: str, text: str, expected: Json):
    request = replace(THINKS, reasoning_effort=effort)
    with gemini.GeminiServer([gemini.error(400, text), gemini.reply("a")]) as server:
        found = await bodies(server, "googleai", "x-goog-api-key", "gemini-flash-latest", [request], "/v1beta")

    assert found[-1]["generationConfig"]["thinkingConfig"] == expected


async def test_a_budget_that_a_gemini_model_does_not_take_is_left_out():
    text = "Budget 0 is invalid. This model only works in thinking mode."
    request = replace(THINKS, reasoning_effort="none")
    with gemini.GeminiServer([gemini.error(400, text), gemini.reply("a")]) as server:
        found = await bodies(server, "googleai", "x-goog-api-key", "gemini-2.5-flash-x", [request], "/v1beta")

    assert [body["generationConfig"].get("thinkingConfig") for body in found] == [{"thinkingBudget": 0}, None]
