"""Who calls: the `Authorization` header of requests, and the tokens that must be fetched for it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol
from urllib.parse import urlencode

from octo.http.call import HttpError, excerpt
from octo.llm.credentials import shown_url
from octo.values import Json, parse

Clock = Callable[[], int]
"""Nanoseconds since 1970."""

METADATA_HOST: Final = "metadata.google.internal"
_SECOND: Final = 10**9
_EARLY: Final = 30 * _SECOND
"""How long before its end a token is renewed."""
_UNREADABLE_SECONDS: Final = 30 * 60 + 30
"""What a token is taken to last that does not say it."""


class Fetch(Protocol):
    """Sends one request, follows nothing and repeats nothing; raises HttpError. The answer is cut at 64 KiB."""

    async def __call__(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> tuple[int, bytes]:
        """Status and body."""


class Authorization(Protocol):
    """Gives the value of the header, and asks the network for it when it must."""

    async def __call__(self, fetch: Fetch) -> str: ...


class Fixed:
    """The same header for every request."""

    def __init__(self, header: str) -> None:
        self._header = header

    async def __call__(self, fetch: Fetch) -> str:
        return self._header


def bearer(token: str) -> Fixed:
    return Fixed(f"Bearer {token}")


def basic(user: str, password: str) -> Fixed:
    return Fixed(basic_header(user, password))


def basic_header(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


class _Cached:
    """A token that is kept until shortly before its end; requests that need it at once share one fetch."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = asyncio.Lock()
        self._token = ""
        self._renew_at = 0

    async def __call__(self, fetch: Fetch) -> str:
        async with self._lock:
            if self._clock() >= self._renew_at:
                self._token, lifetime = await self._fetched(fetch)
                self._renew_at = self._clock() + round(lifetime * _SECOND) - _EARLY
            return f"Bearer {self._token}"

    async def _fetched(self, fetch: Fetch) -> tuple[str, float]:
        """A token, and the seconds that it lasts."""
        raise TypeError(f"{type(self).__name__} fetches nothing")


class ClientCredentials(_Cached):
    """Tokens of an OAuth 2 server, for the client itself. They are kept in memory only."""

    def __init__(
        self, token_url: str, client_id: str, client_secret: str, scopes: Sequence[str] = (), *, clock: Clock
    ) -> None:
        super().__init__(clock)
        self._url = token_url
        self._id = client_id
        self._secret = client_secret
        self._scopes = " ".join(scopes)
        self._refresh_token = ""

    async def _fetched(self, fetch: Fetch) -> tuple[str, float]:
        if self._refresh_token:
            form = {"grant_type": "refresh_token", "refresh_token": self._refresh_token}
            try:
                return await self._granted(fetch, form)
            except HttpError:
                self._refresh_token = ""
        form = {"grant_type": "client_credentials"}
        return await self._granted(fetch, form | ({"scope": self._scopes} if self._scopes else {}))

    def _mask(self, text: str) -> str:
        return text.replace(self._secret, "***")

    async def _granted(self, fetch: Fetch, form: Mapping[str, str]) -> tuple[str, float]:
        what = f"oauth2 token request to {shown_url(self._url)}"
        headers = {
            "Authorization": basic_header(self._id, self._secret),
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
        }
        try:
            status, body = await fetch("POST", self._url, headers, urlencode(form).encode())
        except HttpError as error:
            raise HttpError(f"{what}: {error.message}") from error
        grant = _json(body)
        token = grant.get("access_token")
        if status != 200 or not isinstance(token, str) or not token:
            if status == 200:
                raise HttpError(f"{what} returned no `access_token`")
            raise HttpError(f"{what} returned {excerpt(status, body, self._mask)}")
        refresh_token = grant.get("refresh_token")
        if isinstance(refresh_token, str) and refresh_token:
            self._refresh_token = refresh_token
        return token, _seconds(grant.get("expires_in")) or 0


class MetadataToken(_Cached):
    """Tokens of the service account of a machine on Google Cloud, from the metadata service there.

    With an audience identity tokens for it, else access tokens with the given scopes.
    """

    def __init__(self, host: str, *, audience: str = "", scopes: Sequence[str] = (), clock: Clock) -> None:
        super().__init__(clock)
        self._host = host
        self._audience = audience
        self._scopes = scopes

    async def _fetched(self, fetch: Fetch) -> tuple[str, float]:
        account = f"http://{self._host}/computeMetadata/v1/instance/service-accounts/default"
        if self._audience:
            query = urlencode({"audience": self._audience, "format": "full"})
            token = (await self._asked(fetch, f"{account}/identity?{query}")).decode("ascii", "replace").strip()
            lifetime = self._until(token)
        else:
            query = f"?{urlencode({'scopes': ','.join(self._scopes)})}" if self._scopes else ""
            answer = _json(await self._asked(fetch, f"{account}/token{query}"))
            token = str(answer.get("access_token") or "")
            lifetime = _seconds(answer.get("expires_in"))
        if not token:
            raise HttpError("the metadata service of Google Cloud gave no token")
        return token, _UNREADABLE_SECONDS if lifetime is None else lifetime

    async def _asked(self, fetch: Fetch, url: str) -> bytes:
        try:
            status, body = await fetch("GET", url, {"Metadata-Flavor": "Google"})
        except HttpError as error:
            raise HttpError(
                f"auth type `gcp` works on Google Cloud only: its metadata service does not answer: {error.message}",
                hint="use another auth type on this machine",
            ) from error
        if status != 200:
            raise HttpError(f"the metadata service of Google Cloud returned {excerpt(status, body)}")
        return body

    def _until(self, token: str) -> float | None:
        """The seconds until the `exp` of a signed token."""
        payload = token.split(".")[1] if token.count(".") == 2 else ""
        try:
            claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
            return _seconds(float(claims["exp"]) - self._clock() / _SECOND)
        except (ValueError, TypeError, KeyError, RecursionError):
            return None


def _json(body: bytes) -> dict[str, Json]:
    try:
        value = parse(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _seconds(value: Json) -> float | None:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None
    return seconds if 0 <= seconds < 10**9 else None
