"""What the events of a stream that is passed on tell of it: whether it came to its end, failed, and what it cost."""

from __future__ import annotations

import json
import re
from typing import Final

from octo.llm import faults
from octo.llm.framing import DONE
from octo.proxy.access import Entry
from octo.values import Json

_MATTERS: Final = re.compile(
    rb'\[DONE\]|"(usage|finish_reason|error)"\s*+:\s*+(?!null)'
    rb'|"(error|message_stop|response\.(completed|incomplete|failed))"\s*+[,}]'
)
"""What events hold that are worth reading; most are pieces of text, in which all of this is absent or null."""

_LAST: Final = frozenset({"message_stop", "response.completed", "response.incomplete"})
"""The types of the events that end an answer of Anthropic and one of the Responses API."""


class Overseer:
    """Reads along in one stream, whichever API it is of."""

    def __init__(self, entry: Entry) -> None:
        self.ended = False
        """Whether the answer is whole, or an error took its place."""
        self._entry = entry

    def see(self, events: bytes) -> None:
        """Take events that are whole."""
        if not _MATTERS.search(events):
            return
        for line in events.splitlines():
            name, _, data = line.partition(b":")
            if name == b"data":
                self._see(data.strip())

    def _see(self, data: bytes) -> None:
        if data == DONE.encode():
            self.ended = True
        elif data.startswith(b"{") and _MATTERS.search(data):
            try:
                event = json.loads(data)
            except (ValueError, RecursionError):
                return
            self._entry.count_in(event)
            self.ended |= event.get("type") in _LAST or _has_finished(event.get("choices"))
            if failure := _failure(event):
                self.ended = True
                self._entry.broken = type(faults.from_event(failure)).__name__


def _has_finished(choices: Json) -> bool:
    return isinstance(choices, list) and any(isinstance(one, dict) and one.get("finish_reason") for one in choices)


def _failure(event: dict[str, Json]) -> Json:
    """The error that an event tells of, None when it tells of none."""
    match event:
        case {"type": "response.failed", "response": dict() as response}:
            return response.get("error") or "the answer failed"
        case {"type": "error"}:
            return event.get("error") or event
    return event.get("error") or None
