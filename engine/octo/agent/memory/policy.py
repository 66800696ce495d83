"""Whether an agent remembers, and how much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import model_validator

from octo.agent.memory import keys
from octo.agent.memory.given import read_messages
from octo.errors import OctoError
from octo.fields import AnyJson, Int, Model, Text, one_of
from octo.refusals import Refusals

_KEYS: Final = {
    "off": frozenset({"contextLength"}),
    "window": frozenset({"contextLength"}),
    "compaction": frozenset({"contextWindow"}),
    "auto": frozenset({"contextLength", "memoryId"}),
    "manual": frozenset({"messages"}),
}
"""What each kind takes beside `kind`."""

Mode = Literal["off", "managed", "auto", "manual"]


class Policy(Model):
    """Whether an agent remembers, and how much. It never says which memory: that is the affair of block and run."""

    kind: Annotated[
        Literal["off", "window", "compaction", "auto", "manual"],
        one_of("off", "window", "compaction", "auto", "manual"),
    ] = "off"
    """`off` keeps nothing. `window` keeps the last messages, `compaction` all of them, the older part as a summary.

    `auto` and `manual` are older spellings, which are read as they always were.
    """

    context_length: Int | None = None
    """Of `window` and `auto`: how many messages are kept and sent again; 0 is `off`."""

    context_window: Int | None = None
    """Of `compaction`: tokens that the model reads at once; without it that of the model, as far as it is known."""

    memory_id: Text | None = None
    """Of `auto`: the UUID of the memory of runs that have none."""

    messages: AnyJson = None
    """Of `manual`: the messages that are sent before the question, `{role, content}` each."""

    spellings: ClassVar[Mapping[str, str]] = {
        "context_length": "contextLength",
        "context_window": "contextWindow",
        "memory_id": "memoryId",
    }

    @classmethod
    def of_length(cls, length: int) -> Policy:
        """The policy of an agent that says no more than `messagesContextLength`."""
        return cls.model_construct(kind="auto", context_length=length)

    @property
    def mode(self) -> Mode:
        """How it is read: nothing is remembered, or by which rules."""
        match self.kind:
            case "off":
                return "off"
            case "window":
                return "managed" if self.context_length else "off"
            case "compaction":
                return "managed"
            case "auto":
                return "auto" if self.context_length else "off"
            case "manual":
                return "manual"

    @property
    def remembers(self) -> bool:
        """Whether it can come to a memory that is kept."""
        return self.mode in ("managed", "auto")

    @property
    def bound(self) -> int | None:
        """How many messages are kept; None for all of them."""
        return None if self.kind == "compaction" else self.context_length

    @property
    def baked_id(self) -> str:
        """The memory of runs without an id; empty for none."""
        return keys.uuid(self.memory_id or "") or ""

    @model_validator(mode="after")
    def _is_usable(self) -> Self:
        refusals = Refusals()
        if "kind" not in self.model_fields_set:
            refusals.add("ai-agent memory requires `kind`", hint="for example `{kind: window, contextLength: 20}`")
        else:
            for key, name in self.yaml_keys().items():
                if name in self.model_fields_set and key != "kind" and key not in _KEYS[self.kind]:
                    refusals.add(f"ai-agent memory: `{key}` has no effect with `kind: {self.kind}`", key, at="key")
        if self.kind == "window" and self.context_length is None:
            refusals.add("ai-agent memory: `kind: window` requires `contextLength`", hint="0 remembers nothing")
        for key, count in (("contextLength", self.context_length), ("contextWindow", self.context_window)):
            if count is not None and count < 0:
                refusals.add(f"ai-agent memory: `{key}` is at least 0, found {count}", key)
        if (self.memory_id or "").strip() and not self.baked_id:
            refusals.add(
                f"ai-agent memory: `memoryId` is a UUID, found `{self.memory_id}`",
                "memoryId",
                hint="`memoryId` beside `memory` takes any text",
            )
        if self.messages is not None:
            try:
                read_messages(self.messages, "ai-agent memory: messages")
            except OctoError as error:
                refusals.add(error.message, "messages", hint=error.hint)
        refusals.raise_if_any()
        return self
