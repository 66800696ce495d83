"""Keys that have no place in an agent, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_FLOW: Final = "it is how a flow uses an agent, and stays on the block"
_PERSON: Final = "it names a conversation or a person, and stays on the block"
_SECRET: Final = "credentials stand in connectors only, and an agent names its connector"

OF_BLOCKS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("default", "answer", "budget", "keepAttachments", "responseMedia", "events", "emit", "stream", "nameThread"),
        _FLOW,
    ),
    **dict.fromkeys(
        ("memoryThreadId", "agentId", "userId", "forwardContext", "history", "userMemory", "memoryVolatile"), _PERSON
    ),
    **dict.fromkeys(("stopWhen", "authorizeId", "authorizeAllow", "authorizeTimeout"), _FLOW),
}
"""Those of the block around an agent."""

OF_CONVERSATIONS: Final[Mapping[str, str]] = dict.fromkeys(
    ("memoryId", "memory_id", "previousMessages", "previous_messages"), _PERSON
)
"""Those that say which conversation goes on."""

OF_LINKS: Final[Mapping[str, str]] = dict.fromkeys(
    ("toolInputs", "tool_inputs", "omitFromConversation", "agent"), _FLOW
)

OF_CONNECTORS: Final[Mapping[str, str]] = dict.fromkeys(
    (
        *("apiKey", "api_key", "authorization", "headers", "awsAccessKeyId", "awsSecretAccessKey", "awsSessionToken"),
        *("baseURL", "baseUrl", "endpoint", "organization", "project", "region", "timeout", "retries"),
    ),
    _SECRET,
)
"""Those of the connector that an agent names."""

OF_NAMED_AGENTS: Final[Mapping[str, str]] = {**OF_BLOCKS, **OF_CONVERSATIONS, **OF_LINKS, **OF_CONNECTORS}
"""All that may not stand in an agent which has a name."""
