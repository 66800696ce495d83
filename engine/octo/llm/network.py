"""How this machine reaches the network: the HTTP client, proxies, certificates, and why it failed."""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

from octo.errors import ProviderError

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS: Final = 10.0

_QUOTED: Final = 60
_LOST: Final = re.compile("disconnected|closed connection")
"""In the words of a protocol error: the other side broke no rule, it went away."""
_NO_TLS: Final = re.compile("WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|UNKNOWN_PROTOCOL|HTTP_REQUEST")


def load_httpx() -> None:
    """Import httpx without the command line that it brings along; called before `import httpx`.

    That command line would load click, rich and pygments where they are installed, which takes longer than
    httpx itself. httpx foresees that it is missing.
    """
    if "httpx" not in sys.modules:
        sys.modules["httpx._main"] = None  # type: ignore[assignment]  # makes its import raise ImportError
        try:
            import httpx  # noqa: F401
        finally:
            del sys.modules["httpx._main"]


def http_client(url: str, environ: Mapping[str, str]) -> httpx.AsyncClient:
    """A client for calls to one address. Redirects are not followed, and only connecting has a time limit."""
    load_httpx()
    import httpx

    from octo.llm.connections import Connections

    proxy = proxy_for(url, environ)
    try:
        return httpx.AsyncClient(
            transport=Connections(
                proxy=proxy, verify=certificates(environ) if proxy or not url.lower().startswith("http:") else False
            ),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            headers={"user-agent": "octo", "accept-encoding": "identity"},
        )
    except (ImportError, ValueError, OSError, httpx.InvalidURL) as error:
        raise ProviderError(f"the HTTP client cannot be made: {error}") from error


def proxy_for(url: str, environ: Mapping[str, str]) -> str | None:
    """The proxy that the environment names for an address; never one for this machine itself."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in {"localhost", "::1"} or host.startswith("127."):
        return None
    names = (f"{parts.scheme}_proxy", f"{parts.scheme}_proxy".upper(), "all_proxy", "ALL_PROXY")
    proxy = next((environ[name] for name in names if environ.get(name)), None)
    if proxy is None:
        return None
    exceptions = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    for name in (entry.strip().lower().lstrip(".") for entry in exceptions.split(",")):
        if name == "*" or (name and (host == name or host.endswith(f".{name}"))):
            return None
    return proxy if "://" in proxy else f"http://{proxy}"


def certificates(environ: Mapping[str, str]) -> ssl.SSLContext:
    """The certificates that are trusted: those that the environment names, else the usual ones.

    Raises OSError, which says which variable names what cannot be read.
    """
    file, directory = environ.get("SSL_CERT_FILE"), environ.get("SSL_CERT_DIR")
    if directory and not Path(directory).is_dir():
        raise OSError(f"`SSL_CERT_DIR` is `{directory}`, which is no directory")
    if file or directory:
        try:
            return ssl.create_default_context(cafile=file or None, capath=directory or None)
        except ssl.SSLError:
            raise OSError(f"`SSL_CERT_FILE` is `{file}`, which holds no certificates in PEM form") from None
        except OSError as error:
            raise OSError(f"`SSL_CERT_FILE` is `{file}`: {(error.strerror or str(error)).lower()}") from error
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


def side(error: BaseException) -> Literal["ours", "theirs", "between"]:
    """On which side a request failed.

    It cannot be sent, or not to somebody who is not trusted; what answers does not speak HTTP; or the connection.
    Only the last may be another story on another try.
    """
    import httpx

    match error:
        case httpx.InvalidURL() | httpx.UnsupportedProtocol() | httpx.LocalProtocolError():
            return "ours"
        case httpx.DecodingError():
            return "theirs"
        case httpx.RemoteProtocolError() if not _LOST.search(str(error)):
            return "theirs"
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error)):
        return "ours"
    return "between"


def reason(error: BaseException) -> str:
    """Why a request failed, in the words of the first cause that has any. Never quotes what was sent."""
    import httpx

    match error:
        case httpx.LocalProtocolError():
            return "the request has headers that HTTP does not allow together, or at all"
        case httpx.ConnectTimeout():
            return f"no connection within {CONNECT_SECONDS:g} s"
        case httpx.DecodingError():
            return "the answer is said to be compressed, but it cannot be decompressed"
        case httpx.RemoteProtocolError():
            return _no_http(error)
        case httpx.ProxyError():
            return f"the proxy refuses: {_words(error)}"
    for cause in _causes(error):
        match cause:
            case ssl.SSLCertVerificationError():
                return f"the certificate is not trusted: {cause.verify_message}"
            case ssl.SSLError() if _NO_TLS.search(str(cause)):
                return "the server does not speak TLS"
            case ssl.SSLError():
                words = getattr(cause, "reason", None) or str(cause)
                return f"no secure connection: {words.lower().replace('_', ' ')}"
            case socket.gaierror():
                return "host not found"
            case OSError(errno=int(number)) if number in errno.errorcode:
                return os.strerror(number).lower()
    if isinstance(error, ExceptionGroup):
        error = _causes(error)[0]
    return _words(error) or "the connection broke"


def advice(error: BaseException) -> str | None:
    """What to do about it, where that follows from the failure alone."""
    import httpx

    if isinstance(error, httpx.RemoteProtocolError) and "illegal request line" in str(error):
        return "if the server speaks TLS, its address begins with `https://`"
    for cause in _causes(error):
        match cause:
            case ssl.SSLCertVerificationError():
                return "`SSL_CERT_FILE` names a file of certificates to trust"
            case ssl.SSLError() if _NO_TLS.search(str(cause)):
                return "if the server does not speak TLS, its address begins with `http://`"
    return None


def _no_http(error: BaseException) -> str:
    """What came that is not HTTP, from the words of the parser, which quotes it as Python does."""
    words = _words(error)
    if "location header" in words:
        return words
    if _LOST.search(words):
        return f"the server closed the connection{' without an answer' if 'disconnected' in words else ''}"
    if "too long" in words:
        return "the headers of the answer are longer than 100 KiB"
    if "_SWITCH_UPGRADE" in words:
        return "the server wants to go on in another protocol"
    quoted = re.search(r"bytearray\(b(['\"])(.*)\1\)", str(error), re.DOTALL)
    if quoted is None:
        return f"the answer is not HTTP: {words}"
    what = "the answer is not HTTP: it" if "status line" in words else "the answer is not HTTP: a part of it"
    return f"{what} begins with `{quoted[2][:_QUOTED]}{'…' if len(quoted[2]) > _QUOTED else ''}`"


def _words(error: BaseException) -> str:
    text = str(error).strip().rstrip(".")
    return f"{text[:1].lower()}{text[1:200]}{'…' * (len(text) > 200)}"


def _causes(error: BaseException | None) -> list[BaseException]:
    """The error and what led to it, the root first."""
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        group = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
        error = group[0] if group else error.__cause__ or error.__context__
    return found[::-1]
