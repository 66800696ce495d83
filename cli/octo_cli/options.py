"""Options that several commands share, and the grammar of all command lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer._click import core as click
from typer._click.core import Context
from typer._click.exceptions import (
    BadOptionUsage,
    BadParameter,
    MissingParameter,
    NoSuchOption,
)
from typer._click.exceptions import UsageError as GrammarError
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from octo.errors import ConfigError, UsageError, did_you_mean, near
from octo.values import Json
from octo_cli import inputs, logs, printed
from octo_cli.session import Session

if TYPE_CHECKING:
    from octo.budget import Limits
    from octo.store.store import Store

ConfigPath = Annotated[
    Path, typer.Option("--config", metavar="PATH", parser=inputs.path, help="Config file, or directory of config files")
]
FlowName = Annotated[str, typer.Option("--flow", metavar="NAME", help="Flow to call")]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="JSON|@FILE|-",
        help="Body: JSON, a file that holds it, or `-` for standard input; default what is piped in, else null",
    ),
]
Vars = Annotated[
    str | None,
    typer.Option(
        "--vars", metavar="JSON|@FILE", help="Variables: a JSON object, or a file that holds it; default none"
    ),
]
StoreDirectory = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="DIR",
        help="Where to keep things, `:memory:` for nowhere; default `OCTO_STORE`, else `.octo` beside the config",
    ),
]
Drafts = Annotated[
    bool,
    typer.Option(
        "--drafts/--no-drafts",
        show_default=False,
        help="Agents that blocks link run as your drafts of them, where there are some; default off",
    ),
]
RecordValues = Annotated[
    bool,
    typer.Option(
        "--record-values/--no-record-values",
        show_default=False,
        help="Keep the drafts that agents worked as in the record of the run; default on",
    ),
]
BesideConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="PATH",
        parser=inputs.path,
        help="Config whose store it is; default the store of the working directory",
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json/--no-json", show_default=False, help="One line of JSON on a terminal too; default only in a pipe"
    ),
]
Verbose = Annotated[bool, typer.Option("-v/--no-v", show_default=False, help="Tell each model turn too; default off")]
Spending = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        metavar="KEY=VALUE",
        help="Limit for what models may spend: `maxCostUSD`, `maxTokens`, `maxDuration`; repeatable; default none",
    ),
]
Debug = Annotated[bool, typer.Option("--debug/--no-debug", show_default=False, help="Show tracebacks; default off")]

_FILES: Final = frozenset({"FILE", "OUT", "PATH"})
"""Metavars of options that name a file or a directory."""
_MEANT: Final = {
    "init": "new",
    "create": "new",
    "check": "validate",
    "lint": "validate",
    "format": "fmt",
    "exec": "invoke",
    "call": "invoke",
    "serve": "run",
    "start": "run",
}
"""What other programs call commands that octo has under another name."""
_NUMBER: Final = re.compile(r"-\.?\d")
_TRUTH: Final = {
    "true": True,
    "1": True,
    "yes": True,
    "on": True,
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}


def store(session: Session, directory: str | None, beside: Path) -> Store:
    """The store that `--store` names, else `OCTO_STORE`, else `.octo` in a directory. Nothing is opened yet."""
    from octo.store.store import Store  # here, because the help reads this file and keeps nothing

    named = directory if directory is not None else session.environ.get("OCTO_STORE")
    if named is None:
        return Store(beside / ".octo")
    return Store(inputs.path(named)) if named not in ("", ":memory:") else Store()


def drafts_of(session: Session, drafts: bool) -> str:
    """Whose drafts of agents count, for `--drafts`; empty for nobody's."""
    if not drafts:
        return ""
    from octo.agent.declared import user  # here, because the help reads this file

    return user(session.environ)


def beside(config: Path | None) -> Path:
    """The directory of a config, beside which its store lies; without one the working directory.

    Raises ConfigError when there is no such config.
    """
    if config is None:
        return Path()
    if not config.exists():
        from octo.config.merge import no_such_file

        raise ConfigError([no_such_file(config)])
    return config if config.is_dir() else config.parent


