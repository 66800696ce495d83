"""What models were sent, put together from a run log, in which each turn tells only what is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from octo.llm.wires.scripted import WHEN_NAMES
from octo.runlog.record import Record
from octo.values import Json, render

ASKED_NAMES: Final = WHEN_NAMES
"""What an expression on a request sees: the names that the `when` of a scripted model sees."""


def askings(records: Sequence[Record], address: str) -> list[dict[str, object]]:
    """What was sent with each model call of a block, in order; each in the names of ASKED_NAMES."""
    found: list[dict[str, object]] = []
    agents: dict[int, int] = {}
    """The agent that a turn belongs to, both by the ids of their spans."""
    known: dict[int, _Conversation] = {}
    for record in records:
        if record.kind == "agent.turn_start":
            agents[record.span_id] = record.parent_id
        if record.kind != "llm.turn" or record.path != address or "input" not in record.attrs:
            continue
        talk = known.setdefault(agents.get(record.span_id, 0), _Conversation())
        talk.ask(record.attrs["input"])
        found.append(talk.scope())
        talk.answer(record.attrs.get("output"))
    return found


class _Conversation:
    """One run of an agent, as far as it has come."""

    def __init__(self) -> None:
        self.system = ""
        self.tools: list[str] = []
        self.messages: list[Json] = []
        self.calls = 0

    def ask(self, new: Mapping[str, Json]) -> None:
        earlier = int(new.get("earlier", 0))
        if not earlier:
            self.system = new.get("system", "")
            self.tools = [tool["name"] for tool in new.get("tools", ())]
        self.messages = [*self.messages[:earlier], *map(_shown, new.get("messages", ()))]
        self.calls += 1

    def answer(self, turn: Json) -> None:
        if turn is not None:
            self.messages = [*self.messages, _shown(turn)]

    def scope(self) -> dict[str, object]:
        return {
            "system": self.system,
            "messages": self.messages,
            "last": self.messages[-1] if self.messages else None,
            "tools": self.tools,
            "call": float(self.calls),
        }


def _shown(turn: Mapping[str, Json]) -> Json:
    """A turn of the run log in the form that the `when` of a scripted model sees."""
    return {
        "role": turn.get("role", ""),
        "text": turn.get("text", ""),
        "calls": [
            {"name": call["tool"], "args": call["input"], "id": call["toolCallId"]} for call in turn.get("calls", ())
        ],
        "results": [
            {
                "name": result["tool"],
                "id": result["toolCallId"],
                "text": "" if result["output"] is None else render(result["output"]),
                "isError": result.get("isError", False),
            }
            for result in turn.get("results", ())
        ],
        "files": [{"mimeType": file["mimeType"], "name": file.get("name", "")} for file in turn.get("files", ())],
    }
