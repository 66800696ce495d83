"""Run test suites that lie beside flows."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from octo.errors import UsageError
from octo_cli import inputs, output, signals
from octo_cli.options import AsJson, Debug
from octo_cli.session import Session

GROUP = "Test"


def command(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...",
            parser=inputs.path,
            show_default=False,
            help="Suites, flow files that have one, or directories; default `.`",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="PATH", parser=inputs.path, help="Config for all suites; default what lies beside them"
        ),
    ] = None,
    env_file: Annotated[
        Path | None,
        typer.Option(
            "--env-file", metavar="PATH", parser=inputs.path, help="Environment variables for all cases; default none"
        ),
    ] = None,
    containing: Annotated[
        str, typer.Option("-k", metavar="TEXT", help="Run cases whose name contains this; default all")
    ] = "",
    junit: Annotated[
        Path | None,
        typer.Option("--junit", metavar="PATH", parser=inputs.path, help="Write JUnit XML; default off"),
    ] = None,
    report_json: Annotated[
        Path | None,
        typer.Option("--report-json", metavar="PATH", parser=inputs.path, help="Write a JSON report; default off"),
    ] = None,
    parallel: Annotated[
        int, typer.Option("--parallel", metavar="N", help="Cases that run at once; default one for each CPU")
    ] = 0,
    isolate: Annotated[
        bool,
        typer.Option("--isolate/--no-isolate", show_default=False, help="A process for each case; default off"),
    ] = False,
    coverage: Annotated[
        bool,
        typer.Option(
            "--coverage/--no-coverage", show_default=False, help="Tell what of the config is reached; default off"
        ),
    ] = False,
    mutate: Annotated[
        bool,
        typer.Option(
            "--mutate/--no-mutate",
            show_default=False,
            help="List changes of the config that no case notices; default off",
        ),
    ] = False,
    fail_fast: Annotated[
        bool,
        typer.Option(
            "--fail-fast/--no-fail-fast", show_default=False, help="Start no more cases after a failure; default off"
        ),
    ] = False,
    shuffle: Annotated[
        str | None, typer.Option("--shuffle", metavar="SEED", help="Run in a random order; default in that of files")
    ] = None,
    repeat: Annotated[
        int, typer.Option("--repeat", metavar="N", min=1, help="Run each case so often, to find flaky ones; default 1")
    ] = 1,
    watch: Annotated[
        bool,
        typer.Option("--watch/--no-watch", show_default=False, help="Run what a change of files concerns; default off"),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "-v/--no-v", show_default=False, help="Name every case, keep the log level; default failures, `error`"
        ),
    ] = False,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Run test suites that lie beside flows.

    A suite is a file `NAME_test.yaml` beside a config. Exit status 0 means that every case passed, 1 that one failed, 2
    that one could not run or that something is wrong with the command, a suite or a config.
    """
    from octo.testing.runner import Surroundings
    from octo_cli.testing import Asked, watching

    session: Session = context.obj
    session.debug = debug
    around = Surroundings(
        environ=session.environ,
        variables=_variables(env_file),
        parallel=parallel if parallel > 0 else os.cpu_count() or 1,
        repeat=repeat,
        fail_fast=fail_fast,
        coverage=coverage or mutate,
        command=(sys.executable, "-m", "octo_cli") if isolate else (),
        level="" if verbose else "error",
    )
    asked = Asked(
        paths=tuple(paths or (Path(),)),
        config=config,
        env_file=env_file,
        containing=containing,
        shuffle=shuffle,
        junit=junit,
        report_json=report_json,
        verbose=verbose,
        json=json,
        coverage=coverage,
        mutate=mutate,
    )
    if junit is not None or report_json is not None:
        output.check_targets({"--junit": junit, "--report-json": report_json}, asked.reads(session.environ))
    return signals.run(session, watching(session, asked, around) if watch else asked.run(session, around))


def _variables(path: Path | None) -> dict[str, str]:
    """What an env file supplies."""
    if path is None:
        return {}
    from octo import dotenv

    try:
        return dotenv.parse(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"`--env-file`: cannot read `{path}`: {reason}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"`--env-file`: `{path}` is not UTF-8", hint="save the file as UTF-8") from error
    except dotenv.Fault as error:
        raise UsageError(f"`--env-file`: `{path}`: {error}", hint=error.hint) from error
