"""`octo agents deploy|draft|restore|adopt`: verbs that change what an agent is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from octo.errors import OctoError, UsageError
from octo_cli import inputs
from octo_cli.agents import desk as desks
from octo_cli.agents import editing, words
from octo_cli.agents.desk import Desk, Name, Note, OfConfig, Strict, User, Yes
from octo_cli.asking import agreed
from octo_cli.options import AsJson, Debug, StoreDirectory

if TYPE_CHECKING:
    from octo.agent.versions import Change, Deployed
    from octo.values import Json

OptionalName = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="Name of the agent; with `--config` alone, all that it links"),
]
File = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        parser=inputs.path,
        help="Agent file with the value, `-` for standard input; default the draft",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force/--no-force", show_default=False, help="Even if another version is in force by now; default off"
    ),
]


def deploy(
    context: typer.Context,
    name: OptionalName = None,
    file: File = None,
    note: Note = None,
    force: Force = False,
    yes: Yes = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Without a name: only this agent; repeatable, default all"),
    ] = None,
    strict: Strict = False,
    config: OfConfig = None,
    store: StoreDirectory = None,
    user: User = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Put the draft of an agent in force, or a value from a file

    Every block that links the agent and starts from now on works with it. Without a name, the agents that a config
    links and that have a draft are deployed, each after asking.
    """
    from octo.agent import versions

    desk = desks.begin(context, store, config, user, json=json, debug=debug)
    change = desk.change(note, strict=strict)
    if name is None:
        return _deploy_linked(desk, file, change, only or [], force=force, yes=yes)
    if file is not None:
        value = editing.from_file(desk, file, name, strict=strict)
        deployed = desk.run(versions.deploy(desk.store, name, value, change))
    else:
        if strict or desk.config is not None:
            editing.check_draft(desk, name, strict=strict)
        deployed = desk.run(versions.deploy_draft(desk.store, name, change, force=force))
    _tell(desk, [deployed])
    return 0


def _deploy_linked(desk: Desk, file: Path | None, change: Change, only: list[str], *, force: bool, yes: bool) -> int:
    from octo.agent import versions
    from octo.store import agents

    if file is not None or desk.config is None:
        raise UsageError("the name of an agent is needed", hint="or `--config PATH`, for all agents that it links")
    drafts = desk.read(lambda db: dict(agents.drafts(db, desk.user)))
    linked = words.linked_from(desk)
    for name in only:
        if name not in linked:
            raise versions.not_found(name, sorted(linked))
    chosen = [name for name in sorted(linked) if name in drafts and (not only or name in only)]
    done: list[Deployed] = []
    for name in chosen:
        base = f"from v{drafts[name]}" if drafts[name] else "new"
        blocks = ", ".join(linked[name])
        if yes or only or agreed(desk.session, f"deploy the draft of `{name}` ({base}), which {blocks} links?"):
            done.append(desk.run(versions.deploy_draft(desk.store, name, change, force=force)))
    if not chosen and not desk.as_document:
        desk.text("no agent that the config links has a draft")
        return 0
    _tell(desk, done, several=True)
    return 0


