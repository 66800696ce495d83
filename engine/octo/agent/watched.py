"""The keys of a block that say who is told what its agent does, and of what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from octo.agent.events import STREAMED, TYPES, EventType
from octo.block import Finding, SubFlow
from octo.fields import Bool, Model, Refusals, one_of


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

    def refuse_watching(self, refusals: Refusals) -> None:
        """Note what cannot be used without a chain."""
        if self.events is not None:
            return
        useless = {"stream": self.stream and "report to", "emit": bool(self.emit) and "filter"}
        for key, purpose in useless.items():
            if purpose:
                text = f"ai-agent: `{key}` requires `events`: there is nothing to {purpose}"
                refusals.add(text, key, hint="add `events: {process: [...]}`", at="key")

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
