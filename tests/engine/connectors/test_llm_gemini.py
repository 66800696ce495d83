"""octo/connectors/llm_gemini.py: the settings of Gemini, and those of models on Vertex AI."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from octo.connectors.llm import LlmConnector
from octo.errors import AuthenticationFailed, ConfigError
from octo.llm.chat import ChatRequest, Delta, user
from octo.llm.credentials import Credentials
from octo.llm.model import HttpModel
from octo.llm.wire import Endpoint
from octo.testing.harness import config, runtime
from octo.values import Json
from vendor import reply as claude_reply
from vendor.anthropic import call as claude_call
from vendor.gemini import GeminiServer, Picture, blocked, call, error, reply
from vendor.server import Answer, Request, Server
from vendor.vertex import VertexClaudeServer

PLAIN = Endpoint(
    Credentials("googleai", "https://generativelanguage.googleapis.com/v1beta", "x-goog-api-key", api_key="k"),
    "gemini-3.5-flash",
)
ON_VERTEX = replace(
    PLAIN,
    credentials=Credentials("googleai", "https://v/publishers/google/models", "authorization", platform="vertex"),
)
ASKED = ChatRequest((user("x"),))


async def ignore(_: Delta) -> None:
    """A listener that does not care."""


def yaml(*settings: str, type: str = "llm-gemini") -> str:
    lines = "".join(f"\n                {line}" for line in settings)
    return f"""
        env:
          - name: KEY
        connectors:
          - name: model
            type: {type}
            settings:{lines}
    """


def endpoint(*settings: str, environ: dict[str, str] | None = None, type: str = "llm-gemini") -> Endpoint:
    connector = config(yaml(*settings, type=type), environ=environ).connector("model")
    assert isinstance(connector, LlmConnector)
    return connector.endpoint(environ or {})


def problem(*settings: str, environ: dict[str, str] | None = None, type: str = "llm-gemini") -> tuple[int, str]:
    with pytest.raises(ConfigError) as caught:
        config(yaml(*settings, type=type), environ=environ)
    (only,) = caught.value.problems
    assert only.location is not None
    return only.location.line - 8, only.message


# ---------------------------------------------------------------- Gemini


def test_a_key_is_enough():
    assert endpoint("apiKey: k") == PLAIN


def test_all_settings():
    found = endpoint(
        "apiKey: k",
        "model: gemini-2.5-pro",
        "maxTokens: 8000",
        "baseURL: http://localhost:8080/v1beta",
        "thinking: budgeted",
        "thinkingBudget: 1",
        "promptCache: 'off'",
        "user: 12",
        "headers: {X-Team: a}",
    )

    assert found == Endpoint(
        Credentials(
            "googleai",
            "http://localhost:8080/v1beta",
            "x-goog-api-key",
            api_key="k",
            user="12",
            custom_headers=(("X-Team", "a"),),
        ),
        "gemini-2.5-pro",
        max_tokens=8000,
        thinking="budgeted",
        thinking_budget=1,
        prompt_cache="off",
    )


def test_dynamic_thinking_leaves_it_to_the_model():
    assert endpoint("apiKey: k", "thinking: dynamic") == replace(PLAIN, thinking="adaptive")


@pytest.mark.parametrize(
    ("settings", "environ", "expected"),
    [
        (["apiKey: k"], {"GOOGLE_GEMINI_BASE_URL": "http://stub:1"}, "http://stub:1"),
        (["apiKey: k", "baseURL: http://own:2"], {"GOOGLE_GEMINI_BASE_URL": "http://stub:1"}, "http://own:2"),
    ],
    ids=["redirected", "the connector's own wins"],
)
def test_the_environment_redirects_calls(settings: list[str], environ: dict[str, str], expected: str):
    assert endpoint(*settings, environ=environ).credentials.base_url == expected


@pytest.mark.parametrize(
    ("settings", "line", "message"),
    [
        (["apiKey: ' '"], 0, 'connector "model" (llm-gemini): apiKey is empty'),
        (["apiKey: k", "thinking: adaptive"], 1, "expected `off` or `dynamic` or `budgeted`, found `adaptive`"),
        (["apiKey: k", "thinking: budgeted"], 1, "`thinking: budgeted` requires `thinkingBudget`"),
        (["apiKey: k", "thinking: budgeted", "thinkingBudget: 0"], 2, "expected more than 0, found 0"),
        (["apiKey: k", "platform: vertx"], 1, "expected `standard` or `vertex`, found `vertx`"),
        (["platform: vertex"], 0, "`platform: vertex` requires `baseURL`"),
    ],
    ids=["blank key", "a word of another vendor", "no budget", "budget too small", "misspelt platform", "no address"],
)
def test_settings_that_cannot_work_are_refused_where_they_stand(settings: list[str], line: int, message: str):
    assert problem(*settings) == (line, message)


async def test_a_key_that_is_refused_is_named_by_where_it_was_set():
    with GeminiServer([error(400, "API key not valid.", {"reason": "API_KEY_INVALID"})]) as server:
        environ = {"KEY": "secret-0123456789", "GOOGLE_GEMINI_BASE_URL": server.base_url}
        async with runtime(yaml("apiKey: ${KEY}"), environ=environ) as opened:
            with pytest.raises(AuthenticationFailed) as caught:
                await opened.live("model", HttpModel).complete(ASKED, session={})

    assert str(caught.value) == 'llm-gemini complete: connector "model": status 400: API key not valid.'
    assert caught.value.hint == "check the key, which comes from `apiKey` (variable `KEY`)"


# ---------------------------------------------------------------- Vertex AI


def test_on_vertex_no_key_is_needed():
    found = endpoint("platform: vertex", "baseURL: https://v/publishers/google/models")

    assert found == ON_VERTEX
    assert found.credentials.key_source == "the Google account of this machine"


def test_a_key_on_vertex_goes_out_as_bearer():
    found = endpoint("platform: vertex", "baseURL: https://v/publishers/google/models", "apiKey: k")

    assert found.credentials.headers({}) == (("content-type", "application/json"), ("authorization", "Bearer k"))
    assert found.credentials.key_source == "`apiKey`"


def test_the_address_that_is_wanted_on_vertex_is_shown():
    for type, publisher in (("llm-gemini", "google"), ("llm-anthropic", "anthropic")):
        with pytest.raises(ConfigError) as caught:
            config(yaml("platform: vertex", type=type))

        assert [problem.hint for problem in caught.value.problems] == [
            "`https://REGION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/REGION/publishers/"
            f"{publisher}/models`"
        ]


@pytest.mark.parametrize("type", ["llm-gemini", "llm-anthropic"])
def test_without_the_extra_an_account_is_refused_with_the_command_that_installs_it(
    type: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "google.auth", None)
    settings = ["platform: vertex", "baseURL: https://v/models"]
    with pytest.raises(ConfigError) as caught:
        config(yaml(*settings, type=type))

    assert [(one.message, one.hint) for one in caught.value.problems] == [
        (
            "`platform: vertex` without `apiKey` needs the package `google-auth`",
            "install it: pip install 'octo-runner[vertex]'",
        )
    ]
    assert endpoint(*settings, "apiKey: k", type=type).credentials.api_key == "k"


def test_a_claude_model_on_vertex():
    found = endpoint("platform: vertex", "baseURL: https://v/models", "enable1mContext: true", type="llm-anthropic")

    assert found == Endpoint(
        Credentials("anthropic", "https://v/models", "authorization", platform="vertex", enable_1m_context=True),
        "claude-sonnet-4-6",
        max_tokens=4096,
    )


class TokenServer(Server):
    """Gives the token `t1`, then `t2`, and so on."""

    def answer(self, request: Request) -> Answer:
        given = {"access_token": f"secret-token-{len(self.requests)}", "expires_in": 3600}
        return Answer(200, (("content-type", "application/json"),), (json.dumps(given).encode(),))


def account(folder: Path, token_url: str) -> dict[str, str]:
    """The environment of a machine with the key file of a service account."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    fields = {"type": "service_account", "private_key": key.decode(), "client_email": "o@p", "token_uri": token_url}
    (folder / "account.json").write_text(json.dumps(fields), encoding="utf-8")
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(folder / "account.json")}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("type", ["llm-gemini", "llm-anthropic"])
async def test_models_on_vertex_are_called_with_a_token(tmp_path: Path, type: str, stream: bool):
    servers: Json = {
        "llm-gemini": GeminiServer([reply("hi"), reply("again")], platform="vertex", key="secret-token-1"),
        "llm-anthropic": VertexClaudeServer([claude_reply("hi", calls=[claude_call("t")]), claude_reply("again")]),
    }
    with TokenServer() as tokens, servers[type] as server:
        settings = ["platform: vertex", f"baseURL: {server.base_url}", "promptCache: 'on'"]
        async with runtime(yaml(*settings, type=type), environ=account(tmp_path, tokens.url)) as opened:
            for text in ("hi", "again"):
                model = opened.live("model", HttpModel)
                answer = await model.complete(ASKED, session={}, on_delta=ignore if stream else None)

                assert answer.text == text
    assert server.refusals == []
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer secret-token-1"}
    assert len(tokens.requests) == 1


