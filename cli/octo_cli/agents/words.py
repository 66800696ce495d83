"""Agents as they are told: tables and coloured differences for people, facts for programs."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Final

import typer

from octo.errors import UsageError
from octo.logline import printable
from octo.runlog.record import instant
from octo.values import Json, Ordered
from octo_cli import differences, output, table
from octo_cli.agents.desk import Desk
from octo_cli.run_table import moment

if TYPE_CHECKING:
    from octo.agent.declared import Declared
    from octo.agent.references import Reference
    from octo.agent.versions import Deployed, Resolved
    from octo.store.agents import AgentRow, VersionRow

CAVEAT: Final = (
    "versions hold the agent alone: what its connectors, variables, flows, skills and other agents held at the time "
    "is not kept, so two versions that are equal may work differently"
)
_DIGITS: Final = 8
"""So many digits of a hash are shown."""


# ---------------------------------------------------------------- what was done


def deployed(one: Deployed, verb: str = "deployed") -> str:
    """What was deployed, in words."""
    return f"{verb} {one.name} v{one.version}" if one.is_new else f"{one.name}: unchanged at v{one.version}"


def deployed_facts(one: Deployed) -> Ordered:
    """What was deployed as it stands in a JSON document."""
    return Ordered(name=one.name, version=one.version, changed=one.is_new)


# ---------------------------------------------------------------- lists


@dataclass(frozen=True)
class Listed:
    """An agent as a list tells of it."""

    row: AgentRow | None
    """None for an agent of which there is a draft only."""
    name: str
    drafted: bool
    base: int | None
    drift: bool
    linked: tuple[str, ...]
    """The blocks of the config that link it."""


def listed(desk: Desk, rows: Sequence[AgentRow], drafts: Mapping[str, int | None]) -> list[Listed]:
    """What there is to tell of all agents: of those in the store, and of those that the config will bring there."""
    declared = {one.name: one for one in desk.declared}
    linked = linked_from(desk)
    stored = {row.name for row in rows}
    rows = [*rows, *(_to_come(one) for one in declared.values() if one.name not in stored)]
    found = [
        Listed(
            row,
            row.name,
            row.name in drafts,
            drafts.get(row.name),
            _drifts(row, declared),
            tuple(linked.get(row.name, ())),
        )
        for row in rows
    ]
    there = {row.name for row in rows}
    alone = [
        Listed(None, name, True, base, False, tuple(linked.get(name, ())))
        for name, base in drafts.items()
        if name not in there
    ]
    return sorted([*found, *alone], key=lambda one: one.name)


def _to_come(one: Declared) -> AgentRow:
    """A declared agent that no run has brought into the store yet."""
    from octo.agent.versions import outline
    from octo.store.agents import AgentRow

    return AgentRow(one.name, one.hash, 0, one.source, "", 0, "", *outline(one.value))


def _drifts(row: AgentRow, declared: Mapping[str, Declared]) -> bool:
    """Whether its file says something else; without the file, whether it did when it was last read."""
    said = declared[row.name].hash if row.name in declared else row.source_hash
    return bool(said) and said != row.hash


def linked_from(desk: Desk) -> dict[str, list[str]]:
    """The names of agents, each with the addresses of the blocks that link it."""
    if desk.config is None:
        return {}
    from octo.agent import links

    found: dict[str, list[str]] = {}
    for block, link in links.of(desk.config):
        found.setdefault(link.name, []).append(block.address)
    return found


def counted(addresses: Sequence[str]) -> list[str]:
    """Addresses for people: blocks without a name may share one."""
    return [f"{address} ×{count}" if count > 1 else address for address, count in Counter(addresses).items()]


def facts(desk: Desk, one: Listed) -> Ordered:
    """An agent of a list as it stands in a JSON document."""
    row = one.row
    found = Ordered(
        name=one.name,
        version=row.version or None if row else None,
        hash=row.hash if row else None,
        draft=Ordered(base=one.base) if one.drafted else None,
        connector=row.connector or None if row else None,
        model=row.model or None if row else None,
        tools=row.tools if row else None,
        description=row.description or None if row else None,
        source=row.source or None if row else None,
        drift=one.drift,
        updated=instant(row.updated_at) if row and row.version else None,
        by=row.updated_by or None if row else None,
    )
    if desk.config is not None:
        found["linkedBy"] = list(one.linked)
    return found


def put_list(desk: Desk, found: Sequence[Listed]) -> None:
    """Print the table of agents."""
    head = ["NAME", "VERSION", "DRAFT", "MODEL", "TOOLS", "SOURCE", "DRIFT", "UPDATED", "LINKED BY"]
    rows = [_row(one, desk.now) for one in found]
    colours = {"NAME": lambda _: "cyan", "DRAFT": lambda _: "yellow", "DRIFT": lambda _: "red"}
    cut = ("SOURCE", "LINKED BY", "MODEL", "UPDATED", "NAME")
    table.put(desk.session, head, rows, cut=cut, right=("TOOLS",), colours=colours)


def _row(one: Listed, now: int) -> list[str]:
    draft = (f"+edits on v{one.base}" if one.base is not None else "+edits") if one.drafted else ""
    row = one.row
    if row is None:
        return [one.name, "", draft, "", "", "", "", "", ", ".join(counted(one.linked))]
    model = f"{row.connector}/{row.model}" if row.model else row.connector
    updated = f"{moment(row.updated_at, now)}, {row.updated_by}" if row.version else "with the next run"
    source, drift = near(row.source), "drift" if one.drift else ""
    return [
        one.name,
        f"v{row.version}" if row.version else "",
        draft,
        model,
        str(row.tools),
        source,
        drift,
        updated,
        ", ".join(counted(one.linked)),
    ]


def near(source: str) -> str:
    """A path as one would write it here."""
    if not source:
        return ""
    try:
        relative = os.path.relpath(source)
    except ValueError:  # on another drive
        return source
    return source if relative.startswith(f"{os.pardir}{os.sep}{os.pardir}") else relative


# ---------------------------------------------------------------- one agent


def whole(
    found: Resolved, row: AgentRow | None, refers: Sequence[Reference] | None, missing: Sequence[Reference] | None
) -> dict[str, Json]:
    """An agent with its value, as it stands in a JSON document."""
    document: dict[str, Json] = {
        "name": found.name,
        "state": found.source,
        "version": found.version,
        "hash": found.hash,
        "source": row.source or None if row else None,
        "current": row.version if row else None,
        "value": found.value,
    }
    if refers is not None:
        document["refersTo"] = [Ordered(kind=one.kind, name=one.name) for one in refers]
    if missing is not None:
        document["missing"] = [Ordered(kind=one.kind, name=one.name) for one in missing]
    return document


def put_whole(
    desk: Desk,
    found: Resolved,
    row: AgentRow | None,
    drafts: Mapping[str, int | None],
    refers: Sequence[Reference],
    missing: Sequence[Reference],
) -> None:
    """Print an agent with its value."""
    from octo.agent import shown

    coloured = desk.session.coloured(desk.session.out)
    title = {
        "draft": f"draft of `{desk.user}`" + (f", begun from v{found.version}" if found.version else ""),
        "pinned": f"v{found.version}",
        "deployed": f"v{found.version}" if found.version else "comes into the store with the next run",
    }[found.source]
    head = printable(f"{found.name} {title}")
    lines = [typer.style(head, bold=True) if coloured else head, f"hash {found.hash}"]
    if row is not None and found.version != row.version:
        lines.append(f"v{row.version} is deployed")
    if row is not None and row.source:
        drift = ", which says something else" if row.source_hash != row.hash else ""
        lines.append(printable(f"declared by {near(row.source)}{drift}"))
    if found.source == "deployed" and found.name in drafts:
        base = drafts[found.name]
        lines.append(f"+edits{f' on v{base}' if base else ''}: `octo agents draft {found.name}` shows the draft")
    if refers:
        lines.append("refers to " + ", ".join(printable(str(one)) for one in refers))
    for one in missing:
        line = printable(f"{one} is not there")
        lines.append(typer.style(line, fg="red") if coloured else line)
    output.painted(desk.session, "\n".join([*lines, ""]))
    put_yaml(desk, shown.yaml_text(found.value))


def put_yaml(desk: Desk, words: str) -> None:
    """Print YAML, in colour where there is colour."""
    text = desk.session.masked(printable(words.rstrip()))
    if not desk.session.coloured(desk.session.out):
        output.painted(desk.session, text)
        return
    from rich.console import Console
    from rich.syntax import Syntax

    from octo_cli.startup import writing

    with writing():
        highlighted = Syntax(text, "yaml", theme="ansi_dark", background_color="default").highlight(text)
        Console(file=desk.session.out, color_system="standard").print(highlighted, soft_wrap=True, end="")


# ---------------------------------------------------------------- history


def history(row: AgentRow, kept: Sequence[VersionRow]) -> dict[str, Json]:
    """The versions of an agent as they stand in a JSON document."""
    return {
        "name": row.name,
        "current": row.version,
        "olderGone": bool(kept) and kept[-1].version > 1,
        "versions": [
            Ordered(
                version=one.version,
                current=one.version == row.version,
                at=instant(one.created_at),
                by=one.created_by,
                origin=one.origin,
                hash=one.hash,
                note=one.note or None,
            )
            for one in kept
        ],
    }


def put_history(desk: Desk, row: AgentRow, kept: Sequence[VersionRow]) -> None:
    """Print the table of versions."""
    head = ["VERSION", "", "WHEN", "BY", "ORIGIN", "HASH", "NOTE"]
    rows = [
        [
            f"v{one.version}",
            "current" if one.version == row.version else "",
            moment(one.created_at, desk.now),
            one.created_by,
            _origin(one.origin),
            one.hash[:_DIGITS],
            one.note,
        ]
        for one in kept
    ]
    colours = {"VERSION": lambda _: "cyan", "": lambda _: "green", "HASH": lambda _: "bright_black"}
    table.put(desk.session, head, rows, cut=("NOTE", "ORIGIN", "BY"), colours=colours)
    oldest = kept[-1].version if kept else 1
    gone = [f"versions before v{oldest} were trimmed, cleared or deleted"] if oldest > 1 else []
    desk.text("\n".join(["", *gone, caveat()]))


def caveat() -> str:
    """What versions do not hold, in lines that are as wide as the terminal."""
    return fill(CAVEAT, shutil.get_terminal_size().columns)


def _origin(origin: str) -> str:
    word, _, path = origin.partition(" ")
    return f"source {near(path)}" if word == "source" else origin


# ---------------------------------------------------------------- differences


@dataclass(frozen=True)
class Side:
    """One of two values that are compared."""

    state: str
    version: int | None
    value: dict[str, Json]
    title: str


def side(desk: Desk, name: str, word: str) -> Side:
    """The value that a word stands for: a version, `current`, `draft` or `source`. Raises UsageError."""
    from octo.agent import declared, versions
    from octo.store import agents

    if word == "source":
        source = _source(desk, name)
        return Side("source", None, declared.source_value(source, name, desk.config), f"{name} in {near(source)}")
    version = _number(word)
    draft_of = desk.user if word == "draft" else None
    stored = desk.read(lambda db: agents.is_taken(db, name))
    to_come = {one.name: one.value for one in desk.declared if one.name == name and not stored}
    found = desk.run(versions.resolve(desk.store, name, version, draft_of, declared=to_come))
    if word == "draft" and found.source != "draft":
        raise desk.read(lambda db: versions.no_draft(db, name, desk.user))
    if word == "draft":
        return Side("draft", found.version, found.value, f"{name} draft of {desk.user}")
    rows = desk.read(lambda db: {one.version: one for one in agents.versions(db, name)})
    row = rows.get(found.version or 0)
    told = f" ({_origin(row.origin)}, {row.created_by})" if row else ""
    title = f"{name} v{found.version}{told}" if found.version else f"{name} as the next run stores it"
    return Side(word if word == "current" else "version", found.version, found.value, title)


def _number(word: str) -> int | None:
    if word in ("current", "draft"):
        return None
    number = word.removeprefix("v")
    if not number.isdecimal():
        hint = "a side is the number of a version, `current`, `draft` or `source`"
        raise UsageError(f"`{word}` is nothing that can be compared", hint=hint)
    return int(number)


def _source(desk: Desk, name: str) -> str:
    from octo.agent import versions
    from octo.store import agents

    for entry in desk.config.declared_agents if desk.config else ():
        if entry.name == name:
            return str(entry.source)
    row = desk.read(lambda db: agents.agent(db, name))
    if row is None:
        raise desk.read(lambda db: versions.absent(db, name))
    if not row.source:
        raise UsageError(f'agent "{name}" is declared by no file', hint="it lives in the store only")
    return row.source


def side_facts(one: Side) -> Ordered:
    """A side as it stands in a JSON document."""
    return Ordered(state=one.state, version=one.version)


def put_diff(desk: Desk, lines: Sequence[str]) -> None:
    """Print a unified difference."""
    shown = [printable(desk.session.masked(line)) for line in lines]
    if desk.session.coloured(desk.session.out):
        shown = list(differences.painted(shown))
    output.painted(desk.session, "\n".join(shown))


def warn(desk: Desk, text: str) -> None:
    """Tell something doubtful on standard error."""
    from octo.errors import Problem
    from octo_cli import diagnostics

    diagnostics.warn(desk.session, Problem(text, severity="warning"))