def address(option: str, text: str) -> str:
    """An address to listen on. Raises UsageError when it is none."""
    from octo.server import split_address

    try:
        split_address(text)
    except ValueError:
        hint = "for example `127.0.0.1:8080`, or `:8080` for all of the machine's addresses"
        raise UsageError(f"`{option}`: expected `host:port`, found `{text}`", hint=hint) from None
    return text


class Choice:
    """Chooses between an option, the environment variable that is its default, and the default of that."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def text(self, given: str | None, variable: str, default: str) -> str:
        return given if given is not None else self._session.environ.get(variable) or default

    def switch(self, given: bool | None, variable: str, default: bool) -> bool:
        found = self._session.environ.get(variable, "").strip()
        if given is None and found and found.lower() not in _TRUTH:
            self._ignored(variable, found, "`true` or `false`")
        return given if given is not None else _TRUTH.get(found.lower(), default)

    def number(self, given: int | None, variable: str, default: int) -> int:
        found = self._session.environ.get(variable, "").strip()
        if given is None and found and not found.isdecimal():
            self._ignored(variable, found, "a whole number")
        return given if given is not None else int(found) if found.isdecimal() else default

    def _ignored(self, variable: str, found: str, expected: str) -> None:
        logs.write(self._session, "warn", f"`{variable}` is `{found}`, expected {expected}; it is ignored")


class PlainHelp(click.Command):
    """A command in whose help no option ends in a full stop and no argument stands in braces."""

    def get_params(self, ctx: Context) -> list[click.Parameter]:
        params = super().get_params(ctx)
        for param in params:
            if isinstance(param, TyperOption) and param.help:
                param.help = param.help.rstrip(".")
        return params

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class Command(PlainHelp, TyperCommand):
    """A command whose faults of grammar are UsageErrors, and whose boolean options take `--x=false`."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True
        given = list(args)
        try:
            rest = super().parse_args(ctx, list(spelt_out(self, args)))
        except GrammarError as error:
            raise usage_error(error, ctx, given) from error
        if rest and not ctx.resilient_parsing:
            raise UsageError(f"`{ctx.command_path}` takes no argument `{rest[0]}`", hint=_help_of(ctx))
        return rest

    def invoke(self, ctx: Context) -> Any:
        with printed.to_standard_error(ctx.obj):
            return super().invoke(ctx)


def spelt_out(command: TyperCommand, args: Sequence[str]) -> Iterator[str]:
    """The arguments as the parser below takes them.

    `--x=false` and `--x=true` of switches become `--no-x` and `--x`. A negative number is no option: it goes to the
    end, behind `--`. A file with an empty name, which would be the working directory, is refused.
    """
    options = [param for param in command.params if isinstance(param, TyperOption)]
    switches = {name: option for option in options if option.secondary_opts for name in option.opts}
    taking = {name for option in options if not option.is_flag for name in option.opts}
    files = {name for option in options if _is_file(option) for name in option.opts}
    arguments: list[str] = []
    rest = iter(args)
    for arg in rest:
        name, equals, value = arg.partition("=")
        if arg == "--":
            arguments += rest
        elif not arg or _NUMBER.match(arg):
            arguments.append(arg)
        elif equals and name in switches:
            if value.lower() not in _TRUTH:
                raise UsageError(f"`{name}` is on or off, found `{value}`", hint=f"write `{name}` or `{name}=false`")
            yield name if _TRUTH[value.lower()] else switches[name].secondary_opts[0]
        else:
            following = list(islice(rest, 1)) if arg in taking else []
            if name in files and (following == [""] or arg == f"{name}="):
                raise _empty(name)
            yield from (arg, *following)
    if "" in arguments:
        for param in command.params:
            if isinstance(param, TyperArgument) and _is_file(param):
                raise _empty((param.metavar or param.human_readable_name).strip("[]."))
    if arguments:
        yield "--"
        yield from arguments


def _empty(name: str) -> UsageError:
    return UsageError(f"`{name}` is empty", hint="give it the name of a file or a directory")


def _is_file(param: click.Parameter) -> bool:
    """Whether a parameter names a file or a directory."""
    return (param.metavar or "").partition("|")[0] in _FILES or getattr(param.type, "func", None) is inputs.path


