"""octo/connectors/llm.py: the settings of LLM connectors."""

import logging
from dataclasses import replace

import pytest

from octo.connectors.llm import LlmAnthropic, LlmConnector
from octo.errors import AuthenticationFailed, ConfigError, ConnectorError, ProviderError
from octo.llm.chat import ChatRequest, user
from octo.llm.credentials import Credentials
from octo.llm.model import HttpModel
from octo.llm.wire import Endpoint
from octo.testing.harness import config, runtime
from vendor.anthropic import AnthropicServer, error, reply

PLAIN = Endpoint(
    Credentials("anthropic", "https://api.anthropic.com/v1", "x-api-key", api_key="k"),
    "claude-sonnet-4-6",
    max_tokens=4096,
)


def yaml(*settings: str) -> str:
    lines = "".join(f"\n                {line}" for line in settings)
    return f"""
        env:
          - name: KEY
        connectors:
          - name: claude
            type: llm-anthropic
            settings:{lines}
    """


def endpoint(*settings: str, environ: dict[str, str] | None = None) -> Endpoint:
    connector = config(yaml(*settings), environ=environ).connector("claude")
    assert isinstance(connector, LlmAnthropic)
    return connector.endpoint(environ or {})


def problem(*settings: str, environ: dict[str, str] | None = None) -> tuple[int, str]:
    with pytest.raises(ConfigError) as caught:
        config(yaml(*settings), environ=environ)
    (only,) = caught.value.problems
    assert only.location is not None
    return only.location.line - 8, only.message


def test_a_key_is_enough():
    assert endpoint("apiKey: k") == PLAIN


def test_all_settings():
    found = endpoint(
        "apiKey: k",
        "model: claude-opus-4-6",
        "maxTokens: 8000",
        "baseURL: http://localhost:8080",
        "thinking: budgeted",
        "thinkingBudget: 2000",
        "promptCache: 'on'",
        "enable1mContext: true",
        "user: 12",
        "headers: {X-Team: a, X-Empty: '', X-Number: 1}",
        environ={"OCTO_AI_HTTP_HEADERS": "x-run: 7"},
    )

    assert found == Endpoint(
        Credentials(
            "anthropic",
            "http://localhost:8080",
            "x-api-key",
            api_key="k",
            user="12",
            enable_1m_context=True,
            shared_headers=(("x-run", "7"),),
            custom_headers=(("X-Team", "a"), ("X-Number", "1")),
        ),
        "claude-opus-4-6",
        max_tokens=8000,
        thinking="budgeted",
        thinking_budget=2000,
        prompt_cache="on",
    )


def test_empty_text_counts_as_not_given_and_other_spellings_are_known():
    assert endpoint("api_key: ' k '", "base_url: ''", "model: ' '", "thinking: ''", "maxTokens: 0") == PLAIN


@pytest.mark.parametrize(
    ("settings", "environ", "expected"),
    [
        (["apiKey: k"], {"ANTHROPIC_BASE_URL": "http://stub:1"}, "http://stub:1"),
        (["apiKey: k"], {"ANTHROPIC_BASE_URL": " "}, "https://api.anthropic.com/v1"),
        (["apiKey: k", "base_url: http://own:2"], {"ANTHROPIC_BASE_URL": "http://stub:1"}, "http://own:2"),
    ],
    ids=["redirected", "blank", "the connector's own wins"],
)
def test_the_environment_redirects_calls(settings: list[str], environ: dict[str, str], expected: str):
    assert endpoint(*settings, environ=environ) == replace(
        PLAIN, credentials=replace(PLAIN.credentials, base_url=expected)
    )


