"""What happened in a run: as a tree for people, as facts for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

from octo.logline import printable

if TYPE_CHECKING:
    from octo.runlog.tree import Node, Totals
    from octo.values import Json

_COLOURS: Final = {"flow": None, "block": "blue", "turn": "magenta", "tool": "cyan", "note": "yellow"}
_BAD: Final = {"failed": "red", "unfinished": "red", "dropped": "yellow"}
_WIDEST: Final = 60


def lines(roots: list[Node], *, coloured: bool) -> list[str]:
    """One line for each thing that happened: where it belongs, what it is, how long it took, what else is known."""
    from octo.runlog.words import duration, short

    rows: list[tuple[str, str, Node]] = []
    waiting = [("", "", root) for root in reversed(roots)]
    while waiting:
        lead, rest, node = waiting.pop()
        rows.append((lead, printable(short(node.name)), node))
        children = node.children
        waiting += [
            (f"{rest}└─ ", f"{rest}   ", child) if child is children[-1] else (f"{rest}├─ ", f"{rest}│  ", child)
            for child in reversed(children)
        ]
    width = min(max(len(lead) + len(name) for lead, name, _ in rows), _WIDEST)
    lines = []
    for lead, name, node in rows:
        gap = " " * max(width - len(lead) - len(name), 0)
        hue = _BAD.get(node.outcome) or _COLOURS[node.kind]
        painted = typer.style(name, fg=hue) if coloured and hue else name
        lines.append(f"{lead}{painted}{gap}  {duration(node.seconds):>9}  {printable(_remark(node))}".rstrip())
    return lines


def _remark(node: Node) -> str:
    """What else is worth a glance; a failure is explained where it arose."""
    from octo.runlog.words import detail, tokens

    parts = [detail(node), tokens(node) if node.kind == "turn" else ""]
    if node.outcome != "completed":
        parts.append(f"failed: {node.error}" if node.error and node.is_origin_of_failure else node.outcome)
    return "  ".join(" ".join(part.split()) for part in parts if part)


def total(sums: Totals) -> str:
    from octo.runlog.words import duration, money

    parts = [duration(sums.seconds)]
    if sums.turns:
        parts += [count(sums.turns, "turn"), count(sums.tool_calls, "tool call")]
        known = [(sums.tokens_read, "read"), (sums.tokens_written, "written")]
        told = [f"{count:,} tokens {verb}" for count, verb in known if count is not None]
        parts.append(" and ".join(told) or "tokens unknown")
        parts += [] if sums.cost is None else [money(sums.cost)]
    return ", ".join([*parts, count(sums.failures, "failure"), count(sums.records, "record")])


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# ---------------------------------------------------------------- as facts


def span(node: Node, depth: int) -> dict[str, Json]:
    """A thing that happened, without what went in and came out."""
    from octo.values import Ordered

    first = node.first
    read, written = node.tokens
    facts: dict[str, Json] = {
        "id": first.span_id or None,
        "parent": first.parent_id or None,
        "depth": depth,
        "kind": node.kind,
        "name": node.name,
        "flow": first.flow or None,
        "path": first.path or None,
        "type": first.block_type or None,
        "at": first.at or None,
        "seconds": node.seconds,
        "outcome": node.outcome,
        "error": node.error or None,
        "model": node.attrs.get("model"),
        "stopReason": node.attrs.get("stopReason"),
        "tokensRead": read,
        "tokensWritten": written,
        "costUSD": node.cost,
    }
    return Ordered((name, value) for name, value in facts.items() if value is not None)


def totals(sums: Totals) -> dict[str, Json]:
    return {
        "records": sums.records,
        "seconds": sums.seconds,
        "turns": sums.turns,
        "toolCalls": sums.tool_calls,
        "tokensRead": sums.tokens_read,
        "tokensWritten": sums.tokens_written,
        "costUSD": sums.cost,
        "failures": sums.failures,
    }
