"""octo/llm/proxy.py, octo/llm/raw.py, octo/llm/fim.py: what goes upstream for a request of a client."""

import json

import pytest

from octo.errors import BadRequest
from octo.llm.chat import ChatMessage, ChatRequest, ChatResponse, user
from octo.llm.credentials import CREDENTIAL_HEADERS, Credentials, Headers, Platform
from octo.llm.model import HttpModel
from octo.llm.providers import PROVIDERS
from octo.llm.proxy import ProxyBuildArgs, ProxyRequest, build_proxy_request, listed, model_lists
from octo.llm.raw import RawObject
from octo.llm.transport import Transport
from octo.llm.wire import Endpoint, HttpCall

AZURE = "https://r.openai.azure.com"
FOUNDRY = "https://r.services.ai.azure.com"
VERTEX = "https://eu-aiplatform.googleapis.com/v1/projects/p/locations/eu/publishers/anthropic/models"
MESSAGES = "messages"
CHAT = "chat/completions"


def credentials(
    provider: str, base_url: str, key: str = "k", own: Headers = (), platform: Platform = "standard"
) -> Credentials:
    header = "authorization" if platform == "vertex" else PROVIDERS[provider].key_header
    return Credentials(provider, base_url, header, api_key=key, custom_headers=own, platform=platform, route="chat")


def built(path: str, body: str, credentials: Credentials, headers: dict[str, str] | None = None) -> ProxyRequest:
    return build_proxy_request(ProxyBuildArgs("POST", path, RawObject(body.encode()), credentials, headers or {}))


class Sent(Transport):
    """Stands for the network: keeps the calls, and answers nothing."""

    def __init__(self) -> None:
        super().__init__({})
        self.calls: list[HttpCall] = []

    async def send(self, call: HttpCall, *_: object) -> ChatResponse:  # type: ignore[override]  # of one kind only
        self.calls.append(call)
        return ChatResponse(ChatMessage("assistant", ()), "end_turn")


def named(headers: Headers) -> dict[str, str]:
    return {name.lower(): value for name, value in headers if name.lower() in CREDENTIAL_HEADERS}


@pytest.mark.parametrize(
    ("key", "own"),
    [
        ("k", ()),
        ("", ()),
        ("k", (("Authorization", "Bearer own"),)),
        ("k", (("X-Api-Key", "own"),)),
        ("k", (("api-key", "own"),)),
    ],
    ids=["key", "no key", "replaced", "x-api-key of its own", "api-key of its own"],
)
@pytest.mark.parametrize(
    ("provider", "base_url", "model", "path", "platform"),
    [
        ("anthropic", "https://api.anthropic.com", "m", MESSAGES, "standard"),
        ("anthropic", "https://api.anthropic.com/v1/", "m", MESSAGES, "standard"),
        ("anthropic", "https://gw.example/team/claude", "m", MESSAGES, "standard"),
        ("anthropic", VERTEX, "claude-x@1", MESSAGES, "vertex"),
        ("azure_foundry", FOUNDRY, "claude-x", MESSAGES, "standard"),
        ("azure_foundry", f"{FOUNDRY}/openai/v1", "claude-x", MESSAGES, "standard"),
        ("azure_foundry", FOUNDRY, "grok-4", CHAT, "standard"),
        ("azure_openai", AZURE, "gpt", CHAT, "standard"),
        ("azure_openai", f"{AZURE}/openai/deployments/gpt?api-version=1", "gpt", CHAT, "standard"),
        ("openai", "https://api.openai.com/v1", "gpt", CHAT, "standard"),
        ("openai", "https://gw.example/llm/", "gpt", CHAT, "standard"),
        ("openai", f"{AZURE}/openai/deployments/gpt", "gpt", CHAT, "standard"),
        ("customai", "http://localhost:8080/v1", "m", CHAT, "standard"),
        ("customai", "http://localhost:8080/v1/", "m", CHAT, "standard"),
        ("openrouter", "https://openrouter.ai/api/v1", "a/b", CHAT, "standard"),
    ],
)
async def test_proxy_and_agent_call_the_same_address_with_the_same_key(
    provider: str, base_url: str, model: str, path: str, platform: Platform, key: str, own: Headers
):
    as_whom = credentials(provider, base_url, key, own, platform)
    transport = Sent()
    await HttpModel(Endpoint(as_whom, model), transport).complete(ChatRequest((user("hello"),)), session={})
    (by_agent,) = transport.calls

    by_proxy = built(path, json.dumps({"model": model, "messages": []}), as_whom)

    assert by_proxy.url == by_agent.url
    assert named(by_proxy.headers) == named(by_agent.headers)