def draft(
    context: typer.Context,
    name: Name,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            parser=inputs.path,
            help="Take the draft from an agent file, `-` for standard input",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Put a value into the draft, JSON or text; repeatable"),
    ] = None,
    edit: Annotated[
        bool, typer.Option("--edit/--no-edit", show_default=False, help="Open the draft in your editor; default off")
    ] = False,
    discard: Annotated[
        bool, typer.Option("--discard/--no-discard", show_default=False, help="Drop the draft; default off")
    ] = False,
    strict: Strict = False,
    config: OfConfig = None,
    store: StoreDirectory = None,
    user: User = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Show the draft of an agent, or change it

    A draft is one person's, and no run uses it that does not ask for drafts. It begins as what is deployed.
    """
    from octo.agent import versions

    desk = desks.begin(context, store, config, user, json=json, debug=debug)
    if sum((file is not None, bool(set_), edit, discard)) > 1:
        raise UsageError("`--file`, `--set`, `--edit` and `--discard` exclude each other", hint="give one of them")
    if discard:
        desk.run(versions.discard_draft(desk.store, name, desk.user))
        _answer(desk, {"name": name, "discarded": True}, f"dropped the draft of {name}")
        return 0
    if file is None and not set_ and not edit:
        return _show_draft(desk, name)
    editing.check_name(name)
    if file is not None:
        value = editing.from_file(desk, file, name, strict=strict)
    elif set_:
        value = editing.with_settings(desk, name, set_, strict=strict)
    else:
        edited = editing.in_editor(desk, name, strict=strict)
        if edited is None:
            _answer(desk, {"name": name, "changed": False}, "nothing was changed")
            return 0
        value = edited
    base = desk.run(versions.put_draft(desk.store, name, value, desk.change()))
    begun = f"on v{base}" if base else "of a new agent"
    _answer(
        desk,
        {"name": name, "base": base, "changed": True},
        f"kept the draft {begun}: `octo agents deploy {name}` puts it in force",
    )
    return 0


def _show_draft(desk: Desk, name: str) -> int:
    from octo.agent import versions
    from octo.store import agents

    found = desk.read(lambda db: agents.draft(db, name, desk.user) or versions.no_draft(db, name, desk.user))
    if isinstance(found, OctoError):
        raise found
    value = versions.decoded(found.value, name)
    if desk.as_document:
        desk.put({"name": name, "base": found.base_version, "hash": found.hash, "value": value})
        return 0
    from octo.agent import shown

    words.put_yaml(desk, shown.yaml_text(value))
    return 0


def restore(
    context: typer.Context,
    name: Name,
    version: Annotated[int, typer.Argument(metavar="N", help="The version")],
    yes: Yes = False,
    note: Note = None,
    config: OfConfig = None,
    store: StoreDirectory = None,
    user: User = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Put an old version in force again, as a new one, after showing what changes

    What it refers to and is not there any more is told, with `--config`; it does not stop the command.
    """
    from octo.agent import references, shown, versions
    from octo.store import agents

    desk = desks.begin(context, store, config, user, json=json, debug=debug)
    old = words.side(desk, name, str(version))
    current = words.side(desk, name, "current")
    lines = shown.difference(current.value, old.value, (current.title, old.title))
    missing = []
    if desk.config is not None:
        missing = references.missing(old.value, desk.config, desk.read(agents.names))
    if not desk.as_document:
        words.put_diff(desk, lines or [f"v{version} says the same as what is deployed"])
    for one in missing:
        words.warn(desk, f"{one}, which v{version} refers to, is not there")
    if not yes and not agreed(desk.session, f"restore v{version} of `{name}`?"):
        _answer(desk, {"name": name, "restored": None}, "nothing was restored")
        return 2
    deployed = desk.run(versions.restore(desk.store, name, version, desk.change(note)))
    told: dict[str, Json] = {"name": name, "restored": version, "version": deployed.version}
    if desk.config is not None:
        told["missing"] = [{"kind": one.kind, "name": one.name} for one in missing]
    _answer(desk, told, f"restored v{version} of {name} as v{deployed.version}")
    return 0


def adopt(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of agents that the config declares")],
    config: OfConfig = None,
    store: StoreDirectory = None,
    user: User = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Let a config declare agents that another file has declared before"""
    from octo.agent import declared, versions

    desk = desks.begin(context, store, config, user, json=json, debug=debug)
    found = {one.name: one for one in declared.read(desk.needed_config())}
    for name in names:
        if name not in found:
            raise versions.not_found(name, sorted(found))
    chosen = [found[name] for name in dict.fromkeys(names)]
    adopted = desk.push(chosen, adopt=names)
    if desk.as_document:
        desk.put({"adopted": [words.deployed_facts(one) for one in adopted]})
    else:
        lines = [f"{one.name} is declared by {words.near(one.source)}" for one in chosen]
        desk.text("\n".join(lines))
    return 0


def _tell(desk: Desk, done: list[Deployed], *, several: bool = False) -> None:
    """Say what was deployed."""
    if desk.as_document:
        found = [words.deployed_facts(one) for one in done]
        desk.put({"deployed": found} if several else found[0])
    else:
        desk.text("\n".join(words.deployed(one) for one in done) or "nothing was deployed")


def _answer(desk: Desk, facts: dict[str, Json], told: str) -> None:
    if desk.as_document:
        desk.put(facts)
    else:
        desk.text(told)
