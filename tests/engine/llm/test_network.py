"""octo/llm/network.py: how this machine reaches the network, and why it failed."""

import errno
import os
import socket
import ssl
import subprocess
import sys

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


def test_certificates_that_cannot_be_read_are_an_error():
    with pytest.raises(ProviderError, match=r"^the HTTP client cannot be made: .*No such file"):
        network.http_client(URL, {"SSL_CERT_FILE": "/nowhere/at/all.pem"})


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
        (caused_by(ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version")), "no secure connection: "),
        (RuntimeError("Server disconnected without sending a response."), "server disconnected without sending"),
        (RuntimeError(), "the connection broke"),
    ],
    ids=["refused", "first of several", "unknown host", "TLS", "its own words", "no words"],
)
def test_why_a_request_failed(error: Exception, text: str):
    assert network.reason(error).startswith(text)


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
