"""Who calls: keys and headers, and which of them go out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

Headers = tuple[tuple[str, str], ...]

CREDENTIAL_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key"})


@dataclass(frozen=True, slots=True)
class Credentials:
    """How one connector reaches its provider. The model is not part of it."""

    provider: str
    """The id of a row of `providers.PROVIDERS`."""
    base_url: str
    key_header: str
    """The header that carries the key."""
    api_key: str = field(default="", repr=False)
    user: str = ""
    """The end user that the provider is told of."""
    enable_1m_context: bool = False
    shared_headers: Headers = field(default=(), repr=False)
    """Headers that the environment adds to the calls of all connectors."""
    custom_headers: Headers = field(default=(), repr=False)
    """The connector's own headers, which have the last word."""

    @property
    def _configured(self) -> Headers:
        return (*self.shared_headers, *self.custom_headers)

    def headers(self, fixed: Mapping[str, str]) -> Headers:
        """All headers of a call: content type, key, what the wire fixes, then what was configured.

        A configured header replaces one of the same name, and a configured `authorization` the key.
        """
        configured = {name.lower(): (name, value) for name, value in self._configured}
        built_in = {"content-type": "application/json"}
        if self.api_key and "authorization" not in configured:
            bearer = self.key_header == "authorization"
            built_in[self.key_header] = f"Bearer {self.api_key}" if bearer else self.api_key
        built_in.update(fixed)
        kept = ((name, value) for name, value in built_in.items() if name not in configured)
        return (*kept, *configured.values())

    def mask(self, text: str) -> str:
        """The text without the secrets that these credentials hold."""
        secrets = [self.api_key]
        for name, value in self._configured:
            if name.lower() in CREDENTIAL_HEADERS:
                secrets += [value, value.removeprefix("Bearer ")]
        for secret in sorted(secrets, key=len, reverse=True):
            if len(secret) >= 6:
                text = text.replace(secret, "***")
        return text


def header_list(text: str) -> Headers:
    """The headers of a list `name: value, name2: value2`; entries without both sides are skipped."""
    pairs = (entry.partition(":") for entry in text.split(","))
    return tuple((name.strip(), value.strip()) for name, _, value in pairs if name.strip() and value.strip())


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
    return None


def join_url(base: str, path: str) -> str:
    """A path below a base URL, whose query, if it has one, stays."""
    address, mark, query = base.partition("?")
    return f"{address.rstrip('/')}/{path}{mark}{query}"


def shown_url(url: str) -> str:
    """A URL as it may be shown: without user, password and query."""
    address = url.partition("?")[0].partition("#")[0]
    scheme, mark, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"
