"""HTTP APIs that flows call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from octo.connector import Connector
from octo.errors import did_you_mean
from octo.fields import Bool, Duration, Int, LooseText, Model, Text, one_of
from octo.http.call import Policy, header_fault
from octo.http.url import BaseUrl
from octo.llm.credentials import url_fault
from octo.refusals import Refusals, refusal
from octo.values import Json

if TYPE_CHECKING:
    from octo.http.auth import Authorization, Clock
    from octo.http.session import HttpSession
    from octo.runtime import Runtime

AUTH_TYPES = ("bearer", "basic", "oauth2", "gcp")
REQUIRED = {
    "bearer": ("token",),
    "basic": ("username",),
    "oauth2": ("tokenURL", "clientID", "clientSecret"),
    "gcp": (),
}
"""What each type of authentication cannot do without."""


def _auth_type(value: Json) -> Json:
    text = value.strip() if isinstance(value, str) else value
    if text and isinstance(text, str) and text not in AUTH_TYPES:
        raise refusal(
            f"expected {', '.join(f'`{name}`' for name in AUTH_TYPES)} or nothing, found `{text}`",
            did_you_mean(text, AUTH_TYPES),
        )
    return str(text) if isinstance(text, str) else text


class Auth(Model):
    """How requests are authenticated. An `Authorization` header of a block or of `headers` goes before it."""

    type: Annotated[Literal["", "bearer", "basic", "oauth2", "gcp"], BeforeValidator(_auth_type)] = ""
    """Kind of authentication; empty text switches it off."""

    token: Text = ""
    """The token of `bearer`; write `${NAME}` and declare the variable under `env`."""

    username: LooseText = ""
    """User name of `basic`."""

    password: LooseText = ""
    """Password of `basic`."""

    token_url: Text = Field("", alias="tokenURL")
    """Where `oauth2` fetches its tokens, by the client-credentials grant."""

    client_id: LooseText = Field("", alias="clientID")
    """Client id of `oauth2`."""

    client_secret: LooseText = Field("", alias="clientSecret")
    """Client secret of `oauth2`."""

    scopes: tuple[Text, ...] = ()
    """Scopes that `oauth2` asks for."""

    gcp_token: Annotated[Literal["identity", "access"], one_of("identity", "access")] = "identity"
    """What `gcp` asks the metadata service of the machine for: an identity token or an access token."""

    gcp_audience: Text = ""
    """Audience of the identity token; by default scheme and host of `baseURL`."""

    gcp_scopes: tuple[Text, ...] = ()
    """Scopes of the access token; by default those of the machine."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refusals = Refusals()
        keys = self.yaml_keys()
        for key in REQUIRED.get(self.type, ()):
            if not getattr(self, keys[key]).strip():
                found = ", found empty text" if keys[key] in self.model_fields_set else ""
                refusals.add(f"auth type `{self.type}` requires `{key}`{found}", *((key,) if found else ("type",)))
        if self.type == "bearer" and header_fault("authorization", self.token.strip()):
            refusals.add("the token holds a line break or another control character", "token")
        if self.type == "oauth2" and self.token_url.strip() and (fault := url_fault(self.token_url.strip())):
            refusals.add(f"expected a URL, found `{self.token_url}`: {fault}", "tokenURL")
        refusals.raise_if_any()
        return self

    def authorization(self, base: BaseUrl, environ: Mapping[str, str], clock: Clock) -> Authorization | None:
        """What gives the `Authorization` header."""
        from octo.http.auth import METADATA_HOST, ClientCredentials, MetadataToken, basic, bearer

        match self.type:
            case "bearer":
                return bearer(self.token.strip())
            case "basic":
                return basic(self.username, self.password)
            case "oauth2":
                return ClientCredentials(
                    self.token_url.strip(), self.client_id, self.client_secret, self.scopes, clock=clock
                )
            case "gcp":
                host = environ.get("GCE_METADATA_HOST", "").strip() or METADATA_HOST
                audience = (self.gcp_audience.strip() or base.origin) if self.gcp_token == "identity" else ""
                return MetadataToken(host, audience=audience, scopes=self.gcp_scopes, clock=clock)
        return None


