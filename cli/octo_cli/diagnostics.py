"""An error on standard error: for people with the place and a hint, in a pipe as log records."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from octo.errors import BlockError, ConfigError, Excerpt, ExpressionError, OctoError, Problem, ProviderError
from octo.logline import printable, rank
from octo_cli import logs
from octo_cli.session import Session

STOPPED: Final = "cli stopped with error"
_WIDTH: Final = 100
_RECOVERY: Final = "`handle-errors` or the flow's `error:` chain can recover from this"


def show(session: Session, error: OctoError, what: str = STOPPED) -> None:
    """Show an error, which ends the command if nothing else is said, after the warnings that were found beside it."""
    if session.debug:
        _traceback(session, error)
    found = error.problems if isinstance(error, ConfigError) else (_problem(error),)
    if session.for_people(session.err):
        shown = [_for_people(session, problem, _address(error)) for problem in found if _is_told(session, problem)]
        session.tell("\n\n".join(shown))
        return
    faults = [problem for problem in found if problem.severity == "error"]
    for problem in found:
        if problem.severity == "warning":
            warn(session, problem)
        elif len(faults) > 1:
            told = {"error": problem.message, **_position(problem), "hint": problem.hint}
            logs.write(session, "error", "config problem", told)
    text = "\n".join(map(str, faults)) if isinstance(error, ConfigError) else error.message
    first = faults[0]
    _record(session, what, text, {**_position(first), "address": _address(error), "hint": first.hint})


def warn(session: Session, problem: Problem) -> None:
    """Show a problem that ends nothing."""
    if not session.for_people(session.err):
        logs.write(session, "warn", problem.message, {**_position(problem), "hint": problem.hint})
    elif _is_told(session, problem):
        session.tell(_for_people(session, problem))


def _is_told(session: Session, problem: Problem) -> bool:
    return problem.severity == "error" or rank("warn") >= logs.threshold(session)


def point(session: Session, error: ExpressionError) -> None:
    """Show where in an expression the fault lies."""
    before = error.source[: error.column - 1]
    number, column = before.count("\n") + 1, error.column - before.rfind("\n") - 1
    if session.for_people(session.err):
        excerpt = Excerpt(error.source.split("\n")[number - 1], column, error.length)
        session.tell(_for_people(session, Problem(error.message, hint=error.hint, excerpt=excerpt)))
    else:
        place = {"line": number if "\n" in error.source else None, "column": column}
        logs.write(session, "error", "expression failed", {"error": error.message, **place, "hint": error.hint})


def interrupted(session: Session) -> None:
    """Say that the command was stopped from outside."""
    if session.for_people(session.err):
        session.tell("interrupted")
    else:
        _record(session, STOPPED, "interrupted", {})


def crash(session: Session, error: BaseException) -> None:
    """Report an exception that is no OctoError: a bug of ours. The traceback goes to a file."""
    text = f"{type(error).__name__}: {error}".strip().rstrip(":")
    report = _crash_report(session, error)
    fault = OctoError(
        f"octo has a bug: {text}",
        hint=f"attach `{report}` to a bug report; known secrets are masked, but read it before you send it"
        if report
        else "run the command again with `--debug`, and report what it shows",
    )
    fault.__cause__ = error
    show(session, fault)


# ---------------------------------------------------------------- for people


def _for_people(session: Session, problem: Problem, address: str = "") -> str:
    """One problem as people read it: place and message, the line with a caret, what to do."""
    colour = "yellow" if problem.severity == "warning" else "red"
    lines = [f"{_painted(session, f'{problem.severity}:', colour)} {_safe(session, str(problem))}"]
    if not address:
        lines += _excerpt(session, problem)
    else:
        flow = address.replace("[", ".").partition(".")[0]
        lines.append(f"  in flow `{flow}`, at {address}")
    if problem.hint:
        lines.append(f"{_painted(session, 'hint:', 'cyan')} {_safe(session, problem.hint)}")
    return "\n".join(lines)


def _excerpt(session: Session, problem: Problem) -> list[str]:
    if problem.excerpt:
        number, text = "", problem.excerpt.text
        column, length = problem.excerpt.column, problem.excerpt.length
    elif problem.location:
        number, column, length = str(problem.location.line), problem.location.column, problem.length
        text = _source_line(problem.location.file, problem.location.line)
    else:
        return []
    if not text.strip():
        return []
    text, column = _window(text, column)
    before = "".join("\t" if char == "\t" else " " * _columns(char) for char in text[: column - 1])
    marked = sum(_columns(char) for char in text[column - 1 : column - 1 + length])
    rows = [f"{number:>5} | {text}", f"{'':>5} | {before}{'^' * max(marked, 1)}"]
    return [_safe(session, row).rstrip() for row in rows]


def _source_line(file: str, number: int) -> str:
    try:
        lines = Path(file).read_text(encoding="utf-8-sig", errors="replace").split("\n")
    except (OSError, ValueError):
        return ""
    return lines[number - 1] if 0 < number <= len(lines) else ""


def _window(text: str, column: int) -> tuple[str, int]:
    """The part of a long line that surrounds a column, and the column within it."""
    if len(text) <= _WIDTH:
        return text, column
    start = max(0, min(column - 1 - _WIDTH // 3, len(text) - _WIDTH))
    head, tail = "…" if start else "", "…" if start + _WIDTH < len(text) else ""
    return head + text[start : start + _WIDTH] + tail, column - start + len(head)


def _columns(char: str) -> int:
    """How many columns of a terminal a character takes."""
    if char.isascii():
        return 1
    import unicodedata

    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _painted(session: Session, text: str, colour: str) -> str:
    if not session.coloured(session.err):
        return text
    import typer

    return typer.style(text, fg=colour, bold=True)


def _safe(session: Session, text: str) -> str:
    return printable(session.mask(text))


# ---------------------------------------------------------------- records


def _record(session: Session, what: str, text: str, fields: dict[str, str | int | None]) -> None:
    given = {name: session.mask(str(value)) for name, value in fields.items() if value not in (None, "")}
    record = logs.record("ERROR", what, {"error": session.mask(text), **given})
    session.tell(record)


def _position(problem: Problem) -> dict[str, str | int | None]:
    if problem.location is None:
        return {}
    file, line, column = problem.location
    return {"file": file, "line": line, "column": column}


def _problem(error: OctoError) -> Problem:
    """An error that is not about a file, in the shape of one that is."""
    hint = error.hint or (_RECOVERY if _is_worth_recovering(error) else None)
    return Problem(error.message, location=error.location, hint=hint)


def _is_worth_recovering(error: OctoError) -> bool:
    """Whether the world let a block down. A wrong expression and a wrong model are better mended."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ExpressionError | ProviderError | RecursionError):
            return False
        cause = cause.__cause__
    return isinstance(error, BlockError)


def _address(error: OctoError) -> str:
    return getattr(error, "address", "")


# ---------------------------------------------------------------- tracebacks


def _traceback(session: Session, error: BaseException) -> None:
    import traceback

    session.tell(session.mask("".join(traceback.format_exception(error)).rstrip()))


def _crash_report(session: Session, error: BaseException) -> str | None:
    """Write the report into the directory of temporary files; its name, or None when it cannot be written."""
    import os
    import platform
    import tempfile
    import traceback

    import octo

    text = "\n".join(
        [
            f"octo {octo.__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"command line: {' '.join(['octo', *session.args])}",
            "",
            "".join(traceback.format_exception(error)),
        ]
    )
    try:
        handle, name = tempfile.mkstemp(prefix="octo-crash-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(session.mask(text))
    except OSError:
        return None
    return name
