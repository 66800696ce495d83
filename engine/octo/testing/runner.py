"""Runs cases, several at once, each in a runtime, an environment and a store of its own."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from octo import invocation, logline, process
from octo.config import load, merge
from octo.config.document import Document
from octo.config.model import Config
from octo.doubles import Stage
from octo.errors import ConfigError, Location, OctoError, Problem
from octo.observe import Event, LogLine, Observer
from octo.runlog.record import Record
from octo.runlog.recorder import Recorder
from octo.runtime import Runtime
from octo.testing.coverage import Coverage
from octo.testing.expect import Evidence, judge
from octo.testing.named import addresses_of, has_tools
from octo.testing.results import Result
from octo.testing.trial import Trial
from octo.testing.workspace import Files, Workspace
from octo.values import Json, clone, dumps, masked, parse

if TYPE_CHECKING:
    from octo.testing.mutate import Mutant

GRACE: Final = 10.0
"""Seconds that a case may go on after its time limit before it is cancelled."""
_LAST_WORDS: Final = 1.0
"""Seconds that a cancelled case has to clean up."""


@dataclass(frozen=True)
class Surroundings:
    """What cases run in, and how."""

    environ: Mapping[str, str]
    """The environment of whoever runs the tests."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What an env file adds to it."""
    cwd: Path = Path()
    parallel: int = 1
    """How many cases run at once."""
    repeat: int = 1
    """How many times each case runs."""
    fail_fast: bool = False
    """Start no more cases once one has fallen short."""
    command: Sequence[str] = ()
    """The command `octo`, when each case is to run in a process of its own."""
    coverage: bool = False
    """Take note of the blocks that cases reach."""
    level: str = "error"
    """What flows log, as `LOG_LEVEL` says it; empty for what the environment says."""
    grace: float = GRACE
    mutant: Mutant | None = None
    """A change of the config that is called."""

    def environment(self, trial: Trial) -> dict[str, str]:
        """The environment of a case."""
        level = {"LOG_LEVEL": self.level} if self.level else {}
        return {**self.environ, **self.variables, **level, **trial.env}


@dataclass(slots=True)
class Attempt:
    """What a call of a case has left so far."""

    lines: list[str] = field(default_factory=list)
    """What its flow logged and printed."""
    evidence: Evidence | None = None
    mask: Callable[[str], str] = str
    notes: list[str] = field(default_factory=list)


