"""octo/connectors/llm_bedrock.py: the settings of models on Amazon Bedrock, and who calls."""

import sys
from dataclasses import replace

import pytest

from octo.connectors.llm_bedrock import LlmBedrock
from octo.errors import AuthenticationFailed, ConfigError, ConnectorError, ProviderError
from octo.llm.chat import ChatModel, ChatRequest, ChatResponse, user
from octo.llm.credentials import Credentials
from octo.llm.wire import Endpoint
from octo.testing.harness import config, runtime
from vendor.anthropic import reply
from vendor.bedrock import KEYS, REGION, BedrockServer, error
from vendor.sigv4 import KeyPair

ADDRESS = "https://bedrock-runtime.us-east-1.amazonaws.com"
CREDENTIALS = Credentials("aws_bedrock", ADDRESS, "authorization", api_key="k")
NOWHERE = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none"}
"""An environment in which the tools of AWS find nothing."""
PAIR = (f"awsAccessKeyId: {KEYS.id}", f"awsSecretAccessKey: {KEYS.secret}")


def yaml(*settings: str) -> str:
    lines = "".join(f"\n                {line}" for line in settings)
    return f"""
        env:
          - name: KEY
        connectors:
          - name: models
            type: llm-bedrock
            settings:{lines or " {}"}
    """


def endpoint(*settings: str, environ: dict[str, str] | None = None) -> Endpoint:
    environ = NOWHERE | (environ or {})
    connector = config(yaml(*settings), environ=environ).connector("models")
    assert isinstance(connector, LlmBedrock)
    return connector.endpoint(environ)


def problem(*settings: str, environ: dict[str, str] | None = None) -> tuple[str, str | None]:
    with pytest.raises(ConfigError) as caught:
        config(yaml(*settings), environ=environ)
    (only,) = caught.value.problems
    return only.message, only.hint


def test_a_key_and_a_region_are_enough():
    assert endpoint("apiKey: k", "region: us-east-1") == Endpoint(CREDENTIALS, "")


def test_all_settings():
    found = endpoint(
        "apiKey: k",
        "region: eu-west-1",
        "model: us.amazon.nova-pro-v1:0",
        "maxTokens: 8000",
        "baseURL: http://localhost:8080",
        "thinking: budgeted",
        "thinkingBudget: 2000",
        "promptCache: 'on'",
        "user: 12",
        "headers: {X-Team: a}",
    )

    assert found == Endpoint(
        replace(CREDENTIALS, base_url="http://localhost:8080", user="12", custom_headers=(("X-Team", "a"),)),
        "us.amazon.nova-pro-v1:0",
        max_tokens=8000,
        thinking="budgeted",
        thinking_budget=2000,
        prompt_cache="on",
    )


@pytest.mark.parametrize(
    ("settings", "environ", "expected"),
    [
        (["region: ap-south-1"], {}, "https://bedrock-runtime.ap-south-1.amazonaws.com"),
        ([], {"AWS_REGION": "eu-west-1"}, "https://bedrock-runtime.eu-west-1.amazonaws.com"),
        (["region: us-east-1"], {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "http://stub:1"}, "http://stub:1"),
        (
            ["region: us-east-1", "baseURL: http://own:2"],
            {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "http://stub:1"},
            "http://own:2",
        ),
    ],
    ids=["region", "region from the environment", "redirected", "the connector's own wins"],
)
def test_where_calls_go(settings: list[str], environ: dict[str, str], expected: str):
    assert endpoint("apiKey: k", *settings, environ=environ).credentials.base_url == expected


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        (
            ["region: us east"],
            "expected the name of a region, such as `us-east-1`, found `us east`",
            None,
        ),
        (["region: us-east-1.evil.example/"], "expected the name of a region, such as `us-east-1`, found", None),
        (
            ['apiKey: "a\\nb"'],
            "the value of header `authorization` holds a line break or another control character",
            None,
        ),
        (["thinking: budgeted"], "`thinking: budgeted` requires `thinkingBudget`", None),
        (["thinking: budgeted", "thinkingBudget: 9"], "expected at least 1024; found 9", None),
        (
            ["thinking: budgeted", "thinkingBudget: 2000", "maxTokens: 2000"],
            "expected at least 1024 and less than `maxTokens`, which is 2000; found 2000",
            None,
        ),
        (["awsSecretKey: x"], 'unknown field "awsSecretKey"', "did you mean `awsSecretAccessKey`?"),
    ],
    ids=["region", "region and more", "key", "no budget", "small budget", "large budget", "unknown key"],
)
def test_settings_that_cannot_work_are_refused(settings: list[str], message: str, hint: str | None):
    found, advice = problem(*settings)

    assert found.startswith(message)
    assert advice == hint


def test_without_the_extra_the_connector_is_refused_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "botocore", None)

    assert problem("apiKey: k", "region: us-east-1") == (
        "connector type `llm-bedrock` needs the package `botocore`",
        "install it: pip install 'octo-runner[bedrock]'",
    )


async def test_a_region_that_nobody_names_is_an_error_at_the_start():
    with pytest.raises(ConnectorError) as caught:
        async with runtime(yaml("apiKey: k"), environ=NOWHERE):
            pass

    assert str(caught.value) == 'connector "models" (llm-bedrock): no region is named'
    assert caught.value.hint == "set `region`, or the variable `AWS_REGION`"


