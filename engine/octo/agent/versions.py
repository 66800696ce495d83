"""What the store holds of agents, with its meaning: which value a name stands for, and how that changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from octo.agent import authored
from octo.errors import OctoError, StoreError, UsageError
from octo.store import agents, upkeep
from octo.store.agents import DraftRow, Outline, Written
from octo.values import Json, parse

if TYPE_CHECKING:
    from sqlite3 import Connection

    from octo.store.store import Store

NONE_DECLARED: Final[Mapping[str, dict[str, Json]]] = MappingProxyType({})
_ALIKE: Final = 3


@dataclass(frozen=True, slots=True)
class Resolved:
    """The value that a name stands for at this moment."""

    name: str
    value: dict[str, Json]
    """As it was authored: references such as `${NAME}` are in it as they are written."""
    version: int | None
    """Of a draft, the version that it was begun from; None when there is none."""
    source: Literal["deployed", "pinned", "draft"]
    hash: str


@dataclass(frozen=True, slots=True)
class Change:
    """Who changes an agent, when, and what is to be remembered of it."""

    user: str
    at: int
    """In nanoseconds since 1970."""
    note: str = ""


_IN_MEMORY: Final = "the store is in memory; `--store DIR` names one that keeps agents"


@dataclass(frozen=True, slots=True)
class Deployed:
    """What came of writing a value."""

    name: str
    version: int
    is_new: bool
    """False when the value was in force already, so that nothing was written."""


# ---------------------------------------------------------------- which value


async def resolve(
    store: Store,
    name: str,
    version: int | None = None,
    draft_of: str | None = None,
    *,
    declared: Mapping[str, dict[str, Json]] = NONE_DECLARED,
) -> Resolved:
    """What an agent is at this moment: the pinned version, else the draft of a user, else what is deployed.

    `declared` are values of the config that the store could not take, or not yet; they count before what it holds, and
    are the next version of an agent that it does not know. Raises OctoError when there is no such agent or version, or
    when what is stored is no value.
    """
    if version is None and name in declared:
        return Resolved(name, declared[name], None, "deployed", authored.digest(declared[name]))
    found = await store.read(lambda db: _found(db, name, version, draft_of), None)
    if found is None and name in declared:
        next_version = await store.read(lambda db: agents.next_version(db, name), 1)
        if version != next_version:
            hint = f"the next run stores what is declared as version {next_version}"
            raise UsageError(f'agent "{name}" has no version {version}', hint=hint)
        return Resolved(name, declared[name], version, "pinned", authored.digest(declared[name]))
    if found is None:
        known: list[str] = await store.read(agents.names, [])
        drafted = store.path is not None and await store.read(lambda db: agents.is_taken(db, name), False)
        raise _draft_only(name) if drafted else not_found(name, [*known, *declared], in_memory=store.path is None)
    if isinstance(found, UsageError) and store.path is None:
        raise UsageError(found.message, hint=_IN_MEMORY)
    if isinstance(found, OctoError):
        raise found
    return found


def not_found(name: str, known: Sequence[str], *, in_memory: bool = False) -> UsageError:
    """The error of a name that no agent has."""
    from difflib import get_close_matches  # here, for most names are found

    alike = [f"`{other}`" for other in get_close_matches(name, dict.fromkeys(known), n=_ALIKE)]
    text = f'agent "{name}" not found'
    if alike:
        return UsageError(text, hint=f"did you mean {' or '.join(alike)}?")
    if in_memory:
        return UsageError(text, hint=_IN_MEMORY)
    return UsageError(text, hint="`octo agents list` shows which agents there are")


def absent(db: Connection, name: str) -> UsageError:
    """The error of a name that no agent of the store has."""
    return _draft_only(name) if agents.is_taken(db, name) else not_found(name, agents.names(db))


def _draft_only(name: str) -> UsageError:
    hint = f"there is a draft of it: `octo agents deploy {name}` puts yours in force"
    return UsageError(f'agent "{name}" not found', hint=hint)


def no_version(db: Connection, name: str, version: int) -> UsageError:
    """The error of a version that is not kept, or never was."""
    low, high = agents.kept(db, name) or (0, 0)
    kept = f"version {low} is" if low == high else f"versions {low} to {high} are"
    return UsageError(
        f'agent "{name}" has no version {version}: {kept} kept', hint=f"`octo agents history {name}` lists them"
    )


def decoded(text: str, name: str) -> dict[str, Json]:
    """The value that is stored. Raises StoreError when it is none."""
    try:
        value = parse(text)
    except ValueError as error:
        raise StoreError(f'agent "{name}": its stored value is not JSON: {error}') from None
    if not isinstance(value, dict):
        raise StoreError(f'agent "{name}": its stored value is no mapping')
    return value


def _found(db: Connection, name: str, version: int | None, draft_of: str | None) -> Resolved | OctoError | None:
    if version is not None:
        found = agents.version(db, name, version)
        if found is not None:
            return Resolved(name, decoded(found[0], name), version, "pinned", found[1])
        return None if agents.agent(db, name) is None else no_version(db, name, version)
    draft = agents.draft(db, name, draft_of) if draft_of is not None else None
    if draft is not None:
        return Resolved(name, decoded(draft.value, name), draft.base_version, "draft", draft.hash)
    current = agents.current(db, name)
    if current is None:
        return None
    value, number, hash = current
    return Resolved(name, decoded(value, name), number, "deployed", hash)


# ---------------------------------------------------------------- deploying


async def deploy(store: Store, name: str, value: Mapping[str, Json], change: Change) -> Deployed:
    """Put a value in force. One that is in force already is not written again."""
    return await store.write(lambda db: append(db, name, value, change, "deploy"))


async def deploy_draft(store: Store, name: str, change: Change, *, force: bool = False) -> Deployed:
    """Put the draft of the user in force, and drop it.

    Raises UsageError when there is none, or, unless `force` is given, when another version is in force than the one
    that the draft was begun from.
    """

    def work(db: Connection) -> Deployed:
        draft = agents.draft(db, name, change.user)
        if draft is None:
            raise no_draft(db, name, change.user)
        if not force:
            _refuse_when_behind(db, draft)
        deployed = append(db, name, decoded(draft.value, name), change, "draft")
        agents.delete_draft(db, name, change.user)
        return deployed

    return await store.write(work)


async def restore(store: Store, name: str, version: int, change: Change) -> Deployed:
    """Write an old value forward, as a version of its own. Raises UsageError when it is not kept."""

    def work(db: Connection) -> Deployed:
        value = decoded(_version_value(db, name, version), name)
        return append(db, name, value, change, f"restore of v{version}", always=True)

    return await store.write(work)


def append(
    db: Connection, name: str, value: Mapping[str, Json], change: Change, origin: str, *, always: bool = False
) -> Deployed:
    """Store a value as the next version, unless it is in force already."""
    hash = authored.digest(value)
    row = agents.agent(db, name)
    if row is not None and row.hash == hash and not always:
        return Deployed(name, row.version, is_new=False)
    written = Written(authored.text(value), hash, outline(value), change.at, change.user, origin, change.note)
    return Deployed(name, agents.write(db, name, written), is_new=True)


def outline(value: Mapping[str, Json]) -> Outline:
    """What a list tells of a value."""
    tools = value.get("tools")
    connector, model, description = (
        text if isinstance(text := value.get(key), str) else "" for key in ("connector", "model", "description")
    )
    return Outline(connector, model, len(tools) if isinstance(tools, list) else 0, description)


def _version_value(db: Connection, name: str, version: int) -> str:
    found = agents.version(db, name, version)
    if found is not None:
        return found[0]
    if agents.agent(db, name) is None:
        raise absent(db, name)
    raise no_version(db, name, version)


# ---------------------------------------------------------------- drafts


async def put_draft(store: Store, name: str, value: Mapping[str, Json], change: Change) -> int | None:
    """Keep a draft in the place of the user's last one; the version that it was begun from."""

    def work(db: Connection) -> int | None:
        before = agents.draft(db, name, change.user)
        row = agents.agent(db, name)
        base = before.base_version if before is not None else row.version if row is not None else None
        text, hash = authored.text(value), authored.digest(value)
        agents.put_draft(db, DraftRow(name, change.user, base, text, hash, change.at))
        return base

    return await store.write(work)


