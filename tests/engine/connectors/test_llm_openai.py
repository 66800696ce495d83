"""octo/connectors/llm_openai.py, octo/connectors/llm_azure.py: connectors of OpenAI and Azure."""

import json
from dataclasses import replace

import pytest

from octo.chat_connector import ChatConnector
from octo.connectors.llm import LlmConnector
from octo.errors import AuthenticationFailed, ConfigError
from octo.llm.chat import ChatRequest, user
from octo.llm.credentials import Credentials
from octo.llm.model import HttpModel
from octo.llm.wire import Endpoint
from octo.testing.harness import config, runtime
from vendor.server import Answer, Request, Server

OPENAI = Endpoint(Credentials("openai", "https://api.openai.com/v1", "authorization", api_key="k"), "gpt-5.4")
AZURE = Endpoint(Credentials("azure_openai", "https://r.openai.azure.com", "api-key", api_key="k"), "")
FOUNDRY = Endpoint(Credentials("azure_foundry", "https://r.services.ai.azure.com", "api-key", api_key="k"), "")


TOKENS = ["tokenURL: https://t", "clientId: a", "clientSecret: b"]


def yaml(type: str, *settings: str) -> str:
    lines = "".join(f"\n                {line}" for line in settings)
    return f"""
        env:
          - name: KEY
        connectors:
          - name: gpt
            type: {type}
            settings:{lines}
    """


def endpoint(type: str, *settings: str, environ: dict[str, str] | None = None) -> Endpoint:
    connector = config(yaml(type, *settings), environ=environ).connector("gpt")
    assert isinstance(connector, LlmConnector)
    return connector.endpoint(environ or {})


@pytest.mark.parametrize(
    ("type", "settings", "expected"),
    [
        ("llm-openai", ["apiKey: k"], OPENAI),
        ("llm-openai", ["api_key: k", "reasoning: default", "maxTokens: 0", "organizationId: ''"], OPENAI),
        ("llm-azure-openai", ["apiKey: k", "base_url: https://r.openai.azure.com"], AZURE),
        ("llm-azure-foundry", ["apiKey: k", "baseURL: https://r.services.ai.azure.com"], FOUNDRY),
        (
            "llm-openai",
            [
                "apiKey: k",
                "model: gpt-5-mini",
                "maxTokens: 900",
                "reasoning: low",
                "wire: auto",
                "organizationId: org-1",
                "user: 7",
                "promptCache: 'off'",
            ],
            replace(
                OPENAI,
                credentials=replace(OPENAI.credentials, organization_id="org-1", user="7", route="auto"),
                model="gpt-5-mini",
                max_tokens=900,
                reasoning="low",
                prompt_cache="off",
            ),
        ),
        (
            "llm-azure-openai",
            ["baseURL: https://r.openai.azure.com", "wire: chat", *TOKENS],
            replace(AZURE, credentials=replace(AZURE.credentials, api_key="", route="chat")),
        ),
    ],
    ids=["openai", "openai, empty", "azure openai", "azure foundry", "openai, all", "azure openai, tokens"],
)  # fmt: skip
def test_settings_become_what_calls_are_built_from(type: str, settings: list[str], expected: Endpoint):
    assert endpoint(type, *settings) == expected


def test_the_environment_redirects_calls_of_openai():
    found = endpoint("llm-openai", "apiKey: k", environ={"OPENAI_BASE_URL": "http://stub:1/v1"})

    assert found.credentials.base_url == "http://stub:1/v1"


