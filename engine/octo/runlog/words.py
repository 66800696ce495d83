"""What a run log holds, in the words in which people read it."""

from __future__ import annotations

import json
from typing import Final

from octo.runlog.tree import Node
from octo.values import Json, native

_INLINE: Final = 76
"""Up to so many characters, JSON stands on one line."""


def duration(seconds: float | None) -> str:
    """A span of time as people read it; nothing when it is unknown."""
    if seconds is None:
        return ""
    if seconds >= 60:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1000:.{0 if seconds >= 0.1 else 1 if seconds >= 0.001 else 2}f} ms"


def tokens(node: Node) -> str:
    """Tokens read and written, and what they cost if that is known, as one glance takes them in."""
    read, written = node.tokens
    if read is None and written is None:
        return ""
    spent = "" if node.cost is None else f", {money(node.cost)}"
    return f"{number(read)} → {number(written)} tokens{spent}"


def money(usd: float) -> str:
    """A sum in USD, with as many digits as tell something."""
    if usd >= 1 or not usd:
        return f"${usd:,.2f}"
    return f"${usd:.4f}" if usd >= 0.01 else f"${usd:.2g}" if usd >= 0.0001 else "less than $0.0001"


def detail(node: Node) -> str:
    """What tells this one from others of its name: a type, a model, arguments, a reason."""
    match node.kind:
        case "block":
            branch = f"in {node.branch}" if node.branch else ""
            kind = node.first.block_type if node.first.block_type != node.name else ""
            return " · ".join(filter(None, (kind, branch)))
        case "turn":
            return " · ".join(str(node.attrs[key]) for key in ("model", "stopReason") if node.attrs.get(key))
        case "tool":
            given = node.attrs.get("input")
            return "" if given is None else short(laid_out(given))
        case "note" if node.first.kind == "llm.embed":
            texts = node.attrs.get("texts")
            return f"{node.attrs.get('model')} · {number(texts)} text{'' if texts == 1 else 's'}"
        case "note" if node.first.kind == "agent.compaction":
            return f"{number(node.attrs.get('before'))} → {number(node.attrs.get('after'))} tokens"
        case "note":
            return str(node.attrs.get("reason", ""))
    return ""


def laid_out(value: Json) -> str:
    """Text as it is, anything else as JSON that is laid out when it is long."""
    if isinstance(value, str):
        return value
    try:
        value = native(value)
        line = json.dumps(value, ensure_ascii=False, sort_keys=True)
        return line if len(line) <= _INLINE else json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2)
    except RecursionError:
        return "nested too deeply to be shown"


def short(text: str) -> str:
    """A text on one line, cut when it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _INLINE else line[: _INLINE - 1] + "…"


def number(count: Json) -> str:
    """A count; `?` when it is none."""
    return f"{int(count):,}" if isinstance(count, (int, float)) else "?"