def usage_error(error: GrammarError, ctx: Context, args: Sequence[str] = ()) -> UsageError:
    """What the parser of command lines found, as octo says it."""
    command = ctx.command_path
    match error:
        case NoSuchOption():
            name = _as_written(error.option_name, args)
            known = [opt for param in ctx.command.get_params(ctx) for opt in (*param.opts, *param.secondary_opts)]
            match_ = near(f"-{name}" if name[1:2] != "-" and len(name) > 2 else name, known)
            hint = f"did you mean `{match_}`?" if match_ else _hint_for(name, ctx, args)
            return UsageError(f"`{command}` has no option `{name}`", hint=hint)
        case MissingParameter():
            names = (error.param.opts if error.param else None) or ["an argument"]
            metavar = error.param.make_metavar(ctx) if error.param else ""
            name = names[0] if names[0].startswith("-") else metavar
            return UsageError(f"`{command}` needs `{name}`", hint=_with_config(name, args) or _help_of(ctx))
        case BadOptionUsage():
            return UsageError(f"option `{error.option_name}` needs a value", hint=_help_of(ctx))
        case BadParameter():
            name = error.param.opts[0] if error.param else command
            text = error.message.rstrip(".")
            return UsageError(f"`{name}`: {text[:1].lower()}{text[1:]}", hint=_help_of(ctx))
    return UsageError(error.message.rstrip("."), hint=_help_of(ctx))


def no_such_command(name: str, known: Sequence[str], group: str = "octo") -> UsageError:
    """A first argument that names no command of a group."""
    if name.startswith("-"):
        return UsageError(f"`{group}` has no option `{name}`", hint=_command_first(name, group))
    meant = _MEANT.get(name.lower(), "")
    hint = f"did you mean `{meant}`?" if meant in known else did_you_mean(name, known)
    return UsageError(f"`{group}` has no command `{name}`", hint=hint)


def _as_written(name: str, args: Sequence[str]) -> str:
    """`-config` is read as a bundle of short options, of which `-c` is unknown; the user meant `--config`."""
    if name.startswith("--"):
        return name
    words = (arg.partition("=")[0] for arg in args)
    return next((word for word in words if re.fullmatch(r"-\w[\w-]+", word) and name[1:] in word), name)


def _hint_for(name: str, ctx: Context, args: Sequence[str]) -> str:
    """What to do about an option that resembles none."""
    if isinstance(ctx.command, TyperGroup):
        return _command_first(name, ctx.command_path)
    if not name.startswith("--") and any(isinstance(param, TyperArgument) for param in ctx.command.params):
        import shlex

        written = next((arg for arg in args if arg.startswith(name)), name)
        return f"an argument that begins with `-` stands after `--`: `{ctx.command_path} -- {shlex.quote(written)}`"
    return _help_of(ctx)


def _with_config(name: str, args: Sequence[str]) -> str | None:
    """What to do about a config that is named without its option."""
    import shlex

    file = next((arg for arg in args if arg.endswith((".yaml", ".yml"))), None)
    return f"write `--config {shlex.quote(file)}`" if name == "--config" and file else None


def _command_first(name: str, group: str) -> str:
    noun = "command" if group == "octo" else "verb"
    return f"the {noun} comes first: `{group} {noun.upper()} {name}`"


def _help_of(ctx: Context) -> str:
    return f"see `{ctx.command_path} --help`"


def limits(assignments: Sequence[str]) -> Limits | None:
    """What `--budget` allows."""
    if not assignments:
        return None
    from pydantic import ValidationError

    from octo.budget import Limits

    known: dict[str, Callable[[str], Json]] = {"maxCostUSD": float, "maxTokens": int, "maxDuration": str}
    given: dict[str, Json] = {}
    for assignment in assignments:
        key, _, value = assignment.partition("=")
        if key not in known:
            raise UsageError(f"`--budget`: there is no limit `{key}`", hint=did_you_mean(key, known))
        try:
            given[key] = known[key](value)
            Limits.model_validate({key: given[key]})
        except (ValueError, ValidationError):
            raise UsageError(
                f"`--budget`: `{key}` cannot be `{value}`",
                hint="for example `maxCostUSD=0.5`, `maxTokens=20000` or `maxDuration=2m`, each 0 or more",
            ) from None
    return Limits.model_validate(given)
