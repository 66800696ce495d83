"""Which history an agent starts with: decided once, from its policy, the run's id and the inputs of the block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from octo.agent.memory.policy import Policy
from octo.values import Json, render

NO_ID: Final = "memory: no memory id was given to this run; running without memory"
EMPTY_ID: Final = "memory: memoryId of this block is empty; running without memory"
MESSAGES_IGNORED: Final = "memory: memory is on; previousMessages of this block is ignored"
ID_IGNORED: Final = "memory: memory is off; memoryId of this block is ignored"
ID_NOT_READ: Final = "memory: legacy memory setting; memoryId of this block is not read"
MESSAGES_NOT_READ: Final = "memory: legacy memory setting; previousMessages of this block is not read"
IMAGE: Final = "memory: image output sends no history; memory settings are not read"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a block says about its history, expressions evaluated."""

    memory_id: str | None = None
    """None when it is not set, empty when its expression came out empty."""
    previous: Json = None
    """The messages that the flow supplies; None when it supplies none, not even an empty list."""

    @property
    def has_messages(self) -> bool:
        return self.previous is not None and self.previous != []


@dataclass(frozen=True, slots=True)
class Choice:
    """The history of one run of an agent, and the lines that go to the log, in order."""

    history: Literal["none", "block", "legacy", "managed"]
    lines: tuple[str, ...] = ()
    key: str = ""
    """Of a managed history."""
    messages: Json = None
    """Of a history that is a list: the list."""


def memory_id(value: Json, *, fixed: bool) -> str | None:
    """What a `memoryId` counts as: text, empty text where an expression came out empty, None where it is not set."""
    text = "" if value is None else render(value).strip()
    return None if fixed and not text else text


def choose(policy: Policy, inputs: Inputs, *, run_key: str, key_of: Callable[[str], str]) -> Choice:
    """The history of an agent that answers in text. `run_key` is the key of the run's id, empty when it has none."""
    match policy.mode:
        case "off":
            return _without_memory(inputs)
        case "managed":
            return _managed(inputs, run_key, key_of)
        case "auto":
            lines, key = _legacy_lines(inputs), run_key or policy.baked_id
            return Choice("managed", lines, key) if key else Choice("none", (*lines, NO_ID))
        case "manual":
            return Choice("legacy", _legacy_lines(inputs), messages=policy.messages or [])


def choose_for_image(policy: Policy, *, written: bool) -> Choice:
    """The history of an agent that makes an image: none. `written` says that one of the inputs is set."""
    return Choice("none", (IMAGE,) if written or policy.mode != "off" else ())


def lacking(choice: Choice, policy: Policy) -> str:
    """What is wrong when the block asks nothing: empty when its history stands for a question."""
    if choice.history == "legacy" or choice.messages:
        return ""
    if policy.mode == "off":
        return "`input` is empty and there are no `previousMessages`, so there is nothing to ask the model"
    return "`input` is empty, and it is needed while memory is on"


def _without_memory(inputs: Inputs) -> Choice:
    lines = (ID_IGNORED,) if inputs.memory_id else ()
    if inputs.previous is None:
        return Choice("none", lines)
    return Choice("block", lines, messages=inputs.previous)


def _managed(inputs: Inputs, run_key: str, key_of: Callable[[str], str]) -> Choice:
    lines = (MESSAGES_IGNORED,) if inputs.has_messages else ()
    if inputs.memory_id == "":
        return Choice("none", (*lines, EMPTY_ID))
    key = key_of(inputs.memory_id) if inputs.memory_id else run_key
    return Choice("managed", lines, key) if key else Choice("none", (*lines, NO_ID))


def _legacy_lines(inputs: Inputs) -> tuple[str, ...]:
    ids = (ID_NOT_READ,) if inputs.memory_id else ()
    return (*ids, MESSAGES_NOT_READ) if inputs.has_messages else ids
