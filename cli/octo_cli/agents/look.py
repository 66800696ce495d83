"""`octo agents list|show|history|diff`: what there is, and what has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from octo.errors import UsageError
from octo_cli import output
from octo_cli.agents import desk as desks
from octo_cli.agents import words
from octo_cli.agents.desk import Desk, Name, OfConfig, User
from octo_cli.options import AsJson, Debug, StoreDirectory

if TYPE_CHECKING:
    from sqlite3 import Connection

    from octo.store.agents import AgentRow, VersionRow


def list_(
    context: typer.Context,
    config: OfConfig = None,
    store: StoreDirectory = None,
    user: User = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """List the agents, by their names

    `drift` marks an agent whose file says something else than what is deployed. With `--config` the list tells, too,
    which blocks link an agent.
    """
    from octo.store import agents

    desk = desks.begin(context, store, config, user, json=json, debug=debug)
    rows, drafts = desk.read(lambda db: (agents.agents(db), dict(agents.drafts(db, desk.user))))
    found = words.listed(desk, rows, drafts)
    if desk.as_document:
        desk.put({"agents": [words.facts(desk, one) for one in found]})
    elif not found:
        desk.text("there are no agents yet: `octo agents deploy NAME --file FILE` makes one")
    else:
        words.put_list(desk, found)
    return 0


def show(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME[@N]", help="Name of the agent, perhaps with a version")],
    draft: Annotated[
        bool, typer.Option("--draft/--no-draft", show_default=False, help="Show the draft; default what is deployed")
    ] = False,
    yaml: Annotated[
        bool, typer.Option("--yaml/--no-yaml", show_default=False, help="Print the value alone; default off")
    ] = False,
    deps: Annotated[
        bool, typer.Option("--deps/--no-deps", show_default=False, help="List what it refers to; default off")
    ] = False,
    config: OfConfig = None,
    store: StoreDirectory = None,
    user: User = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Show the value of an agent

    With `--config`, what it refers to and is not there is listed.
    """
    from octo.agent import references, shown, versions
    from octo.store import agents

    desk = desks.begin(context, store, config, user, json=json, debug=debug)
    bare, version = _pin(name)
    if draft and version is not None:
        raise UsageError("`--draft` shows the draft, and `@` a version", hint="give one of them")
    stored = desk.read(lambda db: agents.is_taken(db, bare))
    to_come = {one.name: one.value for one in desk.declared if one.name == bare and not stored}
    resolved = desk.run(versions.resolve(desk.store, bare, version, desk.user if draft else None, declared=to_come))
    if draft and resolved.source != "draft":
        raise desk.read(lambda db: versions.no_draft(db, bare, desk.user))
    row, known, base = desk.read(
        lambda db: (agents.agent(db, bare), agents.names(db), dict(agents.drafts(db, desk.user)))
    )
    if yaml:
        output.text(desk.session, shown.yaml_text(resolved.value).rstrip())
        return 0
    refers = references.references(resolved.value)
    missing = references.missing(resolved.value, desk.config, known) if desk.config else []
    if desk.as_document:
        desk.put(words.whole(resolved, row, refers if deps else None, missing if desk.config else None))
        return 0
    words.put_whole(desk, resolved, row, base, refers if deps else [], missing)
    return 0


def history(
    context: typer.Context,
    name: Name,
    config: OfConfig = None,
    store: StoreDirectory = None,
    user: User = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """List the versions of an agent, newest first

    The last 100 are kept. What connectors, variables, flows, skills and other agents held at the time is not.
    """
    from octo.agent import versions
    from octo.store import agents

    desk = desks.begin(context, store, config, user, json=json, debug=debug, load=False)

    def work(db: Connection) -> tuple[AgentRow, list[VersionRow]]:
        row = agents.agent(db, name)
        if row is None:
            raise versions.absent(db, name)
        return row, agents.versions(db, name)

    row, kept = desk.read(work)
    if desk.as_document:
        desk.put(words.history(row, kept))
    else:
        words.put_history(desk, row, kept)
    return 0


def diff(
    context: typer.Context,
    name: Name,
    a: Annotated[
        str | None,
        typer.Argument(metavar="[A]", help="A version, `current`, `draft` or `source`; default the previous version"),
    ] = None,
    b: Annotated[str | None, typer.Argument(metavar="[B]", help="The same; default `current`")] = None,
    exit_code: Annotated[
        bool,
        typer.Option("--exit-code/--no-exit-code", show_default=False, help="Exit 1 for a difference; default off"),
    ] = False,
    config: OfConfig = None,
    store: StoreDirectory = None,
    user: User = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Show what differs between two values of an agent"""
    from octo.agent import shown

    desk = desks.begin(context, store, config, user, json=json, debug=debug)
    old_name, new_name = _sides(desk, name, a, b)
    old, new = (words.side(desk, name, side) for side in (old_name, new_name))
    lines = shown.difference(old.value, new.value, (old.title, new.title))
    if desk.as_document:
        changes = list(shown.changed_paths(old.value, new.value))
        desk.put(
            {
                "name": name,
                "from": words.side_facts(old),
                "to": words.side_facts(new),
                "equal": not lines,
                "changes": changes,
                "diff": "\n".join(lines),
            }
        )
    elif lines:
        words.put_diff(desk, lines)
    else:
        desk.text(f"no difference between {old.title} and {new.title}\n{words.caveat()}")
    return 1 if exit_code and lines else 0


def _pin(text: str) -> tuple[str, int | None]:
    name, mark, number = text.rpartition("@")
    if not mark:
        return text, None
    if not number.isdecimal():
        raise UsageError(f"`{text}` names no version", hint="for example `NAME@7`")
    return name, int(number)


def _sides(desk: Desk, name: str, a: str | None, b: str | None) -> tuple[str, str]:
    """What is compared; without a word, the version before with what is deployed."""
    from octo.agent import versions
    from octo.store import agents

    if a is not None:
        return a, b or "current"

    def before(db: Connection) -> str:
        row = agents.agent(db, name)
        if row is None:
            raise versions.absent(db, name)
        found = agents.previous(db, name, row.version)
        if found is None:
            raise UsageError(
                f'agent "{name}" has no version before v{row.version}',
                hint=f"compare with `draft` or `source`: `octo agents diff {name} current draft`",
            )
        return str(found)

    return desk.read(before), "current"
