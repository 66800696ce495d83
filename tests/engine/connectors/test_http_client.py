"""octo/connectors/http_client.py: what is sent to an API, and what is kept of its answers."""

import asyncio
import base64
import subprocess
import sys

import pytest

from api_calls import Lines, calling, failure, flows
from http_api import Api, as_json, echo, text
from octo.errors import ConfigError
from octo.testing.harness import config, runtime
from vendor.server import Answer

# ---------------------------------------------------------------- headers


async def test_headers_of_the_block_go_before_those_of_the_connector():
    with Api() as api:
        settings = {"headers": {"X-One": "connector", "x-two": "connector ", "User-Agent": "desk"}}
        async with calling(api, settings, headers={"X-Two": '"block"', "X-Number": "1.0"}) as call:
            await call()

    sent = api.requests[0].headers
    assert {name: sent.get(name) for name in ("x-one", "x-two", "x-number", "user-agent")} == {
        "x-one": "connector",
        "x-two": "block",
        "x-number": "1",
        "user-agent": "desk",
    }


async def test_a_content_type_is_added_to_a_body_unless_one_is_set():
    with Api() as api:
        async with calling(api, method="POST", body="body") as call:
            await call("text")
        async with calling(api, {"headers": {"content-type": "text/csv"}}, method="POST", body="body") as call:
            await call("text")
        async with calling(api, method="POST") as call:
            await call()

    assert api.headers("content-type") == ["application/json", "text/csv", None]


async def test_the_length_of_a_body_is_not_the_business_of_a_flow():
    with Api() as api:
        headers = {"Content-Length": '"1"', "Transfer-Encoding": '"chunked"'}
        async with calling(api, method="POST", body="body", headers=headers) as call:
            first = await call("text")
        async with calling(api, {"headers": {"content-length": "3"}}, method="POST", body="body") as call:
            second = await call("text")

    assert [first.body["body"], second.body["body"]] == ["text", "text"]


async def test_the_host_is_that_of_the_connector_whatever_a_message_says():
    with Api() as api:
        async with calling(api, headers={"HOST": '"other.example"'}) as call:
            await call()
        async with calling(api, {"headers": {"Host": "own.example"}}, headers={"Host": '"other.example"'}) as call:
            await call()

    assert api.headers("host") == [api.host, "own.example"]


async def test_a_header_with_a_line_break_is_never_sent():
    with Api() as api:
        message = await failure(api, headers={"X-Id": "'a\\r\\nX-Evil: 1'"})

    assert (
        message == "rest request to URL/a: the value of header `X-Id` holds a line break or another control character"
    )
    assert api.requests == []


async def test_messages_share_no_cookies():
    with Api(lambda request: as_json("ok", set_cookie="session=1; Path=/")) as api:
        async with calling(api) as call:
            await call()
            await call()

    assert api.headers("cookie") == [None, None]


# ---------------------------------------------------------------- authentication


@pytest.mark.parametrize(
    ("auth", "header"),
    [
        ({}, None),
        ({"type": ""}, None),
        ({"type": "bearer", "token": " t0ken\n"}, "Bearer t0ken"),
        ({"type": "basic", "username": "ann"}, "Basic " + base64.b64encode(b"ann:").decode()),
        ({"type": "basic", "username": "ann", "password": "p:w"}, "Basic " + base64.b64encode(b"ann:p:w").decode()),
    ],
    ids=["none", "switched off", "bearer", "basic without password", "basic"],
)
async def test_requests_are_authenticated(auth, header):
    with Api() as api:
        async with calling(api, {"auth": auth}) as call:
            await call()

    assert api.headers("authorization") == [header]


async def test_user_and_password_of_the_base_url_are_sent():
    with Api() as api:
        async with calling(api, {"baseURL": api.url.replace("://", "://ann:p%40w@")}) as call:
            await call()

    assert api.headers("authorization") == ["Basic " + base64.b64encode(b"ann:p@w").decode()]


@pytest.mark.parametrize(
    ("connector", "block", "header"),
    [
        ({"authorization": "Key one"}, {}, "Key one"),
        ({}, {"Authorization": "vars.login"}, "Bearer caller"),
        ({"authorization": "Key one"}, {"Authorization": "vars.login"}, "Bearer caller"),
    ],
    ids=["of the connector", "of the block", "of both"],
)
async def test_an_authorization_header_is_never_replaced(connector, block, header):
    with Api() as api:
        settings = {"headers": connector, "auth": {"type": "bearer", "token": "t0ken"}}
        async with calling(api, settings, headers=block) as call:
            await call(login="Bearer caller")

    assert api.headers("authorization") == [header]


