"""`octo agents clear-history|rename|delete`: verbs on an agent with all that belongs to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from octo_cli import logs
from octo_cli.agents import desk as desks
from octo_cli.agents import words
from octo_cli.agents.desk import Desk, Name, OfConfig, User, Yes
from octo_cli.asking import agreed
from octo_cli.options import AsJson, Debug, StoreDirectory

if TYPE_CHECKING:
    from octo.store.agents import AgentRow


def clear_history(
    context: typer.Context,
    name: Name,
    yes: Yes = False,
    config: OfConfig = None,
    store: StoreDirectory = None,
    user: User = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Remove all versions of an agent but the one in force, after asking

    What was in them is gone from the bytes of the store, too. Do this after a credential was rotated that stood in a
    value. Drafts and records of runs stay.
    """
    from octo.agent import versions
    from octo.store import agents

    desk = desks.begin(context, store, config, user, json=json, debug=debug, load=False)
    row = _known(desk, name)
    old = desk.read(lambda db: len(agents.versions(db, name)) - 1)
    if not yes and not agreed(desk.session, f"remove {_count(old, 'version')} of `{name}`, all but v{row.version}?"):
        return _nothing(desk, name, "cleared")
    removed, version = desk.run(versions.clear_history(desk.store, name))
    drafts = desk.read(lambda db: agents.count_drafts(db, name))
    _event(desk, "clear", name, removed)
    if desk.as_document:
        desk.put({"name": name, "removed": removed, "version": version, "drafts": drafts})
    else:
        left = f"; {_count(drafts, 'draft')} of it may still hold what they held" if drafts else ""
        desk.text(f"removed {_count(removed, 'version')} of {name}, v{version} stays{left}")
    return 0


def rename(
    context: typer.Context,
    old: Annotated[str, typer.Argument(metavar="OLD", help="Name of the agent")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new name")],
    config: OfConfig = None,
    store: StoreDirectory = None,
    user: User = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Give an agent another name, with its versions and drafts

    Links are by name, and stand in your files and in other agents: those that are known are listed, and left as they
    are.
    """
    from octo.agent import versions
    from octo.store import agents

    desk = desks.begin(context, store, config, user, json=json, debug=debug)
    row = desk.read(lambda db: agents.agent(db, old))
    desk.run(versions.rename(desk.store, old, new))
    users = _users(desk, old)
    blocks = words.linked_from(desk).get(old, [])
    configs = desk.read(lambda db: agents.configs_that_ran(db, old))
    source = row.source if row else ""
    if desk.as_document:
        desk.put(
            {"name": new, "was": old, "linkedBy": blocks, "usedBy": users, "configs": configs, "source": source or None}
        )
        return 0
    lines = [f"renamed {old} to {new}"]
    lines += [f"{address} links {old}" for address in words.counted(blocks)]
    lines += [f"agent {name} has {old} as a tool" for name in users]
    lines += [f"{words.near(path)} ran {old}, and may link it" for path in configs]
    if source:
        lines.append(f"{words.near(source)} declares {old}: rename it there, too, or it comes back with the next load")
    desk.text("\n".join(lines))
    return 0


def delete(
    context: typer.Context,
    name: Name,
    yes: Yes = False,
    config: OfConfig = None,
    store: StoreDirectory = None,
    user: User = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Remove an agent with its versions and drafts, after asking

    What it remembers, its conversations and the records of its runs stay.
    """
    from octo.agent import versions
    from octo.store import agents

    desk = desks.begin(context, store, config, user, json=json, debug=debug, load=False)
    row = desk.read(lambda db: agents.agent(db, name))
    if row is None and not desk.read(lambda db: agents.is_taken(db, name)):
        raise desk.read(lambda db: versions.absent(db, name))
    if not yes and not agreed(desk.session, f"delete `{name}` with all its versions and drafts?"):
        return _nothing(desk, name, "deleted")
    gone, drafts = desk.run(versions.delete(desk.store, name))
    _event(desk, "delete", name, gone)
    source = row.source if row else ""
    if source:
        words.warn(desk, f"`{words.near(source)}` declares {name}: it comes back with the next load")
    users = _users(desk, name)
    for user_ in users:
        words.warn(desk, f"agent {user_} has {name} as a tool, which fails from now on")
    if desk.as_document:
        desk.put({"name": name, "versions": gone, "drafts": drafts, "source": source or None, "usedBy": users})
    else:
        desk.text(f"deleted {name} with {_count(gone, 'version')} and {_count(drafts, 'draft')}")
    return 0


def _users(desk: Desk, name: str) -> list[str]:
    """The agents that refer to one, in the store or as the config declares them."""
    from octo.agent import references

    here = (
        one.name for one in desk.declared if references.Reference("agent", name) in references.references(one.value)
    )
    return sorted({*desk.read(lambda db: references.users(db, name)), *here} - {name})


def _known(desk: Desk, name: str) -> AgentRow:
    from octo.agent import versions
    from octo.store import agents

    row = desk.read(lambda db: agents.agent(db, name))
    if row is None:
        raise desk.read(lambda db: versions.absent(db, name))
    return row


def _nothing(desk: Desk, name: str, verb: str) -> int:
    if desk.as_document:
        desk.put({"name": name, verb: False})
    else:
        desk.text(f"nothing was {verb}")
    return 2


def _event(desk: Desk, action: str, name: str, versions: int) -> None:
    """One line of the log for what cannot be undone."""
    if not desk.session.for_people(desk.session.err):
        fields = {"action": action, "agent": name, "versions": float(versions), "user": desk.user}
        logs.write(desk.session, "info", "agent_event", fields)


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