@pytest.mark.parametrize(
    ("settings", "line", "message"),
    [
        (["apiKey: ''"], 0, 'connector "claude" (llm-anthropic): apiKey is empty'),
        (["apiKey: ' '"], 0, 'connector "claude" (llm-anthropic): apiKey is empty'),
        (["apiKey: ${KEY}"], 0, 'connector "claude" (llm-anthropic): apiKey is empty'),
        (
            ['apiKey: "a\\nb"'],
            0,
            "the value of header `x-api-key` holds a line break or another control character",
        ),
        (
            ["apiKey: k", "baseURL: localhost:8080"],
            1,
            "expected a URL, found `localhost:8080`: it must begin with `http://` or `https://`",
        ),
        (["apiKey: k", "thinking: adaptiv"], 1, "expected `off` or `adaptive` or `budgeted`, found `adaptiv`"),
        (["apiKey: k", "thinking: budgeted"], 1, "`thinking: budgeted` requires `thinkingBudget`"),
        (
            ["apiKey: k", "thinking: budgeted", "thinkingBudget: 1023"],
            2,
            "expected at least 1024 and less than `maxTokens`, which is 4096; found 1023",
        ),
        (
            ["apiKey: k", "thinking: budgeted", "thinkingBudget: 4096"],
            2,
            "expected at least 1024 and less than `maxTokens`, which is 4096; found 4096",
        ),
        (["apiKey: k", "headers:", "  'X Y': z"], 2, "`X Y` is not the name of an HTTP header"),
        (
            ["apiKey: k", "headers:", '  X: "a\\nb"'],
            2,
            "the value of header `X` holds a line break or another control character",
        ),
        (
            ["apiKey: k", "headers:", '  content-length: "3"'],
            2,
            "the header `content-length` belongs to the connection, which octo manages",
        ),
    ],
    ids=[
        "empty key",
        "blank key",
        "key from an empty variable",
        "key with a line break",
        "no URL",
        "misspelt mode",
        "no budget",
        "budget too small",
        "budget too large",
        "header name",
        "header value",
        "header of the connection",
    ],
)
def test_settings_that_cannot_work_are_refused_where_they_stand(settings: list[str], line: int, message: str):
    assert problem(*settings, environ={"KEY": ""}) == (line, message)


async def test_a_redirection_to_no_url_is_an_error_at_the_start():
    with pytest.raises(ConnectorError) as caught:
        async with runtime(yaml("apiKey: k"), environ={"ANTHROPIC_BASE_URL": "localhost"}):
            pass

    assert str(caught.value) == (
        'connector "claude" (llm-anthropic): ANTHROPIC_BASE_URL is `localhost`, which is no URL: '
        "it must begin with `http://` or `https://`"
    )


KEYS = ["a: b", "# x", ">", '"', "'", "\\C", "{x}", "[1]", "&a", "*a", "!t", "%", "0123", "true", "~", "é"]


@pytest.mark.parametrize("key", KEYS)
async def test_a_key_from_the_environment_arrives_unchanged(key: str):
    with AnthropicServer([reply("hi")]) as server:
        environ = {"KEY": key, "ANTHROPIC_BASE_URL": server.url}
        async with runtime(yaml("apiKey: ${KEY}"), environ=environ) as opened:
            model = opened.live("claude", HttpModel)
            answer = await model.complete(ChatRequest((user("x"),)), session={})

    assert answer.text == "hi"
    assert server.requests[0].headers["x-api-key"].encode("latin-1").decode() == key


async def fails(*settings: str, environ: dict[str, str]) -> ProviderError:
    async with runtime(yaml(*settings), environ=environ) as opened:
        with pytest.raises(ProviderError) as caught:
            await opened.live("claude", HttpModel).complete(ChatRequest((user("x"),)), session={})
    return caught.value


@pytest.mark.parametrize(
    ("settings", "environ", "source"),
    [
        (["apiKey: ${KEY}"], {}, "`apiKey` (variable `KEY`)"),
        (["apiKey: 'sk-${KEY}'"], {}, "`apiKey`"),
        (["api_key: sk-secret-0123456789"], {}, "`apiKey`"),
        (["apiKey: ${KEY}", "headers: {Authorization: Bearer x}"], {}, "the header `Authorization` in `headers`"),
        (
            ["apiKey: ${KEY}"],
            {"OCTO_AI_HTTP_HEADERS": "authorization: Bearer x"},
            "the header `authorization` in `OCTO_AI_HTTP_HEADERS`",
        ),
    ],
    ids=["variable", "variable in a text", "text", "own header", "header from the environment"],
)
async def test_a_key_that_is_refused_is_named_by_where_it_was_set(
    settings: list[str], environ: dict[str, str], source: str
):
    with AnthropicServer([error(401, "invalid x-api-key")]) as server:
        secrets = {"KEY": "sk-secret-0123456789", "ANTHROPIC_BASE_URL": server.url}
        found = await fails(*settings, environ={**secrets, **environ})

    assert type(found) is AuthenticationFailed
    assert found.hint == f"check the key, which comes from {source}"