async def test_authentication_is_switched_off_by_an_empty_variable():
    text = """
      env: [{name: AUTH, default: ""}, {name: TOKEN, default: ""}]
      connectors:
        - name: api
          type: http-client
          settings: {baseURL: "%s", auth: {type: "${AUTH}", token: "${TOKEN}"}}
      flows: [{name: main, process: [{type: rest, settings: {connector: api}}]}]
    """
    with Api() as api:
        for environ in ({}, {"AUTH": "bearer", "TOKEN": "t0"}):
            async with runtime(text % api.url, environ=environ) as octo:
                await octo.invoke("main")

    assert api.headers("authorization") == [None, "Bearer t0"]


async def test_an_oauth2_token_is_fetched_once_for_calls_at_once():
    def answer(request):
        return as_json({"access_token": "t1", "expires_in": 3600}) if request.path == "/token" else echo(request)

    with Api(answer) as api:
        auth = {"type": "oauth2", "tokenURL": f"{api.url}/token", "clientID": "app", "clientSecret": "s3cret"}
        async with calling(api, {"auth": auth | {"scopes": ["read"]}}) as call:
            await asyncio.gather(*(call() for _ in range(3)))

    token, *calls = api.requests
    assert (token.method, token.path, token.body) == ("POST", "/token", b"grant_type=client_credentials&scope=read")
    assert [call.headers["authorization"] for call in calls] == ["Bearer t1"] * 3


async def test_a_refused_oauth2_token_fails_the_call_without_its_secrets():
    with Api(lambda request: text("no such client: s3cret", 401)) as api:
        auth = {"type": "oauth2", "tokenURL": f"{api.url}/token?k=v", "clientID": "app", "clientSecret": "s3cret"}
        message = await failure(api, {"auth": auth})

    assert message == ("rest request to URL/a: oauth2 token request to URL/token returned 401: no such client: ***")


async def test_a_401_of_the_api_fetches_no_new_token():
    def answer(request):
        return as_json({"access_token": "t1", "expires_in": 3600}) if request.path == "/token" else text("no", 401)

    with Api(answer) as api:
        auth = {"type": "oauth2", "tokenURL": f"{api.url}/token", "clientID": "app", "clientSecret": "s3cret"}
        async with calling(api, {"auth": auth}, failOnError=False) as call:
            await call()
            await call()

    assert [request.path for request in api.requests] == ["/token", "/a", "/a"]


async def test_a_machine_on_google_cloud_has_tokens():
    with Api(lambda request: text("id.token.x") if "Metadata" in request.path else echo(request)) as api:
        async with calling(api, {"auth": {"type": "gcp"}}, environ={"GCE_METADATA_HOST": api.host}) as call:
            await call()

    asked, called = api.requests
    assert asked.query == f"audience=http%3A%2F%2F127.0.0.1%3A{api.host.partition(':')[2]}&format=full"
    assert asked.headers["metadata-flavor"] == "Google"
    assert called.headers["authorization"] == "Bearer id.token.x"


# ---------------------------------------------------------------- size, pool, cache


async def test_an_endless_answer_is_cut():
    log = Lines()
    endless = Answer(200, (("content-type", "text/plain"),), (b"x" * 1000,) * 40, streamed=True, ending="hang")
    with Api(lambda request: endless) as api:
        async with calling(api, {"maxResponseBytes": 2500}, log=log) as call:
            message = await call()

    assert message.body == {"contentType": "text/plain", "rawData": "x" * 2500}
    assert log.lines == [
        ("warn", f"the answer of {api.url}/a is cut at 2500 bytes (`maxResponseBytes`)", {"connector": "api"})
    ]


async def test_an_answer_of_exactly_the_limit_is_whole():
    log = Lines()
    with Api(lambda request: text('"abc"')) as api:
        async with calling(api, {"maxResponseBytes": 5}, log=log) as call:
            assert (await call()).body == "abc"

    assert log.lines == []


@pytest.mark.parametrize(
    ("rest", "connections"), [(4096, [1, 1]), (1_000_000, [1, 2])], ids=["a short rest", "a long rest"]
)
async def test_a_connection_is_used_again_after_a_short_rest(rest, connections):
    answer = Answer(pieces=(b"x" * 10, b"x" * rest), pause=0.02)
    with Api(lambda request: answer) as api:
        async with calling(api, {"maxResponseBytes": 5}) as call:
            await call()
            await call()

    assert [request.connection for request in api.requests] == connections


