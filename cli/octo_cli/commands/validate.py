"""Check a config and show every problem in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import octo
from octo.errors import ConfigError, Problem
from octo.values import Json, dumps
from octo_cli import diagnostics, options, output
from octo_cli.options import AsJson, ConfigPath, Debug, StoreDirectory
from octo_cli.session import Session

if TYPE_CHECKING:
    from octo.agent.links import Followed

GROUP = "Write"
AGENT_FILE = ".agent.yaml"
"""How the names of files end that hold one agent."""


def command(
    context: typer.Context,
    config: ConfigPath,
    explain: Annotated[
        str | None,
        typer.Option("--explain", metavar="FLOW.BLOCK", help="Print this block as it came out; default off"),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict/--no-strict", show_default=False, help="Take warnings for problems; default off")
    ] = False,
    store: StoreDirectory = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Check a config, or a file with an agent, and show every problem in it.

    Nothing is started, called or written; agents that blocks link are looked up in the store. Exit status 0 means that
    the config can run, 2 that it cannot.
    """
    session: Session = context.obj
    session.debug = debug
    try:
        if config.name.endswith(AGENT_FILE):
            return _check_agent(session, config, strict=strict, json=json)
        loaded = octo.load(config, environ=session.environ)
        session.mask = loaded.environment.mask
        followed = _followed(session, loaded, store)
        warnings = _warnings(loaded, followed, strict=strict)
    except ConfigError as error:
        if json:
            output.document(
                session, {"ok": False, "problems": [_shown(problem) for problem in error.problems]}, json=True
            )
        raise
    for warning in warnings:
        diagnostics.warn(session, warning)
    if explain is not None:
        _explain(session, loaded, explain, followed, json=json)
    elif json or not session.for_people(session.out):
        problems = [_shown(problem) for problem in warnings]
        output.document(session, {"ok": True, **_counts(loaded), "problems": problems}, json=json)
    else:
        counts = ", ".join(_counted(number, noun) for noun, number in _counts(loaded).items())
        output.text(session, f"{config} is valid: {counts}")
    return 0


def _check_agent(session: Session, file: Path, *, strict: bool, json: bool) -> int:
    """Check a file that holds one agent. What it refers to is the affair of the config that loads it."""
    from octo import edit
    from octo.agent import declared

    name = file.name.removesuffix(AGENT_FILE)
    _, warnings = declared.from_text(edit.read(file), str(file), name)
    if strict and warnings:
        raise ConfigError([replace(warning, severity="error") for warning in warnings])
    for warning in warnings:
        diagnostics.warn(session, warning)
    if json or not session.for_people(session.out):
        output.document(
            session, {"ok": True, "agents": 1, "problems": [_shown(problem) for problem in warnings]}, json=json
        )
    else:
        output.text(session, f"{file} is valid: 1 agent")
    return 0


def _followed(session: Session, config: octo.Config, store: str | None) -> list[Followed]:
    """The links of a config to agents, followed. Raises ConfigError."""
    from octo.config.address import blocks

    if not config.declared_agents and not any(getattr(block, "link", None) for _, block in blocks(config)):
        return []
    from octo.agent import links  # here, because few configs link agents
    from octo_cli import signals

    with options.store(session, store, config.root) as kept:
        return signals.run(session, links.follow(config, kept))


def _warnings(config: octo.Config, followed: list[Followed], *, strict: bool) -> list[Problem]:
    """What is doubtful about a config. Raises ConfigError with all that is wrong, if anything is."""
    found = list(config.warnings)
    if not (config.flows or config.connectors or config.declared_agents):
        hint = "`flows:` lists what it can do; `octo new DIR` writes an example"
        found.append(Problem("the config declares nothing that can run", hint=hint, severity="warning"))
    if followed:
        from octo.agent import links

        found += links.problems(config, followed)
    if any(problem.severity == "error" or strict for problem in found):
        raise ConfigError([replace(problem, severity="error") if strict else problem for problem in found])
    return found


def _explain(session: Session, config: octo.Config, address: str, followed: list[Followed], *, json: bool) -> None:
    from octo.config.explain import explain

    found = explain(config, address, {one.block.address: one for one in followed})
    if json or not session.for_people(session.out):
        output.document(session, found, json=json)
        return
    settings, tools = found.pop("settings"), found.pop("tools", [])
    lines = [f"{key}: {value}" for key, value in found.items()]
    lines.append("settings:" if settings else "settings: {}")
    for key, setting in settings.items():
        first, *more = _yaml({key: setting["value"]}).splitlines()
        lines += [f"  {first}  # {setting['from']}", *(f"  {line}" for line in more)]
    lines += ["what the model may call:"] if tools else []
    for tool in tools:
        lines.append(f"  {tool['name']} ({tool['kind']})")
        for name, filled in tool["parameters"].items():
            by = "by the model" if filled["from"] == "model" else f"{dumps(filled['value'])}  # {filled['from']}"
            lines.append(f"    {name}: {by}")
    output.text(session, "\n".join(lines))


def _yaml(value: Json) -> str:
    """A value as one would write it into a config; texts of several lines as blocks."""
    import yaml  # here, because only this needs it

    class Dumper(yaml.SafeDumper):
        """Knows one more style of text."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    def number(dumper: yaml.SafeDumper, value: float) -> yaml.ScalarNode:
        kind = "int" if value.is_integer() else "float"
        return dumper.represent_scalar(f"tag:yaml.org,2002:{kind}", dumps(value))

    Dumper.add_representer(str, text)
    Dumper.add_representer(float, number)
    return str(yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=float("inf")))


def _counts(config: octo.Config) -> dict[str, int]:
    from octo.config.address import blocks

    return {
        "flows": len(config.flows),
        "connectors": len(config.connectors),
        "blocks": sum(1 for _ in blocks(config)),
        **({"agents": len(config.declared_agents)} if config.declared_agents else {}),
    }


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun.removesuffix('s') if number == 1 else noun}"


def _shown(problem: Problem) -> dict[str, Json]:
    place = problem.location._asdict() if problem.location else {}
    hint = {"hint": problem.hint} if problem.hint else {}
    return {"severity": problem.severity, "message": problem.message, **place, **hint}
