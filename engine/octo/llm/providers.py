"""The table of providers: what differs between APIs that speak one wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from octo.llm.wire import Wire
from octo.llm.wires import anthropic, chat_completions
from octo.llm.wires.chat_completions import ChatCompletions


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


PROVIDERS: Final = {
    provider.id: provider
    for provider in (
        Provider(
            id="anthropic",
            connector="llm-anthropic",
            wire=anthropic,
            base_url="https://api.anthropic.com/v1",
            base_url_variable="ANTHROPIC_BASE_URL",
            key_header="x-api-key",
            media_types=anthropic.MEDIA_TYPES,
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
            media_types=chat_completions.MEDIA_TYPES,
        ),
        Provider(
            id="deepseek",
            connector="llm-deepseek",
            wire=ChatCompletions("deepseek", switches_thinking=True, echo="reasoning_content"),
            base_url="https://api.deepseek.com/v1",
            media_types=frozenset(),
        ),
        Provider(
            id="groq",
            connector="llm-groq",
            wire=ChatCompletions("groq"),
            base_url="https://api.groq.com/openai/v1",
            media_types=chat_completions.MEDIA_TYPES,
        ),
        Provider(
            id="openrouter",
            connector="llm-openrouter",
            wire=ChatCompletions("openrouter", usage_accounting=True, echo="reasoning_details"),
            base_url="https://openrouter.ai/api/v1",
            media_types=chat_completions.MEDIA_TYPES,
        ),
        Provider(
            id="togetherai",
            connector="llm-together",
            wire=ChatCompletions("togetherai"),
            base_url="https://api.together.xyz/v1",
            media_types=chat_completions.MEDIA_TYPES,
        ),
        Provider(
            id="customai",
            connector="llm-custom",
            wire=ChatCompletions("customai"),
            base_url="",
            media_types=chat_completions.MEDIA_TYPES,
        ),
    )
}
