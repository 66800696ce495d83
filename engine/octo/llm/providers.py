"""The table of providers: what differs between APIs that speak one wire."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

from octo.llm import azure
from octo.llm.chat import ChatRequest
from octo.llm.credentials import Credentials, join_url, with_query
from octo.llm.wire import Wire
from octo.llm.wires import anthropic, bedrock, chat_completions, gemini, imagen, responses
from octo.llm.wires.chat_completions import ChatCompletions
from octo.llm.wires.embeddings import Embedder, GeminiEmbedder, OpenAiEmbedder
from octo.llm.wires.responses import Responses


def _list_of_openai(base_url: str) -> tuple[str, ...]:
    return (join_url(base_url, "models"),)


@dataclass(frozen=True, slots=True)
class Provider:
    """One API: which wire it speaks, where it is, and how it wants the key."""

    id: str
    connector: str
    """The connector type, as error texts name it."""
    wire: Wire
    base_url: str
    """The public address; empty when the connector must name one."""
    media_types: frozenset[str] | None
    """The MIME types of files that it reads; empty is text only, None is every type."""
    base_url_variable: str = ""
    """The environment variable that redirects calls when the connector names no address; may be empty."""
    key_header: str = "authorization"
    root: Callable[[str], str] = str
    """From an address as it may be configured to the one that paths of the API are joined to."""
    chat: Wire | None = None
    """Chat Completions, where the provider has that API beside the one that is called first."""
    falls_back: bool = False
    """Whether `chat` is tried where an endpoint does not have the first one, if the connector does not say."""
    draws: bool = False
    """Whether models of it make images."""
    searches: bool = False
    """Whether models of it search the web by themselves, on the API that is called first."""
    imagen: Wire | None = None
    """The wire of models that do nothing else."""
    embedder: Embedder | None = None
    """How vectors of texts are asked for, where they can be."""
    schemas: Literal["always", "alone", "never"] = "always"
    """When the schema of an answer is taken: `alone` is without tools. Else it is that of a tool."""
    limits_calls: bool = False
    """Whether a model can be told to make one call at a time."""
    forwards: frozenset[str] = frozenset({"chat/completions"})
    """The paths of APIs that clients may call through the proxy and that this one has, too."""
    fim: Callable[[str], str] | None = None
    """From the base URL to the address that fills in code, where the provider has one."""
    lists: Callable[[str], tuple[str, ...]] = _list_of_openai
    """From the base URL to the addresses of lists of models."""
    claude: str = ""
    """The row of models whose name begins with `claude`, where they have an API of their own."""

    extra: tuple[str, str] | None = None
    """The package that calls need, and the extra of octo that installs it."""

    @property
    def api(self) -> str:
        """What the API that is called first is called."""
        return {ChatCompletions: "Chat Completions", Responses: "Responses"}.get(type(self.wire)) or _APIS[self.id]

    def reached_by(self, credentials: Credentials) -> Credentials:
        """Credentials of a connector as this API takes them."""
        own = self.id == credentials.provider
        return replace(
            credentials,
            base_url=self.root(credentials.base_url),
            key_header=credentials.key_header if own else self.key_header,
        )

    def wire_for(self, request: ChatRequest, credentials: Credentials, *, on_chat: bool) -> Wire:
        """The wire of a call; `on_chat` when the endpoint was found to answer on Chat Completions only."""
        if self.imagen and request.output_type == "image" and "imagen" in (request.model or "").lower():
            return self.imagen
        return self.chat if self.chat and (on_chat or credentials.route == "chat") else self.wire

    def answers_by_tool(self, *, with_tools: bool) -> bool:
        """Whether answers of a certain form are asked for as the arguments of a tool."""
        return self.schemas == "never" or (self.schemas == "alone" and with_tools)

    def may_chat(self, credentials: Credentials) -> bool:
        """Whether Chat Completions are to be tried where the endpoint does not have the first API."""
        if self.chat is None or credentials.route == "chat":
            return False
        elsewhere = credentials.base_url.rstrip("/") != self.base_url
        return self.falls_back or (credentials.route == "auto" and elsewhere)


def _beta_of_deepseek(base_url: str) -> str:
    """Where DeepSeek fills in code: beside its `/v1`, or below its public root."""
    address, mark, query = base_url.partition("?")
    address = re.sub(r"(?<=//api\.deepseek\.com)$|/v1$", "/beta", address.rstrip("/"))
    return join_url(address + mark + query, "completions")


_MESSAGES: Final = frozenset({"messages"})
_OPENAI: Final = frozenset({"chat/completions", "responses"})


def provider_of(id: str, model: str) -> Provider:
    """The row of a connector's provider for a model."""
    found = PROVIDERS[id]
    return PROVIDERS[found.claude] if found.claude and model.lower().startswith("claude") else found


_APIS: Final = {
    "anthropic": "Anthropic Messages",
    "azure_foundry_claude": "Anthropic Messages",
    "googleai": "Gemini",
    "aws_bedrock": "Bedrock Converse",
}

_OPENAI_EMBEDDER: Final = OpenAiEmbedder()