async def discard_draft(store: Store, name: str, user: str) -> None:
    """Drop a draft. Raises UsageError when there is none."""

    def work(db: Connection) -> None:
        if not agents.delete_draft(db, name, user):
            raise no_draft(db, name, user)

    await store.write(work)


def no_draft(db: Connection, name: str, user: str) -> UsageError:
    """The error of a draft that is not there."""
    if agents.agent(db, name) is None:
        return absent(db, name)
    return UsageError(f'agent "{name}" has no draft of `{user}`', hint=f"`octo agents draft {name} --edit` begins one")


def _refuse_when_behind(db: Connection, draft: DraftRow) -> None:
    """What was deployed since the draft was begun would be lost from sight."""
    name, base = draft.name, draft.base_version
    row = agents.agent(db, name)
    if row is None or row.version == base:
        return
    current, mine = decoded((agents.current(db, name) or ("{}",))[0], name), decoded(draft.value, name)
    old = agents.version(db, name, base) if base is not None else None
    begun = "before the agent was deployed" if base is None else f"from v{base}"
    text = f'agent "{name}": the draft was begun {begun}, and v{row.version} is deployed'
    if old is not None or base is None:
        before = decoded(old[0], name) if old is not None else {}
        theirs, ours = changed_keys(before, current), changed_keys(before, mine)
        both = [key for key in ours if key in theirs and current.get(key) != mine.get(key)]
        text += f"; deployed since: {_list(theirs)}; changed in the draft: {_list(ours)}; in both: {_list(both)}"
    raise UsageError(
        text,
        hint=f"`octo agents diff {name} current draft` shows what would change; `--force` deploys the draft as it is",
    )


