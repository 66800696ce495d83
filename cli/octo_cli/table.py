"""Tables for people: as wide as they need to be, no wider than the terminal, without columns that are empty."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import typer

from octo.logline import printable
from octo_cli import output
from octo_cli.session import Session

_GAP: Final = 2
_NARROWEST: Final = 12
"""A column that may be cut stays at least so wide."""

Colour = Callable[[str], str | None]
"""The colour of a cell, by its text."""


def put(
    session: Session,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    cut: Sequence[str] = (),
    right: Collection[str] = (),
    colours: Mapping[str, Colour] | None = None,
) -> None:
    """Print a table. Where it does not fit, columns of `cut` are made narrower, the first of them first."""
    from rich.cells import cell_len

    cells = [[printable(" ".join(session.masked(cell).split())) for cell in row] for row in rows]
    used = [at for at in range(len(head)) if any(row[at] for row in cells)]
    widths = {at: max(cell_len(head[at]), *(cell_len(row[at]) for row in cells)) for at in used}
    excess = sum(widths.values()) + _GAP * (len(used) - 1) - shutil.get_terminal_size().columns
    for name in cut:
        at = head.index(name)
        if at in widths and excess > 0:
            narrower = min(excess, max(0, widths[at] - _NARROWEST))
            widths[at] -= narrower
            excess -= narrower
    coloured = session.coloured(session.out)
    title = (" " * _GAP).join(_fitted(head[at], widths[at], head[at] in right) for at in used).rstrip()
    lines = [typer.style(title, bold=True) if coloured else title]
    for row in cells:
        shown = []
        for at in used:
            cell = _fitted(row[at], widths[at], head[at] in right)
            colour = (colours or {}).get(head[at])
            fg = colour(row[at]) if colour and coloured and row[at] else None
            shown.append(typer.style(cell, fg=fg) if fg else cell)
        lines.append((" " * _GAP).join(shown).rstrip())
    output.painted(session, "\n".join(lines))


def _fitted(cell: str, width: int, to_the_right: bool) -> str:
    from rich.cells import cell_len, chop_cells

    if cell.isascii() and len(cell) <= width:
        return cell.rjust(width) if to_the_right else cell.ljust(width)
    fitting = cell if cell_len(cell) <= width else chop_cells(cell, width - 1)[0] + "…"
    space = " " * (width - cell_len(fitting))
    return space + fitting if to_the_right else fitting + space