@pytest.mark.parametrize(
    ("settings", "environ", "origin"),
    [
        (["apiKey: k", "baseURL: http://own:1"], {"ANTHROPIC_BASE_URL": "http://stub:2"}, "`baseURL`"),
        (["apiKey: k", "baseURL: '${KEY}'"], {"KEY": "http://own:1"}, "`baseURL` (variable `KEY`)"),
        (["apiKey: k", "baseURL: '${KEY}'"], {"KEY": "", "ANTHROPIC_BASE_URL": "http://s:2"}, "`ANTHROPIC_BASE_URL`"),
        (["apiKey: k"], {}, ""),
    ],
    ids=["setting", "variable", "redirection", "the provider's own"],
)
def test_hints_say_where_the_address_was_set(settings: list[str], environ: dict[str, str], origin: str):
    assert endpoint(*settings, environ=environ).credentials.url_origin == origin


async def test_headers_from_the_environment_that_cannot_be_sent_do_not_end_a_call(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "octo.llm")
    with AnthropicServer([reply("hi")]) as server:
        environ = {"ANTHROPIC_BASE_URL": server.url, "OCTO_AI_HTTP_HEADERS": "content-length: 5, é: ü, x-ok: ü"}
        async with runtime(yaml("apiKey: k"), environ=environ) as opened:
            await opened.live("claude", HttpModel).complete(ChatRequest((user("x"),)), session={})

    assert server.requests[0].headers["x-ok"].encode("latin-1").decode() == "ü"
    assert caplog.messages == [
        "OCTO_AI_HTTP_HEADERS: entry 1 is skipped: the header `content-length` belongs to the connection, "
        "which octo manages",
        "OCTO_AI_HTTP_HEADERS: entry 2 is skipped: what stands before the colon is not the name of an HTTP header",
    ]


# ---------------------------------------------------------------- Chat Completions


def connector(type: str, *settings: str, environ: dict[str, str] | None = None) -> Endpoint:
    text = yaml(*settings).replace("llm-anthropic", type)
    found = config(text, environ=environ).connector("claude")
    assert isinstance(found, LlmConnector)
    return found.endpoint(environ or {})


@pytest.mark.parametrize(
    ("type", "provider", "base_url", "model"),
    [
        ("llm-openrouter", "openrouter", "https://openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5"),
        ("llm-mistral", "mistral", "https://api.mistral.ai/v1", "mistral-large-latest"),
        ("llm-deepseek", "deepseek", "https://api.deepseek.com/v1", "deepseek-chat"),
        ("llm-groq", "groq", "https://api.groq.com/openai/v1", ""),
        ("llm-together", "togetherai", "https://api.together.xyz/v1", ""),
    ],
)
def test_a_key_is_enough_for_every_known_provider(type: str, provider: str, base_url: str, model: str):
    assert connector(type, "apiKey: k") == Endpoint(
        Credentials(provider, base_url, "authorization", api_key="k"), model
    )


def test_a_server_of_ones_own_needs_its_address_only():
    assert connector("llm-custom", "baseURL: http://localhost:8080/v1/", "apiKey: ''") == Endpoint(
        Credentials("customai", "http://localhost:8080/v1/", "authorization"), ""
    )


def test_all_settings_of_openrouter():
    found = connector(
        "llm-openrouter",
        "apiKey: k",
        "model: openai/gpt-oss-120b:free",
        "maxTokens: 800",
        "reasoning: none",
        "appName: Leads",
        "siteURL: https://leads.example",
        "promptCache: 'off'",
        "user: u",
        "headers: {X-Title: Other, X-Team: a}",
    )

    assert found == Endpoint(
        Credentials(
            "openrouter",
            "https://openrouter.ai/api/v1",
            "authorization",
            api_key="k",
            user="u",
            custom_headers=(
                ("X-Title", "Leads"),
                ("HTTP-Referer", "https://leads.example"),
                ("X-Title", "Other"),
                ("X-Team", "a"),
            ),
        ),
        "openai/gpt-oss-120b:free",
        max_tokens=800,
        reasoning="none",
        prompt_cache="off",
    )
    assert dict(found.credentials.headers({}))["X-Title"] == "Other"


