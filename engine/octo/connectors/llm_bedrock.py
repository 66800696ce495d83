"""Models on Amazon Bedrock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pydantic import Field

from octo.block import Finding
from octo.connectors.llm import ClaudeConnector, NamedText, origin, without_effect
from octo.errors import missing_extra
from octo.fields import Int, Text
from octo.llm import aws
from octo.llm.aws import Chain, Keys, Signer
from octo.llm.credentials import Credentials
from octo.refusals import Refusals

if TYPE_CHECKING:
    from octo.config.model import Config
    from octo.llm.model import HttpModel
    from octo.runtime import Runtime

BEARER_VARIABLE: Final = "AWS_BEARER_TOKEN_BEDROCK"


class LlmBedrock(ClaudeConnector, type="llm-bedrock"):
    """Models of many vendors on Amazon Bedrock; needs `pip install 'octo-runner[bedrock]'`.

    Who calls: `apiKey`, else the key pair, else what the tools of AWS find in the environment, in a profile, or on
    the machine.
    """

    provider = "aws_bedrock"

    api_key: NamedText = ""
    """API key of Bedrock; write `${NAME}` and declare the variable under `env`."""

    region: Text = ""
    """Region of AWS, such as `us-east-1`. Without it `AWS_REGION` or `AWS_DEFAULT_REGION` counts, then the profile."""

    aws_access_key_id: NamedText = ""
    """First half of an access key pair; one without the other does not count."""

    aws_secret_access_key: Text = ""
    """Second half of an access key pair; write `${NAME}` and declare the variable under `env`."""

    aws_session_token: Text = ""
    """Token that goes with a key pair that is good for a while only."""

    base_url: NamedText = Field("", alias="baseURL")
    """Address of the API, such as one of a private network.

    Without it `AWS_ENDPOINT_URL_BEDROCK_RUNTIME` counts, then the public address of the region.
    """

    model: Text = ""
    """Model id, ARN or inference profile, passed on as it is; blocks and agents may name another one."""

    thinking_budget: Int | None = None
    """Tokens for thinking when it is `budgeted`: at least 1024, and less than `maxTokens` if there is one."""

    def refuse(self, refusals: Refusals) -> None:
        super().refuse(refusals)
        if hint := missing_extra("botocore", "bedrock"):
            refusals.add("connector type `llm-bedrock` needs the package `botocore`", hint=hint)
        if self.region.strip() and (fault := aws.region_fault(self.region.strip())):
            refusals.add(fault, "region")

    def check(self, config: Config) -> Iterator[Finding]:
        yield from super().check(config)
        if self._pair() is not None:
            return
        if self.aws_access_key_id.strip():
            yield without_effect("`awsAccessKeyId` has no effect without `awsSecretAccessKey`", "awsAccessKeyId")
        elif self.aws_secret_access_key.strip():
            yield without_effect("`awsSecretAccessKey` has no effect without `awsAccessKeyId`", "awsSecretAccessKey")
        elif self.aws_session_token.strip():
            yield without_effect("`awsSessionToken` has no effect without a key pair", "awsSessionToken")

    @asynccontextmanager
    async def connect(self, runtime: Runtime) -> AsyncIterator[HttpModel]:
        from octo.llm.model import HttpModel
        from octo.llm.transport import Transport

        environ = runtime.config.environ
        endpoint = replace(self.endpoint(environ), connector=self.instance)
        signer = Signer(self.region_in(environ), self._pair(), Chain(environ))

        def mask(text: str) -> str:
            return signer.mask(endpoint.credentials.mask(text))

        async with Transport(environ, instance=self.instance, mask=mask, sign=signer) as transport:
            yield HttpModel(endpoint, transport, self.instance, clock=runtime.clock)

    def region_in(self, environ: Mapping[str, str]) -> str:
        """The region that calls go to. Raises ConnectorError when nobody says it."""
        return aws.region_of(self.region, environ, Chain(environ))

    def public_address(self, environ: Mapping[str, str]) -> str:
        return f"https://bedrock-runtime.{self.region_in(environ)}.amazonaws.com"

    def credentials(self, environ: Mapping[str, str]) -> Credentials:
        credentials = super().credentials(environ)
        if credentials.api_key:
            return credentials
        if self._pair() is not None:
            return replace(credentials, key_origin=origin("awsAccessKeyId", self.aws_access_key_id))
        if bearer := environ.get(BEARER_VARIABLE, "").strip():
            return replace(credentials, api_key=bearer, key_origin=f"`{BEARER_VARIABLE}`")
        return replace(credentials, key_origin="where the tools of AWS find it: environment, profile or machine")

    def _pair(self) -> Keys | None:
        id, secret = self.aws_access_key_id.strip(), self.aws_secret_access_key.strip()
        return Keys(id, secret, self.aws_session_token.strip()) if id and secret else None
