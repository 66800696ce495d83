"""A run log as one HTML page that needs nothing else: no network, no other file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from octo.logline import printable
from octo.runlog.record import BODY, VARS, Record
from octo.runlog.tree import Node, Totals, totals, tree
from octo.runlog.words import detail, duration, laid_out, money, number, tokens
from octo.values import Json

_OPEN: Final = 500
"""How many rows are opened from the start, at most."""
_CHUNK: Final = 200
_MANY: Final = 100
_LONG: Final = 1000
"""Beyond so many records, what is closed is only parsed when it is opened."""
_KINDS: Final = {"turn": "model", "note": "event"}
_ROLES: Final = {"user": "User", "assistant": "Assistant", "tool": "Tool"}

Style: TypeAlias = Literal["code", "text", "error", "hint"]
Mark: TypeAlias = Literal["end", "fold", "unfold"]
"""A row ends; from here on nothing is parsed before it is wanted; up to here."""


class Part(NamedTuple):
    """A text that belongs to a row: what went in, what came out, what was said."""

    label: str
    text: str
    style: Style = "code"
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the tree, with what it shows when it is opened."""

    kind: str
    name: str
    detail: str
    note: str
    time: str
    outcome: str
    start: float
    """Where its bar begins, in percent of the whole."""
    width: float
    opened: bool
    many: bool
    """Whether it holds so many rows that those out of sight are not laid out."""
    folded: bool
    """Whether its parts are not parsed before they are wanted."""
    within: bool
    """Whether the row itself is not."""
    parts: tuple[Part, ...]

    @property
    def labels_only(self) -> bool:
        """Whether nothing but the labels of its parts is seen at first."""
        return all(part.closed for part in self.parts)


def page(records: Sequence[Record], name: str) -> str:
    """The page; `name` stands in its title."""
    from jinja2 import Environment

    roots = tree(records)
    sums = totals(records, roots)
    source = Path(__file__).with_name("page.html.j2").read_text(encoding="utf-8")
    templates = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_spelt_out)
    template = templates.from_string(source)
    return template.render(
        name=name,
        flows=list(dict.fromkeys(root.name for root in roots)),
        flows_are_many=len(roots) > _MANY,
        outcome=_worst(roots),
        began=roots[0].first.at if roots else "",
        figures=_figures(sums),
        steps=_steps(roots, sums),
    )


def _spelt_out(value: object) -> object:
    """A text without control characters, which no page may hold."""
    return printable(value) if type(value) is str else value


def _figures(sums: Totals) -> list[tuple[str, str]]:
    figures = [("Time", duration(sums.seconds))]
    if sums.turns:
        figures += [("Model calls", number(sums.turns)), ("Tool calls", number(sums.tool_calls))]
        figures += [("Tokens read", number(sums.tokens_read)), ("Tokens written", number(sums.tokens_written))]
    if sums.cost is not None:
        figures.append(("Cost", money(sums.cost)))
    return [*figures, ("Failures", number(sums.failures)), ("Records", number(sums.records))]


def _steps(roots: Sequence[Node], sums: Totals) -> Iterator[Row | Mark]:
    """The rows in order, with marks where a row ends. No tree, however deep a run went."""
    began = min((root.began for root in roots), default=0.0)
    is_long = sums.records > _LONG
    room = _OPEN
    within = False
    waiting: list[Node | Mark] = list(_in_chunks(roots) if is_long else roots)[::-1]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            within = node == "fold" or (within and node == "end")
            yield node
            continue
        opened = not within and len(node.children) <= room and _is_of_interest(node, roots)
        room -= len(node.children) if opened else 0
        yield _row(node, *_place(node, began, sums.seconds), opened=opened, folded=is_long, within=within)
        waiting.append("end")
        if is_long and not opened and not within:
            waiting += ["unfold", *reversed(node.children), "fold"]
        else:
            waiting += reversed(node.children)


def _in_chunks(roots: Sequence[Node]) -> Iterator[Node | Mark]:
    """What happened on its own account; what is beyond the first screens is folded, a chunk at a time."""
    yield from roots[:_CHUNK]
    for start in range(_CHUNK, len(roots), _CHUNK):
        yield "fold"
        yield from roots[start : start + _CHUNK]
        yield "unfold"


def _is_of_interest(node: Node, roots: Sequence[Node]) -> bool:
    return node is roots[0] or any(
        child.kind in ("turn", "tool") or child.outcome == "failed" for child in node.children
    )