def test_the_body_stays_as_it_is_byte_for_byte():
    body = '{ "model" : "m",\n "x": 1.0, "y": [1e2, "\\u00e4"], "unknown": {"a": 12345678901234567890} }'

    assert built(CHAT, body, credentials("customai", "http://a/v1")).body == body.encode()


def test_the_end_user_of_the_connector_takes_the_place_of_the_callers():
    as_whom = Credentials("customai", "http://a/v1", "authorization", user="team")

    assert built(CHAT, '{"user": "ann", "x": 1.0}', as_whom).body == b'{"user": "team", "x": 1.0}'
    assert built(CHAT, '{"x": 1.0}', as_whom).body == b'{"user":"team","x": 1.0}'
    assert built(CHAT, "{}", as_whom).body == b'{"user":"team"}'


def test_on_vertex_the_model_goes_from_the_body_into_the_address():
    as_whom = credentials("anthropic", VERTEX, platform="vertex")
    sent = built(
        MESSAGES, '{"model": "claude-x@1", "stream": true, "max_tokens": 5}', as_whom, {"anthropic-version": "1"}
    )

    assert sent.url == f"{VERTEX}/claude-x@1:streamRawPredict"
    assert json.loads(sent.body) == {"anthropic_version": "vertex-2023-10-16", "stream": True, "max_tokens": 5}
    assert dict(sent.headers) == {"content-type": "application/json", "authorization": "Bearer k"}


def test_on_vertex_a_model_is_needed():
    with pytest.raises(BadRequest, match="`model` is missing"):
        built(MESSAGES, "{}", credentials("anthropic", VERTEX, platform="vertex"))


def test_of_the_headers_of_a_client_only_those_of_the_api_of_anthropic_travel():
    headers = {
        "anthropic-version": "2099-01-01",
        "anthropic-beta": "b",
        "authorization": "Bearer client",
        "cookie": "c",
    }
    sent = built(MESSAGES, '{"model": "m"}', credentials("anthropic", "https://a"), headers)

    assert dict(sent.headers) == {
        "content-type": "application/json",
        "x-api-key": "k",
        "anthropic-version": "2099-01-01",
        "anthropic-beta": "b",
    }
    chat = built(CHAT, '{"model": "m"}', credentials("customai", "https://a"), headers)
    assert dict(chat.headers) == {"content-type": "application/json", "authorization": "Bearer k"}


@pytest.mark.parametrize(
    ("path", "provider", "whose"),
    [
        ("messages", "customai", "Anthropic"),
        ("responses", "groq", "OpenAI and Azure"),
        ("responses", "anthropic", "OpenAI and Azure"),
    ],
)
def test_a_path_that_an_api_does_not_have(path: str, provider: str, whose: str):
    connector = PROVIDERS[provider].connector
    with pytest.raises(BadRequest) as caught:
        built(path, "{}", credentials(provider, "http://a"))

    assert caught.value.message == f"`/v1/{path}` is there for connectors of {whose}, not for `{connector}`"


