"""The records of one call, and what they tell."""

import json
from itertools import count
from typing import Any

from octo.errors import OctoError
from octo.message import Dropped
from octo.runlog.record import Record
from octo.runlog.recorder import Recorder
from octo.runlog.tree import tree
from octo.testing.harness import runtime


def recorder(records: list[Record], **options: Any) -> Recorder:
    """A recorder whose clock goes on by a microsecond with each record."""
    ticks = count(1_700_000_000_000_000_000, 1000)
    return Recorder([records.append], clock=lambda: next(ticks), **options)


async def records_of(text: str, body: Any = None, *, flow: str = "main", **options: Any) -> list[Record]:
    """The records of one call, however it ends."""
    records: list[Record] = []
    async with runtime(text, observers=[recorder(records, **options)]) as octo:
        try:
            await octo.invoke(flow, body)
        except (Dropped, OctoError):
            pass
    return records


def plain(record: Record) -> dict[str, Any]:
    """A record as it is written, without what differs from run to run."""
    parts = json.loads(record.text)
    return {name: value for name, value in parts.items() if name not in ("traceId", "eventId", "at", "durationNs")}


def outline(records: list[Record]) -> list[str]:
    """What happened inside what."""
    return [
        f"{'  ' * depth}{node.kind} {node.name}{'' if node.outcome == 'completed' else ': ' + node.outcome}"
        for root in tree(records)
        for depth, node in root.walk()
    ]
