"""The table of providers: what differs between APIs that speak one wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from octo.llm.wire import Wire
from octo.llm.wires import anthropic


@dataclass(frozen=True, slots=True)
class Provider:
    """One API: which wire it speaks, where it is, and how it wants the key."""

    id: str
    connector: str
    """The connector type, as error texts name it."""
    wire: Wire
    base_url: str
    """The public address; empty when the connector must name one."""
    base_url_variable: str
    """The environment variable that redirects calls when the connector names no address; may be empty."""
    key_header: str
    media_types: frozenset[str] | None
    """The MIME types of files that it reads; empty is text only, None is every type."""


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
    )
}