def changed_keys(old: Mapping[str, Json], new: Mapping[str, Json]) -> list[str]:
    """The keys that differ."""
    return sorted(key for key in {*old, *new} if old.get(key) != new.get(key) or (key in old) != (key in new))


def _list(keys: Sequence[str]) -> str:
    return ", ".join(f"`{key}`" for key in keys) or "nothing"


# ---------------------------------------------------------------- whole agents


async def clear_history(store: Store, name: str) -> tuple[int, int]:
    """Remove all versions but the one in force, also from the bytes of the store; how many, and which one stays."""

    def work(db: Connection) -> tuple[int, int]:
        row = agents.agent(db, name)
        if row is None:
            raise absent(db, name)
        return agents.delete_old_versions(db, name), row.version

    cleared = await store.write(work)
    try:
        await upkeep.scrub(store)
    except StoreError as error:
        hint = f"the versions are gone, their bytes may not be: run `octo agents clear-history {name}` once more"
        raise StoreError(error.message, hint=hint) from error
    return cleared


async def rename(store: Store, old: str, new: str) -> None:
    """Give an agent another name, with all that belongs to it. Raises UsageError when that cannot be."""
    fault = authored.name_fault(new)
    if fault is not None:
        raise UsageError(f"`{new}` is no name of an agent", hint=fault)

    def work(db: Connection) -> None:
        if agents.agent(db, old) is None:
            raise absent(db, old)
        if new == old:
            raise UsageError(f'the agent "{old}" has that name already', hint="choose another name")
        if agents.is_taken(db, new):
            raise UsageError(f'there is an agent "{new}" already', hint="choose another name, or delete that one first")
        agents.rename(db, old, new)

    await store.write(work)


async def delete(store: Store, name: str) -> tuple[int, int]:
    """Remove an agent, its versions and its drafts; how many of both."""

    def work(db: Connection) -> tuple[int, int]:
        if not agents.is_taken(db, name):
            raise absent(db, name)
        return agents.delete(db, name)

    return await store.write(work)
