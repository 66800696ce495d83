"""`octo agents check|pin|save|unlink`: verbs that are about the blocks which link agents."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from octo import edit
from octo.errors import UsageError
from octo_cli import diagnostics
from octo_cli.agents import desk as desks
from octo_cli.agents import editing, words
from octo_cli.agents.desk import Desk, User
from octo_cli.options import AsJson, ConfigPath, Debug, FlowName, StoreDirectory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from octo.agent.versions import Deployed
    from octo.block import Block
    from octo.config.document import Document
    from octo.config.document import Path as Place
    from octo.config.model import Config
    from octo.values import Json

BlockName = Annotated[
    str, typer.Option("--block", metavar="NAME", help="The block: its name, or its address in the flow")
]
Write = Annotated[
    bool, typer.Option("--write/--no-write", show_default=False, help="Change the file, too; default print only")
]


def check(
    context: typer.Context,
    config: ConfigPath,
    store: StoreDirectory = None,
    user: User = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Report links of a config that are broken, or say something without effect

    These are links to agents and versions that there are not, `toolInputs` that match nothing, tools with faults, and
    tools that no block lets the model call. Nothing is written. The exit status is 2 when there is any.
    """
    from octo.agent import links
    from octo.errors import Problem

    desk = desks.begin(context, store, config, user, json=json, debug=debug)
    loaded = desk.needed_config()
    followed = desk.run(links.follow(loaded, desk.store))
    problems = [*links.in_declared(loaded), *links.problems(loaded, followed)]
    for agent, tool in links.disabled(followed):
        text = f'agent "{agent}": no block lets the model call tool `{tool}`'
        problems.append(Problem(text, hint="add it to `enabledTools`, or remove it from the agent", severity="warning"))
    if desk.as_document:
        shown = [_shown(problem) for problem in problems]
        desk.put({"ok": not problems, "links": [_link(one) for one in followed], "problems": shown})
    else:
        for problem in problems:
            diagnostics.warn(desk.session, problem)
        if not problems:
            desk.text(f"{len(followed)} {'link' if len(followed) == 1 else 'links'}, nothing wrong")
    return 2 if problems else 0


