"""LLM providers behind HTTP APIs."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from octo.block import Finding
from octo.chat_connector import ChatConnector
from octo.errors import ConnectorError, missing_extra
from octo.fields import Bool, EnvText, Int, LooseText, Text, one_of
from octo.llm.azure import is_azure
from octo.llm.credentials import Credentials, Headers, Platform, Tokens, header_fault, shared_headers, url_fault
from octo.llm.providers import PROVIDERS, Provider, provider_of
from octo.llm.thinking import EFFORTS, SMALLEST_BUDGET
from octo.llm.wire import Endpoint
from octo.refusals import Refusals
from octo.values import Json

if TYPE_CHECKING:
    from octo.config.model import Config
    from octo.llm.chat import ChatModel
    from octo.llm.model import HttpModel
    from octo.runtime import Runtime

_OPERATION: Final = re.compile(r"/(chat/completions|responses|messages|embeddings)/*(\?|$)")
"""What stands at the end of addresses that are copied from the documentation of an API."""

_TOLD: Final = object()
"""Under which a runtime keeps that the variables of the environment were warned of."""

_log: Final = logging.getLogger("octo.llm")


def _with_variable(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    text = handler(value)
    return EnvText(text, value.name) if isinstance(value, EnvText) else text


NamedText = Annotated[Text, WrapValidator(_with_variable)]
"""Text that still knows the variable which it is the value of."""


def origin(setting: str, text: str) -> str:
    """Where the text of a setting was written, as hints say it."""
    return f"`{setting}` (variable `{text.name}`)" if isinstance(text, EnvText) else f"`{setting}`"


def without_effect(message: str, setting: str, hint: str | None = None) -> Finding:
    """A warning of a setting that does not do what it is written for."""
    return Finding(message, ("settings", setting), hint, warning=True)


class LlmConnector(ChatConnector):
    """What all providers behind HTTP APIs have in common."""

    provider: ClassVar[str]
    """The id of its row in the table of providers."""
    spellings = {"base_url": "baseURL", "api_key": "apiKey"}

    api_key: NamedText
    """API key; write `${NAME}` and declare the variable under `env`."""

    model: Text = ""
    """Model id, passed on as it is; blocks and agents may name another one."""

    max_tokens: Int = 0
    """The most tokens of one answer, reasoning included. 0 leaves it to the provider; an agent's own value wins."""

    base_url: NamedText = Field("", alias="baseURL")
    """Address of the API. Without it the provider's own counts."""

    prompt_cache: Annotated[Literal["auto", "on", "off"], one_of("auto", "on", "off")] = "auto"
    """Whether prompts are marked for caching; `auto` does it for agents with tools or memory."""

    user: LooseText = ""
    """An id of the end user, which the provider is told of."""

    headers: dict[str, LooseText] = Field(default_factory=dict)
    """Further HTTP headers; one that is sent anyway is replaced, and `authorization` replaces the key.

    Those that belong to the connection, such as `content-length`, are refused.
    """

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, data: Json) -> Json:
        """Empty text counts as not given; a key that is empty has an error text of its own."""
        if not isinstance(data, dict):
            return data
        return {
            key: value
            for key, value in data.items()
            if key in {"apiKey", "api_key"} or not (isinstance(value, str) and not value.strip())
        }

    @model_validator(mode="after")
    def _check(self) -> Self:
        refusals = Refusals()
        self.refuse(refusals)
        refusals.raise_if_any()
        return self

    def refuse(self, refusals: Refusals) -> None:
        """Add what is wrong with the settings."""
        if fault := header_fault(self.row.key_header, self.api_key.strip()):
            refusals.add(fault, "apiKey")
        if self.base_url and (fault := url_fault(self.base_url.strip())):
            refusals.add(f"expected a URL, found `{self.base_url}`: {fault}", "baseURL")
        for name, value in self.headers.items():
            if fault := header_fault(name, value.strip()):
                refusals.add(fault, "headers", name, at="key")

    def named(self, instance: str) -> None:
        super().named(instance)
        refusals = Refusals()
        if self.needs_key and not self.api_key.strip():
            refusals.add(
                f'connector "{instance}" ({self.type}): apiKey is empty',
                "apiKey",
                hint="declare a variable under `env`, set it, and write `apiKey: ${NAME}`",
            )
        refusals.raise_if_any()

    def check(self, config: Config) -> Iterator[Finding]:
        yield from super().check(config)
        base_url = self.base_url.strip()
        if (operation := _OPERATION.search(base_url)) and not is_azure(base_url):
            yield without_effect(
                f"`baseURL` ends in `{operation[1]}`, which calls append to it", "baseURL", "leave that part out"
            )

    @property
    def needs_key(self) -> bool:
        """Whether a call without `apiKey` would be one of nobody."""
        return type(self).model_fields["api_key"].is_required()

    @property
    def row(self) -> Provider:
        return PROVIDERS[self.provider]

    @property
    def embeds(self) -> bool:
        return self.row.embedder is not None

    @property
    def reads_files(self) -> bool:
        return provider_of(self.provider, self.model.strip()).media_types != frozenset()

    def knows_web_search(self, model: str) -> bool:
        return provider_of(self.provider, model or self.model.strip()).searches

    @asynccontextmanager
    async def open(self, runtime: Runtime) -> AsyncIterator[ChatModel]:
        from octo.llm import transport

        if _TOLD not in runtime.kept:  # the first connector tells, for all
            runtime.kept[_TOLD] = True
            for text in transport.warnings(runtime.config.environ):
                _log.warning("%s", text)
        async with super().open(runtime) as model:
            yield model

    @asynccontextmanager
    async def connect(self, runtime: Runtime) -> AsyncIterator[HttpModel]:
        from octo.llm.model import HttpModel
        from octo.llm.transport import Transport

        environ = runtime.config.environ
        endpoint = replace(self.endpoint(environ), connector=self.instance)
        async with self.tokens(runtime) as tokens:

            def mask(text: str) -> str:
                text = endpoint.credentials.mask(text)
                return text if tokens is None else tokens.mask(text)

            async with Transport(environ, instance=self.instance, mask=mask) as transport:
                yield HttpModel(endpoint, transport, self.instance, tokens=tokens, clock=runtime.clock)

    def tokens(self, runtime: Runtime) -> AbstractAsyncContextManager[Tokens | None]:
        """Where access tokens come from, for a connector that calls with one in the place of a key."""
        return nullcontext()

    def endpoint(self, environ: Mapping[str, str]) -> Endpoint:
        """What calls are built from. Raises ConnectorError when the environment redirects them to no URL."""
        return Endpoint(
            self.credentials(environ),
            model=self.model.strip(),
            max_tokens=max(self.max_tokens, 0) or None,
            prompt_cache=self.prompt_cache,
        )

    def public_address(self, environ: Mapping[str, str]) -> str:
        """Where calls go when nobody says it."""
        return self.row.base_url

    def credentials(self, environ: Mapping[str, str]) -> Credentials:
        provider = self.row
        variable = provider.base_url_variable
        redirected = environ.get(variable, "").strip() if variable else ""
        base_url = self.base_url.strip() or redirected or self.public_address(environ)
        if fault := url_fault(base_url):
            raise ConnectorError(f"{variable} is `{base_url}`, which is no URL: {fault}")
        own = origin("baseURL", self.base_url) if self.base_url.strip() else ""
        return Credentials(
            provider.id,
            base_url,
            provider.key_header,
            api_key=self.api_key.strip(),
            user=self.user.strip(),
            shared_headers=shared_headers(environ),
            custom_headers=tuple((name, value.strip()) for name, value in self.headers.items() if value.strip()),
            key_origin=origin("apiKey", self.api_key),
            url_origin=own or (f"`{variable}`" if redirected else ""),
        )


