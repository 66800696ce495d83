"""`octo agents export|import`: agents that go from one place to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from octo.errors import UsageError
from octo_cli import inputs, output
from octo_cli.agents import desk as desks
from octo_cli.agents import words
from octo_cli.agents.desk import OfConfig, Strict, User
from octo_cli.options import AsJson, Debug, StoreDirectory

if TYPE_CHECKING:
    from sqlite3 import Connection

    from octo.values import Json

_HEAD = "# Made by `octo agents export`; `octo agents import FILE` brings the agents into a store.\n"


def export(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Names of the agents")] = None,
    flow: Annotated[
        list[str] | None,
        typer.Option("--flow", metavar="NAME", help="A flow of the config with the agents it links; repeatable"),
    ] = None,
    with_deps: Annotated[
        bool,
        typer.Option(
            "--with-deps/--no-with-deps", show_default=False, help="With all that they need of the config; default off"
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", parser=inputs.path, help="Write to a file; default standard output"),
    ] = None,
    config: OfConfig = None,
    store: StoreDirectory = None,
    user: User = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Write agents as one YAML file, the agents that are their tools with them

    With `--with-deps`, connectors, flows, processors, declarations of variables, skills and files are in it, too, each
    once and without any credential.
    """
    from octo.agent import bundle, declared, shown, versions
    from octo.agent.references import Reference
    from octo.config import literal
    from octo.store import agents

    desk = desks.begin(context, store, config, user, json=json, debug=debug)
    if not names and not flow:
        raise UsageError("nothing is named to export", hint="name agents, or a flow with `--flow NAME`")
    needed = desk.needed_config() if with_deps or flow else None
    output.check_targets({"--out": out}, {"`--config`": config})
    if out is not None:
        output.keep_others("--out", out, "bundle", (_HEAD[:40].lower().encode(),))

    to_come = {one.name: one.value for one in desk.declared}

    def work(db: Connection) -> tuple[dict[str, Json], list[str]]:
        def value_of(name: str) -> dict[str, Json] | None:
            current = agents.current(db, name)
            return versions.decoded(current[0], name) if current else to_come.get(name)

        for name in names or ():
            if value_of(name) is None:
                raise versions.not_found(name, [*agents.names(db), *to_come])
        wanted = [Reference("agent", name) for name in names or ()]
        made, left = bundle.bundle([*wanted, *(Reference("flow", name) for name in flow or ())], value_of, needed)
        for name in [entry["name"] for entry in made.get("agents", ())]:
            if file := declared.otherwise(db, name, desk.declared):
                told = f"declared otherwise in `{words.near(file)}`: that comes into force with the next run"
                left.append(f"agent {name}: {told}")
        return made, left

    document, left = desk.read(work)
    for line in left:
        words.warn(desk, line)
    for path in literal.secrets(document):
        words.warn(desk, f"`{_place(document, path)}` looks like a secret, and is exported as it is")
    if json:
        desk.put(document)
        return 0
    text = _HEAD + shown.yaml_document(document)
    if out is None:
        output.text(desk.session, text.rstrip())
    else:
        output.text_to_file(desk.session.masked(text), out)
    return 0


def import_(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", parser=inputs.path, help="The bundle")],
    adopt: Annotated[
        bool,
        typer.Option("--adopt/--no-adopt", show_default=False, help="Even if another file declares them; default off"),
    ] = False,
    strict: Strict = False,
    config: OfConfig = None,
    store: StoreDirectory = None,
    user: User = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Bring the agents of a bundle into the store, and its files beside the config, or beside the bundle

    A file that is there already stays as it is. With `--config`, what they need and the config does not have is told:
    it stands in the bundle.
    """
    from octo import edit
    from octo.agent import bundle, files, references
    from octo.config.document import parse
    from octo.store import agents

    desk = desks.begin(context, store, config, user, json=json, debug=debug)
    data = parse(edit.read(file), str(file), what="bundle").data
    if not isinstance(data, dict) or not data.get("agents"):
        raise UsageError(f"`{file}` holds no agents", hint="`octo agents deploy NAME --file FILE` takes an agent file")
    for name in _without_streaming(data["agents"]):
        words.warn(desk, f"agent {name}: `streaming` is left out: how much is shown is the affair of the caller")
    found, warnings = bundle.unpack(data, str(file))
    desk.warn(warnings, strict=strict)
    names = [one.name for one in found]
    root = desk.config.root if desk.config else file.parent if file.is_file() else Path()
    texts = files.of_bundle(data.get(bundle.FILES), root)
    imported = desk.push(found, adopt=names if adopt else ())
    new, other = files.lay_out(texts, root)
    for name in other:
        words.warn(desk, f"file `{name}` is there, and says something else: it stays as it is")
    known = desk.read(agents.names)
    for one in found if desk.config else ():
        for missing in references.missing(one.value, desk.needed_config(), known):
            words.warn(desk, f"agent {one.name}: {missing} is not there")
    if desk.as_document:
        desk.put({"imported": [words.deployed_facts(one) for one in imported]} | ({"files": new} if texts else {}))
    else:
        told = [*(words.deployed(one, "imported") for one in imported), *(f"wrote {name}" for name in new)]
        desk.text("\n".join(told))
    return 0


def _place(document: Json, path: tuple[str | int, ...]) -> str:
    """A path of the bundle in words: entries of a list by their names."""
    words: list[str] = []
    for key in path:
        document = document[key]  # the path leads through mappings and lists
        name = document.get("name") if isinstance(key, int) and isinstance(document, dict) else None
        words.append(str(name or key))
    return ".".join(words)


def _without_streaming(entries: Json) -> list[str]:
    """Take a key of other tools out of agents; of which."""
    named = entries.items() if isinstance(entries, dict) else [(None, entry) for entry in entries]
    found: list[str] = []
    for name, entry in named:
        if isinstance(entry, dict) and "streaming" in entry:
            del entry["streaming"]
            found.append(str(name or entry.get("name")))
    return found
