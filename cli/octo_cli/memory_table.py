"""What is kept of what was said: as a table and as a conversation for people, as facts for programs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import typer

from octo.agent.memory import keys
from octo.logline import printable
from octo.runlog.record import instant
from octo.runlog.words import number, short
from octo.values import Json, Ordered
from octo_cli import output
from octo_cli.run_table import moment
from octo_cli.session import Session

if TYPE_CHECKING:
    from octo.agent.memory.kept import Entry, Hit, Item

_OWNERS: Final = {"managed": "block", "thread": "agent", "transcript": "flow", "facts": "agent"}
"""What the owner of an item of each kind is."""
_COUNTED: Final = {"managed": "message", "thread": "message", "transcript": "row", "facts": "fact"}
_COLOURS: Final = {"user": "green", "assistant": "cyan", "tool": "yellow", "fact": "green"}
_TO_THE_RIGHT: Final = frozenset({"COUNT", "SIZE"})
_CUT: Final = frozenset({"TITLE", "TEXT"})
"""Columns that may be cut."""
_GAP: Final = 2
_NARROWEST: Final = 12
_BEGINNING: Final = 8
"""So many characters of a UUID are shown."""
_LONGEST: Final = 40
"""So many of other ids."""
_AROUND: Final = 60
"""So many characters before and behind the first word that was found."""


def put_items(session: Session, items: Sequence[Item], now: int) -> None:
    """Print a table of what is kept."""
    rows = [
        [
            item.kind,
            _short_id(item.id),
            item.owner,
            item.name,
            number(item.count),
            _size(item.size),
            "" if item.updated is None else moment(item.updated, now),
        ]
        for item in items
    ]
    head = ["KIND", "KEY", "OF", "TITLE", "COUNT", "SIZE", "UPDATED"]
    _put(session, head, [_cells(session, row) for row in rows])


def put_hits(session: Session, hits: Sequence[Hit], words: Sequence[str]) -> None:
    """Print a table of texts that were found."""
    rows = [[hit.kind, _short_id(hit.id), hit.owner, hit.role, _around(hit.text, words)] for hit in hits]
    _put(session, ["KIND", "KEY", "OF", "WHO", "TEXT"], [_cells(session, row) for row in rows])


def conversation(item: Item, entries: Sequence[Entry], now: int, *, coloured: bool) -> Iterator[str]:
    """An item as people read it, ready to be printed."""
    what = _COUNTED[item.kind] + ("" if item.count == 1 else "s")
    owner = f", {_OWNERS[item.kind]} {item.owner}" if item.owner else ""
    updated = f", {moment(item.updated, now)}" if item.updated is not None else ""
    title = f": {short(item.name)}" if item.name else ""
    head = printable(f"{item.kind} {item.id}{owner}{title}")
    yield typer.style(head, bold=True) if coloured else head
    yield f"{number(item.count)} {what}, {_size(item.size)}{updated}"
    yield ""
    for entry in entries:
        yield from _lines(entry, coloured)


def facts(item: Item) -> Ordered:
    """An item as it stands in a JSON document."""
    found = Ordered(kind=item.kind, id=item.id)
    found[_OWNERS[item.kind]] = item.owner or None
    if item.kind == "managed":
        found["workspace"] = item.workspace
    found["title"] = item.name or None
    found["count"], found["bytes"] = item.count, item.size
    found["updated"] = None if item.updated is None else instant(item.updated)
    return Ordered((name, value) for name, value in found.items() if value is not None)


def facts_of_entry(entry: Entry) -> Ordered:
    """An entry as it stands in a JSON document."""
    found = Ordered(
        role=entry.role,
        name=entry.name or None,
        text=entry.text or None,
        arguments=entry.arguments or None,
        thinking=entry.thinking or None,
        ok=None if entry.ok else False,
        reason=entry.why or None,
        at=None if entry.at is None else instant(entry.at),
    )
    return Ordered((name, value) for name, value in found.items() if value is not None)


def facts_of_hit(hit: Hit) -> Ordered:
    """A text that was found, as it stands in a JSON document."""
    found: dict[str, Json] = {_OWNERS[hit.kind]: hit.owner} if hit.owner else {}
    return Ordered(kind=hit.kind, id=hit.id, **found, role=hit.role, text=hit.text)


# ---------------------------------------------------------------- for people


def _put(session: Session, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table without the columns in which nothing stands; words are cut where it would not fit the terminal."""
    from rich.cells import cell_len

    used = [at for at in range(len(head)) if any(row[at] for row in rows)]
    widths = {at: max(cell_len(head[at]), *(cell_len(row[at]) for row in rows)) for at in used}
    spare = shutil.get_terminal_size().columns - sum(widths.values()) - _GAP * (len(used) - 1)
    for at in used:
        if spare < 0 and head[at] in _CUT:
            widths[at], spare = max(_NARROWEST, widths[at] + spare), 0
    title = _line([head[at] for at in used], [head[at] for at in used], [widths[at] for at in used])
    lines = [typer.style(title, bold=True) if session.coloured(session.out) else title]
    lines += [_line([row[at] for at in used], [head[at] for at in used], [widths[at] for at in used]) for row in rows]
    output.painted(session, "\n".join(lines))


