"""A history that a config or a flow gives: messages as the Chat Completions API writes them."""

from __future__ import annotations

from dataclasses import dataclass

from octo.errors import OctoError
from octo.llm.chat import ChatMessage
from octo.values import Json, kind_of

_HINT = "each message is `{role, content}`, as the Chat Completions API has them"


@dataclass(frozen=True, slots=True)
class Given:
    """A history, and what it tells the model as its system text."""

    messages: tuple[ChatMessage, ...] = ()
    system: str = ""

    def __bool__(self) -> bool:
        return bool(self.messages or self.system)


def read_messages(value: Json, what: str) -> Given:
    """The messages of a list. `what` names the setting. Raises OctoError that names the first bad one."""
    from octo.llm import completions  # here, for few agents are given a history

    if not isinstance(value, list):
        raise OctoError(f"{what}: expected a list of messages, found {kind_of(value)}", hint=_HINT)
    for index, message in enumerate(value):
        try:
            if not isinstance(message, dict):
                raise OctoError(f"expected a mapping, found {kind_of(message)}")
            completions.read({"messages": [message]})
        except OctoError as error:
            raise OctoError(f"{what}: message {index}: {error.message}", hint=_HINT) from error
    asked = completions.read({"messages": value}).request
    return Given(asked.messages, asked.system)
