"""Look at what runs did, while they go on or afterwards."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from octo.errors import Problem, UsageError
from octo_cli import diagnostics, inputs, options, output, signals
from octo_cli.asking import agreed
from octo_cli.options import AsJson, BesideConfig, Debug, StoreDirectory
from octo_cli.session import Session

if TYPE_CHECKING:
    from octo.runlog.kept import Kept
    from octo.runlog.record import Record
    from octo.store.store import Store
    from octo.values import Json

GROUP = "Look"

_ID: Final = re.compile(r"[\w-]+")
"""What may be the id of a run, and is most likely no name of a file."""
_DAY: Final = 24 * 3600 * 10**9
_DAYS: Final = re.compile(r"(\d{1,5})([dw])")
_FEW: Final = 20
_MOST: Final = 1_000_000
_LATEST: Final = 2**63 - 1
"""The last point in time that a store knows, in nanoseconds since 1970."""


def list_(
    context: typer.Context,
    flow: Annotated[
        str | None, typer.Option("--flow", metavar="NAME", help="Runs of this flow only; default all")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="WHEN", help="Runs since then, as `2h`, `7d` or `2026-01-31`; default all"),
    ] = None,
    failed: Annotated[
        bool,
        typer.Option("--failed/--no-failed", show_default=False, help="Runs that failed or broke off; default all"),
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=_MOST, show_default=False, help="How many; default 20")
    ] = _FEW,
    store: StoreDirectory = None,
    config: BesideConfig = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """List the runs in which an agent worked, the newest first

    They are kept in the store. One that is under way is `running`; one whose process was killed is `interrupted`.
    """
    from octo.runlog import kept
    from octo_cli import run_table

    session, found = _begin(context, store, config, debug)
    now = time.time_ns()
    after = _moment(since, now) if since else 0
    with found:
        query = kept.newest(found, limit=limit + 1, now=now, flow=flow, since=after, failed=failed)
        runs = signals.run(session, query)
    more, runs = len(runs) > limit, runs[:limit]
    if _as_document(session, json):
        output.document(session, {"runs": [run_table.facts(run, now) for run in runs], "more": more}, json=json)
    elif not runs:
        filtered = flow or since or failed
        output.text(session, "no such run" if filtered else "no runs yet: those in which an agent works are recorded")
    else:
        width, coloured = _width(), session.coloured(session.out)
        lines = run_table.lines(runs, now, coloured=coloured, width=width)
        output.painted(session, "\n".join([*lines, *([f"older ones: `--limit {limit * 5}`"] if more else [])]))
    return 0


def show(
    context: typer.Context,
    run: Annotated[
        str, typer.Argument(metavar="RUN|FILE", help="Id of a run or its beginning, `latest`, `-1`, or a run log")
    ],
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="OUT", parser=inputs.path, help="Write it as one HTML page; default none"),
    ] = None,
    store: StoreDirectory = None,
    config: BesideConfig = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Show what happened in a run, as a tree with times, tokens and tool calls

    A run in which an agent worked is found in the store: its id is the `event_id` of its message. A run log is what
    `octo invoke --log FILE` writes. The page of `--html` needs no network and no other file.
    """
    from octo.runlog.tree import totals, tree
    from octo_cli import run_table, run_tree

    session: Session = context.obj
    session.debug = debug
    if not run.strip():
        raise UsageError("a blank id names no run", hint="`octo runs list` shows the runs that there are")
    file = inputs.path(run)
    now = time.time_ns()
    output.check_targets({"--html": html}, {"`--config`": config})
    if file.exists() or not _ID.fullmatch(run):
        found, records = None, _read(session, file, html)
    else:
        found, records = _find(session, _store(session, store, config), run, now)
    if html is not None:
        output.keep_others("--html", html, "web page", (b"<!doctype html",))
    name = found.row.id if found else file.name
    if html is not None:
        from octo.runlog.page import page

        output.text_to_file(page(records, name), html)
        _answer(session, {"html": str(html), "records": len(records)}, f"wrote {html}", json=json)
        return 0
    roots = tree(records)
    sums = totals(records, roots)
    if _as_document(session, json):
        spans = [run_tree.span(node, depth) for root in roots for depth, node in root.walk()]
        about = {"run": run_table.facts(found, now)} if found else {}
        output.document(session, {**about, "totals": run_tree.totals(sums), "spans": spans}, json=json)
    else:
        head = [*run_table.heading(found, now), ""] if found else []
        lines = run_tree.lines(roots, coloured=session.coloured(session.out)) if roots else []
        output.painted(session, "\n".join([*head, *lines, "", run_tree.total(sums)]))
    return 0


