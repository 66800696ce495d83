"""Models of OpenAI."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from octo.connectors.llm import NamedText, ReasoningConnector
from octo.fields import Text, one_of
from octo.llm.credentials import Credentials, header_fault, url_fault
from octo.llm.tokens import AZURE_SCOPE, Client, ClientTokens
from octo.refusals import Refusals

if TYPE_CHECKING:
    from octo.runtime import Runtime

Wire = Annotated[Literal["responses", "chat", "auto"], one_of("responses", "chat", "auto")]


class TokenConnector(ReasoningConnector):
    """What all providers have in common that take access tokens in the place of a key."""

    api_key: NamedText = ""
    """API key; write `${NAME}` and declare the variable under `env`. Not needed with `tokenURL`."""

    token_url: Text = Field("", alias="tokenURL")
    """Address that gives access tokens for `clientId` and `clientSecret`, which are sent in the place of a key.

    A token is used until two minutes before its end.
    """

    client_id: Text = ""
    """Id of the application that asks for tokens."""

    client_secret: Text = ""
    """Its secret; write `${NAME}` and declare the variable under `env`."""

    scope: Text = AZURE_SCOPE
    """What the tokens are to be good for."""

    @property
    def needs_key(self) -> bool:
        return not self.token_url

    def refuse(self, refusals: Refusals) -> None:
        super().refuse(refusals)
        if self.token_url and (fault := url_fault(self.token_url.strip())):
            refusals.add(f"expected a URL, found `{self.token_url}`: {fault}", "tokenURL")
        for key, value in (("clientId", self.client_id), ("clientSecret", self.client_secret)):
            if self.token_url and not value:
                refusals.add(f"`tokenURL` requires `{key}`", "tokenURL")
            elif value and not self.token_url:
                refusals.add(f"`{key}` requires `tokenURL`", key)

    @asynccontextmanager
    async def tokens(self, runtime: Runtime) -> AsyncIterator[ClientTokens | None]:
        from octo.llm.transport import Transport

        if not self.token_url or self.api_key.strip():
            yield None
            return
        client = Client(self.token_url.strip(), self.client_id.strip(), self.client_secret.strip(), self.scope.strip())
        async with Transport(runtime.config.environ, instance=self.instance, mask=client.mask) as transport:
            yield ClientTokens(client, transport, runtime.clock)

    def credentials(self, environ: Mapping[str, str]) -> Credentials:
        credentials = super().credentials(environ)
        if not self.token_url or credentials.api_key:
            return credentials
        return replace(credentials, key_origin="`tokenURL`, as a token for `clientId`")


class LlmOpenAi(TokenConnector, type="llm-openai"):
    """Models of OpenAI through its Responses API, or any server that speaks it."""

    provider = "openai"

    model: Text = "gpt-5.4"
    """Model id, passed on as it is; blocks and agents may name another one."""

    base_url: NamedText = Field("", alias="baseURL")
    """Address of the API up to `responses`. Without it `OPENAI_BASE_URL` counts, then OpenAI's own."""

    wire: Wire = "responses"
    """The API that is called: `responses`, `chat` for Chat Completions, or `auto`.

    With `auto` a server at another address than OpenAI's is called by Chat Completions when it does not have the first.
    """

    organization_id: Text = ""
    """Organization that is billed, for a key of several (header `OpenAI-Organization`)."""

    def refuse(self, refusals: Refusals) -> None:
        super().refuse(refusals)
        if fault := header_fault("OpenAI-Organization", self.organization_id.strip()):
            refusals.add(fault, "organizationId")

    def knows_web_search(self, model: str) -> bool:
        return self.wire != "chat" and super().knows_web_search(model)

    def credentials(self, environ: Mapping[str, str]) -> Credentials:
        return replace(super().credentials(environ), organization_id=self.organization_id.strip(), route=self.wire)