class Retry(Model):
    """Repeats of requests that were answered with status 429; nothing else is repeated."""

    max_attempts: Int = 3
    """Attempts in all; 1 means no repeat."""

    max_backoff: Duration = Duration("30s")
    """The longest wait before an attempt, also when the API asks for a longer one."""


class Pool(Model):
    """Connections that are kept open between requests."""

    max_idle_conns: Int = 100
    """How many connections are kept."""

    max_idle_conns_per_host: Int = 100
    """How many are kept to one host; the smaller of both numbers counts."""

    idle_conn_timeout: Duration = Duration("90s")
    """How long an unused connection is kept."""

    disable_keep_alives: Bool = False
    """Close each connection after one request."""


class Cache(Model):
    """Answers to `GET` requests, kept in memory by their URL alone; not for APIs that callers have logins of."""

    enabled: Bool = False
    """Whether answers are kept."""

    ttl: Duration = Duration("60s")
    """How long an answer is kept, whatever its status."""

    max_entries: Int = 256
    """How many answers are kept."""


class HttpClient(Connector, type="http-client"):
    """Calls an HTTP API, for the blocks `rest` and `rest-dynamic`."""

    base_url: Text = Field(alias="baseURL")
    """Absolute URL that the paths of all requests are below; user and password in it are sent as credentials."""

    timeout: Duration = Duration("30s")
    """Time for one attempt, the reading of the answer included."""

    headers: dict[str, LooseText] = Field(default_factory=dict)
    """Sent with each request that does not set them itself."""

    max_response_bytes: Int = 1024 * 1024
    """Longer answers are cut here; a JSON answer that is cut arrives as raw content."""

    auth: Auth = Auth.model_construct()
    """How requests are authenticated."""

    retry: Retry = Retry.model_construct()
    """Repeats of requests that were answered with status 429."""

    pool: Pool = Pool.model_construct()
    """Connections that are kept open between requests."""

    cache: Cache = Cache.model_construct()
    """Answers to `GET` requests that are kept for a while."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refusals = Refusals()
        if not self.base_url.strip():
            refusals.add("expected an absolute URL, found blank text", "baseURL")
        elif fault := url_fault(self.base_url.strip()):
            refusals.add(f"expected an absolute URL, found `{self.base_url}`: {fault}", "baseURL")
        for name, value in self.headers.items():
            if fault := header_fault(name, value.strip()):
                refusals.add(fault, "headers", name)
        refusals.raise_if_any()
        return self

    @asynccontextmanager
    async def open(self, runtime: Runtime) -> AsyncIterator[HttpSession]:
        from octo.http.session import HttpSession

        environ, clock, url = runtime.config.environ, runtime.clock, self.base_url.strip()

        def log(level: str, text: str) -> None:
            runtime.log(level, text, connector=self.instance)

        async with HttpSession(
            url,
            self.policy(),
            self.auth.authorization(BaseUrl(url), environ, clock),
            environ=environ,
            clock=clock,
            mask=runtime.config.environment.mask,
            log=log,
        ) as session:
            yield session

    def policy(self) -> Policy:
        """The settings as numbers. Zero and less mean the default."""
        defaults = type(self).model_construct(base_url="")
        pool = self.pool
        return Policy(
            timeout=_seconds(self.timeout, defaults.timeout),
            headers=tuple((name, value.strip()) for name, value in self.headers.items()),
            max_bytes=_positive(self.max_response_bytes, defaults.max_response_bytes),
            attempts=_positive(self.retry.max_attempts, defaults.retry.max_attempts),
            max_wait=_seconds(self.retry.max_backoff, defaults.retry.max_backoff),
            idle_connections=min(
                _positive(pool.max_idle_conns, defaults.pool.max_idle_conns),
                _positive(pool.max_idle_conns_per_host, defaults.pool.max_idle_conns_per_host),
            ),
            idle_seconds=_seconds(pool.idle_conn_timeout, defaults.pool.idle_conn_timeout),
            keep_alive=not pool.disable_keep_alives,
            cached=_positive(self.cache.max_entries, defaults.cache.max_entries) if self.cache.enabled else 0,
            cached_seconds=_seconds(self.cache.ttl, defaults.cache.ttl),
        )


def _positive(number: int, default: int) -> int:
    return number if number > 0 else default


def _seconds(duration: Duration, default: Duration) -> float:
    return (duration if duration.ns > 0 else default).seconds
