"""Print the catalogue of blocks, or a JSON Schema for an editor."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from octo.errors import UsageError, did_you_mean
from octo_cli import inputs, output
from octo_cli.options import Debug
from octo_cli.session import Session

if TYPE_CHECKING:
    from octo.values import Json

GROUP = "Write"
FORMATS: Final = ("json", "yaml")
_STARTS: Final = tuple(f"{mark}{key}".encode() for mark in ("", '{"', '{\n  "') for key in ("$schema", "blocks"))
"""How schemas and the catalogue begin."""


def command(
    context: typer.Context,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="`capabilities`, or what a JSON Schema is of: `config`, `agent`, `suite`, `debug-config`",
        ),
    ] = "capabilities",
    format: Annotated[str, typer.Option("--format", metavar="FORMAT", help="`json` or `yaml`")] = "json",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", parser=inputs.path, help="Write it to this file; default standard output"
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            "--write", metavar="DIR", parser=inputs.path, help="Write every kind into this directory; default off"
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            "--reference",
            metavar="DIR",
            parser=inputs.path,
            help="Write the reference of blocks, connectors and functions as Markdown into this directory; default off",
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Print the catalogue of blocks, or a JSON Schema for an editor.

    The catalogue lists all types of blocks and connectors with their settings, those of installed plug-ins included.
    """
    from octo import schema

    session: Session = context.obj
    session.debug = debug
    _one_of("--kind", kind, schema.KINDS)
    _one_of("--format", format, FORMATS)
    if write is not None:
        for name, make in schema.KINDS.items():
            _write(write / schema.file_name(name), schema.text(make()), directory=write)
    if reference is not None:
        from octo.reference import PAGES

        for name, page in PAGES.items():
            _write(reference / name, page(), directory=reference)
    if write is not None or reference is not None:
        return
    document = schema.KINDS[kind]()
    if out is not None:
        output.keep_others("--out", out, "schema", _STARTS)
        _write(out, _yaml(document) if format == "yaml" else schema.text(document))
    elif format == "yaml":
        output.text(session, _yaml(document).rstrip("\n"))
    else:
        output.document(session, schema.in_order(document))


def _one_of(option: str, word: str, words: Iterable[str]) -> None:
    if word not in words:
        raise UsageError(f"`{option}`: there is no `{word}`", hint=did_you_mean(word, words))


def _yaml(document: dict[str, Json]) -> str:
    import yaml

    class Plain(yaml.SafeDumper):
        """Writes what occurs twice twice."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    return yaml.dump(document, Dumper=Plain, sort_keys=False, allow_unicode=True, width=120)


def _write(file: Path, text: str, *, directory: Path | None = None) -> None:
    try:
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write `{file}`: {(error.strerror or str(error)).lower()}") from error
