"""The value of an agent as it is written and stored: JSON in one spelling, with references such as `${NAME}` in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Final

from octo.errors import OctoError
from octo.values import Json, dumps

OF_BRAINS: Final[Mapping[str, str]] = {
    "system_prompt": "prompt",
    "max_completion_tokens": "maxTokens",
    "max_iterations": "maxIterations",
    "output_type": "outputType",
    "output_schema": "outputSchema",
    "messages_context_length": "messagesContextLength",
}
"""Other accepted spellings of the keys that say how a model is asked, each with the key it stands for."""

OF_AGENTS: Final[Mapping[str, str]] = {
    **OF_BRAINS,
    "user_message": "input",
    "user_attachments": "attachments",
    "user_images": "attachments",
    "enabled_tools": "enabledTools",
}
"""Those of all keys of an agent with a name."""

SPELLINGS: Final[Mapping[str, str]] = {
    **OF_AGENTS,
    "memory_id": "memoryId",
    "previous_messages": "previousMessages",
    "tool_inputs": "toolInputs",
}
"""Those of all keys of an agent and of its block."""

_DIGITS: Final = 32
_LONGEST_NAME: Final = 200
_SEGMENT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
Read = Callable[[str], str]
"""The text of a file below the config directory. Raises OctoError."""


def name_fault(name: str) -> str | None:
    """Why a text cannot be the name of an agent; None when it can."""
    if "@" in name:
        return "`@` stands before the version of a pin"
    if len(name) > _LONGEST_NAME:
        return f"a name has at most {_LONGEST_NAME} characters"
    if not all(_SEGMENT.fullmatch(segment) for segment in name.split("/")):
        return (
            "a name is made of segments with `/` between them; a segment has letters, digits, `_`, `.` and `-`, "
            "and begins with a letter, a digit or `_`"
        )
    return None


def authored(written: Mapping[str, Json], read: Read | None = None) -> dict[str, Json]:
    """A value as it is stored: in one spelling, without `name`, with the text of a prompt that is kept in a file.

    Raises OctoError when a key is given in two spellings, or when the file cannot be read.
    """
    value = {key: item for key, item in in_one_spelling(written).items() if key != "name"}
    prompt = value.get("prompt")
    if read is not None and isinstance(prompt, dict) and set(prompt) == {"resource"}:
        value["prompt"] = {**prompt, "text": read(str(prompt["resource"]))}
    return value


def in_one_spelling(written: Mapping[str, Json]) -> dict[str, Json]:
    """The keys of a value in the spelling of YAML; keys of nobody, which begin with `x-`, are left out."""
    value: dict[str, Json] = {}
    for key, item in written.items():
        spelt = SPELLINGS.get(key, key)
        if spelt in value:
            other = next(other for other in written if SPELLINGS.get(other, other) == spelt)
            raise OctoError(f"`{other}` and `{key}` are two spellings of one key", hint="keep one of them")
        if not key.startswith("x-"):
            value[spelt] = item
    return value


def text(value: Mapping[str, Json]) -> str:
    """The canonical form of a value: the same for all ways of writing it."""
    return dumps(value)


def digest(value: Mapping[str, Json]) -> str:
    """Hex digits that tell one value from another."""
    return sha256(text(value).encode()).hexdigest()[:_DIGITS]
