"""octo/llm/network.py: how this machine reaches the network, and why it failed."""

import errno
import os
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from octo.errors import ProviderError
from octo.llm import network

URL = "https://api.example.com/v1"


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        (URL, {}, None),
        (URL, {"HTTPS_PROXY": "http://proxy:3128"}, "http://proxy:3128"),
        (URL, {"https_proxy": "proxy:3128"}, "http://proxy:3128"),
        (URL, {"HTTP_PROXY": "http://proxy:3128"}, None),
        (URL, {"ALL_PROXY": "http://all:1"}, "http://all:1"),
        (URL, {"HTTPS_PROXY": "http://p", "NO_PROXY": "other.com,.example.com"}, None),
        (URL, {"HTTPS_PROXY": "http://p", "no_proxy": "api.example.com"}, None),
        (URL, {"HTTPS_PROXY": "http://p", "NO_PROXY": "ample.com"}, "http://p"),
        (URL, {"HTTPS_PROXY": "http://p", "NO_PROXY": "*"}, None),
        ("http://127.0.0.1:8080", {"HTTP_PROXY": "http://p"}, None),
        ("http://localhost:8080", {"ALL_PROXY": "http://p"}, None),
    ],
)
def test_the_proxy_comes_from_the_environment_that_was_handed_in(url: str, environ: dict[str, str], proxy: str | None):
    assert network.proxy_for(url, environ) == proxy


@pytest.mark.parametrize(
    ("variable", "path", "text"),
    [
        ("SSL_CERT_FILE", "missing.pem", ": no such file or directory"),
        ("SSL_CERT_FILE", "empty.pem", ", which holds no certificates in PEM form"),
        ("SSL_CERT_DIR", "missing", ", which is no directory"),
    ],
    ids=["no file", "no certificates", "no directory"],
)
def test_certificates_that_cannot_be_read_are_an_error(variable: str, path: str, text: str, tmp_path: Path):
    (tmp_path / "empty.pem").write_text("", encoding="utf-8")
    path = str(tmp_path / path)

    with pytest.raises(ProviderError) as caught:
        network.http_client(URL, {variable: path})
    assert caught.value.message == f"the HTTP client cannot be made: `{variable}` is `{path}`{text}"


def caused_by(cause: BaseException) -> Exception:
    error = RuntimeError("All connection attempts failed")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (caused_by(OSError(errno.ECONNREFUSED, "x")), os.strerror(errno.ECONNREFUSED).lower()),
        (caused_by(ExceptionGroup("x", [OSError(errno.ECONNRESET, "x")])), os.strerror(errno.ECONNRESET).lower()),
        (caused_by(socket.gaierror(-2, "Name or service not known")), "host not found"),
        (caused_by(ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version")), "the server does not speak TLS"),
        (caused_by(ssl.SSLError(1, "[SSL: BAD_ECPOINT] bad")), "no secure connection: [ssl: bad ecpoint] bad"),
        (httpx.ConnectTimeout("x"), "no connection within 10 s"),
        (httpx.ProxyError("407 Proxy Authentication Required"), "the proxy refuses: 407 Proxy Authentication Required"),
        (RuntimeError("Something else happened."), "something else happened"),
        (RuntimeError(), "the connection broke"),
        (
            httpx.RemoteProtocolError("Server disconnected without sending a response."),
            "the server closed the connection without an answer",
        ),
        (
            httpx.RemoteProtocolError("peer closed connection without sending complete message body (incomplete)"),
            "the server closed the connection",
        ),
        (
            httpx.RemoteProtocolError("illegal status line: bytearray(b'\\x00\\x01garbage not http')"),
            r"the answer is not HTTP: it begins with `\x00\x01garbage not http`",
        ),
        (
            httpx.RemoteProtocolError("illegal status line: bytearray(b\"it's " + "x" * 90 + '")'),
            f"the answer is not HTTP: it begins with `it's {'x' * 55}…`",
        ),
        (
            httpx.RemoteProtocolError("illegal chunk header: bytearray(b'zz\\r\\n')"),
            r"the answer is not HTTP: a part of it begins with `zz\r\n`",
        ),
        (httpx.RemoteProtocolError("bad Content-Length"), "the answer is not HTTP: bad Content-Length"),
        (
            httpx.RemoteProtocolError("Invalid URL in location header: Invalid port: ':bad'."),
            "invalid URL in location header: Invalid port: ':bad'",
        ),
        (
            httpx.RemoteProtocolError("Receive buffer too long"),
            "the headers of the answer are longer than 100 KiB",
        ),
        (
            httpx.RemoteProtocolError("Received server _SWITCH_UPGRADE event without a pending proposal"),
            "the server wants to go on in another protocol",
        ),
        (
            httpx.DecodingError("Error -3 while decompressing data: incorrect header check"),
            "the answer is said to be compressed, but it cannot be decompressed",
        ),
        (
            httpx.LocalProtocolError("Too much data for declared Content-Length"),
            "the request has headers that HTTP does not allow together, or at all",
        ),
    ],
    ids=[
        "refused",
        "first of several",
        "unknown host",
        "no TLS",
        "TLS",
        "slow to connect",
        "proxy",
        "its own words",
        "no words",
        "closed",
        "closed in the middle",
        "no HTTP",
        "long garbage",
        "broken chunk",
        "broken header",
        "redirect to nowhere",
        "long headers",
        "upgrade",
        "not compressed",
        "headers of ours",
    ],
)
def test_why_a_request_failed(error: Exception, text: str):
    assert network.reason(error) == text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (caused_by(ssl.SSLCertVerificationError(1, "x")), "`SSL_CERT_FILE` names a file of certificates to trust"),
        (
            caused_by(ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version")),
            "if the server does not speak TLS, its address begins with `http://`",
        ),
        (
            httpx.RemoteProtocolError("illegal request line"),
            "if the server speaks TLS, its address begins with `https://`",
        ),
        (caused_by(OSError(errno.ECONNREFUSED, "x")), None),
    ],
    ids=["certificate", "no TLS", "TLS", "nothing to say"],
)
def test_what_to_do_about_it(error: Exception, text: str | None):
    assert network.advice(error) == text


@pytest.mark.parametrize(
    ("error", "side"),
    [
        (httpx.InvalidURL("x"), "ours"),
        (httpx.UnsupportedProtocol("x"), "ours"),
        (httpx.LocalProtocolError("x"), "ours"),
        (httpx.RemoteProtocolError("illegal status line: bytearray(b'x')"), "theirs"),
        (httpx.DecodingError("x"), "theirs"),
        (httpx.RemoteProtocolError("Server disconnected without sending a response."), "between"),
        (httpx.RemoteProtocolError("peer closed connection without sending complete message body"), "between"),
        (httpx.ConnectError("x"), "between"),
        (caused_by(ssl.SSLCertVerificationError(1, "x")), "ours"),
        (httpx.ReadError("x"), "between"),
        (httpx.ConnectTimeout("x"), "between"),
    ],
)
def test_on_which_side_a_request_failed(error: Exception, side: str):
    assert network.side(error) == side


def test_httpx_is_loaded_without_its_command_line():
    """That one would load click, rich and pygments, which takes longer than httpx itself."""
    code = (
        "import sys\n"
        "from octo.llm.network import load_httpx\n"
        "load_httpx()\n"
        "import httpx\n"
        "print(sorted({'click', 'rich', 'pygments', 'httpx._main'} & set(sys.modules)), httpx.AsyncClient.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[] AsyncClient\n"