def pin(
    context: typer.Context,
    config: ConfigPath,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Agents to pin; default all that the config links")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write/--no-write", show_default=False, help="Change the files; default on")
    ] = True,
    store: StoreDirectory = None,
    user: User = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Write the versions that are deployed now into the links of a config

    Declared agents come into the store first, as with a run. A link that has a version already stays as it is. The
    comments of the files stay.
    """
    from octo.agent import declared, links, versions

    desk = desks.begin(context, store, config, user, json=json, debug=debug)
    loaded = desk.needed_config()
    found = [(block, link) for block, link in links.of(loaded) if not names or link.name in names]
    for name in names or ():
        if name not in {link.name for _, link in found}:
            raise versions.not_found(name, sorted({link.name for _, link in links.of(loaded)}))
    pending = desk.run(declared.to_come(desk.store, loaded))
    unpinned = dict.fromkeys(link.name for _, link in found if link.version is None)
    current = {name: _in_force(desk, name, pending) for name in unpinned}
    files = _Files(config)
    pinned: list[Json] = []
    for block, link in found:
        if link.version is None:
            files.pin(files.link(block), link.name, current[link.name])
            pinned.append({"block": block.address, "agent": link.name, "version": current[link.name]})
    if write and pinned:
        _tell_deployed(desk, desk.push(desk.declared))
        files.save(desk)
    if desk.as_document:
        desk.put({"pinned": pinned, "written": write and bool(pinned)})
    else:
        verb = "pinned" if write else "would pin"
        desk.text(
            "\n".join(f"{verb} {one['block']} to {one['agent']}@{one['version']}" for one in pinned) or "nothing to pin"
        )
    return 0


def save(
    context: typer.Context,
    config: ConfigPath,
    flow: FlowName,
    block: BlockName,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What the agent is to be called")],
    write: Write = False,
    store: StoreDirectory = None,
    user: User = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Make an agent with a name of the one in a block, and print the block that links it

    The agent is deployed into the store, if it is not there with this very value. With `--write` the block in the file
    links it from now on; its comments stay, but for those inside of what belongs to the agent now.
    """
    from octo.agent import authored, declared, folding, shown, versions
    from octo.config.resources import read_text
    from octo.layout.part import REMOVED
    from octo.store import agents

    desk = desks.begin(context, store, config, user, json=json, debug=debug)
    loaded = desk.needed_config()
    files = _Files(config)
    found, written = _agent_block(loaded, files, flow, block)
    if getattr(found, "link", None) is not None:
        raise UsageError(
            f"`{found.address}` links an agent already", hint="`octo agents unlink` puts it into the block"
        )
    editing.check_name(name)
    for other in loaded.declared_agents:
        if other.name == name:
            raise UsageError(f'{other.location}: an agent "{name}" is declared here', hint="choose another name")
    value, keys = folding.taken_out(written)
    value, warnings = declared.from_text(shown.yaml_text(value), f"{found.address} as {name}", name, loaded)
    desk.warn(warnings)
    value = authored.authored(value, partial(read_text, loaded.root))
    taken, row = desk.read(lambda db: (agents.is_taken(db, name), agents.agent(db, name)))
    if taken and (row is None or row.hash != authored.digest(value)):
        raise UsageError(f'there is an agent "{name}" already', hint="choose another name")
    changes: dict[str, object] = {"agent": name, **dict.fromkeys(keys, REMOVED)}
    lines, lost = files.change(found.place.path, changes)
    deployed = desk.run(versions.deploy(desk.store, name, value, desk.change(f"out of {found.address}")))
    _tell_deployed(desk, [deployed], unchanged=True)
    if write:
        files.save(desk)
    _answer(desk, lines, lost, write, {"name": name, "version": deployed.version})
    return 0


