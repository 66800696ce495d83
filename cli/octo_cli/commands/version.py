"""Print the version of octo."""

from __future__ import annotations

import typer

import octo
from octo_cli import output
from octo_cli.session import Session

GROUP = ""


def command(context: typer.Context) -> None:
    """Print the version of octo."""
    session: Session = context.obj
    output.put_lines(session, [f"octo {octo.__version__}"])
