"""octo/connectors/http_client.py, octo/http/session.py: what is sent to an API, and what may go wrong on the way."""

import asyncio
import base64
import datetime
import json
import ssl
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from time import perf_counter

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from http_api import Api, as_json, echo, in_turn, text
from octo.errors import BlockError, ConfigError, OctoError
from octo.observe import LogLine
from octo.testing.harness import config, runtime
from vendor.server import Answer


class Lines:
    """Keeps the lines of the process log."""

    kinds = (LogLine,)

    def __init__(self):
        self.lines = []

    def notify(self, event):
        self.lines.append((event.level, event.text, event.fields))


def flows(settings, **block):
    """A config that calls `GET /a`, or what the settings of the block say, with these settings of the connector."""
    rest = {"connector": "api", "path": "/a"} | block
    return json.dumps(
        {
            "connectors": [{"name": "api", "type": "http-client", "settings": settings}],
            "flows": [{"name": "main", "process": [{"type": "rest", "settings": rest}]}],
        }
    )


@asynccontextmanager
async def calling(api, settings=None, *, environ=None, log=None, **block):
    """`await call(body)` runs the flow of `flows` against an API."""
    text = flows({"baseURL": api.url} | (settings or {}), **block)
    async with runtime(text, environ=environ or {}, observers=[log] if log else []) as octo:

        async def call(body=None, **variables):
            return await octo.invoke("main", body, vars=variables)

        yield call


async def failure(api, settings=None, **options):
    """The text that a call fails with, without the label of the block."""
    async with calling(api, settings, **options) as call:
        with pytest.raises(BlockError) as caught:
            await call({})
    return str(caught.value).removeprefix('block "rest": ').replace(api.url, "URL")


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


# ---------------------------------------------------------------- redirects


async def test_a_redirect_is_followed_and_keeps_method_and_body_when_it_must():
    def answer(request):
        match request.path:
            case "/a":
                return Answer(307, (("location", "/b"),), (b"x" * 100_000,))
            case "/b":
                return Answer(303, (("location", "c?d=1"),))
        return echo(request)

    with Api(answer) as api:
        async with calling(api, method="POST", body="body") as call:
            message = await call("text")

    assert [(request.method, request.path, request.body) for request in api.requests[:2]] == [
        ("POST", "/a", b"text"),
        ("POST", "/b", b"text"),
    ]
    assert message.body == {"method": "GET", "target": "/c?d=1", "body": ""}


@pytest.mark.parametrize(
    ("status", "sent"),
    [(302, ("GET", None, None)), (303, ("GET", None, None)), (307, ("POST", "text/csv", "de"))],
    ids=["found", "see other", "temporary"],
)
async def test_a_redirect_that_drops_the_body_drops_what_describes_it(status, sent):
    headers = {"Content-Type": '"text/csv"', "Content-Language": '"de"'}
    with Api(lambda request: text("", status, location="/b") if request.path == "/a" else echo(request)) as api:
        async with calling(api, method="POST", body='"a,b"', headers=headers) as call:
            await call()

    request = api.requests[1]
    assert (request.method, request.headers.get("content-type"), request.headers.get("content-language")) == sent


async def test_redirects_in_a_circle_end():
    with Api(lambda request: text("", 302, location="/a")) as api:
        message = await failure(api)

    assert message == "rest request to URL/a: more than 10 redirects"
    assert len(api.requests) == 11


@pytest.mark.parametrize(
    ("location", "cause"),
    [
        ("ftp://example.com/x", "request URL has an unsupported protocol 'ftp://'"),
        ("http://[::bad", "invalid URL in location header: Invalid port: ':bad'"),
        (
            "/x\x01y",
            "invalid URL in location header: Invalid non-printable ASCII character in URL, '\\x01' at position 2",
        ),
        ("http://127.0.0.1:99999/", "connect(): port must be 0-65535"),
        ("http://xn--/", "malformed A-label, no Punycode eligible content found"),
        ("javascript:1", "for absolute URLs, path must be empty or begin with '/'"),
    ],
    ids=["scheme", "host", "control character", "port", "name", "no address"],
)
async def test_a_redirect_to_nowhere_fails(location, cause):
    with Api(lambda request: text("", 302, location=location)) as api:
        assert await failure(api) == f"rest request to URL/a: {cause}"