@pytest.mark.parametrize(
    ("type", "settings", "line", "message"),
    [
        ("llm-openai", ["apiKey: ''"], 0, 'connector "gpt" (llm-openai): apiKey is empty'),
        ("llm-openai", ["model: x"], -3, 'connector "gpt" (llm-openai): apiKey is empty'),
        ("llm-azure-openai", ["apiKey: k"], -3, "connector of type `llm-azure-openai` requires `baseURL`"),
        (
            "llm-azure-foundry",
            ["apiKey: k", "baseURL: ''"],
            -3,
            "connector of type `llm-azure-foundry` requires `baseURL`",
        ),
        (
            "llm-openai",
            ["apiKey: k", "reasoning: off"],
            1,
            "expected `default` or `none` or `minimal` or `low` or `medium` or `high`, found `off`",
        ),
        ("llm-openai", ["apiKey: k", "wire: http"], 1, "expected `responses` or `chat` or `auto`, found `http`"),
        ("llm-openai", ["apiKey: k", "clientId: a"], 1, "`clientId` requires `tokenURL`"),
        ("llm-openai", ["clientId: a", "tokenURL: https://t"], 1, "`tokenURL` requires `clientSecret`"),
        (
            "llm-openai",
            ["tokenURL: t", "clientId: a", "clientSecret: b"],
            0,
            "expected a URL, found `t`: it must begin with `http://` or `https://`",
        ),
        (
            "llm-openai",
            ["apiKey: k", 'organizationId: "a\\nb"'],
            1,
            "the value of header `OpenAI-Organization` holds a line break or another control character",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused_where_they_stand(
    type: str, settings: list[str], line: int, message: str
):
    with pytest.raises(ConfigError) as caught:
        config(yaml(type, *settings))

    (only,) = caught.value.problems
    assert only.location is not None
    assert (only.message, only.location.line - 8) == (message, line)


# ---------------------------------------------------------------- tokens


class TokensAndModel(Server):
    """Gives tokens at `/token`, and answers as a model to whoever has the last one."""

    def __init__(self, seconds: int = 3600) -> None:
        super().__init__()
        self._seconds = seconds
        self._given = 0

    def answer(self, request: Request) -> Answer:
        if request.path == "/token":
            self._given += 1
            return self._json({"access_token": f"token-{self._given}", "expires_in": self._seconds})
        if request.headers.get("authorization") != f"Bearer token-{self._given}":
            return self._json({"error": {"message": "who are you"}}, 401)
        return self._json({"status": "completed", "output": [], "model": "m"})

    @staticmethod
    def _json(body: object, status: int = 200) -> Answer:
        return Answer(status, (("content-type", "application/json"),), (json.dumps(body).encode(),))


async def test_calls_go_out_with_a_token_that_is_got_once():
    with TokensAndModel() as server:
        settings = [
            f"baseURL: {server.url}/v1",
            f"tokenURL: {server.url}/token",
            "clientId: a",
            "clientSecret: '${KEY}'",
        ]
        async with runtime(yaml("llm-azure-openai", *settings, "model: m"), environ={"KEY": "b"}) as opened:
            for _ in range(2):
                await opened.live("gpt", HttpModel).complete(ChatRequest((user("x"),)), session={})

        assert [request.path for request in server.requests] == ["/token", "/v1/responses", "/v1/responses"]
        assert [request.headers.get("api-key") for request in server.requests] == [None] * 3


async def test_a_key_is_used_where_there_is_one():
    with TokensAndModel() as server:
        settings = [f"baseURL: {server.url}/v1", f"tokenURL: {server.url}/token", "clientId: a", "clientSecret: b"]
        async with runtime(yaml("llm-azure-openai", *settings, "apiKey: k", "model: m")) as opened:
            with pytest.raises(AuthenticationFailed, match="status 401: who are you"):
                await opened.live("gpt", HttpModel).complete(ChatRequest((user("x"),)), session={})

        assert [request.headers.get("api-key") for request in server.requests] == ["k"]


async def test_a_token_that_is_not_given_is_told_with_the_connector_and_without_the_secret():
    class Refusing(TokensAndModel):
        def answer(self, _: Request) -> Answer:
            return self._json({"error": "invalid_client", "error_description": "no app for s3cret-word"}, 401)

    with Refusing() as server:
        settings = [
            f"baseURL: {server.url}",
            f"tokenURL: {server.url}/token",
            "clientId: a",
            "clientSecret: s3cret-word",
        ]
        async with runtime(yaml("llm-azure-openai", *settings)) as opened:
            with pytest.raises(AuthenticationFailed) as caught:
                await opened.live("gpt", HttpModel).complete(ChatRequest((user("x"),)), session={})

        where = f"`clientId`, `clientSecret` and `tokenURL`, which is `{server.url}/token`"
    assert str(caught.value) == (
        'llm-azure-openai complete: connector "gpt": no access token: status 401: no app for ***'
    )
    assert caught.value.hint == f"check {where}"


SEARCHES = {
    "Responses": (("llm-openai", "apiKey: k"), True),
    "Chat Completions of OpenAI": (("llm-openai", "apiKey: k", "wire: chat"), False),
    "Responses on Azure": (("llm-azure-openai", "apiKey: k", "baseURL: https://r.openai.azure.com"), True),
    "Chat Completions on Azure": (
        ("llm-azure-openai", "apiKey: k", "baseURL: https://r.openai.azure.com", "wire: chat"),
        False,
    ),
    "Claude on Foundry": (
        ("llm-azure-foundry", "apiKey: k", "baseURL: https://r.services.ai.azure.com", "model: claude-sonnet-4-6"),
        True,
    ),
    "others on Foundry": (
        ("llm-azure-foundry", "apiKey: k", "baseURL: https://r.services.ai.azure.com", "model: gpt-5"),
        False,
    ),
    "Claude": (("llm-anthropic", "apiKey: k"), True),
    "Gemini": (("llm-gemini", "apiKey: k"), True),
    "Bedrock": (("llm-bedrock", "apiKey: k", "region: eu-west-1", "model: anthropic.claude-x"), False),
    "OpenRouter": (("llm-openrouter", "apiKey: k"), False),
    "a script": (("llm-scripted", "turns: [{text: hi}]"), True),
}


@pytest.mark.parametrize(("settings", "knows"), SEARCHES.values(), ids=SEARCHES)
def test_a_connector_says_whether_its_model_can_search_the_web(settings: tuple[str, ...], knows: bool):
    connector = config(yaml(*settings)).connector("gpt")

    assert isinstance(connector, ChatConnector)
    assert connector.knows_web_search("") is knows
