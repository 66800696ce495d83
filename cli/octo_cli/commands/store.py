"""Look after the file in which octo keeps things."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from octo.errors import UsageError
from octo_cli import inputs, options, output, signals
from octo_cli.options import AsJson, BesideConfig, Debug, StoreDirectory
from octo_cli.session import Session

if TYPE_CHECKING:
    from octo.store.store import Store
    from octo.values import Json

GROUP = "Keep"
_ENDS = ("", "-wal", "-shm")
"""What the names of the files of a store end in."""


def info(
    context: typer.Context,
    store: StoreDirectory = None,
    config: BesideConfig = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Show where the store lies and what it holds"""
    from octo.store import upkeep

    session, found = _begin(context, store, config, debug)
    with found:
        contents = signals.run(session, upkeep.contents(found))
    if _as_document(session, json):
        facts: dict[str, Json] = asdict(contents) if contents else {}
        output.document(session, {"path": str(found), "exists": contents is not None, **facts}, json=json)
    elif contents is None:
        output.text(session, f"{found}\n  nothing is kept there yet")
    else:
        waiting = f", and {_bytes(contents.log)} in its log" if contents.log else ""
        lines = [str(found), f"  version {contents.version}, {_bytes(contents.size)}{waiting}"]
        lines += [f"  {name.replace('_', ' ')}: {count}" for name, count in contents.rows.items()]
        output.text(session, "\n".join(lines))
    return 0


def backup(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", parser=inputs.path, help="The copy")],
    force: Annotated[
        bool, typer.Option("--force/--no-force", show_default=False, help="Replace an existing file; default off")
    ] = False,
    store: StoreDirectory = None,
    config: BesideConfig = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Copy the store as it is at this moment into one file

    Others may go on writing meanwhile. To use the copy, name it `octo.db` and name its directory with `--store`.
    """
    from octo.store import upkeep

    session, found = _begin(context, store, config, debug)
    if found.path and any(output.is_same(file, found.path.with_name(found.path.name + end)) for end in _ENDS):
        raise UsageError(f"`{file}` is the store itself, which others may be using", hint="name another file")
    with found:
        size = signals.run(session, upkeep.backup(found, file, force=force))
    if _as_document(session, json):
        output.document(session, {"path": str(found), "backup": str(file), "size": size}, json=json)
    else:
        output.text(session, f"copied {found} to {file}, {_bytes(size)}")
    return 0


def prune(
    context: typer.Context,
    store: StoreDirectory = None,
    config: BesideConfig = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Remove what has expired and give its room back to the disk"""
    from octo.store import upkeep

    session, found = _begin(context, store, config, debug)
    with found:
        pruned = signals.run(session, upkeep.prune(found, now=time.time_ns()))
    if _as_document(session, json):
        output.document(session, {"path": str(found), **asdict(pruned)}, json=json)
    else:
        entries = f"{pruned.expired} expired {'entry' if pruned.expired == 1 else 'entries'}"
        output.text(session, f"removed {entries} and freed {_bytes(pruned.freed)}")
    return 0


def verbs() -> tuple[Callable[..., int], ...]:
    return (info, backup, prune)


def _begin(context: typer.Context, store: str | None, config: Path | None, debug: bool) -> tuple[Session, Store]:
    session: Session = context.obj
    session.debug = debug
    found = options.store(session, store, options.beside(config))
    if found.path is None:
        raise UsageError("a store in memory keeps nothing", hint="name a directory with `--store DIR`")
    return session, found


def _as_document(session: Session, json: bool) -> bool:
    return json or not session.for_people(session.out)


def _bytes(count: int) -> str:
    """A number of bytes as people read it."""
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.1f} {unit}" if unit != "bytes" else f"{count} bytes"
        size /= 1000
    return f"{size:.1f} GB"