def unlink(
    context: typer.Context,
    config: ConfigPath,
    flow: FlowName,
    block: BlockName,
    write: Write = False,
    store: StoreDirectory = None,
    user: User = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Print a block with all in it that the agent says which it links

    What the block binds in its own way becomes part of the tools. With `--write` the block in the file is changed; its
    comments stay. The agent itself stays as it is.
    """
    from octo.agent import declared, folding, versions
    from octo.config.resources import read_text
    from octo.layout.part import REMOVED

    desk = desks.begin(context, store, config, user, json=json, debug=debug)
    loaded = desk.needed_config()
    files = _Files(config)
    found, written = _agent_block(loaded, files, flow, block)
    link = getattr(found, "link", None)
    if link is None:
        raise UsageError(f"`{found.address}` links no agent", hint="`octo agents save` makes one of what it says")
    pending = desk.run(declared.to_come(desk.store, loaded))
    resolved = desk.run(versions.resolve(desk.store, link.name, link.version, declared=pending))
    said, gone = folding.put_in(written, resolved.value, partial(read_text, loaded.root))
    lines, lost = files.change(found.place.path, {**{key: REMOVED for key in gone if key not in said}, **said})
    if write:
        files.save(desk)
    _answer(desk, lines, lost, write, {"name": link.name, "version": resolved.version})
    return 0


# ---------------------------------------------------------------- blocks and their files


class _Files:
    """The files of a config, with changes that are not saved yet."""

    def __init__(self, config: Path) -> None:
        from octo.config import merge

        documents = merge.read(config)
        self._merged, _ = merge.merge(documents)
        self._before = {Path(document.file): edit.read(Path(document.file)) for document in documents}
        self._after = dict(self._before)

    def written(self, path: Place) -> Json:
        """What stands at a path of the merged config, as it is written."""
        found: Json = self._merged.data
        for step in path:
            found = found[step]
        return found

    def change(self, path: Place, keys: Mapping[str, object]) -> tuple[str, int]:
        """Change keys of the mapping at a path; its lines then, and how many comments are gone."""
        from octo.agent.shown import yaml_document
        from octo.layout import part

        document, place = self._origin(path)
        file = Path(document.file)
        self._after[file], lines, lost = part.change(self._after[file], str(file), place, keys, yaml_document)
        return lines, lost

    def link(self, block: Block) -> Place:
        """Where the link of a block or a tool is written, perhaps in the processor that the block refers to."""
        path = block.place.path if block.place.path[-1] == "agent" else (*block.place.path, "agent")
        for index, processor in enumerate(self._merged.data.get("processors") or ()):
            if processor.get("name") == block.place.ref and "agent" not in self.written(path[:-1]):
                return ("processors", index, "settings", "agent")
        return path

    def pin(self, path: Place, name: str, version: int | None) -> None:
        """Write a version into the link at a path."""
        from octo.agent.shown import yaml_document
        from octo.layout import part

        document, place = self._origin(path)
        file = Path(document.file)
        content = self._after[file]
        if isinstance(self.written(path), dict) and not part.in_braces(content, place):
            content, _, _ = part.change(content, str(file), place, {"version": version}, yaml_document)
        else:
            content = part.put(content, str(file), place, f"{name}@{version}")
        self._after[file] = content

    def _origin(self, path: Place) -> tuple[Document, Place]:
        return self._merged.origin(path)

    def save(self, desk: Desk) -> None:
        """Write the files that have changed, and tell a person which."""
        for file, content in self._after.items():
            if content != self._before[file]:
                edit.replace(file, content)
                if not desk.as_document:
                    desk.session.tell(f"changed {words.near(str(file))}")


def _agent_block(config: Config, files: _Files, flow: str, name: str) -> tuple[Block, dict[str, Json]]:
    """The `ai-agent` block of that name, and how it is written."""
    from octo.config.address import find

    address = f"{flow}.{name}"
    try:
        block = find(config, address)
    except UsageError as error:
        raise UsageError(f"`{address}`: {error.message}", hint=error.hint) from None
    if block.type != "ai-agent" or block.place.path[-1] == "agent":
        raise UsageError(f"`{address}` is no `ai-agent` block of a chain", hint="name one with `--flow` and `--block`")
    written = files.written(block.place.path)
    if block.place.ref or not isinstance(written, dict):
        hint = "write the settings into the block first"
        raise UsageError(f"`{address}` has its settings from processor `{block.place.ref}`", hint=hint)
    return block, written


def _in_force(desk: Desk, name: str, pending: Mapping[str, dict[str, Json]]) -> int:
    """The version of an agent that a run would work with now; `pending` are values that it would store first."""
    from octo.agent import versions
    from octo.store import agents

    found = desk.run(versions.resolve(desk.store, name, declared=pending))
    return found.version or desk.read(lambda db: agents.next_version(db, name))


def _tell_deployed(desk: Desk, done: Sequence[Deployed], *, unchanged: bool = False) -> None:
    """Tell a person what came into the store on the way."""
    for one in done:
        if not desk.as_document and (one.is_new or unchanged):
            desk.session.tell(words.deployed(one))


def _answer(desk: Desk, lines: str, lost: int, write: bool, facts: dict[str, Json]) -> None:
    if desk.as_document:
        desk.put({**facts, "block": lines, "written": write})
    else:
        desk.text(lines.rstrip("\n"))
    if lost:
        verb = "is" if lost == 1 else "are"
        noun = "comment" if lost == 1 else "comments"
        desk.session.tell(f"{lost} {noun} {verb} not in it, of what was replaced")


def _shown(problem: object) -> Json:
    from octo.errors import Problem

    assert isinstance(problem, Problem)
    place = dict(problem.location._asdict()) if problem.location else {}
    return {"severity": problem.severity, "message": problem.message, **place, "hint": problem.hint}


def _link(one: object) -> Json:
    from octo.agent.links import Followed

    assert isinstance(one, Followed)
    found = one.found
    return {
        "block": one.block.address,
        "agent": one.link.name,
        "pinned": one.link.version is not None,
        "version": found.version if found else None,
    }
