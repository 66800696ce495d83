"""Print the version of octo."""

from __future__ import annotations

import typer

import octo

GROUP = ""


def command() -> None:
    """Print the version of octo."""
    typer.echo(f"octo {octo.__version__}")
