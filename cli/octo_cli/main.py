"""`octo`: the group of commands, and the one place where errors end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Final

import typer
from typer._click.core import Command, Context
from typer._click.exceptions import UsageError as GrammarError
from typer._click.formatting import HelpFormatter
from typer.core import TyperGroup

from octo.errors import ConfigError, ConnectorError, OctoError, StoreError, UsageError
from octo_cli import diagnostics, logs, options
from octo_cli.session import Session
from octo_cli.startup import INTERRUPTED, NotWritten, ReaderGone

GROUPS: Final = ("Write", "Run", "Test", "Look", "Keep", "")
"""The headings of the help, in order; each command says under which one it stands."""
ALIASES: Final = {"capabilities": "schema", "eval": "expr"}
"""Hidden other names of commands."""

_AT_START: Final = (ConfigError, ConnectorError, StoreError, UsageError)
_HELP_OPTIONS: Final = {"help_option_names": ["-h", "--help"]}


def main(args: Sequence[str], *, environ: Mapping[str, str]) -> int:
    """Run one command line; the exit status.

    0 is done, 1 means that the flow ran and failed, 2 that nothing could be started, 130 interrupted. A reader that
    goes away before the end has seen enough: that is no failure.
    """
    session = Session(environ, tuple(args))
    try:
        logs.check_level(session)
        status = octo_command().main(list(args), prog_name="octo", standalone_mode=False, obj=session)
        session.out.flush()  # what a flow's own Python may have printed
    except _AT_START as error:
        diagnostics.show(session, error)
        return 2
    except OctoError as error:
        diagnostics.show(session, error)
        return 1
    except ReaderGone:
        return 0
    except (NotWritten, MemoryError, RecursionError) as error:
        diagnostics.show(session, _fault(error))
        return 1
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except KeyboardInterrupt:
        status = INTERRUPTED
    except Exception as error:  # anything else is a fault of ours, and still no traceback reaches the user
        if isinstance(error, FileNotFoundError) and _is_lost():
            lost = UsageError("the working directory does not exist any more", hint="change to one that does")
            diagnostics.show(session, lost)
            return 2
        if isinstance(error, OSError) and error.filename:  # a path that the user gave, or what stands in its way
            diagnostics.show(session, _out_of_reach(error))
            return 2
        diagnostics.crash(session, error)
        return 1
    if status == INTERRUPTED:
        diagnostics.interrupted(session)
    return status or 0


def _fault(error: NotWritten | MemoryError | RecursionError) -> OctoError:
    """What is the fault neither of octo nor of a config."""
    match error:
        case MemoryError():
            fault = OctoError("out of memory", hint="`octo invoke --each FILE` takes a large file row by row")
        case RecursionError():
            fault = OctoError("nested too deeply")
        case _:
            fault = OctoError(str(error))
    fault.__cause__ = error
    return fault


def _out_of_reach(error: OSError) -> OctoError:
    """Said of a path of which one cannot even ask whether it is there."""
    fault = UsageError(f"cannot reach `{os.fsdecode(error.filename)}`: {(error.strerror or str(error)).lower()}")
    fault.__cause__ = error
    return fault


def _is_lost() -> bool:
    """Whether the working directory was removed."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def octo_command() -> Command:
    """The group of all commands, ready to parse."""
    app = typer.Typer(
        name="octo",
        cls=Commands,
        invoke_without_command=True,
        context_settings=_HELP_OPTIONS,
        rich_markup_mode=None,
        subcommand_metavar="COMMAND ...",
        options_metavar="",
    )
    app.callback()(octo)
    return typer.main.get_command(app)


def _version(context: typer.Context, wanted: bool) -> None:
    if wanted:
        _module("version").command(context)
        raise typer.Exit


def octo(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version and exit")
    ] = False,
) -> None:
    """Run declarative flows with LLM agents in them: test, replay, resume and measure them"""
    _help_of_group(context)


class Group(options.PlainHelp, TyperGroup):
    """A group of commands whose faults of grammar are UsageErrors."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        try:
            return super().parse_args(ctx, args)
        except GrammarError as error:
            raise options.usage_error(error, ctx, args) from error

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        command = self.get_command(ctx, args[0])
        if command is None and not ctx.resilient_parsing:
            raise options.no_such_command(args[0], self.list_commands(ctx), ctx.command_path)
        return command.name if command else None, command, args[1:]


class Commands(Group):
    """The group whose commands are the files of `commands/`, each imported when it is named.

    A file has a function `command`, or one that gives the functions which are the `verbs` of its command, or both: then
    `command` is what happens without a verb.
    """

    def list_commands(self, ctx: Context) -> list[str]:
        files = Path(__file__).with_name("commands").glob("*.py")
        return sorted(_name(file.stem) for file in files if file.stem != "__init__")

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in self.list_commands(ctx):
            return None
        module = _module(name)
        app = typer.Typer(name=name, add_completion=False, rich_markup_mode=None)
        if not hasattr(module, "verbs"):
            _add(app, name, module.command)
            return typer.main.get_command(app)
        alone = getattr(module, "command", None)
        app.callback(
            cls=Group,
            invoke_without_command=True,
            context_settings=_HELP_OPTIONS,
            subcommand_metavar="[VERB ...]" if alone else "VERB ...",
            options_metavar="[OPTIONS]" if alone else "",
            help=_help(alone or module),
        )(alone or _help_of_group)
        for verb in module.verbs():
            _add(app, _name(verb.__name__.rstrip("_")), verb)
        return typer.main.get_command(app)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """List the commands under their headings, without building any."""
        rows: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            module = _module(name)
            sentence = (module.__doc__ or "").partition("\n")[0].rstrip(".")
            rows.setdefault(module.GROUP, []).append((name, sentence))
        width = max(len(name) for group in rows.values() for name, _ in group)
        for group in GROUPS:
            if group in rows:
                with formatter.section(group or "Other"):
                    formatter.write_dl([(name.ljust(width), sentence) for name, sentence in rows[group]])


def _add(app: typer.Typer, name: str, function: Any) -> None:
    app.command(name, cls=options.Command, context_settings=_HELP_OPTIONS, help=_help(function))(function)


def _help_of_group(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _module(name: str) -> ModuleType:
    return import_module(f"octo_cli.commands.{name.replace('-', '_')}")


def _name(stem: str) -> str:
    return stem.replace("_", "-")


def _help(documented: Any) -> str:
    """The docstring; the first sentence stands as a heading does, without a full stop."""
    first, gap, rest = cleandoc(documented.__doc__ or "").partition("\n\n")
    return first.rstrip(".") + gap + rest
