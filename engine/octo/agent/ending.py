"""How a run of an agent ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from octo.llm.chat import File


@dataclass(frozen=True, slots=True)
class Answered:
    """The model gave its final answer, which may be empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """The model made an image."""

    file: File


@dataclass(frozen=True, slots=True)
class GaveUp:
    """There will be no answer; `detail` is the model's own reason, if it gave one, or the limit that is reached."""

    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Halted:
    """A tool, or the `events` chain, asked to complete the flow right here."""

    reason: str = "stopped by a tool"


Ending: TypeAlias = Answered | Drawn | GaveUp | Halted