PROVIDERS: Final = {
    provider.id: provider
    for provider in (
        Provider(
            id="anthropic",
            connector="llm-anthropic",
            wire=anthropic,
            schemas="never",
            limits_calls=True,
            base_url="https://api.anthropic.com/v1",
            base_url_variable="ANTHROPIC_BASE_URL",
            key_header="x-api-key",
            media_types=anthropic.MEDIA_TYPES,
            forwards=_MESSAGES,
            lists=lambda base_url: (with_query(anthropic.url(base_url, "models"), "limit=1000"),),
            searches=True,
        ),
        Provider(
            id="googleai",
            connector="llm-gemini",
            wire=gemini,
            base_url="https://generativelanguage.googleapis.com/v1beta",
            base_url_variable="GOOGLE_GEMINI_BASE_URL",
            key_header="x-goog-api-key",
            media_types=gemini.MEDIA_TYPES,
            forwards=frozenset(),
            lists=lambda base_url: (with_query(join_url(gemini.root(base_url), "models"), "pageSize=1000"),),
            draws=True,
            imagen=imagen,
            embedder=GeminiEmbedder(),
            searches=True,
        ),
        Provider(
            id="openai",
            connector="llm-openai",
            wire=Responses("openai"),
            chat=ChatCompletions("openai", cache_key=True),
            base_url="https://api.openai.com/v1",
            base_url_variable="OPENAI_BASE_URL",
            root=azure.openai_root_if_azure,
            media_types=responses.MEDIA_TYPES,
            forwards=_OPENAI,
            draws=True,
            embedder=_OPENAI_EMBEDDER,
            searches=True,
        ),
        Provider(
            id="azure_openai",
            connector="llm-azure-openai",
            wire=Responses("azure_openai"),
            chat=ChatCompletions("azure_openai", cache_key=True),
            falls_back=True,
            base_url="",
            root=azure.openai_root,
            key_header="api-key",
            media_types=responses.MEDIA_TYPES,
            forwards=_OPENAI,
            draws=True,
            embedder=_OPENAI_EMBEDDER,
            searches=True,
        ),
        Provider(
            id="azure_foundry",
            connector="llm-azure-foundry",
            wire=ChatCompletions("azure_foundry", cache_key=True),
            base_url="",
            root=azure.openai_root,
            key_header="api-key",
            media_types=responses.MEDIA_TYPES,
            forwards=_OPENAI,
            claude="azure_foundry_claude",
            embedder=_OPENAI_EMBEDDER,
        ),
        Provider(
            id="azure_foundry_claude",
            connector="llm-azure-foundry",
            wire=anthropic,
            schemas="never",
            limits_calls=True,
            base_url="",
            root=azure.claude_root,
            key_header="x-api-key",
            media_types=anthropic.MEDIA_TYPES,
            forwards=_MESSAGES,
            searches=True,
        ),
        Provider(
            id="aws_bedrock",
            connector="llm-bedrock",
            wire=bedrock,
            base_url="",
            base_url_variable="AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
            media_types=bedrock.MEDIA_TYPES,
            schemas="never",
            extra=("botocore", "bedrock"),
            forwards=frozenset(),
            lists=bedrock.lists,
        ),
        Provider(
            id="mistral",
            connector="llm-mistral",
            wire=ChatCompletions(
                "mistral",
                max_tokens="max_tokens",
                effort_or_temperature=True,
                bare_media=True,
                short_ids=True,
                user_after_answer=True,
            ),
            base_url="https://api.mistral.ai/v1",
            fim=lambda base_url: join_url(base_url, "fim/completions"),
            media_types=chat_completions.MEDIA_TYPES,
            embedder=_OPENAI_EMBEDDER,
        ),
        Provider(
            id="deepseek",
            connector="llm-deepseek",
            wire=ChatCompletions("deepseek", max_tokens="max_tokens", switches_thinking=True, echo="reasoning_content"),
            base_url="https://api.deepseek.com/v1",
            schemas="never",
            fim=_beta_of_deepseek,
            media_types=frozenset(),
        ),
        Provider(
            id="groq",
            connector="llm-groq",
            wire=ChatCompletions("groq", unstreamed_schemas=True),
            base_url="https://api.groq.com/openai/v1",
            schemas="alone",
            media_types=chat_completions.IMAGE_TYPES,
        ),
        Provider(
            id="openrouter",
            connector="llm-openrouter",
            wire=ChatCompletions(
                "openrouter", usage_accounting=True, echo="reasoning_details", draws=True, marks_cache=True
            ),
            base_url="https://openrouter.ai/api/v1",
            media_types=chat_completions.MEDIA_TYPES,
            draws=True,
            embedder=_OPENAI_EMBEDDER,
        ),
        Provider(
            id="togetherai",
            connector="llm-together",
            wire=ChatCompletions("togetherai"),
            base_url="https://api.together.xyz/v1",
            media_types=chat_completions.IMAGE_TYPES,
            embedder=_OPENAI_EMBEDDER,
        ),
        Provider(
            id="customai",
            connector="llm-custom",
            wire=ChatCompletions("customai"),
            base_url="",
            media_types=chat_completions.MEDIA_TYPES,
            embedder=_OPENAI_EMBEDDER,
        ),
    )
}