async def test_credentials_are_not_told_to_another_server():
    with Api() as other, Api(lambda request: text("", 307, location=f"{other.url}/b")) as api:
        settings = {"headers": {"X-Api-Key": "k3y", "X-Tenant": "t", "Accept": "text/plain"}}
        settings["auth"] = {"type": "bearer", "token": "t0ken"}
        async with calling(api, settings, headers={"Cookie": '"a=1"', "X-Trace": '"7"'}) as call:
            await call()

    sent = other.requests[0].headers
    assert {"x-api-key", "x-tenant", "authorization", "cookie"} & set(sent) == set()
    assert (sent["accept"], sent["x-trace"], sent["host"]) == ("text/plain", "7", other.host)


async def test_a_redirect_on_the_same_server_keeps_the_credentials():
    with Api(lambda request: text("", 302, location="/b") if request.path == "/a" else echo(request)) as api:
        settings = {"headers": {"X-Api-Key": "k3y"}, "auth": {"type": "bearer", "token": "t0ken"}}
        async with calling(api, settings, headers={"Cookie": '"a=1"'}) as call:
            await call()

    sent = api.requests[1].headers
    assert (sent["x-api-key"], sent["authorization"], sent["cookie"]) == ("k3y", "Bearer t0ken", "a=1")


# ---------------------------------------------------------------- repeats


async def test_status_429_is_repeated_with_the_body():
    log = Lines()
    with Api(in_turn(text("slow down", 429), text("slow down", 429, retry_after="0"), as_json("done"))) as api:
        settings = {"retry": {"maxBackoff": "10ms"}}
        async with calling(api, settings, log=log, method="POST", body="body") as call:
            message = await call("text")

    assert message.body == "done"
    assert [request.body for request in api.requests] == [b"text"] * 3
    assert log.lines == [
        ("warn", f"POST {api.url}/a returned 429 and is tried again in {wait} s", {"connector": "api"})
        for wait in ("0.01", "0")
    ]


@pytest.mark.parametrize(
    ("retry_after", "cap", "wait"),
    [
        ("1", "0s", "1"),
        ("0", "0s", "0"),
        ("3600", "20ms", "0.02"),
        ("Mon, 01 Jan 2001 00:00:00 GMT", "0s", "0"),
        ("Fri, 01 Jan 2100 00:00:00 GMT", "20ms", "0.02"),
        ("soon", "0s", "0.5"),
        ("-1", "0s", "0.5"),
        ("", "0s", "0.5"),
        ("9" * 400, "20ms", "0.02"),
    ],
    ids=["seconds", "at once", "capped", "past date", "future date", "nonsense", "negative", "none", "huge"],
)
async def test_the_wait_before_a_repeat(retry_after, cap, wait):
    log = Lines()
    with Api(in_turn(text("slow down", 429, retry_after=retry_after), as_json("done"))) as api:
        async with calling(api, {"retry": {"maxBackoff": cap}}, log=log) as call:
            started = perf_counter()
            await call()
            took = perf_counter() - started

    assert [line.rpartition("in ")[2] for _, line, _ in log.lines] == [f"{wait} s"]
    assert took >= float(wait)


@pytest.mark.parametrize(("attempts", "count"), [(1, 1), (2, 2), (0, 3), (-1, 3)])
async def test_the_last_429_is_the_answer(attempts, count):
    with Api(lambda request: text("slow down", 429, retry_after="0")) as api:
        message = await failure(api, {"retry": {"maxAttempts": attempts}})

    assert message == "rest request to URL/a returned 429: slow down"
    assert len(api.requests) == count


@pytest.mark.parametrize("status", [500, 503, 408])
async def test_no_other_status_is_repeated(status):
    with Api(lambda request: text("no", status)) as api:
        assert await failure(api) == f"rest request to URL/a returned {status}: no"

    assert len(api.requests) == 1


# ---------------------------------------------------------------- no answer

BROKEN = Answer(200, (("content-type", "text/plain"),), (b"begin",), content_length=100)


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (Answer(send_head=False, ending="close"), "the server closed the connection without an answer"),
        (Answer(send_head=False, ending="reset"), "connection reset by peer"),
        (replace(BROKEN, ending="close"), "the server closed the connection"),
        (Answer(200, (("content-encoding", "gzip"),), (b"no gzip",)), "the answer is said to be compressed, but"),
        (Answer(send_head=False, ending="hang"), "no answer within 0.2 s"),
        (replace(BROKEN, ending="hang"), "no answer within 0.2 s"),
        (Answer(pieces=(b"x",) * 50, pause=0.05, streamed=True), "no answer within 0.2 s"),
    ],
    ids=["hang-up", "reset", "half a body", "no gzip", "silence", "silence in the body", "dripping"],
)
async def test_a_broken_answer_fails_and_is_not_repeated(answer, cause):
    with Api(lambda request: answer) as api:
        message = await failure(api, {"timeout": "200ms"})

    assert message.startswith(f"rest request to URL/a: {cause}")
    assert len(api.requests) == 1


