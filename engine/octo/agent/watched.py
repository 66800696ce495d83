"""The keys of a block that say who is told what its agent does, and of what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import ValidationInfo, field_validator

from octo.agent.events import STREAMED, TYPES, EventType
from octo.block import Finding, SubFlow
from octo.fields import Bool, Model, one_of
from octo.refusals import refusal


class Watched(Model):
    """What a block says of its `events` chain."""

    events: SubFlow | None = None
    """Runs for each thing that the agent does, on `{type, iteration, …}`.

    It sees the variables of the message; what it makes of them is ignored. A stop in it ends the run of the agent.
    """

    emit: tuple[Annotated[EventType, one_of(*sorted(TYPES))], ...] = ()
    """Which events there are; by default all. Needs `events`."""

    stream: Bool = False
    """Tell the answers of the model in pieces, as they come: `text`, `thinking`, `tool_input`. Needs `events`."""

    @field_validator("emit", "stream")
    @classmethod
    def _has_someone_to_tell(cls, value: Any, info: ValidationInfo) -> Any:
        if value and info.data.get("events", value) is None:
            purpose = "report to" if info.field_name == "stream" else "filter"
            raise refusal(
                f"ai-agent: `{info.field_name}` requires `events`: there is nothing to {purpose}",
                "add `events: {process: [...]}`",
                at="key",
            )
        return value

    def check_watching(self) -> Iterator[Finding]:
        """What is asked for and never comes."""
        for index, name in enumerate(self.emit):
            if name in STREAMED and not self.stream:
                yield Finding(
                    f"ai-agent: there are no `{name}` events without `stream: true`",
                    ("emit", index),
                    "add `stream: true`, or remove the entry",
                    warning=True,
                )