@pytest.mark.parametrize(
    ("type", "settings", "line", "message", "hint"),
    [
        (
            "llm-groq",
            ["apiKey: ' '"],
            0,
            'connector "claude" (llm-groq): apiKey is empty',
            "declare a variable under `env`, set it, and write `apiKey: ${NAME}`",
        ),
        ("llm-groq", ["model: m"], -1, "connector of type `llm-groq` requires `apiKey`", "add `apiKey:`"),
        ("llm-custom", ["model: m"], -1, "connector of type `llm-custom` requires `baseURL`", "add `baseURL:`"),
        ("llm-custom", ["baseURL: ''"], -1, "connector of type `llm-custom` requires `baseURL`", "add `baseURL:`"),
        (
            "llm-custom",
            ["baseURL: localhost:8080"],
            0,
            "expected a URL, found `localhost:8080`: it must begin with `http://` or `https://`",
            None,
        ),
        (
            "llm-openrouter",
            ["apiKey: k", "reasoning: off"],
            1,
            "expected `default` or `none` or `minimal` or `low` or `medium` or `high`, found `off`",
            "did you mean `none`?",
        ),
        (
            "llm-openrouter",
            ["apiKey: k", 'appName: "a\\nb"'],
            1,
            "the value of header `X-Title` holds a line break or another control character",
            None,
        ),
    ],
    ids=["empty key", "no key", "no address", "empty address", "no URL", "reasoning off", "line break"],
)
def test_settings_of_chat_connectors_that_cannot_work(
    type: str, settings: list[str], line: int, message: str, hint: str | None
):
    with pytest.raises(ConfigError) as caught:
        connector(type, *settings)
    (only,) = caught.value.problems

    assert only.location is not None
    assert (only.message, only.hint) == (message, hint)
    assert line < 0 or only.location.line - 8 == line


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (["thinkingBudget: 2000"], "`thinkingBudget` has no effect without `thinking: budgeted`"),
        (["thinking: budgeted", "thinkingBudget: 2000"], None),
        (["baseURL: http://gate/v1/messages"], "`baseURL` ends in `messages`, which calls append to it"),
        (
            ["baseURL: 'http://gate/chat/completions/?a=b'"],
            "`baseURL` ends in `chat/completions`, which calls append to it",
        ),
        (["baseURL: http://gate/messages/v1"], None),
        (["baseURL: https://x.services.ai.azure.com/anthropic/v1/messages"], None),
    ],
    ids=["a lone budget", "a budget", "messages", "chat completions", "elsewhere in a path", "azure"],
)
def test_settings_that_do_not_do_what_they_are_written_for_are_warned_of(settings: list[str], text: str | None):
    found = config(yaml("apiKey: k", *settings)).warnings
    assert [one.message for one in found] == ([] if text is None else [text])


def test_a_name_that_clients_of_the_proxy_cannot_write_is_warned_of():
    (found,) = config(yaml("apiKey: k").replace("name: claude", "name: a/b")).warnings

    assert (found.message, found.hint) == (
        'clients of `octo proxy` cannot name the connector "a/b" before a model: the name ends there at the first `/`',
        "give it a name without `/`",
    )


async def test_a_warning_about_a_request_names_the_connector(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "octo.llm")
    request = ChatRequest((user("x"),), max_tokens=1000)
    with AnthropicServer([reply("hi")]) as server:
        settings = ("apiKey: k", "thinking: budgeted", "thinkingBudget: 2048")
        async with runtime(yaml(*settings), environ={"ANTHROPIC_BASE_URL": server.url}) as opened:
            await opened.live("claude", HttpModel).complete(request, session={})

    assert caplog.messages == ['connector "claude": thinking is left out: its budget 2048 is not below maxTokens 1000']


async def test_variables_that_all_calls_heed_are_warned_of_once(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "octo.llm")
    one = "{name: NAME, type: llm-custom, settings: {baseURL: 'http://127.0.0.1:9'}}"
    text = f"connectors: [{one.replace('NAME', 'a')}, {one.replace('NAME', 'b')}]"
    environ = {"OCTO_AI_TIMEOUT_SECONDS": "soon", "OCTO_AI_HTTP_HEADERS": "x", "OCTO_AI_FOLLOW_REDIRECTS": "1"}
    async with runtime(text, environ=environ):
        pass

    assert caplog.messages == [
        "OCTO_AI_HTTP_HEADERS: entry 1 is skipped: expected `name: value`, found no colon",
        "OCTO_AI_TIMEOUT_SECONDS is `soon`, expected 1 to 86400; 600 s stay in force",
        "OCTO_AI_FOLLOW_REDIRECTS is 1: redirects are followed, which is meant for a look at a fault only",
    ]