class VertexConnector(LlmConnector):
    """What the providers have in common whose models run on Google's Vertex AI, too."""

    api_key: NamedText = ""
    """API key; write `${NAME}` and declare the variable under `env`. With `platform: vertex` it may be missing."""

    platform: Annotated[Platform, one_of("standard", "vertex")] = "standard"
    """Where the models run: at the provider itself (`standard`), or on Google's Vertex AI (`vertex`).

    On Vertex AI calls without `apiKey` are those of the Google account of this machine, or of the key file that
    `GOOGLE_APPLICATION_CREDENTIALS` names. `baseURL` is then required.
    """

    publisher: ClassVar[str]
    """The last but one part of the address of the models on Vertex AI."""

    @property
    def needs_key(self) -> bool:
        return self.platform == "standard"

    def refuse(self, refusals: Refusals) -> None:
        super().refuse(refusals)
        if self.platform == "standard":
            return
        if not self.base_url:
            refusals.add(
                "`platform: vertex` requires `baseURL`",
                "platform",
                hint="`https://REGION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/REGION/publishers/"
                f"{self.publisher}/models`",
            )
        if not self.api_key.strip() and (hint := missing_extra("google.auth", "vertex")):
            refusals.add("`platform: vertex` without `apiKey` needs the package `google-auth`", "platform", hint=hint)

    def tokens(self, runtime: Runtime) -> AbstractAsyncContextManager[Tokens | None]:
        from octo.llm.google import AccountTokens

        return nullcontext(AccountTokens(runtime.config.environ) if self._calls_as_account else None)

    @property
    def _calls_as_account(self) -> bool:
        return self.platform == "vertex" and not self.api_key.strip()

    def credentials(self, environ: Mapping[str, str]) -> Credentials:
        credentials = super().credentials(environ)
        if self.platform == "standard":
            return credentials
        origin = "the Google account of this machine" if self._calls_as_account else credentials.key_origin
        return replace(credentials, platform=self.platform, key_header="authorization", key_origin=origin)


