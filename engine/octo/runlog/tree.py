"""Reads records back and puts them together again: what happened inside what, how long it took, what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from json import JSONDecodeError
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from octo.errors import Location, UsageError
from octo.runlog.record import PIECES, Record
from octo.values import Json, dumps

Kind: TypeAlias = Literal["flow", "block", "turn", "tool", "note"]
Outcome: TypeAlias = Literal["completed", "dropped", "failed", "unfinished"]

_HINT: Final = "a run log is what `octo invoke --log FILE` writes"


@dataclass(eq=False)
class Node:
    """Something that happened: how it began, how it ended, and what happened inside it."""

    first: Record
    last: Record | None = None
    """How it ended; None when the log does not tell."""
    branch: str = ""
    """In which branch of the block around it this block stands, if in any."""
    selector: str = ""
    """What this block is called in its chain."""
    children: list[Node] = field(default_factory=list)

    @cached_property
    def kind(self) -> Kind:
        kind = self.first.kind
        if kind.startswith(("flow.", "block.")):
            return "flow" if kind[0] == "f" else "block"
        if kind in ("agent.tool_call", "agent.tool_result"):
            return "tool"
        if kind == "proxy.request":
            return "turn" if "connector" in self.first.attrs else "note"
        return "turn" if kind in ("agent.turn_start", "llm.turn") else "note"

    @cached_property
    def attrs(self) -> dict[str, Json]:
        """What only records of this kind have, of the beginning and of the end."""
        return {**self.first.attrs, **(self.last.attrs if self.last else {})}

    @property
    def name(self) -> str:
        match self.kind:
            case "flow":
                return self.first.flow
            case "block":
                return self.selector or self.first.block_type
            case "turn" if "purpose" in self.attrs:
                return str(self.attrs["purpose"])
            case "turn" if "iteration" in self.attrs:
                return f"turn {dumps(self.attrs['iteration'])}"
            case "tool":
                return str(self.attrs.get("tool", ""))
        return str(self.attrs.get("route") or self.first.kind.removeprefix("agent."))

    @cached_property
    def outcome(self) -> Outcome:
        if self.kind == "note":
            return "failed" if self.error else "completed"
        if self.last is None:
            return "unfinished"
        if self.error or self.attrs.get("isError") is True:
            return "failed"
        return "dropped" if self.last.dropped else "completed"

    @property
    def is_origin_of_failure(self) -> bool:
        """Whether it failed of its own accord, and not because of something inside it."""
        return self.outcome == "failed" and not any(child.outcome == "failed" for child in self.children)

    @property
    def error(self) -> str:
        return self.last.error if self.last else ""

    @property
    def seconds(self) -> float | None:
        """How long it took; None when the log does not tell."""
        duration = self.last.duration_ns if self.last else None
        return None if duration is None else duration / 10**9

    @cached_property
    def began(self) -> float:
        """When it began, in seconds since 1970."""
        return self.ended - self.seconds if self.last and self.seconds is not None else _seconds(self.first.at)

    @property
    def ended(self) -> float:
        """When it ended; when it began, if the log does not tell."""
        return _seconds(self.last.at if self.last else self.first.at)

    @property
    def tokens(self) -> tuple[int | None, int | None]:
        """Tokens that a call of a model read and wrote; None is unknown."""
        usage = self.attrs.get("usage")
        if not isinstance(usage, dict):
            return None, None
        read = usage.get("promptTokens", usage.get("inputTokens"))
        return _whole(read), _whole(usage.get("outputTokens"))

    @property
    def cost(self) -> float | None:
        """What a call of a model cost in USD; None is unknown."""
        usage = self.attrs.get("usage")
        cost = usage.get("costUSD") if isinstance(usage, dict) else None
        return float(cost) if isinstance(cost, int | float) else None

    def walk(self) -> Iterator[tuple[int, Node]]:
        """This and everything inside it, each with its depth, in order."""
        waiting = [(0, self)]
        while waiting:
            depth, node = waiting.pop()
            yield depth, node
            waiting += [(depth + 1, child) for child in reversed(node.children)]


@dataclass(frozen=True, slots=True)
class Totals:
    """What a part of a log adds up to. None is unknown."""

    records: int
    turns: int
    tool_calls: int
    tokens_read: int | None
    tokens_written: int | None
    cost: float | None
    """What the calls of models cost of which that is known, in USD."""
    failures: int
    seconds: float


class Faulty(NamedTuple):
    """A line of a log that is no record."""

    place: Location
    reason: str


def read(file: Path) -> tuple[list[Record], list[Faulty]]:
    """The records of a run log, and the lines among them that are none, as a full disk or two writers leave them.

    A last line that was cut off while it was written is left out. Raises UsageError for a file that cannot be read or
    does not begin with a record.
    """
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise UsageError(f"cannot read `{file}`: {(error.strerror or str(error)).lower()}") from error
    records: list[Record] = []
    faulty: list[Faulty] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = Record.parse(line)
        except ValueError as error:
            if number == len(lines) and records:
                break
            fault = Faulty(Location(str(file), number, getattr(error, "colno", 1)), _fault(error))
            if not records:
                reason = f"this is no run log: {fault.reason}"
                raise UsageError(reason, hint=_HINT, location=fault.place) from None
            faulty.append(fault)
        else:
            records.append(record)
    if not records:
        raise UsageError(f"`{file}` holds no records", hint=_HINT)
    return filled(records), faulty


def filled(records: Sequence[Record]) -> list[Record]:
    """The records with what each shares with one before it."""
    known: dict[int, Record] = {}
    whole = {}
    for index in sorted(range(len(records)), key=lambda index: records[index].seq):
        whole[index] = known[records[index].seq] = records[index].filled(known)
    return [whole[index] for index in range(len(records))]


def _fault(error: ValueError) -> str:
    """What is wrong with a line; where in the line, its place says."""
    text = error.msg if isinstance(error, JSONDecodeError) else str(error)
    return text[:1].lower() + text[1:]


def tree(records: Iterable[Record]) -> list[Node]:
    """What happened on its own account, in order; everything else is inside. Pieces of answers are left out."""
    roots: list[Node] = []
    nodes: dict[int, Node] = {}
    around: dict[int, Node] = {}
    for record in sorted(records, key=lambda record: record.seq):
        if record.kind in PIECES:
            continue
        node = nodes.get(record.span_id)
        if node is not None and not record.begins:
            node.last = record
            continue
        node = Node(record, None if record.begins else record)
        if record.begins:
            nodes[record.seq] = node
        above = nodes.get(record.parent_id)
        (above.children if above else roots).append(node)
        node.branch, node.selector = _place(record, above, around)
        if record.begins and above is not None:
            around[record.seq] = above
    return roots


def _place(record: Record, above: Node | None, around: Mapping[int, Node]) -> tuple[str, str]:
    """The branch in which a block stands, if in one, and what it is called there. A name may hold dots.

    A call of a tool says itself which branch it is.
    """
    direct = above
    while above is not None and above.kind not in ("flow", "block"):
        above = around.get(above.first.seq)
    if above is None or above.kind == "flow":
        inner = record.path.removeprefix(record.flow).removeprefix("[error]").removeprefix("[process]")
        return "", inner.removeprefix(".") if inner.startswith(".") else record.path.rpartition(".")[2]
    inner = record.path.removeprefix(above.first.path)
    branch, bracket, rest = inner[1:].partition("].")
    if not inner.startswith("[") or not bracket:
        return "", record.path.rpartition(".")[2]
    return "" if direct is not None and direct.kind == "tool" else branch, rest


def totals(records: Sequence[Record], roots: Sequence[Node]) -> Totals:
    """What a log adds up to."""
    nodes = [node for root in roots for _, node in root.walk()]
    turns = [node for node in nodes if node.kind == "turn"]
    tokens = [node.tokens for node in nodes]
    costs = [node.cost for node in nodes if node.cost is not None]
    began = min((root.began for root in roots), default=0.0)
    return Totals(
        records=len(records),
        turns=len(turns),
        tool_calls=sum(node.kind == "tool" for node in nodes),
        tokens_read=_sum(read for read, _ in tokens),
        tokens_written=_sum(written for _, written in tokens),
        cost=sum(costs) if costs else None,
        failures=sum(node.is_origin_of_failure for node in nodes),
        seconds=max((node.ended for node in nodes), default=began) - began,
    )


def _seconds(at: str) -> float:
    """A point in time in seconds since 1970; 0 for a text that is none."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return 0.0


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _whole(value: Json) -> int | None:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