async def test_a_token_shows_in_no_error(tmp_path: Path):
    with TokenServer() as tokens, GeminiServer([error(403, "secret-token-1 may not")], platform="vertex") as server:
        settings = ["platform: vertex", f"baseURL: {server.base_url}"]
        async with runtime(yaml(*settings), environ=account(tmp_path, tokens.url)) as opened:
            with pytest.raises(AuthenticationFailed) as caught:
                await opened.live("model", HttpModel).complete(ASKED, session={})

    assert str(caught.value) == 'llm-gemini complete: connector "model": status 403: *** may not'
    assert caught.value.hint == (
        "check whether the key may use the model `gemini-3.5-flash`; it comes from the Google account of this machine"
    )


# ---------------------------------------------------------------- schemas of tools


def warnings(*schema: str, type: str = "llm-gemini", validate: bool = True) -> list[tuple[int, str, str | None]]:
    lines = "".join(f"\n                      {line}" for line in schema)
    found = config(
        yaml("apiKey: k", type=type)
        + f"""
        flows:
          - name: f
            process:
              - type: ai-agent
                connector: model
                prompt: work
                tools:
                  - name: t
                    description: d
                    process: []
                    validateInput: {str(validate).lower()}
                    inputSchema:{lines}
    """
    ).warnings
    return [(one.location.line, one.message, one.hint) for one in found if one.location is not None]


