"""Lay out config files without losing a comment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from octo import edit
from octo.errors import ConfigError, Problem, UsageError
from octo_cli import inputs, output
from octo_cli.options import AsJson, Debug
from octo_cli.session import Session

if TYPE_CHECKING:
    from octo.layout.upgrade import BakedId

GROUP = "Write"

_SUFFIXES = (".yaml", ".yml")


def command(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", parser=inputs.path, help="YAML file, or directory with YAML files in it"),
    ],
    check: Annotated[
        bool,
        typer.Option("--check/--no-check", show_default=False, help="Write nothing, only say what would; default off"),
    ] = False,
    upgrade: Annotated[
        bool,
        typer.Option("--upgrade/--no-upgrade", show_default=False, help="Rewrite older spellings, too; default off"),
    ] = False,
    keep_as_memory_id: Annotated[
        bool,
        typer.Option(
            "--keep-as-memory-id",
            show_default=False,
            help="With `--upgrade`: an id in `memory` becomes `memoryId` of its block; default ask",
        ),
    ] = False,
    use_run_memory_id: Annotated[
        bool,
        typer.Option(
            "--use-run-memory-id",
            show_default=False,
            help="With `--upgrade`: an id in `memory` is dropped, the run's own counts; default ask",
        ),
    ] = False,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Lay out config files without losing a comment.

    What a file says stays the same. Nothing is written when one of the files cannot be laid out. With `--check` the
    exit status is 1 when a file would be changed.
    """
    session: Session = context.obj
    session.debug = debug
    if keep_as_memory_id and use_run_memory_id:
        raise UsageError("`--keep-as-memory-id` and `--use-run-memory-id` exclude each other", hint="give one of them")
    if (keep_as_memory_id or use_run_memory_id) and not upgrade:
        raise UsageError("`--keep-as-memory-id` and `--use-run-memory-id` go with `--upgrade`")
    found = list(dict.fromkeys(file for path in files for file in _files(path)))
    before = {file: edit.read(file) for file in found}
    current = before
    if upgrade:
        current = _upgraded(before, "memory-id" if keep_as_memory_id else "run" if use_run_memory_id else "")
    after = _laid_out(current)
    changed = [file for file in found if after[file] != before[file]]
    if not check:
        for file in changed:
            edit.replace(file, after[file])
    if json or not session.for_people(session.out):
        shown = [{"path": str(file), "changed": file in changed} for file in found]
        output.document(session, {"files": shown}, json=json)
    else:
        verb = "would lay out" if check else "laid out"
        rows = [f"{verb} {file}" for file in changed] or [f"nothing to do in {len(found)} {_noun(len(found))}"]
        output.text(session, "\n".join(rows))
    return 1 if check and changed else 0


def _files(path: Path) -> list[Path]:
    if str(path) == "-":
        raise UsageError("`octo fmt` takes files, not standard input", hint="name a file or a directory")
    if not path.is_dir():
        if path.exists() and path.suffix.lower() not in _SUFFIXES:
            raise UsageError(f"`{path}` is no YAML file", hint="its name ends in `.yaml` or `.yml`")
        return [path]
    found = sorted(file for file in path.iterdir() if file.suffix.lower() in _SUFFIXES and file.is_file())
    if not found:
        raise UsageError(f"directory `{path}` holds no YAML file")
    return found


def _upgraded(contents: dict[Path, bytes], baked_id: BakedId) -> dict[Path, bytes]:
    from octo.layout.upgrade import upgrade

    return _each(contents, lambda content, file: upgrade(content, file, baked_id))


def _laid_out(contents: dict[Path, bytes]) -> dict[Path, bytes]:
    from octo.layout.lay_out import lay_out

    return _each(contents, lay_out)


def _each(contents: dict[Path, bytes], change: Callable[[bytes, str], bytes]) -> dict[Path, bytes]:
    """Every content changed; raises ConfigError with the problems of all files."""
    result: dict[Path, bytes] = {}
    problems: list[Problem] = []
    for file, content in contents.items():
        try:
            result[file] = change(content, str(file))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return result


def _noun(count: int) -> str:
    return "file" if count == 1 else "files"