@pytest.mark.parametrize(
    ("pool", "connections", "header"),
    [({}, [1, 1], None), ({"disableKeepAlives": True}, [1, 2], "close"), ({"idleConnTimeout": "1ms"}, [1, 2], None)],
    ids=["kept", "never kept", "kept too briefly"],
)
async def test_connections_are_kept_as_the_pool_says(pool, connections, header):
    with Api() as api:
        async with calling(api, {"pool": pool}) as call:
            await call()
            await asyncio.sleep(0.02)
            await call()

    assert [request.connection for request in api.requests] == connections
    assert api.headers("connection") == [header, header]


async def test_answers_are_kept_by_their_url_whatever_their_status():
    with Api(lambda request: as_json(request.query, 404)) as api:
        settings = {"cache": {"enabled": True}}
        async with calling(api, settings, query={"q": "body"}, headers={"X-Id": "vars.id"}, failOnError=False) as call:
            bodies = [(await call(q, id=n)).body for q, n in (("a", "1"), ("a", "2"), ("b", "1"))]

    assert bodies == ["q=a", "q=a", "q=b"]
    assert len(api.requests) == 2


async def test_only_get_requests_are_kept_and_only_for_a_while():
    with Api() as api:
        async with calling(api, {"cache": {"enabled": True}}, method="POST") as call:
            await call()
            await call()
        async with calling(api, {"cache": {"enabled": True, "ttl": "1ms"}}) as call:
            await call()
            await asyncio.sleep(0.01)
            await call()

    assert len(api.requests) == 4


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "connector of type `http-client` requires `baseURL`"),
        ({"baseURL": ""}, "expected an absolute URL, found blank text"),
        ({"baseURL": "/v2"}, "expected an absolute URL, found `/v2`: it must begin with `http://` or `https://`"),
        ({"baseURL": "http://"}, "expected an absolute URL, found `http://`: it names no host"),
        ({"baseURL": "http://h", "timeout": "5"}, "expected a duration, found `5`"),
        ({"baseURL": "http://h", "timeout": 5}, "expected a duration, found a number"),
        ({"baseURL": "http://h", "baseUrl": "http://h"}, 'unknown field "baseUrl" in connector `http-client`'),
        ({"baseURL": "http://h", "headers": {"a b": "x"}}, "`a b` is not the name of an HTTP header"),
        (
            {"baseURL": "http://h", "headers": {"A": "x\ny"}},
            "the value of header `A` holds a line break or another control character",
        ),
        (
            {"baseURL": "http://h", "auth": {"type": "bearr"}},
            "expected `bearer`, `basic`, `oauth2`, `gcp` or nothing, found `bearr`",
        ),
        ({"baseURL": "http://h", "auth": {"type": "bearer"}}, "auth type `bearer` requires `token`"),
        (
            {"baseURL": "http://h", "auth": {"type": "bearer", "token": " "}},
            "auth type `bearer` requires `token`, found empty text",
        ),
        (
            {"baseURL": "http://h", "auth": {"type": "bearer", "token": "a\nb"}},
            "the token holds a line break or another control character",
        ),
        ({"baseURL": "http://h", "auth": {"type": "basic"}}, "auth type `basic` requires `username`"),
        (
            {"baseURL": "http://h", "auth": {"type": "oauth2", "tokenURL": "/t", "clientID": "a", "clientSecret": "b"}},
            "expected a URL, found `/t`: it must begin with `http://` or `https://`",
        ),
        (
            {"baseURL": "http://h", "auth": {"type": "gcp", "gcpToken": "id"}},
            "expected `identity` or `access`, found `id`",
        ),
        ({"baseURL": "http://h", "retry": {"attempts": 3}}, 'unknown field "attempts" in `retry`'),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ConfigError) as caught:
        config(flows(settings))

    assert [problem.message for problem in caught.value.problems] == [message]


def test_every_missing_field_of_an_authentication_is_named():
    with pytest.raises(ConfigError) as caught:
        config(flows({"baseURL": "http://h", "auth": {"type": "oauth2"}}))

    assert [problem.message for problem in caught.value.problems] == [
        f"auth type `oauth2` requires `{key}`" for key in ("tokenURL", "clientID", "clientSecret")
    ]


def test_a_config_that_calls_an_api_loads_without_the_network(tmp_path):
    (tmp_path / "app.yaml").write_text(flows({"baseURL": "http://h", "auth": {"type": "gcp"}}), encoding="utf-8")
    code = (
        "import sys, octo, pathlib\n"
        "octo.load(pathlib.Path('app.yaml'), environ={}, cwd=pathlib.Path.cwd())\n"
        "print(sorted({'httpx', 'asyncio', 'ssl', 'octo.http.session'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