def prune(
    context: typer.Context,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="AGE", help="Runs that began longer ago, as `30d` or `12h`; default any"),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option("--keep", metavar="N", min=0, max=_MOST, help="All but so many of the newest; default none"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes/--no-yes", show_default=False, help="Do not ask; default off")] = False,
    store: StoreDirectory = None,
    config: BesideConfig = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Remove old runs from the store

    With both `--older-than` and `--keep`, a run is removed that is old and not among the newest. One that is under way
    stays. `octo store prune` then gives the room back to the disk.
    """
    from octo.runlog import kept

    session, found = _begin(context, store, config, debug)
    if older_than is None and keep is None:
        raise UsageError(
            "`octo runs prune` needs `--older-than` or `--keep`", hint="for example `--older-than 30d` or `--keep 100`"
        )
    age = None if older_than is None else _age("--older-than", older_than)
    with found:
        numbers = signals.run(session, kept.prune(found, now=time.time_ns(), older_than=age, keep=keep))
        if numbers and not yes and not agreed(session, f"remove {_count(len(numbers))} from `{found}`?"):
            numbers = []
        signals.run(session, kept.remove(found, numbers))
    _answer(session, {"path": str(found), "removed": len(numbers)}, f"removed {_count(len(numbers))}", json=json)
    return 0


def verbs() -> tuple[Callable[..., int], ...]:
    return (list_, show, prune)


def _begin(context: typer.Context, store: str | None, config: Path | None, debug: bool) -> tuple[Session, Store]:
    session: Session = context.obj
    session.debug = debug
    return session, _store(session, store, config)


def _store(session: Session, store: str | None, config: Path | None) -> Store:
    found = options.store(session, store, options.beside(config))
    if found.path is None:
        raise UsageError("a store in memory keeps nothing", hint="name a directory with `--store DIR`")
    return found


def _read(session: Session, file: Path, html: Path | None) -> list[Record]:
    """The records of a run log."""
    from octo.runlog.tree import read

    output.check_targets({"--html": html}, {"`octo runs show`": file})
    records, faulty = read(file)
    for place, reason in faulty:
        problem = Problem(f"this line is no record and is left out: {reason}", place, severity="warning")
        diagnostics.warn(session, problem)
    return records


def _find(session: Session, store: Store, name: str, now: int) -> tuple[Kept, list[Record]]:
    """A run of the store, and its log."""
    from octo.runlog import kept

    async def work() -> tuple[Kept, list[Record]]:
        run = await kept.find(store, name, now=now)
        return run, await kept.records(store, run)

    with store:
        return signals.run(session, work())


def _age(option: str, text: str) -> int:
    """A span of time in nanoseconds. Raises UsageError when it is none."""
    from octo.fields import Duration

    if days := _DAYS.fullmatch(text):
        return int(days[1]) * (7 if days[2] == "w" else 1) * _DAY
    try:
        return Duration(text).ns
    except ValueError:
        hint = "for example `30m`, `12h`, `30d` or `2w`"
        raise UsageError(f"`{option}`: expected a span of time, found `{text}`", hint=hint) from None


def _moment(text: str, now: int) -> int:
    """A point in time, given as such or by how long ago it is. Raises UsageError."""
    from datetime import datetime

    try:
        return min(round(datetime.fromisoformat(text).timestamp()) * 10**9, _LATEST)
    except (ValueError, OverflowError, OSError):
        pass
    try:
        return max(0, now - _age("--since", text))
    except UsageError:
        hint = "for example `2h`, `7d`, `2026-01-31` or `2026-01-31T18:00`"
        raise UsageError(f"`--since`: expected a span of time or a date, found `{text}`", hint=hint) from None


def _width() -> int:
    import shutil

    return shutil.get_terminal_size().columns


def _count(number: int) -> str:
    return f"{number:,} run{'' if number == 1 else 's'}"


def _as_document(session: Session, json: bool) -> bool:
    return json or not session.for_people(session.out)


def _answer(session: Session, facts: dict[str, Json], words: str, *, json: bool) -> None:
    if _as_document(session, json):
        output.document(session, facts, json=json)
    else:
        output.text(session, words)