class Runner:
    """Runs cases and tells what became of each."""

    def __init__(
        self,
        around: Surroundings,
        *,
        documents: dict[Path, tuple[Document, ...]] | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """`documents` are those of configs that were read before, by their paths."""
        self.workspace = Workspace(around.variables)
        self.abandoned: list[asyncio.Task[None]] = []
        """What went on although it was cancelled."""
        self.coverage: dict[Path, Coverage] = {}
        """By the paths of configs."""
        self._around = around
        self._clock = clock
        self.documents = {} if documents is None else documents
        self._configs: dict[object, Config] = {}
        self._stopped = False
        self._begun: set[int] = set()
        """The numbers of the cases that have."""

    async def run(self, trials: Sequence[Trial], tell: Callable[[Result], object]) -> bool:
        """Run cases in their order; `tell` hears of each as soon as it is over. False when it was interrupted."""
        waiting = iter(trials)
        open_: dict[int, Trial] = {trial.number: trial for trial in trials}

        def over(result: Result) -> None:
            del open_[result.trial.number]
            tell(result)

        with _engine_lines():
            try:
                await asyncio.gather(*(self._work(waiting, over) for _ in range(self._around.parallel)))
            except asyncio.CancelledError:
                if (task := asyncio.current_task()) is not None:
                    task.uncancel()
                for trial in list(open_.values()):
                    over(Result(trial, "not-run", interrupted=trial.number in self._begun, mask=self._known_mask))
                return False
        return True

    async def _work(self, waiting: Iterator[Trial], over: Callable[[Result], None]) -> None:
        for trial in waiting:
            if trial.case.skip.strip():
                over(Result(trial, "skipped", mask=self._mask(trial)))
            elif self._stopped:
                over(Result(trial, "not-run", mask=self._mask(trial)))
            else:
                self._begun.add(trial.number)
                result = await self._repeatedly(trial)
                self._stopped = self._stopped or (self._around.fail_fast and result.fell_short)
                over(result)

    def _mask(self, trial: Trial) -> Callable[[str], str]:
        """Hides the secrets of a case that is not run."""
        with suppress(OctoError):
            return self._config(trial, self._around.environment(trial)).environment.mask
        return self._known_mask

    def _known_mask(self, text: str) -> str:
        """Hides the secrets of all configs that were built so far."""
        for config in self._configs.values():
            text = config.environment.mask(text)
        return text

    async def _repeatedly(self, trial: Trial) -> Result:
        """What became of a case in all of its runs: the worst of it."""
        results = [await self._once(trial) for _ in range(self._around.repeat)]
        worst = max(results, key=lambda result: ("passed", "failed", "errored").index(result.status))
        if worst.fell_short:
            command = self.workspace.keep(trial, worst.envelope, worst.mask)
            worst = replace(worst, reproduce=worst.mask(command))
        return replace(
            worst,
            seconds=sum(result.seconds for result in results),
            runs=len(results),
            passed_runs=sum(result.status == "passed" for result in results),
        )

    async def _once(self, trial: Trial) -> Result:
        started = time.perf_counter()
        attempt = Attempt()
        try:
            await self._within_limits(self._alive(trial, attempt), trial)
            assert attempt.evidence is not None
            failures = judge(trial, attempt.evidence, now=self._clock(), mask=attempt.mask)
            result = Result(trial, "failed" if failures else "passed", failures=tuple(failures))
        except OctoError as error:
            result = Result(trial, "errored", error=attempt.mask(_told(error)))
        except Exception as error:  # a fault of ours or of a plug-in, which shall not end the other cases
            text = f"octo has a bug: {type(error).__name__}: {error}".rstrip(": ")
            result = Result(trial, "errored", error=attempt.mask(text))
        return replace(
            result,
            seconds=time.perf_counter() - started,
            stderr=attempt.mask("\n".join(attempt.lines)),
            mask=attempt.mask,
            notes=tuple(map(attempt.mask, attempt.notes)),
            envelope=masked(attempt.evidence.envelope, attempt.mask) if attempt.evidence else None,
        )

    async def _alive(self, trial: Trial, attempt: Attempt) -> None:
        """Make the call; a block that would end the process ends its case only."""
        try:
            await self._call(trial, attempt)
        except SystemExit as error:
            raise OctoError(f"a block wanted to end the process: SystemExit: {error}") from error

    async def _within_limits(self, work: Coroutine[Any, Any, None], trial: Trial) -> None:
        """Do work that ends by itself; what does not is cancelled, and is an error."""
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({task}, timeout=trial.limit + self._around.grace)
        except asyncio.CancelledError:
            await self._cancel(task)
            raise
        if task.cancelled():
            raise OctoError("something in the flow cancelled the case")
        if task.done():
            return task.result()
        await self._cancel(task)
        limit, grace = f"{trial.limit:g} s", f"{self._around.grace:g} s"
        raise OctoError(f"the case had not ended {grace} after its time limit of {limit}, and was cancelled")

    async def _cancel(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        await asyncio.wait({task}, timeout=_LAST_WORDS)
        if not task.done():
            self.abandoned.append(task)
        elif not task.cancelled():
            task.exception()  # nobody else asks for it

    # ------------------------------------------------------------ one call

    async def _call(self, trial: Trial, attempt: Attempt) -> None:
        environ = self._around.environment(trial)
        config = self._config(trial, environ)
        attempt.mask = config.environment.mask
        addresses = addresses_of(trial, config)
        stage = trial.doubles.on(config)
        failed_at: tuple[str, Location] | None = None
        records_needed = trial.case.needs_records or has_tools(config)
        if self._around.command:
            envelope, records = await self._in_a_process(trial, attempt, environ, records_needed)
            if self._around.coverage:
                for record in records:
                    self._covered(trial, environ, config).reach_address(record.path)
            stage = None
        else:
            stage = stage or Stage({}, (), "", None)
            try:
                outcome, records = await self._in_this_process(trial, attempt, config, stage, records_needed)
                envelope = parse(dumps(invocation.envelope(outcome, stage)))
                failed_at = _place_of(outcome.error)
            finally:
                if self._around.coverage:
                    self._covered(trial, environ, config).reach(stage.reached, stage.mocks.keys())
        attempt.notes += [*trial.notes(), *_turns_left(trial, stage)]
        attempt.evidence = Evidence(
            envelope, records, addresses, failed_at=failed_at, is_masked=bool(self._around.command)
        )

    async def _in_this_process(
        self, trial: Trial, attempt: Attempt, config: Config, stage: Stage, records_needed: bool
    ) -> tuple[invocation.Outcome, list[Record]]:
        """Outcome and run log of the call in a runtime of its own, with secrets as they are."""
        heard = _Lines(attempt.lines, config.environ.get("LOG_LEVEL", ""), self._clock)
        _here.set(heard)
        records: list[Record] = []
        observers: list[Observer] = [heard]
        if records_needed:
            observers.append(Recorder([records.append], pieces=True))
        runtime = Runtime(
            config,
            stage=stage,
            observers=observers,
            outputs={"stdout": attempt.lines.append, "stderr": attempt.lines.append},
            clock=self._clock,
        )
        given = trial.input
        outcome = await invocation.invoke(
            runtime, trial.suite.flow, given.data, vars=clone(given.vars), limit=trial.limit
        )
        return outcome, records

    def _covered(self, trial: Trial, environ: Mapping[str, str], config: Config) -> Coverage:
        """What is known of the config of a case, in which no block is mocked if it loads so."""
        path = trial.pair.config
        if path not in self.coverage:
            with suppress(ConfigError):
                config = self.build(path, environ=environ)
            self.coverage[path] = Coverage(path, config)
        return self.coverage[path]

    def _config(self, trial: Trial, environ: Mapping[str, str]) -> Config:
        """The config that a case calls: built once for each environment and set of mocked addresses."""
        path, doubles = trial.pair.config, trial.doubles
        key = (path, tuple(sorted(trial.env.items())), frozenset(doubles.mocks))
        if key not in self._configs:
            self._configs[key] = self.build(path, self._around.mutant, environ=environ, rewrite=doubles.rewrite)
        return self._configs[key]

    def build(
        self,
        path: Path,
        mutant: Mutant | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        rewrite: load.Rewrite | None = None,
    ) -> Config:
        """A config, with mocks in the place of blocks and with a change. Raises ConfigError."""

        def changed(data: dict[str, Json]) -> tuple[dict[str, Json], list[Problem]]:
            data, problems = rewrite(data) if rewrite else (data, [])
            return (mutant.rewrite(data) if mutant else data), problems

        if path not in self.documents:
            self.documents[path] = merge.read(path)
        environ = self._around.environ if environ is None else environ
        return load.build(self.documents[path], path, environ=environ, cwd=self._around.cwd, rewrite=changed)

    async def _in_a_process(
        self, trial: Trial, attempt: Attempt, environ: Mapping[str, str], records_needed: bool
    ) -> tuple[Json, list[Record]]:
        """Envelope and run log of the call by a process of its own, in which secrets are hidden."""
        files = self.workspace.put(trial, attempt.mask)
        arguments = [*trial.arguments(files.debug_config), "--envelope-out", str(files.envelope)]
        logs = records_needed or self._around.coverage
        if logs:
            arguments += ["--events", str(files.log)]
        try:
            words = [*self._around.command, *arguments]
            async with process.running(words, stdin=None, env=environ, cwd=self._around.cwd) as child:
                streams = await asyncio.gather(child.stdout.read(), child.stderr.read())
                await child.exited.wait()
            printed, text = (stream.decode("utf-8", errors="replace") for stream in streams)
            attempt.lines += [*printed.splitlines(), *text.splitlines()]
            if not files.envelope.exists():
                raise _error_of_process(trial, files, text, child.code)
            records = []
            if logs:
                records = [Record.parse(line) for line in files.log.read_text(encoding="utf-8").splitlines()]
            return parse(files.envelope.read_bytes()), records
        finally:
            files.remove()


# ---------------------------------------------------------------- what a case refers to


def _turns_left(trial: Trial, stage: Stage | None) -> Iterator[str]:
    """Which written turns nobody asked for."""
    for name, turns in trial.turns().items() if stage is not None else ():
        left = len(turns) - (stage.asked[name] if stage is not None else 0)
        if left > 0:
            words = f"{left} of its {len(turns)} turns were" if left > 1 else f"the last of its {len(turns)} turns was"
            yield f'model "{name}": {words} not asked for' if len(turns) > 1 else f'model "{name}" was not asked'


# ---------------------------------------------------------------- errors


def _place_of(error: OctoError | None) -> tuple[str, Location] | None:
    """The address of the block that failed, and where it stands."""
    if error is None or error.location is None:
        return None
    return getattr(error, "address", ""), error.location


def _told(error: OctoError) -> str:
    """An error with its hints, problem by problem."""
    if not isinstance(error, ConfigError):
        return _hinted(error.message, error.hint)
    faults = [problem for problem in error.problems if problem.severity == "error"]
    return "\n".join(_hinted(str(problem), _hint_of(problem)) for problem in faults)


_MISSING: Final = re.compile(r'environment variable "(\w+)" is (?:referenced but )?not set')


def _hint_of(problem: Problem) -> str | None:
    """What to do; of a variable without a value, what to do in a suite."""
    missing = _MISSING.search(problem.message)
    return f"give it a value in the suite, under `env:`: `{missing[1]}: …`" if missing else problem.hint


def _hinted(text: str, hint: str | None) -> str:
    return f"{text}\nhint: {hint}" if hint else text


_STOPPED: Final = re.compile(r'msg="cli stopped with error" error=("(?:[^"\\]|\\.)*")(.*)')
_HINT: Final = re.compile(r' hint=("(?:[^"\\]|\\.)*")')


def _error_of_process(trial: Trial, files: Files, stderr: str, code: int) -> OctoError:
    """The error with which a process ended, that left no envelope."""
    found = _STOPPED.search(stderr)
    if found is None:
        return OctoError(f"the process ended with status {code} and told nothing")
    text, hint = json.loads(found[1]), _HINT.search(found[2])
    told = OctoError(text, hint=json.loads(hint[1]) if hint else None)
    model = re.match(re.escape(str(files.debug_config)) + r':\d+:\d+: (model "(.*?)": .*)', text, re.DOTALL)
    if model is None:
        return told
    return ConfigError([trial.doubles.report(("models", model[2]), model[1], told.hint)])


# ---------------------------------------------------------------- what is logged


class _Lines:
    """Observer that keeps the lines which flows log, as a process would write them."""

    kinds: Sequence[type[Event]] = (LogLine,)

    def __init__(self, lines: list[str], level: str, clock: Callable[[], int]) -> None:
        self._lines = lines
        self._least = logline.rank(level.strip())
        self._clock = clock
        self._begun = ""
        """What was printed of a line that is not at its end."""

    def notify(self, event: Event) -> None:
        if isinstance(event, LogLine):
            fields = {name: value if isinstance(value, str) else dumps(value) for name, value in event.fields.items()}
            self.add(event.level, event.text, fields)

    def add(self, level: str, text: str, fields: Mapping[str, str]) -> None:
        if logline.rank(level) >= self._least:
            self._lines.append(logline.as_text(self._clock(), level, text, fields))

    def write(self, text: str) -> None:
        """Keep what Python code prints."""
        *lines, self._begun = (self._begun + text).split("\n")
        self._lines += lines


_here: ContextVar[_Lines | None] = ContextVar("octo.testing.here", default=None)
"""Where what octo's modules say through `logging` belongs, and what Python code prints."""


class Printed(io.TextIOBase):
    """Takes what Python code of a flow prints to the case in which it does; a stand-in for standard output."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if (heard := _here.get()) is not None:
            heard.write(text)
        return len(text)


@contextmanager
def _engine_lines() -> Iterator[None]:
    """Take what octo's modules say through `logging` to the case in which they say it."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if (heard := _here.get()) is not None:
                heard.add(record.levelname, record.getMessage(), {})

    logger, handler = logging.getLogger("octo"), Handler()
    level, propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate
