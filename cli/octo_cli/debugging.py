"""`--run-debug-config`, `--mocks`, `--spies`, `--break-at`: what a call replaces and watches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from octo.errors import ConfigError, Excerpt, Problem, UsageError
from octo.values import Json, clone, dumps
from octo_cli import inputs
from octo_cli.session import Session

if TYPE_CHECKING:
    from octo.config.sheet import Sheet
    from octo.debug import DebugConfig, MockSpec
    from octo.doubles import Doubles, Report


class Debugging(NamedTuple):
    """What a debug config and the flags beside it ask for."""

    doubles: Doubles
    data: Json
    """The body, where the command line gives none."""
    vars: dict[str, Json]
    """The variables, where the command line gives none."""


def requested(
    session: Session, path: str | None, *, mocks: str | None, spies: str | None, break_at: str | None
) -> Debugging:
    """Read a debug config and the flags; a flag replaces its section whole.

    Raises ConfigError with the problems of the file, or with those of `--mocks`, and UsageError for an empty flag.
    """
    for option, text in (("--mocks", mocks), ("--spies", spies), ("--break-at", break_at)):
        if text is not None and not text.strip():
            raise UsageError(f"`{option}` is empty", hint="leave it out, or fill the shell variable that it takes")
    from octo.doubles import Doubles  # here, because the help reads this file and runs nothing

    if not (path or mocks or spies or break_at):
        return Debugging(Doubles(), None, {})
    from octo.debug import DebugConfig, acting, read_debug_config

    sheet = read_debug_config(inputs.path(path)) if path else None
    asked = sheet.value if sheet else DebugConfig.model_construct()
    doubles = Doubles(
        mocks=_mocks(session, mocks) if mocks else asked.mocks,
        spies=[name.strip() for name in spies.split(",")] if spies else asked.spies,
        break_at=break_at.strip() if break_at else asked.break_at,
        models=acting(asked.models),
    )
    if sheet is not None:
        flags = {"mocks": mocks, "spies": spies, "breakAt": break_at, "models": None}
        doubles = replace(doubles, report=_places_in(sheet, {key for key, flag in flags.items() if not flag}))
    return Debugging(doubles, clone(asked.input.data), clone(asked.input.vars))


def _places_in(sheet: Sheet[DebugConfig], sections: set[str]) -> Report:
    """Puts problems of these sections to their place in the file; the others come from flags."""

    def report(path: tuple[str | int, ...], message: str, hint: str | None) -> Problem:
        if path[0] not in sections:
            return Problem(message, hint=hint)
        return sheet.problem(path, message, hint, key=path[0] in ("mocks", "models"))

    return report


def _mocks(session: Session, text: str) -> dict[str, MockSpec]:
    """The mocks of a flag. A problem shows the JSON of its mock on one line, for there is no file to point into."""
    from octo.config.sheet import read
    from octo.debug import MockSpec

    found: dict[str, MockSpec] = {}
    problems: list[Problem] = []
    for name, spec in inputs.mapping(session, "--mocks", text).items():
        line = dumps(spec)
        try:
            found[name] = read(MockSpec, line, "--mocks", f'mock "{name}"').value
        except ConfigError as error:
            problems += [_on_line(problem, line) for problem in error.problems]
    if problems:
        raise ConfigError(problems)
    return found


def _on_line(problem: Problem, line: str) -> Problem:
    column = problem.location.column if problem.location else 1
    return replace(problem, location=None, excerpt=problem.excerpt or Excerpt(line, column, problem.length))
