"""octo/llm/refusals.py: what a model refuses is left out, and the call is made again."""

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
    server: Any, provider: str, header: str, model: str, requests: list[ChatRequest], path: str = ""
) -> list[Json]:
    """What the vendor was sent for some requests of one session."""
    session: dict[object, Any] = {}
    async with Transport({}) as transport:
        ask = HttpModel(
            Endpoint(Credentials(provider, server.url + path, header, api_key="secret-key"), model), transport
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
    text = (
        "This model doesn't support the toolConfig.toolChoice.any field. "
        "Remove toolConfig.toolChoice.any and try again."
    )
    forced = ChatRequest((user("x"),), tools=(ToolDefinition("t", "A tool."),), tool_choice="any")
    script = [bedrock.error(400, text), anthropic.reply("a"), anthropic.reply("b")]
    with bedrock.BedrockServer(script) as server:
        sent = await bodies(server, "aws_bedrock", "authorization", "meta.llama3-3-70b-instruct-v1:0", [forced, forced])

    assert [body["toolConfig"].get("toolChoice") for body in sent] == [{"any": {}}, None, None]


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
