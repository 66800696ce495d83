"""Make a small project to start from."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from octo_cli import inputs, output
from octo_cli.options import AsJson, Debug
from octo_cli.session import Session

GROUP = "Write"


def command(
    context: typer.Context,
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", parser=inputs.path, help="Where to; made when it is not there")
    ],
    agent: Annotated[
        bool, typer.Option("--agent/--no-agent", show_default=False, help="With an agent in the flow; default without")
    ] = False,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Make a small project to start from.

    A config that runs at once, tests beside it, and an example of an env file. Nothing is ever overwritten.
    """
    from octo.starter import start

    session: Session = context.obj
    session.debug = debug
    project = start(directory, "agent" if agent else "flow")
    if json or not session.for_people(session.out):
        output.document(session, {"files": [str(file) for file in project.files]}, json=json)
        return 0
    call = shlex.join(
        ["octo", "invoke", "--config", str(project.config), "--flow", project.flow, "--data", project.data]
    )
    output.text(session, "\n".join([*(f"made {file}" for file in project.files), "", "try it:", "", f"  {call}"]))
    return 0