@pytest.mark.parametrize(
    ("provider", "base_url", "url"),
    [
        ("mistral", "https://api.mistral.ai/v1", "https://api.mistral.ai/v1/fim/completions"),
        ("deepseek", "https://api.deepseek.com/v1", "https://api.deepseek.com/beta/completions"),
        ("deepseek", "https://api.deepseek.com", "https://api.deepseek.com/beta/completions"),
        ("deepseek", "https://gw.example/v1/", "https://gw.example/beta/completions"),
        ("deepseek", "https://gw.example/deep", "https://gw.example/deep/completions"),
    ],
)
def test_where_code_is_filled_in(provider: str, base_url: str, url: str):
    sent = built("fim/completions", '{"model": "m", "prompt": "a = "}', credentials(provider, base_url))

    assert (sent.url, sent.body) == (url, b'{"model": "m", "prompt": "a = "}')


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{}", "expected text as `prompt`, found none"),
        ('{"prompt": 1}', "expected text as `prompt`, found `1`"),
        ('{"prompt": "a", "suffix": []}', "expected text as `suffix`, found `[]`"),
        ('{"prompt": "a", "max_tokens": true}', "expected a whole number as `max_tokens`, found `true`"),
        ('{"prompt": "a", "stop": 1}', "expected text or a list of texts as `stop`, found `1`"),
    ],
)
def test_code_that_cannot_be_filled_in(body: str, message: str):
    with pytest.raises(BadRequest) as caught:
        built("fim/completions", body, credentials("mistral", "https://a"))

    assert caught.value.message == message


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"", "expected `{` at character 0"),
        (b"[]", "expected `{` at character 0"),
        (b"{", "it ends too early"),
        (b'{"a":1', "it ends too early"),
        (b'{"a":1}x', "more follows the object at character 7"),
        (b'{"a":[1 2]}', "expecting ',' delimiter at character 8"),
        (b'{"a":NaN}', "`NaN` is not JSON"),
        (b"{1:2}", 'expected `"` at character 1'),
        (b'{"a":' + b"[" * 100_000, "it is nested too deeply"),
        (b'{"a":' + b"9" * 5000 + b"}", "a number has 5000 digits"),
        (b'{"a":"\xff"}', "it is not UTF-8 at byte 6"),
        (b'{"a":1,}', 'expected `"` at character 7'),
    ],
    ids=lambda value: repr(value[:12]),
)
def test_bytes_that_are_no_object(body: bytes, fault: str):
    with pytest.raises(ValueError) as caught:
        RawObject(body)
    assert str(caught.value) == fault


def test_a_field_that_stands_twice_is_set_in_both_places():
    assert RawObject(b'{"model":"a","model": "b"}').with_fields({"model": "c"}).raw == b'{"model":"c","model": "c"}'


@pytest.mark.parametrize(
    ("provider", "base_url", "urls"),
    [
        ("anthropic", "https://a/v1", ["https://a/v1/models?limit=1000"]),
        ("googleai", "https://g/v1beta", ["https://g/v1beta/models?pageSize=1000"]),
        ("googleai", "https://g/v1beta/models", ["https://g/v1beta/models?pageSize=1000"]),
        ("azure_openai", AZURE, [f"{AZURE}/openai/v1/models"]),
        (
            "aws_bedrock",
            "https://bedrock-runtime.eu-west-1.amazonaws.com",
            [
                "https://bedrock.eu-west-1.amazonaws.com/foundation-models",
                "https://bedrock.eu-west-1.amazonaws.com/inference-profiles",
            ],
        ),
    ],
)
def test_where_the_models_are_listed(provider: str, base_url: str, urls: list[str]):
    assert [call.url for call in model_lists(credentials(provider, base_url))] == urls


@pytest.mark.parametrize(
    ("answer", "models"),
    [
        ({"data": [{"id": "a", "created": 1}, {"id": 3}]}, [{"id": "a"}]),
        ([{"id": "a", "display_name": "A"}], [{"id": "a", "display_name": "A"}]),
        ({"models": [{"name": "models/g", "displayName": "G"}]}, [{"id": "g", "display_name": "G"}]),
        ({"modelSummaries": [{"modelId": "b", "modelName": "B"}]}, [{"id": "b", "display_name": "B"}]),
        ({"inferenceProfileSummaries": [{"inferenceProfileId": "eu.b"}]}, [{"id": "eu.b"}]),
    ],
)
def test_every_kind_of_list_is_read(answer: object, models: list[dict[str, str]]):
    assert listed(answer) == models