def test_what_a_tool_cannot_tell_gemini_is_said_where_it_stands():
    lost = 'ai-agent tool `t`: connector "model" cannot tell the model all of its schema: '
    checked = "arguments are checked against the whole schema all the same"
    schema = [
        "properties:",
        "  n: {type: integer, multipleOf: 2}",
        "  m:",
        "    oneOf: [{type: string}, {type: number}]",
    ]
    first = warnings(*schema)

    assert [(text, hint) for _, text, hint in first] == [
        (f"{lost}`multipleOf` is left out", checked),
        (f"{lost}`oneOf` is sent as `anyOf`", checked),
    ]
    assert first[1][0] - first[0][0] == 2
    assert [hint for _, _, hint in warnings(*schema, validate=False)] == [None, None]


def test_a_tool_that_is_told_in_full_gives_no_warning():
    assert warnings("properties: {n: {type: [integer, 'null']}}") == []
    assert warnings("properties: {n: {type: integer, multipleOf: 2}}", type="llm-anthropic") == []


# ---------------------------------------------------------------- an agent

AGENT = """
        flows:
          - name: draw
            process:
              - type: ai-agent
                connector: model
                prompt: Draw it
                input: body.what
                answer: text
                responseMedia: pictures
                tools:
                  - name: size
                    description: The size
                    process:
                      - type: set-payload
                        settings: { value: '{"size": body.of + "!"}' }
                default: { process: [{ type: set-payload, settings: { value: '"gave up"' } }] }
"""


async def test_an_agent_calls_tools_and_keeps_the_files_that_the_model_makes():
    script = [
        reply("First the sizes.", calls=[call("size", {"of": "a"}), call("size", {"of": "b"})]),
        reply("Here it is.", Picture(b"\x89PNG\r\n\x1a\n....")),
    ]
    with GeminiServer(script, gives_ids=False) as server:
        environ = {"GOOGLE_GEMINI_BASE_URL": server.base_url}
        async with runtime(yaml("apiKey: k") + AGENT, environ=environ) as opened:
            message = await opened.invoke("draw", {"what": "a cat"})

    answers = [part["functionResponse"]["response"] for part in server.requests[1].json["contents"][2]["parts"]]
    assert (message.body, server.refusals) == ("Here it is.", [])
    assert answers == [{"result": '{"size":"a!"}'}, {"result": '{"size":"b!"}'}]
    assert [(file["mimeType"], file["size"]) for file in message.vars["pictures"]] == [("image/png", 12)]


@pytest.mark.parametrize("reason", ["SAFETY", None], ids=["answer", "prompt"])
async def test_what_the_vendor_blocks_takes_the_default_path(reason: str | None):
    with GeminiServer([reply(finish=reason) if reason else blocked()]) as server:
        environ = {"GOOGLE_GEMINI_BASE_URL": server.base_url}
        async with runtime(yaml("apiKey: k") + AGENT, environ=environ) as opened:
            message = await opened.invoke("draw", {"what": "a cat"})

    assert message.body == "gave up"


async def test_two_turns_that_the_cap_cuts_off_end_on_the_default_path_and_run_nothing():
    cut = reply(calls=[call("size", {"of": "a"})], finish="MAX_TOKENS")
    with GeminiServer([cut, cut]) as server:
        environ = {"GOOGLE_GEMINI_BASE_URL": server.base_url}
        async with runtime(yaml("apiKey: k") + AGENT, environ=environ) as opened:
            message = await opened.invoke("draw", {"what": "a cat"})

    (answer,) = server.requests[1].json["contents"][2]["parts"]
    assert (message.body, server.refusals) == ("gave up", [])
    assert answer["functionResponse"]["response"].keys() == {"error"}