# ---------------------------------------------------------------- who calls


async def answer(
    *settings: str, environ: dict[str, str] | None = None, keys: KeyPair = KEYS
) -> tuple[ChatResponse, str]:
    """Make one call; gives the answer, and what the service was told of who calls."""
    with BedrockServer([reply("hi")], api_key="secret-api-key", keys=keys) as server:
        named = {"AWS_REGION": REGION, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": server.url}
        async with runtime(
            yaml("model: amazon.nova-lite-v1:0", *settings), environ=NOWHERE | named | (environ or {})
        ) as opened:
            model = opened.live("models", ChatModel)  # type: ignore[type-abstract]  # never instantiated
            found = await model.complete(ChatRequest((user("x"),)), session={})

        return found, server.requests[0].headers["authorization"].partition("/")[0]


ENVIRONMENT_KEYS = {"AWS_ACCESS_KEY_ID": "AKIDENV", "AWS_SECRET_ACCESS_KEY": "s"}
OF_ENVIRONMENT = KeyPair("AKIDENV", "s")
SIGNED = "AWS4-HMAC-SHA256 Credential="


@pytest.mark.parametrize(
    ("settings", "environ", "keys", "who"),
    [
        (["apiKey: secret-api-key", *PAIR], ENVIRONMENT_KEYS, KEYS, "Bearer secret-api-key"),
        (["apiKey: ''", *PAIR], {"AWS_BEARER_TOKEN_BEDROCK": "other"}, KEYS, f"{SIGNED}{KEYS.id}"),
        ([*PAIR, "awsSessionToken: t"], {}, replace(KEYS, token="t"), f"{SIGNED}{KEYS.id}"),
        (PAIR[:1], ENVIRONMENT_KEYS, OF_ENVIRONMENT, f"{SIGNED}AKIDENV"),
        (PAIR[1:], ENVIRONMENT_KEYS, OF_ENVIRONMENT, f"{SIGNED}AKIDENV"),
        ([], {"AWS_BEARER_TOKEN_BEDROCK": "secret-api-key", **ENVIRONMENT_KEYS}, KEYS, "Bearer secret-api-key"),
        (["headers: {Authorization: Bearer secret-api-key}", *PAIR], {}, KEYS, "Bearer secret-api-key"),
    ],
    ids=["key", "pair", "pair with a token", "only an id", "only a secret", "key of the environment", "own header"],
)
async def test_who_calls(settings: list[str], environ: dict[str, str], keys: KeyPair, who: str):
    found, told = await answer(*settings, environ=environ, keys=keys)

    assert (found.text, told) == ("hi", who)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (PAIR[:1], "`awsAccessKeyId` has no effect without `awsSecretAccessKey`"),
        (PAIR[1:], "`awsSecretAccessKey` has no effect without `awsAccessKeyId`"),
        (["awsSessionToken: t"], "`awsSessionToken` has no effect without a key pair"),
    ],
    ids=["only an id", "only a secret", "only a token"],
)
def test_half_a_key_pair_is_told(settings: list[str], text: str):
    assert [one.message for one in config(yaml("region: us-east-1", *settings)).warnings] == [text]


async def fails(*settings: str, environ: dict[str, str]) -> ProviderError:
    with BedrockServer([error(403, "no access")] * 4) as server:
        named = {"AWS_REGION": REGION, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": server.url}
        async with runtime(yaml("model: m", *settings), environ=NOWHERE | named | environ) as opened:
            with pytest.raises(ProviderError) as caught:
                model = opened.live("models", ChatModel)  # type: ignore[type-abstract]  # never instantiated
                await model.complete(ChatRequest((user("x"),)), session={})
    return caught.value


@pytest.mark.parametrize(
    ("settings", "environ", "source"),
    [
        (["apiKey: ${KEY}"], {"KEY": "k"}, "`apiKey` (variable `KEY`)"),
        (["awsAccessKeyId: ${KEY}", *PAIR[1:]], {"KEY": KEYS.id}, "`awsAccessKeyId` (variable `KEY`)"),
        ([], {"AWS_BEARER_TOKEN_BEDROCK": "k"}, "`AWS_BEARER_TOKEN_BEDROCK`"),
        (
            [],
            {"AWS_ACCESS_KEY_ID": KEYS.id, "AWS_SECRET_ACCESS_KEY": KEYS.secret},
            "where the tools of AWS find it: environment, profile or machine",
        ),
    ],
    ids=["key", "pair", "key of the environment", "chain"],
)
async def test_a_key_that_is_refused_is_named_by_where_it_was_set(
    settings: list[str], environ: dict[str, str], source: str
):
    found = await fails(*settings, environ=environ)

    assert type(found) is AuthenticationFailed
    assert found.hint == f"check whether the key may use the model `m`; it comes from {source}"


async def test_credentials_that_nobody_has_are_an_error_before_any_call():
    found = await fails(environ={})

    assert str(found) == 'llm-bedrock complete: connector "models": no credentials of AWS were found'
    assert found.hint is not None and found.hint.startswith("set `apiKey`, or `awsAccessKeyId` and")
