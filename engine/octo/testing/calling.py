"""Which tools models called, and what became of the calls, from a run log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from octo.runlog.record import Record
from octo.values import Json


@dataclass(frozen=True, slots=True)
class Called:
    """One call of a tool."""

    tool: str
    args: Json
    path: str
    """Address of the agent's block."""
    output: Json
    """What the model got back; None when the run ended before."""
    failed: bool
    """The model got an error."""
    ran: bool
    """What stands behind the tool was reached; else the call was refused."""

    @property
    def is_unknown(self) -> bool:
        """Whether the agent has no tool of this name."""
        return not self.ran and self.output == f'unknown tool "{self.tool}"'


def tool_calls(records: Sequence[Record]) -> list[Called]:
    """The calls of tools, in the order in which models asked for them."""
    results = {record.span_id: record for record in records if record.kind == "agent.tool_result"}
    inner = {record.parent_id for record in records if record.kind in ("block.pre-invoke", "flow.started")}
    found = []
    for record in records:
        if record.kind == "agent.tool_call":
            result = results.get(record.span_id)
            attrs = result.attrs if result else {}
            failed = bool(attrs.get("isError", False))
            ran = record.span_id in inner or (result is not None and not failed)
            tool, given = record.attrs["tool"], record.attrs.get("input")
            found.append(Called(tool, given, record.path, attrs.get("output"), failed, ran))
    return found