def _line(cells: Sequence[str], head: Sequence[str], widths: Sequence[int]) -> str:
    from rich.cells import cell_len, chop_cells

    padded: list[str] = []
    for cell, name, width in zip(cells, head, widths, strict=True):
        fitting = cell if cell_len(cell) <= width else chop_cells(cell, width - 1)[0] + "…"
        space = " " * (width - cell_len(fitting))
        padded.append(space + fitting if name in _TO_THE_RIGHT else fitting + space)
    return (" " * _GAP).join(padded).rstrip()


def _cells(session: Session, cells: Sequence[str]) -> list[str]:
    """What can be printed of the cells of a row, each on one line, secrets masked."""
    return [printable(" ".join(session.masked(cell).split())) for cell in cells]


def _short_id(id: str) -> str:
    """As much of an id as tells it from others, most likely: the beginning of a UUID, others if they are not long."""
    if keys.uuid(id) == id:
        return id[:_BEGINNING]
    return id if len(id) <= _LONGEST else f"{id[: _LONGEST - 1]}…"


def _lines(entry: Entry, coloured: bool) -> Iterator[str]:
    if entry.thinking:
        yield from _said("thinks", entry.thinking, "", coloured)
    if entry.arguments or (entry.role == "assistant" and entry.name):
        yield from _said("  →", f"{entry.name} {entry.arguments}".rstrip(), "yellow", coloured)
    if entry.role == "tool":
        mark = "  ←" if entry.ok else "  ✗"
        text = entry.text if entry.arguments else f"{entry.name} {entry.text}"
        yield from _said(mark, text, "yellow" if entry.ok else "red", coloured)
    elif entry.role == "fact":
        yield from _said(entry.name, entry.text, "green", coloured)
    elif entry.text:
        yield from _said(entry.role, entry.text, _COLOURS.get(entry.role, ""), coloured)
    if entry.role == "user" and not entry.ok:
        yield from _said("  ✗", f"no answer: {entry.why}" if entry.why else "no answer", "red", coloured)


def _said(who: str, text: str, colour: str, coloured: bool) -> Iterator[str]:
    """A text behind its speaker; further lines stand below the first."""
    first, *rest = printable(text).split("\n")
    who = printable(who).ljust(9)
    yield f"{typer.style(who, fg=colour) if coloured and colour else who}  {first}".rstrip()
    yield from (f"{' ' * 11}{line}".rstrip() for line in rest)


def _around(text: str, words: Sequence[str]) -> str:
    """The part of a text in which the first word stands that is looked for."""
    line = " ".join(text.split())
    lower = line.lower()
    at = min((found for word in words if (found := lower.find(word.lower())) >= 0), default=0)
    start, end = max(0, at - _AROUND), at + _AROUND
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"


def _size(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.1f} {unit}" if unit != "bytes" else f"{count} bytes"
        size /= 1000
    return f"{size:.1f} GB"
