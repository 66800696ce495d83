"""Look at what agents remember, and forget it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

import octo
from octo.errors import UsageError, did_you_mean
from octo_cli import inputs, options, output, signals
from octo_cli.asking import agreed
from octo_cli.options import AsJson, BesideConfig, Debug, StoreDirectory
from octo_cli.session import Session

if TYPE_CHECKING:
    from sqlite3 import Connection

    from octo.agent.memory.kept import Entry, Hit, Item, Kind
    from octo.store.store import Store
    from octo.values import Json

GROUP = "Keep"

_SHORTEST = 4
"""So many characters at least of the beginning of a key stand for it."""
_FEW = 50
_MOST = 1_000_000

T = TypeVar("T")

OfKind = Annotated[
    str | None,
    typer.Option(
        "--kind", metavar="KIND", help="Only `managed`, `thread`, `transcript` or `facts`; default all of them"
    ),
]
OfFlow = Annotated[str | None, typer.Option("--flow", metavar="NAME", help="Only what belongs to a flow; default all")]
OfBlock = Annotated[
    str | None, typer.Option("--block", metavar="ADDRESS", help="Only what belongs to a block; default all")
]
Key = Annotated[
    str, typer.Argument(metavar="KEY", help="Key of a memory, or id of a thread, a conversation or a person")
]
Limit = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, max=_MOST, show_default=False, help="How many; default 50")
]


def list_(
    context: typer.Context,
    kind: OfKind = None,
    flow: OfFlow = None,
    block: OfBlock = None,
    limit: Limit = _FEW,
    store: StoreDirectory = None,
    config: BesideConfig = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """List what is remembered, the latest first

    `managed` memories are those of agents with `memory`, one for each key and block; threads are those of
    `memoryThreadId`; transcripts are conversations as people read them; facts are what agents know of a person.
    """
    from octo.agent.memory import kept
    from octo_cli import memory_table

    session, found = _begin(context, store, config, debug)
    wanted = _kind(kind)
    items = _read(session, found, lambda db: kept.items(db, kind=wanted, flow=flow or "", block=block or ""))
    more, items = len(items) > limit, items[:limit]
    if _as_document(session, json):
        facts: dict[str, Json] = {"memories": [memory_table.facts(item) for item in items], "more": more}
        output.document(session, facts, json=json)
    elif not items:
        filtered = kind or flow or block
        output.text(session, "nothing of that kind is kept" if filtered else "nothing is remembered yet")
    else:
        memory_table.put_items(session, items, time.time_ns())
        if more:
            output.text(session, f"older ones: `--limit {limit * 5}`")
    return 0


def show(
    context: typer.Context,
    key: Key,
    kind: OfKind = None,
    block: OfBlock = None,
    last: Annotated[
        int | None, typer.Option("--last", metavar="N", min=1, max=_MOST, help="Only the last entries; default all")
    ] = None,
    store: StoreDirectory = None,
    config: BesideConfig = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Show one memory, thread or conversation, or what is known of a person

    The beginning of a key will do, as long as it fits one only.
    """
    from octo_cli import memory_table

    session, found = _begin(context, store, config, debug)
    wanted = _kind(kind)
    shown = _read(session, found, lambda db: _with_entries(db, _named(db, key, wanted, block or ""), last))
    if _as_document(session, json):
        output.document(session, {"memories": [_document(item, entries) for item, entries in shown]}, json=json)
        return 0
    now, coloured = time.time_ns(), session.coloured(session.out)
    parts = [list(memory_table.conversation(item, entries, now, coloured=coloured)) for item, entries in shown]
    output.painted(session, "\n\n".join("\n".join(lines) for lines in parts))
    return 0