async def test_a_call_that_takes_too_long_names_the_limit():
    with Api(lambda request: Answer(send_head=False, ending="hang")) as api:
        async with calling(api, {"timeout": "50ms"}) as call:
            with pytest.raises(OctoError) as caught:
                await call()

    assert caught.value.hint == "the `timeout` of the connector says how long to wait"


async def test_the_time_limit_holds_for_each_attempt():
    slow = replace(text("slow down", 429), delay=0.25)
    with Api(in_turn(slow, slow, replace(as_json("done"), delay=0.25))) as api:
        async with calling(api, {"timeout": "500ms", "retry": {"maxBackoff": "1ms"}}) as call:
            assert (await call()).body == "done"


async def test_a_cancelled_call_leaves_nothing_behind():
    with Api(lambda request: Answer(send_head=False, ending="hang")) as api:
        async with calling(api) as call:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await call()
        assert api.requests[0].abandoned.wait(5)


async def test_a_refused_connection_fails():
    with Api() as api:
        url = api.url

    async with runtime(flows({"baseURL": url})) as octo:
        with pytest.raises(BlockError) as caught:
            await octo.invoke("main")

    assert str(caught.value) == f'block "rest": rest request to {url}/a: connection refused'


async def test_errors_show_neither_query_nor_credentials():
    with Api(lambda request: text("no", 500)) as api:
        settings = {"baseURL": api.url.replace("://", "://ann:pa55word@") + "?key=k3y"}
        message = await failure(api, settings, path="/a?token=t0ken", query={"q": '"1"'})

    assert message == "rest request to URL/a returned 500: no"


async def test_an_api_that_repeats_credentials_does_not_spread_them():
    def answer(request):
        key = request.headers["x-api-key"]
        said = f"bad key {key} ({key.encode().hex()}) of {request.headers['authorization']} and v4riable"
        return text(said, 403)

    with Api(answer) as api:
        settings = {"headers": {"X-Api-Key": "k3y-k3y"}, "auth": {"type": "bearer", "token": "t0ken-t0ken"}}
        text_ = json.loads(flows({"baseURL": api.url} | settings))
        text_["env"] = [{"name": "MY_SECRET", "default": "v4riable"}]
        async with runtime(json.dumps(text_)) as octo:
            with pytest.raises(BlockError) as caught:
                await octo.invoke("main")

    assert (
        str(caught.value) == f'block "rest": rest request to {api.url}/a returned 403: bad key *** (***) of *** and ***'
    )


# ---------------------------------------------------------------- proxies and TLS


async def test_a_proxy_of_the_environment_is_asked_for_the_whole_url():
    with Api() as proxy:
        environ = {"HTTP_PROXY": proxy.url, "NO_PROXY": "example.org"}
        async with calling(proxy, {"baseURL": "http://api.example/v2"}, environ=environ, path="/a/?b=1") as call:
            message = await call()

    assert message.body["target"] == "http://api.example/v2/a/?b=1"
    assert proxy.headers("host") == ["api.example"]


def certificate(path):
    """A self-signed certificate for this machine with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + made.public_bytes(pem))
    return path


@pytest.fixture
def secure(tmp_path):
    """An API that speaks TLS, and the file with its certificate."""
    file = certificate(tmp_path / "server.pem")
    api = Api()
    api.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    api.tls.load_cert_chain(file)
    with api:
        yield api, str(file)


async def test_a_certificate_is_trusted_when_the_environment_says_so(secure):
    api, file = secure
    settings = {"baseURL": api.url.replace("127.0.0.1", "localhost")}
    async with calling(api, settings, environ={"SSL_CERT_FILE": file}) as call:
        assert (await call()).body["target"] == "/a"


async def test_a_certificate_that_is_not_trusted_fails(secure):
    api, _ = secure

    assert await failure(api) == "rest request to URL/a: the certificate is not trusted: self-signed certificate"


async def test_a_certificate_of_another_name_fails(secure):
    api, file = secure

    assert await failure(api, environ={"SSL_CERT_FILE": file}) == (
        "rest request to URL/a: the certificate is not trusted: "
        "IP address mismatch, certificate is not valid for '127.0.0.1'."
    )


async def test_a_server_that_speaks_no_tls_fails():
    async def plain(reader, writer):
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with runtime(flows({"baseURL": f"https://127.0.0.1:{port}"})) as octo:
            with pytest.raises(BlockError) as caught:
                await octo.invoke("main")

    assert str(caught.value) == (
        f'block "rest": rest request to https://127.0.0.1:{port}/a: the server does not speak TLS'
    )


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
