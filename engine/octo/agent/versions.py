"""What the store holds of agents, with its meaning: which value a name stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from octo.errors import OctoError
from octo.store import agents
from octo.values import Json, parse

if TYPE_CHECKING:
    from sqlite3 import Connection

    from octo.store.store import Store

NONE_DECLARED: Mapping[str, dict[str, Json]] = MappingProxyType({})


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


async def resolve(
    store: Store,
    name: str,
    version: int | None = None,
    draft_of: str | None = None,
    *,
    declared: Mapping[str, dict[str, Json]] = NONE_DECLARED,
) -> Resolved:
    """What an agent is at this moment: the pinned version, else the draft of a user, else what is deployed.

    `declared` are the values of the config, where the store could not take them. Raises OctoError when there is no
    such agent or version, or when what is stored is no value.
    """
    found = await store.read(lambda db: _found(db, name, version, draft_of), None)
    if found is None and version is None and name in declared:
        from octo.agent import authored

        return Resolved(name, declared[name], None, "deployed", authored.digest(declared[name]))
    if found is None:
        known = await store.read(agents.names, [])
        raise not_found(name, [*known, *declared], in_memory=store.path is None)
    if isinstance(found, OctoError):
        raise found
    return found


def not_found(name: str, known: list[str], *, in_memory: bool = False) -> OctoError:
    """The error of a name that no agent has."""
    from difflib import get_close_matches  # here, for most names are found

    alike = [f"`{other}`" for other in get_close_matches(name, known, n=3)]
    text = f'agent "{name}" not found'
    if alike:
        return OctoError(text, hint=f"did you mean {' or '.join(alike)}?")
    if in_memory:
        return OctoError(text, hint="the store is in memory; `--store DIR` names one that keeps agents")
    return OctoError(text, hint="`octo agents list` shows which agents there are")


def _found(db: Connection, name: str, version: int | None, draft_of: str | None) -> Resolved | OctoError | None:
    if version is not None:
        return _pinned(db, name, version)
    draft = agents.draft(db, name, draft_of) if draft_of is not None else None
    if draft is not None:
        return Resolved(name, decoded(draft.value, name), draft.base_version, "draft", draft.hash)
    current = agents.current(db, name)
    if current is None:
        return None
    value, number, hash = current
    return Resolved(name, decoded(value, name), number, "deployed", hash)


def _pinned(db: Connection, name: str, version: int) -> Resolved | OctoError | None:
    found = agents.version(db, name, version)
    if found is not None:
        return Resolved(name, decoded(found[0], name), version, "pinned", found[1])
    if agents.agent(db, name) is None:
        return None
    return no_version(db, name, version)


def no_version(db: Connection, name: str, version: int) -> OctoError:
    """The error of a version that is not kept, or never was."""
    low, high = agents.kept(db, name) or (0, 0)
    kept = f"version {low} is" if low == high else f"versions {low} to {high} are"
    return OctoError(
        f'agent "{name}" has no version {version}: {kept} kept', hint=f"`octo agents history {name}` lists them"
    )


def decoded(text: str, name: str) -> dict[str, Json]:
    """The value that is stored. Raises OctoError when it is none."""
    try:
        value = parse(text)
    except ValueError as error:
        raise OctoError(f'agent "{name}": its stored value is not JSON: {error}') from None
    if not isinstance(value, dict):
        raise OctoError(f'agent "{name}": its stored value is no mapping')
    return value