def search(
    context: typer.Context,
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="Words that stand together in one text")],
    kind: OfKind = None,
    limit: Limit = _FEW,
    store: StoreDirectory = None,
    config: BesideConfig = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Search in all that was said, and in what is known of people

    A word is found by its beginning, in any case of its letters. The first search builds an index in the store.
    """
    from octo.agent.memory import kept
    from octo_cli import memory_table

    session, found = _begin(context, store, config, debug)
    wanted = _kind(kind)
    kinds = kept.KINDS if wanted is None else (wanted,)

    async def work() -> list[Hit]:
        async with found.to_search() as store:
            while await store.write(kept.index):
                pass
            return await store.write(lambda db: kept.find(db, " ".join(words), kinds=kinds, most=limit))

    with found:
        hits = signals.run(session, work()) if found.exists() else []
    if _as_document(session, json):
        output.document(session, {"found": [memory_table.facts_of_hit(hit) for hit in hits]}, json=json)
    elif hits:
        memory_table.put_hits(session, hits, words)
    else:
        output.text(session, "nothing was found")
    return 0


def key(
    context: typer.Context,
    id: Annotated[str, typer.Argument(metavar="ID", help="Id of a memory, as `--memory-id` and `memoryId` take it")],
    flow: Annotated[str, typer.Option("--flow", metavar="NAME", help="Flow that the runs start from")],
    workspace: Annotated[
        str | None,
        typer.Option("--workspace", metavar="NAME", help="Name of the service; default that of the config, else none"),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="PATH", parser=inputs.path, help="Config of the service; default none"),
    ] = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Print the key under which the memory of an id is kept

    A UUID is its own key and the same in all flows; so are 32 hexadecimal digits. Any other id has a key of its own in
    each flow of each service.
    """
    from octo.agent.memory import keys

    session: Session = context.obj
    session.debug = debug
    for name, given in (("id", id), ("flow", flow)):
        if not given.strip():
            raise UsageError(f"a blank {name} names no memory")
    if config is not None:
        loaded = octo.load(config, environ=session.environ)
        flows = [one.name for one in loaded.flows if one.name]
        if flow not in flows:
            raise UsageError(f'flow "{flow}" is not registered', hint=did_you_mean(flow, flows))
        workspace = loaded.service.name if workspace is None else workspace
    found = keys.key(id, workspace=workspace or "", flow=flow)
    if json:
        output.document(session, {"key": found}, json=True)
    else:
        output.text(session, found)
    return 0


def export(
    context: typer.Context,
    key: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="Only what is kept under a key; default all")
    ] = None,
    kind: OfKind = None,
    flow: OfFlow = None,
    block: OfBlock = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="PATH", parser=inputs.path, help="Write to a file; default standard output"),
    ] = None,
    store: StoreDirectory = None,
    config: BesideConfig = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Write all that is remembered, or a part of it, as one JSON document"""
    from octo.agent.memory import kept

    session, found = _begin(context, store, config, debug)
    wanted = _kind(kind)
    output.check_targets({"--out": out}, {"`--config`": config})
    if out is not None:
        output.keep_others("--out", out, "memory export", (b'{"memories":',))

    def work(db: Connection) -> list[tuple[Item, list[Entry]]]:
        if key is not None:
            return _with_entries(db, _named(db, key, wanted, block or ""))
        return _with_entries(db, kept.items(db, kind=wanted, flow=flow or "", block=block or ""))

    parts = {"memories": [_document(item, entries) for item, entries in _read(session, found, work)]}
    if out is None:
        output.document(session, parts, json=json)
    else:
        output.to_file(session, parts, out)
    return 0


def delete(
    context: typer.Context,
    key: Key,
    kind: OfKind = None,
    block: OfBlock = None,
    yes: Annotated[bool, typer.Option("--yes/--no-yes", show_default=False, help="Do not ask; default off")] = False,
    store: StoreDirectory = None,
    config: BesideConfig = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Forget what is kept under a key, after asking

    With a conversation go the memories of its runs. With `--yes` the key is to be given whole.
    """
    from octo.agent.memory import kept

    session, found = _begin(context, store, config, debug)
    wanted = _kind(kind)
    items = _read(session, found, lambda db: _named(db, key, wanted, block or "", whole=yes))
    told = ", ".join(f"{item.kind} of `{item.owner}`" if item.owner else item.kind for item in items)
    if not yes and not agreed(session, f"forget {told} under `{items[0].id}`?"):
        items = []

    def work(db: Connection) -> None:
        for item in items:
            kept.delete(db, item)

    with found:
        signals.run(session, found.write(work))
    if _as_document(session, json):
        output.document(session, {"path": str(found), "deleted": len(items)}, json=json)
    else:
        output.text(session, f"forgot {told}" if items else "nothing was deleted")
    return 0


