"""How this machine reaches the network: the HTTP client, proxies, certificates, and why it failed."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from octo.errors import ProviderError

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS: Final = 10.0


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

    proxy = proxy_for(url, environ)
    try:
        return httpx.AsyncClient(
            proxy=proxy,
            verify=certificates(environ) if proxy or not url.lower().startswith("http:") else False,
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
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
    """The certificates that are trusted: those that the environment names, else the usual ones."""
    file, directory = environ.get("SSL_CERT_FILE"), environ.get("SSL_CERT_DIR")
    if file or directory:
        return ssl.create_default_context(cafile=file or None, capath=directory or None)
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


def reason(error: BaseException) -> str:
    """Why a request failed, in the words of the first cause that has any. Never quotes what was sent."""
    import httpx

    if isinstance(error, httpx.LocalProtocolError):
        return "a header holds a character that HTTP does not allow"
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {CONNECT_SECONDS:g} s"
    for cause in _causes(error):
        match cause:
            case ssl.SSLCertVerificationError():
                return f"the certificate is not trusted: {cause.verify_message}"
            case ssl.SSLError():
                words = getattr(cause, "reason", None) or str(cause)
                return f"no secure connection: {words.lower().replace('_', ' ')}"
            case socket.gaierror():
                return "host not found"
            case OSError(errno=int(number)) if number in errno.errorcode:
                return os.strerror(number).lower()
    text = str(error).strip().rstrip(".")
    return f"{text[:1].lower()}{text[1:200]}" or "the connection broke"


def _causes(error: BaseException | None) -> list[BaseException]:
    """The error and what led to it, the root first."""
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        group = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
        error = group[0] if group else error.__cause__ or error.__context__
    return found[::-1]
