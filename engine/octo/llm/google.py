"""Access tokens of the Google account that this machine runs as, which models on Vertex AI are called with."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from octo.errors import AuthenticationFailed
from octo.llm import network
from octo.llm.credentials import masked

if TYPE_CHECKING:
    import httpx
    from google.auth import transport

KEY_FILE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
"""The environment variable that names a file with credentials."""

_SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
_SECONDS: Final = 30.0
"""What one request for a token may take."""
_HINT: Final = (
    f"`{KEY_FILE}` names the key file of a service account; a person logs in with "
    "`gcloud auth application-default login`"
)


class Account(Protocol):
    """The credentials of a Google account, as `google-auth` has them."""

    token: Any

    @property
    def valid(self) -> bool:
        """Whether the token is good for a call now, and some minutes longer."""

    def refresh(self, request: Any) -> None:
        """Get another token."""


class AccountTokens:
    """The tokens of one account, which is looked for when the first one is wanted."""

    def __init__(
        self, environ: Mapping[str, str], find: Callable[[Mapping[str, str], transport.Request], Account] | None = None
    ) -> None:
        self._environ = environ
        self._find = find or find_account
        self._account: Account | None = None
        self._one_at_a_time = asyncio.Lock()

    async def current(self) -> str:
        async with self._one_at_a_time:
            if self._account is None or not self._account.valid:
                self._account = await asyncio.to_thread(self._refreshed)
            return str(self._account.token)

    def _refreshed(self) -> Account:
        from google.auth.exceptions import GoogleAuthError

        request = http_request(self._environ)
        try:
            account = self._account or self._find(self._environ, request)
            if not account.valid:
                account.refresh(request)
        except (GoogleAuthError, OSError, ValueError) as error:
            words = str(error.args[0] if error.args else error).strip().rstrip(".")
            text = f"no access token of a Google account: {words[:1].lower()}{words[1:500]}{'…' * (len(words) > 500)}"
            raise AuthenticationFailed(text, hint=_HINT) from error
        return account

    def mask(self, text: str) -> str:
        token = self._account.token if self._account is not None else None
        return masked(text, [str(token)]) if token else text


def find_account(environ: Mapping[str, str], request: transport.Request) -> Account:
    """The account of a key file that the environment names, else the one of this machine."""
    import google.auth

    file = environ.get(KEY_FILE, "").strip()
    if not file:
        return google.auth.default(scopes=_SCOPES, request=request)[0]
    with warnings.catch_warnings():
        # It warns of files from people whom one does not trust; this one is named by who runs octo.
        warnings.simplefilter("ignore", DeprecationWarning)
        account: Account = google.auth.load_credentials_from_file(  # type: ignore[no-untyped-call]  # typed in part
            file, scopes=_SCOPES, request=request
        )[0]
    return account


def http_request(environ: Mapping[str, str]) -> transport.Request:
    """How `google-auth` reaches the network: as all calls do, through the proxy that the environment names."""
    network.load_httpx()
    import httpx
    from google.auth import exceptions, transport

    class Response(transport.Response):
        def __init__(self, response: httpx.Response) -> None:
            self._response = response

        @property
        def status(self) -> int:
            return self._response.status_code

        @property
        def headers(self) -> Mapping[str, str]:
            return self._response.headers

        @property
        def data(self) -> bytes:
            return self._response.content

    class Request(transport.Request):
        def __call__(
            self,
            url: str,
            method: str = "GET",
            body: Any = None,
            headers: Mapping[str, str] | None = None,
            timeout: float | None = None,
            **_: object,
        ) -> transport.Response:
            try:
                with httpx.Client(
                    proxy=network.proxy_for(url, environ),
                    verify=network.certificates(environ),
                    trust_env=False,
                    timeout=timeout or _SECONDS,
                ) as client:
                    return Response(client.request(method, url, content=body, headers=headers))
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                text = network.reason(error)
                raise exceptions.TransportError(text) from error  # type: ignore[no-untyped-call]  # typed in part

    return Request()
