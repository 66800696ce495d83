"""octo/http/session.py: what may go wrong on the way to an API and back: redirects, repeats, no answer, TLS."""

import asyncio
import datetime
import json
import ssl
from dataclasses import replace
from time import perf_counter

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from api_calls import Lines, calling, failure, flows
from http_api import Api, as_json, echo, in_turn, text
from octo.errors import BlockError, OctoError
from octo.testing.harness import runtime
from vendor.server import Answer

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
