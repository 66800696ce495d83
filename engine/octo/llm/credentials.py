"""Who calls: keys and headers, and which of them go out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol
from urllib.parse import unquote, unquote_plus, urlsplit

from octo import masking
from octo.http import call

Headers = tuple[tuple[str, str], ...]
Platform = Literal["standard", "vertex"]
Route = Literal["responses", "chat", "auto"]

CREDENTIAL_HEADERS: Final = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key"})

SHARED_HEADERS: Final = "OCTO_AI_HTTP_HEADERS"
"""The environment variable that adds headers to the calls of all connectors."""

_SECRET_HEADER: Final = re.compile(r"auth|key|token|secret|passw|credential|cookie|signature", re.IGNORECASE)
"""Names of headers that carry credentials."""
_PLAIN_HEADER: Final = re.compile(
    r"(content|accept|user-agent|anthropic|openai|host|origin|referer|date|traceparent|tracestate).*|.*-(version|beta)",
    re.IGNORECASE,
)
"""Names of headers that carry none, however their values look."""
_RANDOM: Final = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w.~+/=-]{20,}")
"""Values that look like nothing but credentials."""
_PLAIN_IN_QUERY: Final = frozenset({"api-version", "version", "alt", "region", "location", "project", "model"})
"""What the query of a URL tells that is no secret."""

_OF_THE_CONNECTION: Final = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that say how a request is framed and carried, which only the one who sends it can know."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """How one connector reaches its provider. The model is not part of it."""

    provider: str
    """The id of a row of `providers.PROVIDERS`."""
    base_url: str = field(repr=False)
    key_header: str
    """The header that carries the key."""
    api_key: str = field(default="", repr=False)
    access_token: str = field(default="", repr=False)
    """A token that goes out in the place of a key, always as bearer."""
    organization_id: str = ""
    """The organization that is billed, of the accounts of a key."""
    user: str = ""
    """The end user that the provider is told of."""
    platform: Platform = "standard"
    """Where the models run: at the provider itself, or on Google's Vertex AI."""
    enable_1m_context: bool = False
    route: Route = "responses"
    """Which of two APIs is called where a provider has both; `auto` tries the first and falls back."""
    shared_headers: Headers = field(default=(), repr=False)
    """Headers that the environment adds to the calls of all connectors."""
    custom_headers: Headers = field(default=(), repr=False)
    """The connector's own headers, which have the last word."""
    key_origin: str = field(default="`apiKey`", compare=False)
    """Where `api_key` was set, as hints say it."""
    url_origin: str = field(default="", compare=False)
    """Where `base_url` was set, as hints say it; empty when it is the provider's own address."""

    @property
    def _configured(self) -> Headers:
        return (*self.shared_headers, *self.custom_headers)

    @property
    def key_source(self) -> str:
        """What carries the key that goes out: a header that was configured in its place, or the key itself."""
        replacing = {"authorization", self.key_header}
        for headers, source in ((self.custom_headers, "`headers`"), (self.shared_headers, f"`{SHARED_HEADERS}`")):
            name = next((name for name, _ in headers if name.lower() in replacing), None)
            if name is not None:
                return f"the header `{name}` in {source}"
        return self.key_origin

    def headers(self, fixed: Mapping[str, str]) -> Headers:
        """All headers of a call: content type, key, what the wire fixes, organization, then what was configured.

        A configured header replaces one of the same name; `authorization` and the header of the key replace
        the key or token, whichever would go out.
        """
        configured = {name.lower(): (name, value) for name, value in self._configured}
        built_in = {"content-type": "application/json"}
        if not {"authorization", self.key_header} & configured.keys():
            built_in |= self._credential()
        built_in |= fixed
        if self.organization_id:
            built_in["openai-organization"] = self.organization_id
        kept = ((name, value) for name, value in built_in.items() if name not in configured)
        return (*kept, *configured.values())

    def _credential(self) -> dict[str, str]:
        """The one header that says who calls; an empty credential is none."""
        if self.access_token:
            return {"authorization": f"Bearer {self.access_token}"}
        if not self.api_key:
            return {}
        return {self.key_header: f"Bearer {self.api_key}" if self.key_header == "authorization" else self.api_key}

    def mask(self, text: str) -> str:
        """The text without the secrets that these credentials hold, also where one was cut off."""
        secrets = [self.api_key, self.access_token, *_in_url(self.base_url)]
        for name, value in self._configured:
            if _is_secret(name, value):
                secrets += [value, value.partition(" ")[2]]
        return masked(text, secrets)


