"""Access tokens that a server gives for a client id and its secret, and that live only for a while."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote_plus, urlencode

from octo.errors import ProviderError, Truncated
from octo.llm.chat import Delta
from octo.llm.credentials import masked, shown_url
from octo.llm.wire import BROKE_OFF, HttpCall, Unreadable
from octo.values import Json, kind_of

if TYPE_CHECKING:
    from octo.llm.transport import Transport

AZURE_SCOPE: Final = "https://cognitiveservices.azure.com/.default"
EARLY: Final = 120
"""Seconds before its end in which a token is not used any more."""

_IN_TEXT: Final = re.compile(r"(access_token[\"']?\s*[=:]\s*[\"']?)[^\s&\"'`]+")


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks for tokens, where, and for what."""

    token_url: str
    id: str
    secret: str = field(repr=False)
    scope: str = AZURE_SCOPE

    def call(self) -> HttpCall:
        """The request of a token: the client credentials grant of OAuth 2.0, with basic authentication."""
        basic = b64encode(f"{quote_plus(self.id)}:{quote_plus(self.secret)}".encode()).decode("ascii")
        headers = (
            ("content-type", "application/x-www-form-urlencoded"),
            ("accept", "application/json"),
            ("authorization", f"Basic {basic}"),
        )
        form = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        return HttpCall(self.token_url, headers, urlencode(form).encode())

    def mask(self, text: str) -> str:
        """The text without the secret, and without a token that stands in it under its name."""
        return masked(_IN_TEXT.sub(r"\1***", text), [self.secret, quote_plus(self.secret)])


@dataclass(frozen=True, slots=True)
class Grant:
    token: str = field(repr=False)
    seconds: float
    """How long it lives."""


class ClientTokens:
    """Gets a token when one is wanted, and keeps it until shortly before its end. `clock` gives nanoseconds."""

    def __init__(self, client: Client, transport: Transport, clock: Callable[[], int]) -> None:
        self._client = client
        self._transport = transport
        self._clock = clock
        self._token = ""
        self._good_until = 0.0
        self._one_at_a_time = asyncio.Lock()

    async def current(self) -> str:
        async with self._one_at_a_time:
            now = self._clock() / 1e9
            if now >= self._good_until:
                grant = await self._granted()
                self._token, self._good_until = grant.token, now + grant.seconds - EARLY
            return self._token

    async def _granted(self) -> Grant:
        try:
            return await self._transport.send(self._client.call(), _Decoder)
        except ProviderError as error:
            error.message = f"no access token: {error.message}"
            error.args = (error.message,)
            error.hint = (
                f"check `clientId`, `clientSecret` and `tokenURL`, which is `{shown_url(self._client.token_url)}`"
            )
            raise

    def mask(self, text: str) -> str:
        return masked(self._client.mask(text), [self._token])


class _Decoder:
    """Reads the answer of a token server. What it holds is never quoted."""

    def __init__(self) -> None:
        self._grant: Grant | None = None

    @property
    def complete(self) -> bool:
        return self._grant is not None

    @property
    def ended(self) -> bool:
        return self.complete

    def feed(self, event: Json) -> Sequence[Delta]:
        token = event.get("access_token") if isinstance(event, dict) else None
        if not isinstance(token, str) or not token.strip():
            found = f"a mapping with {_names(event)}" if isinstance(event, dict) else kind_of(event)
            raise Unreadable(f"expected a mapping with an `access_token`, found {found}")
        self._grant = Grant(token.strip(), _seconds(event.get("expires_in")))
        return ()

    def finish(self) -> Grant:
        if self._grant is None:
            raise Truncated(BROKE_OFF, retryable=True)
        return self._grant


def _names(mapping: dict[str, Json]) -> str:
    return ", ".join(f"`{name[:40]}`" for name in list(mapping)[:8]) or "nothing in it"


def _seconds(value: Json) -> float:
    """How long a token lives; one that does not say it is used once only."""
    try:
        return min(max(float(value), 0.0), 1e9)
    except (TypeError, ValueError, OverflowError):
        return 0.0