class ClaudeConnector(LlmConnector):
    """What all providers of Claude models have in common."""

    thinking: Annotated[Literal["off", "adaptive", "budgeted"], one_of("off", "adaptive", "budgeted")] = "off"
    """Whether the model thinks before it answers: as much as it finds right, or within `thinkingBudget`."""

    thinking_budget: Int | None = None
    """Tokens for thinking when it is `budgeted`: at least 1024 and less than `maxTokens`."""

    def refuse(self, refusals: Refusals) -> None:
        super().refuse(refusals)
        if self.thinking == "budgeted":
            self._check_budget(refusals)

    def check(self, config: Config) -> Iterator[Finding]:
        yield from super().check(config)
        if self.thinking_budget is not None and self.thinking != "budgeted":
            yield without_effect("`thinkingBudget` has no effect without `thinking: budgeted`", "thinkingBudget")

    def _check_budget(self, refusals: Refusals) -> None:
        budget, cap = self.thinking_budget, self.cap
        if budget is None:
            refusals.add("`thinking: budgeted` requires `thinkingBudget`", "thinking")
        elif budget < SMALLEST_BUDGET or (cap is not None and budget >= cap):
            limit = "" if cap is None else f" and less than `maxTokens`, which is {cap}"
            refusals.add(f"expected at least {SMALLEST_BUDGET}{limit}; found {budget}", "thinkingBudget")

    def endpoint(self, environ: Mapping[str, str]) -> Endpoint:
        return replace(
            super().endpoint(environ),
            max_tokens=self.cap,
            thinking=self.thinking,
            thinking_budget=self.thinking_budget,
        )

    @property
    def cap(self) -> int | None:
        """The most tokens of one answer; None leaves it to the provider."""
        return self.max_tokens if self.max_tokens > 0 else None


