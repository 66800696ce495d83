"""`octo test`: from the suites that are named to reports, once or whenever a file changes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import typer

from octo.config.load import load
from octo.errors import ConfigError, OctoError, UsageError
from octo.testing import report as reports
from octo.testing.mutate import mutations
from octo.testing.pairing import Pair, pairs
from octo.testing.report import Line
from octo.testing.results import Report, Result, SuiteResult
from octo.testing.runner import Printed, Runner, Surroundings
from octo.testing.trial import Trial, by_suite, shuffled, trials
from octo.testing.watch import Reads, State, affected, changed, state
from octo.testing.workspace import Workspace
from octo_cli import diagnostics, output, startup
from octo_cli.session import Session

PAUSE: Final = 0.3
"""Seconds between two looks at the files that are watched."""
_COLOURS: Final = {"good": "green", "bad": "red", "faint": "bright_black"}
_GROUND: Final = "\r\x1b[2K"
"""Takes a line off a terminal."""


@dataclass(frozen=True)
class Asked:
    """What is to be tested, and what is to be told of it."""

    paths: Sequence[Path]
    config: Path | None = None
    env_file: Path | None = None
    containing: str = ""
    shuffle: str | None = None
    junit: Path | None = None
    report_json: Path | None = None
    verbose: bool = False
    json: bool = False
    coverage: bool = False
    mutate: bool = False

    def pairs(self) -> list[Pair]:
        """The suites with their configs. Raises UsageError for a path that names none."""
        return pairs(self.paths, self.config)

    def reads(self, environ: Mapping[str, str]) -> dict[str, Iterable[Path]]:
        """The files that no report may be written over, by what reads them."""
        found = _pairs(self)
        beside = {Path(".env")}.union(*_read(found, environ).values())
        return {
            "`octo test`": [path for pair in found for path in (pair.suite, pair.config)],
            "`--env-file`": [] if self.env_file is None else [self.env_file],
            "the config": beside,
        }

    async def run(
        self,
        session: Session,
        around: Surroundings,
        of: Sequence[Pair] | None = None,
        *,
        earlier: list[Workspace] | None = None,
    ) -> int:
        """Run the cases of all suites, or of some; the exit status. Raises OctoError when nothing can be run.

        What an earlier round has left is removed, and what this one leaves takes its place.
        """
        try:
            found = trials(self.pairs() if of is None else of, containing=self.containing)
        except ConfigError as error:
            if _on_github(session):
                output.put_lines(session, list(reports.github_problems(error.problems)))
            raise
        if not found:
            raise UsageError(f"no case has a name that contains `{self.containing}`")
        started = time.perf_counter()
        runner = Runner(around)
        if earlier is not None:
            while earlier:
                earlier.pop().remove()
            earlier.append(runner.workspace)
        told = Telling(session, found, verbose=self.verbose, silent=self.json)
        try:
            order = found if self.shuffle is None else shuffled(found, self.shuffle)
            with redirect_stdout(Printed()):
                finished = await runner.run(order, told.hear)
            runner.workspace.clear()
            suites = [SuiteResult(pair, told.results_of(cases)) for pair, cases in by_suite(found)]
            wall = time.perf_counter() - started
            report = Report(
                suites,
                wall,
                runner.workspace.directory,
                interrupted=not finished,
                coverage=[runner.coverage[path] for path in sorted(runner.coverage)] if self.coverage else (),
            )
            if self.mutate and report.exit_status == 0:
                with redirect_stdout(Printed()):
                    report = replace(report, mutations=await mutations(runner, around, found, told.tick))
        except BaseException:
            runner.workspace.remove()
            raise
        finally:
            told.clear()
        self._report(session, report)
        if runner.abandoned:  # they would hold up the end of the event loop for ever
            startup.leave(report.exit_status)
        return report.exit_status

    def _report(self, session: Session, report: Report) -> None:
        if self.junit is not None:
            _write(self.junit, reports.junit(report))
        if self.report_json is not None:
            _write(self.report_json, output.laid_out(reports.as_json(report)) + "\n")
        if self.json:
            output.document(session, reports.as_json(report), json=True)
            return
        _print(session, list(reports.total_lines(report)))
        if self.mutate and report.exit_status:
            session.tell("nothing was changed: `--mutate` needs cases that all pass")
        if _on_github(session):
            output.put_lines(session, list(reports.github(report)))


class Telling:
    """Prints suites in their order as they finish; on a terminal one more line says how far the work is."""

    def __init__(self, session: Session, found: Sequence[Trial], *, verbose: bool, silent: bool) -> None:
        self._session = session
        self._results: dict[int, Result] = {}
        self._waiting = deque(by_suite(found))
        self._left = {pair: len(cases) for pair, cases in self._waiting}
        self._total = len(found)
        self._fell_short = 0
        self._verbose = verbose
        self._silent = silent
        self._shows = session.for_people(session.err) and session.environ.get("TERM") != "dumb"
        self._shown_at = 0.0

    def hear(self, result: Result) -> None:
        """Take note of a case that is over."""
        self._results[result.trial.number] = result
        self._fell_short += result.fell_short
        self._left[result.trial.pair] -= 1
        while self._waiting and not self._left[self._waiting[0][0]]:
            pair, cases = self._waiting.popleft()
            if not self._silent:
                self.clear()
                suite = SuiteResult(pair, self.results_of(cases))
                _print(self._session, list(reports.suite_lines(suite, verbose=self._verbose)))
        fell = f", {self._fell_short} not passed" if self._fell_short else ""
        self._show(f"{len(self._results)} of {self._total} cases{fell}")

    def results_of(self, cases: Sequence[Trial]) -> list[Result]:
        return [self._results[trial.number] for trial in cases]

    def clear(self) -> None:
        """Take the line off the terminal."""
        if self._shows:
            self._session.err.write(_GROUND)
            self._session.err.flush()

    def tick(self, done: int, total: int) -> None:
        """Tell how many changes of the configs were tried."""
        self._show(f"{done} of {total} changes")

    def _show(self, text: str) -> None:
        now = time.monotonic()
        if self._shows and now - self._shown_at >= 0.1:
            self._shown_at = now
            self._session.err.write(f"{_GROUND}{text}")
            self._session.err.flush()


async def watching(session: Session, asked: Asked, around: Surroundings) -> int:
    """Run all suites, and again those that a change of files concerns, until it is cancelled."""
    extra = [path for path in (asked.env_file, around.cwd / ".env") if path is not None]
    watched = _pairs(asked)
    reads = _read(watched, session.environ)
    seen = state(watched, extra, reads)
    due: list[Pair] | None = None
    earlier: list[Workspace] = []
    while True:
        try:
            if await asked.run(session, around, due, earlier=earlier) == startup.INTERRUPTED:
                return startup.INTERRUPTED
        except (ConfigError, UsageError) as error:
            diagnostics.show(session, error)
        session.tell("watching for changes, Ctrl-C ends it")
        due, seen = await _next(asked, extra, reads, seen)
        watched = _pairs(asked)
        reads = _read(watched, session.environ)
        seen = state(watched, extra, reads) | seen


async def _next(asked: Asked, extra: Sequence[Path], reads: Reads, seen: State) -> tuple[list[Pair], State]:
    """The pairs that the next change of files concerns, and what the files are then."""
    while True:
        await asyncio.sleep(PAUSE)
        there = _pairs(asked)
        now = state(there, extra, reads)
        due = affected(there, changed(seen, now), extra, reads)
        if due:
            return due, now
        seen = now


def _read(found: Sequence[Pair], environ: Mapping[str, str]) -> dict[Path, set[Path]]:
    """The files that each config reads, or looks for."""
    read: dict[Path, set[Path]] = {}
    for config in {pair.config for pair in found}:
        read[config] = set()
        with suppress(ConfigError):  # told when its cases run
            load(config, environ=environ, read=read[config])
    return read


def _on_github(session: Session) -> bool:
    return session.environ.get("GITHUB_ACTIONS") == "true"


def _pairs(asked: Asked) -> list[Pair]:
    """The pairs there are at this moment; none while a file is being replaced."""
    try:
        return asked.pairs()
    except UsageError:
        return []


def _print(session: Session, lines: Sequence[Line]) -> None:
    paint: Callable[[Line], str] = _painted if session.coloured(session.out) else _plain
    output.put_lines(session, [paint(line) for line in lines])


def _plain(line: Line) -> str:
    return line.text


def _painted(line: Line) -> str:
    if not line.look:
        return line.text
    return typer.style(line.text[: line.head], fg=_COLOURS[line.look]) + line.text[line.head :]


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OctoError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from error