def _is_secret(name: str, value: str) -> bool:
    """Whether a configured header carries a credential, by its name or by its value."""
    if name.lower() in CREDENTIAL_HEADERS:
        return True
    if _PLAIN_HEADER.fullmatch(name):
        return False
    return _SECRET_HEADER.search(name) is not None or _RANDOM.fullmatch(value) is not None


def _in_url(url: str) -> Iterator[str]:
    """What of a URL may be secret: its password, and the values of its query."""
    parts = urlsplit(url)
    _, _, password = parts.netloc.rpartition("@")[0].partition(":")
    yield from (password, unquote(password))
    for parameter in parts.query.split("&"):
        name, _, value = parameter.partition("=")
        if name.lower() not in _PLAIN_IN_QUERY:
            yield from (value, unquote_plus(value))


class Tokens(Protocol):
    """Where access tokens come from that live only for a while."""

    async def current(self) -> str:
        """A token that is good for a call now. Raises ProviderError."""

    def mask(self, text: str) -> str:
        """The text without the tokens, and without what they are got with."""


def masked(text: str, secrets: Iterable[str]) -> str:
    """The text without secrets in whatever form, also where one was cut off."""
    return masking.hidden(text, masking.forms(secrets))


def header_fault(name: str, value: str) -> str | None:
    """Why a header cannot be configured, or None. The value is never quoted."""
    if name.lower() in _OF_THE_CONNECTION:
        return f"the header `{name}` belongs to the connection, which octo manages"
    return call.header_fault(name, value)


def shared_headers(environ: Mapping[str, str]) -> Headers:
    """The headers of the list `name: value, name2: value2` in the environment.

    An entry that cannot be used is skipped.
    """
    return tuple((name, value) for name, value, fault in _entries(environ) if name and not fault)


def shared_headers_faults(environ: Mapping[str, str]) -> list[str]:
    """What is wrong with that list. No entry is quoted: it may be part of a secret."""
    return [
        f"{SHARED_HEADERS}: entry {number} is skipped: {fault}"
        for number, (_, _, fault) in enumerate(_entries(environ), 1)
        if fault
    ]


def _entries(environ: Mapping[str, str]) -> Iterator[tuple[str, str, str | None]]:
    """The name and the value of each header, and why it cannot be sent."""
    for entry in environ.get(SHARED_HEADERS, "").split(","):
        name, colon, value = (part.strip() for part in entry.partition(":"))
        yield name, value, _entry_fault(name, colon, value)


def _entry_fault(name: str, colon: str, value: str) -> str | None:
    if not name and not colon:
        return None
    if not colon:
        return "expected `name: value`, found no colon"
    if not name or not value:
        return f"expected `name: value`, found no {'value' if name else 'name'}"
    if not call.is_token(name):
        return "what stands before the colon is not the name of an HTTP header"
    return header_fault(name, value)


def url_fault(url: str) -> str | None:
    """What is wrong with a base URL, or None."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (reading it checks it)
    except ValueError as error:
        return str(error).lower()
    if parts.scheme.lower() not in {"http", "https"}:
        return "it must begin with `http://` or `https://`"
    if not parts.hostname:
        return "it names no host"
    if any(character.isspace() or ord(character) < 32 for character in url):
        return "it holds white space"
    if "#" in url:
        return "it holds a `#`, after which nothing is sent"
    return None


def join_url(base: str, path: str) -> str:
    """A path below a base URL, whose query, if it has one, stays."""
    address, mark, query = base.partition("?")
    return f"{address.rstrip('/')}/{path}{mark}{query}"


def with_query(url: str, query: str) -> str:
    """A URL with more of a query."""
    return f"{url}{'&' if '?' in url else '?'}{query}"


def shown_url(url: str) -> str:
    """A URL as it may be shown: without user, password and query."""
    address = url.partition("?")[0].partition("#")[0]
    scheme, mark, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"