class LlmAnthropic(VertexConnector, ClaudeConnector, type="llm-anthropic"):
    """Claude models through Anthropic's Messages API, or any server that speaks it."""

    provider = "anthropic"
    publisher = "anthropic"
    efforts: ClassVar[tuple[str, ...]] = EFFORTS

    model: Text = "claude-sonnet-4-6"
    """Model id, passed on as it is; blocks and agents may name another one."""

    max_tokens: Int = 4096
    """The most tokens of one answer, thinking included. 0 or less means 4096; an agent's own value wins."""

    base_url: NamedText = Field("", alias="baseURL")
    """Address of the API, with or without `/v1`. Without it `ANTHROPIC_BASE_URL` counts, then Anthropic's own."""

    enable_1m_context: Bool = False
    """Ask for the context window of one million tokens, where the model has it. Not on Vertex AI."""

    def credentials(self, environ: Mapping[str, str]) -> Credentials:
        return replace(super().credentials(environ), enable_1m_context=self.enable_1m_context)

    @property
    def cap(self) -> int:
        return super().cap or 4096


class ReasoningConnector(LlmConnector):
    """What all providers have in common that take the words of OpenAI for how hard a model is to think."""

    reasoning: Annotated[
        Literal["default", "none", "minimal", "low", "medium", "high"],
        one_of("default", "none", "minimal", "low", "medium", "high", once={"off": "none"}),
    ] = "default"
    """How hard the model thinks before it answers; `default` leaves it to the provider.

    The `reasoningEffort` of an agent wins, and may be any word that the provider knows.
    """

    def endpoint(self, environ: Mapping[str, str]) -> Endpoint:
        return replace(super().endpoint(environ), reasoning="" if self.reasoning == "default" else self.reasoning)


class LlmOpenRouter(ReasoningConnector, type="llm-openrouter"):
    """Models of many vendors through OpenRouter."""

    provider = "openrouter"
    reports_cost = True

    model: Text = "anthropic/claude-sonnet-4.5"
    """Model id with its vendor before a slash, passed on as it is; blocks and agents may name another one."""

    app_name: Text = ""
    """Name of your application, which OpenRouter shows (header `X-Title`)."""

    site_url: Text = Field("", alias="siteURL")
    """Address of your application, which OpenRouter shows (header `HTTP-Referer`)."""

    def refuse(self, refusals: Refusals) -> None:
        super().refuse(refusals)
        for key, (name, value) in zip(("appName", "siteURL"), self._shown, strict=True):
            if fault := header_fault(name, value):
                refusals.add(fault, key)

    @property
    def _shown(self) -> Headers:
        return ("X-Title", self.app_name.strip()), ("HTTP-Referer", self.site_url.strip())

    def credentials(self, environ: Mapping[str, str]) -> Credentials:
        credentials = super().credentials(environ)
        shown = tuple((name, value) for name, value in self._shown if value)
        return replace(credentials, custom_headers=(*shown, *credentials.custom_headers))


class LlmMistral(ReasoningConnector, type="llm-mistral"):
    """Models of Mistral."""

    provider = "mistral"

    model: Text = "mistral-large-latest"
    """Model id, passed on as it is; blocks and agents may name another one."""


class LlmDeepSeek(ReasoningConnector, type="llm-deepseek"):
    """Models of DeepSeek, which read text only."""

    provider = "deepseek"

    model: Text = "deepseek-chat"
    """Model id, passed on as it is; blocks and agents may name another one."""


class LlmGroq(ReasoningConnector, type="llm-groq"):
    """Open models on Groq."""

    provider = "groq"

    model: Text = ""
    """Model id, passed on as it is; blocks and agents may name another one. There is no default."""


class LlmTogether(ReasoningConnector, type="llm-together"):
    """Open models on Together AI."""

    provider = "togetherai"

    model: Text = ""
    """Model id, passed on as it is; blocks and agents may name another one. There is no default."""


class LlmCustom(ReasoningConnector, type="llm-custom"):
    """Any server that speaks OpenAI's Chat Completions: llama.cpp, Ollama, vLLM, a gateway."""

    provider = "customai"

    api_key: NamedText = ""
    """API key, if the server wants one; write `${NAME}` and declare the variable under `env`."""

    base_url: NamedText = Field(alias="baseURL")
    """Address of the API up to `chat/completions`, such as `http://localhost:8080/v1`."""

    model: Text = ""
    """Model id, passed on as it is; blocks and agents may name another one. There is no default."""
