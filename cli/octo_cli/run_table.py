"""Runs that are kept: as a table for people, as facts for programs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import typer

from octo.logline import printable
from octo.runlog.record import instant
from octo.runlog.words import duration, money, number, short

if TYPE_CHECKING:
    from octo.runlog.kept import Kept
    from octo.store.runs import AgentRow, Spent
    from octo.values import Json

ID_SHOWN: Final = 8
"""So many characters of an id tell it from others, most likely."""
_SECOND: Final = 10**9
_COLOURS: Final = {"completed": "green", "running": "cyan", "dropped": "yellow", "failed": "red", "interrupted": "red"}
_FORGONE: Final = ("began", "time")
"""Columns without which a terminal does that is too narrow for the outcome."""
_TO_THE_RIGHT: Final = frozenset({"time", "turns", "tools", "tokens", "cost"})


def lines(runs: Sequence[Kept], now: int, *, coloured: bool, width: int | None) -> list[str]:
    """The table, with a head; no line is longer than `width`. What is known of no run has no column."""
    rows = [_row(run, now) for run in runs]
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in names}
    for name in _FORGONE:
        if width is not None and _end_of_outcome(names, widths) > width:
            names.remove(name)
    head = "  ".join(_padded(name.upper(), name, widths[name]) for name in names).rstrip()[:width]
    found = [typer.style(head, bold=True) if coloured else head]
    for row in rows:
        cells = {name: _padded(row[name], name, widths[name]) for name in names}
        line = "  ".join(cells.values()).rstrip()
        if width is not None and len(line) > width:
            line = line[: width - 1] + "…"
        if coloured:
            outcome = cells["outcome"]
            line = line.replace(outcome, typer.style(outcome, fg=_COLOURS[outcome.strip()]), 1)
        found.append(line)
    return found


def _end_of_outcome(names: Sequence[str], widths: Mapping[str, int]) -> int:
    """How wide a terminal is to be to show how a run ended."""
    before = names[: names.index("outcome") + 1]
    return sum(widths[name] for name in before) + 2 * (len(before) - 1)


def heading(run: Kept, now: int) -> list[str]:
    """Whose run it was, how it ended, and which agents worked in it."""
    row = run.row
    why = f": {short(row.error)}" if row.error else ""
    found = [f"run {row.id}", f"flow {row.flow}, {run.state}{why}", f"{moment(row.began, now)}, {row.config}"]
    return [printable(line) for line in (*found, *(_agent(agent) for agent in run.agents))]


def facts(run: Kept, now: int) -> dict[str, Json]:
    """A run as it stands in a JSON document."""
    from octo.values import Ordered

    row = run.row
    return Ordered(
        id=row.id,
        flow=row.flow,
        config=row.config,
        outcome=run.state,
        error=row.error or None,
        began=instant(row.began),
        ended=None if row.ended is None else instant(row.ended),
        seconds=run.seconds(now),
        **_spent(row.spent),
        records=row.records,
        logBytes=row.log_size,
        agents=[_facts_of_agent(agent) for agent in run.agents],
    )


# ---------------------------------------------------------------- for people


def _row(run: Kept, now: int) -> dict[str, str]:
    row, spent = run.row, run.row.spent
    known = spent.tokens_read is not None or spent.tokens_written is not None
    return {
        "run": printable(row.id[:ID_SHOWN]),
        "flow": printable(short(row.flow)),
        "began": moment(row.began, now),
        "time": duration(run.seconds(now)),
        "outcome": run.state,
        "turns": number(spent.turns),
        "tools": number(spent.tool_calls),
        "tokens": f"{number(spent.tokens_read)} → {number(spent.tokens_written)}" if known else "",
        "cost": "" if spent.cost is None else money(spent.cost),
        "error": printable(short(row.error)),
    }


def _padded(text: str, name: str, width: int) -> str:
    return text.rjust(width) if name in _TO_THE_RIGHT else text.ljust(width)


def moment(ns: int, now: int) -> str:
    """When it was, as people say it: how long ago on the same day, else date and time of day."""
    seconds = max(0, now - ns) // _SECOND
    if seconds < 60:
        return f"{seconds} s ago"
    if seconds < 3600:
        return f"{seconds // 60} min ago"
    if seconds < 24 * 3600:
        return f"{seconds // 3600} h ago"
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(ns // _SECOND))


def _agent(agent: AgentRow) -> str:
    version = f" version {agent.version}" if agent.version is not None else ""
    name = f"{agent.name} ({agent.source}{version}) at {agent.address}" if agent.name else agent.address
    hash = f", {agent.hash[:ID_SHOWN]}" if agent.hash else ""
    ending = f", gave up: {short(agent.reason)}" if agent.reason else f", {short(agent.error)}" if agent.error else ""
    return f"agent {name}{hash}, with {agent.connector}{ending}"


# ---------------------------------------------------------------- for programs


def _spent(spent: Spent) -> dict[str, Json]:
    return {
        "turns": spent.turns,
        "toolCalls": spent.tool_calls,
        "tokensRead": spent.tokens_read,
        "tokensWritten": spent.tokens_written,
        "costUSD": spent.cost,
    }


def _facts_of_agent(agent: AgentRow) -> dict[str, Json]:
    from octo.values import Ordered, Written

    return Ordered(
        address=agent.address,
        name=agent.name or None,
        source=agent.source,
        version=agent.version,
        hash=agent.hash or None,
        connector=agent.connector,
        **_spent(agent.spent),
        seconds=agent.seconds,
        reason=agent.reason or None,
        error=agent.error or None,
        **({"value": Written(agent.value)} if agent.value else {}),
    )