def verbs() -> tuple[Callable[..., int], ...]:
    return (list_, show, search, key, export, delete)


# ---------------------------------------------------------------- finding


def _named(db: Connection, key: str, kind: Kind | None, block: str, *, whole: bool = False) -> list[Item]:
    """What is kept under a key, or under the one that begins so. Raises UsageError when there is nothing."""
    from octo.agent.memory import kept

    items = kept.items(db, kind=kind, block=block)
    others = {item.kind for item in kept.items(db) if item.id == key}
    if others and not any(item.id == key for item in items):
        limited = " and ".join([f"`--kind {kind}`"] * (kind is not None) + [f"`--block {block}`"] * bool(block))
        found = " and ".join(name for name in kept.KINDS if name in others)
        raise UsageError(f"nothing is kept under `{key}` with {limited}", hint=f"without, there is: {found}")
    exact = [item for item in items if item.id == key]
    if exact or not items:
        return exact or _nothing(key, [])
    begun = {item.id for item in items if item.id.startswith(key)}
    if whole or len(key) < _SHORTEST or not begun:
        return _nothing(key, sorted(begun) or sorted({item.id for item in items}))
    if len(begun) > 1:
        raise UsageError(f"{len(begun)} keys begin with `{key}`", hint="give more of it, or `--kind`")
    return [item for item in items if item.id in begun]


def _nothing(key: str, known: Sequence[str]) -> list[Item]:
    hint = f"did you mean `{known[0]}`?" if len(known) == 1 and known[0].startswith(key) else did_you_mean(key, known)
    raise UsageError(f"nothing is kept under `{key}`", hint=hint or "`octo memory list` shows what is kept")


def _with_entries(db: Connection, items: Sequence[Item], last: int | None = None) -> list[tuple[Item, list[Entry]]]:
    from octo.agent.memory import kept

    return [(item, kept.entries(db, item)[-last if last else 0 :]) for item in items]


def _document(item: Item, entries: Sequence[Entry]) -> dict[str, Json]:
    from octo_cli import memory_table

    told = memory_table.facts(item)
    told["entries"] = [memory_table.facts_of_entry(entry) for entry in entries]
    return told


def _kind(text: str | None) -> Kind | None:
    from octo.agent.memory.kept import KINDS

    if text is not None and text not in KINDS:
        hint = did_you_mean(text, KINDS)
        raise UsageError(f"`--kind`: there is no kind `{text}`", hint=hint or f"one of {', '.join(KINDS)}")
    return text


# ---------------------------------------------------------------- the store


def _begin(context: typer.Context, store: str | None, config: Path | None, debug: bool) -> tuple[Session, Store]:
    session: Session = context.obj
    session.debug = debug
    found = options.store(session, store, options.beside(config))
    if found.path is None:
        raise UsageError("a store in memory keeps nothing", hint="name a directory with `--store DIR`")
    return session, found


def _read(session: Session, store: Store, work: Callable[[Connection], list[T]]) -> list[T]:
    """What work on the store gives; where there is no store, what it gives on an empty one."""
    from octo.store.store import Store

    with store if store.exists() else Store() as opened:
        return signals.run(session, opened.read(work, []))


def _as_document(session: Session, json: bool) -> bool:
    return json or not session.for_people(session.out)
