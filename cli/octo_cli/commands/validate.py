"""Check a config and show every problem in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

import octo
from octo.errors import ConfigError, Problem
from octo.values import Json, dumps
from octo_cli import diagnostics, output
from octo_cli.options import AsJson, ConfigPath, Debug
from octo_cli.session import Session

GROUP = "Write"


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
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Check a config and show every problem in it.

    Nothing is started and nothing is called. Exit status 0 means that the config can run, 2 that it cannot.
    """
    session: Session = context.obj
    session.debug = debug
    try:
        loaded = octo.load(config, environ=session.environ)
        session.mask = loaded.environment.mask
        if strict and loaded.warnings:
            raise ConfigError([replace(warning, severity="error") for warning in loaded.warnings])
    except ConfigError as error:
        if json:
            output.document(
                session, {"ok": False, "problems": [_shown(problem) for problem in error.problems]}, json=True
            )
        raise
    for warning in loaded.warnings:
        diagnostics.warn(session, warning)
    if explain is not None:
        _explain(session, loaded, explain, json=json)
    elif json or not session.for_people(session.out):
        problems = [_shown(problem) for problem in loaded.warnings]
        output.document(session, {"ok": True, **_counts(loaded), "problems": problems}, json=json)
    else:
        counts = ", ".join(_counted(number, noun) for noun, number in _counts(loaded).items())
        output.text(session, f"{config} is valid: {counts}")
    return 0


def _explain(session: Session, config: octo.Config, address: str, *, json: bool) -> None:
    from octo.config.explain import explain

    found = explain(config, address)
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
    }


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun.removesuffix('s') if number == 1 else noun}"


def _shown(problem: Problem) -> dict[str, Json]:
    place = problem.location._asdict() if problem.location else {}
    hint = {"hint": problem.hint} if problem.hint else {}
    return {"severity": problem.severity, "message": problem.message, **place, **hint}