def _place(node: Node, began: float, seconds: float) -> tuple[float, float]:
    """Where the bar of a node begins and how long it is, in percent of the whole."""
    whole = seconds or 1.0
    start = min(max((node.began - began) / whole * 100, 0.0), 99.5)
    return start, min((node.seconds or 0.0) / whole * 100, 100 - start)


def _row(node: Node, start: float, width: float, *, opened: bool, folded: bool, within: bool) -> Row:
    return Row(
        kind=_KINDS.get(node.kind, node.kind),
        name=node.name,
        detail=detail(node),
        note=tokens(node),
        time=duration(node.seconds),
        outcome=node.outcome,
        start=start,
        width=width,
        opened=opened,
        many=len(node.children) > _MANY,
        folded=folded,
        within=within,
        parts=tuple(_parts(node)),
    )


# ---------------------------------------------------------------- what a row holds


def _parts(node: Node) -> Iterator[Part]:
    if node.error and (node.is_origin_of_failure or node.kind == "flow"):
        yield Part("Error", node.error, "error")
    match node.kind:
        case "turn":
            yield from _asked(_mapping(node.attrs.get("input")))
            yield from _said(_mapping(node.attrs.get("output")), "Answer")
        case "tool":
            failed = node.attrs.get("isError") is True
            yield Part("Arguments", laid_out(node.attrs.get("input")))
            yield Part("Result", laid_out(node.attrs.get("output")), "error" if failed else "code")
        case "note":
            yield Part("Details", laid_out(node.attrs))
        case _:
            yield from _change(node)
    if node.first.truncated or (node.last and node.last.truncated):
        yield Part("", "Something was too large for the log: it was left out, or cut.", "hint")


def _change(node: Node) -> Iterator[Part]:
    """What a flow or a block made of its message."""
    before, after, aside = node.first, node.last, bool(node.children)
    if after is None or after.error:
        after = before
    old, new = _state(before), _state(after)
    is_same = {"Body": before.body == after.body, "Variables": before.vars == after.vars}
    for label, unchanged in is_same.items():
        if old[label] is not None:
            closed = aside or (unchanged and label == "Variables")
            yield Part(label if unchanged else f"{label} before", laid_out(old[label]), closed=closed)
        if not unchanged:
            yield Part(f"{label} after", laid_out(new[label]), closed=aside)


def _state(record: Record) -> dict[str, Json]:
    """Body and variables of a record. What an earlier one tells stands there only, or pages would be huge."""
    told = {key: f"(the same as in record {number} of the log)" for key, number in record.same.items()}
    variables = {name: told.get(VARS + name, value) for name, value in record.vars.items()}
    return {"Body": told.get(BODY, record.body), "Variables": variables or None}


def _asked(request: Mapping[str, Json]) -> Iterator[Part]:
    if request.get("system"):
        yield Part("System", laid_out(request["system"]), "text", closed=True)
    lines = [f"{tool.get('name', '')}: {tool.get('description', '')}" for tool in _mappings(request.get("tools"))]
    if lines:
        yield Part(f"Tools ({len(lines)})", "\n".join(lines), "text", closed=True)
    if request.get("earlier"):
        count = number(request["earlier"])
        yield Part("", f"{count} earlier message{'' if count == '1' else 's'}, shown in the calls before", "hint")
    for message in _mappings(request.get("messages")):
        yield from _said(message, _ROLES.get(str(message.get("role")), "Message"))


def _said(message: Mapping[str, Json], label: str) -> Iterator[Part]:
    if message.get("reasoning"):
        yield Part("Reasoning", laid_out(message["reasoning"]), "text", closed=True)
    for file in _mappings(message.get("files")):
        words = [file.get("name"), file.get("mimeType"), f"{number(file.get('size'))} bytes"]
        yield Part("File", ", ".join(str(word) for word in words if word), "text")
    if message.get("text"):
        yield Part(label, laid_out(message["text"]), "text")
    for call in _mappings(message.get("calls")):
        yield Part(f"Calls {call.get('tool', '')}", laid_out(call.get("input")))
    for result in _mappings(message.get("results")):
        failed = result.get("isError") is True
        yield Part(f"Result of {result.get('tool', '')}", laid_out(result.get("output")), "error" if failed else "code")


def _worst(roots: Sequence[Node]) -> str:
    outcomes = {root.outcome for root in roots}
    return next((name for name in ("failed", "unfinished", "dropped") if name in outcomes), "completed")


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _mappings(value: Json) -> list[Mapping[str, Json]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
