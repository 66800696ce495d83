"""What became of cases, suites and the whole run of tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from octo.testing.coverage import Coverage
from octo.testing.expect import Failure
from octo.testing.pairing import Pair
from octo.testing.trial import Trial
from octo.values import Json

if TYPE_CHECKING:
    from octo.testing.mutate import Mutations

Status: TypeAlias = Literal["passed", "failed", "errored", "skipped", "not-run"]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a case."""

    trial: Trial
    status: Status
    seconds: float = 0.0
    failures: tuple[Failure, ...] = ()
    error: str = ""
    """Why it could not be judged."""
    stderr: str = ""
    """What its flow logged and printed."""
    envelope: Mapping[str, Json] | None = None
    reproduce: str = ""
    """A command that makes the same call."""
    runs: int = 1
    passed_runs: int = 0
    """Of the runs, when it was run more than once."""
    notes: tuple[str, ...] = ()
    """What is odd about it, whether it passed or not."""
    interrupted: bool = False
    """Whether it had begun when the run was interrupted."""
    mask: Callable[[str], str] = str
    """Hides the secrets of its config."""

    @property
    def name(self) -> str:
        return self.mask(self.trial.name)

    @property
    def title(self) -> str:
        """The case, and the suite that it stands in."""
        return self.mask(self.trial.title)

    @property
    def skip(self) -> str:
        """Why it was not run, if the suite says so."""
        return self.mask(self.trial.case.skip.strip())

    @property
    def fell_short(self) -> bool:
        return self.status in ("failed", "errored")

    @property
    def is_flaky(self) -> bool:
        """Whether it passed in some of its runs only."""
        return 0 < self.passed_runs < self.runs

    @property
    def lines(self) -> list[str]:
        """What went wrong, as it is read."""
        if self.status == "errored":
            return self.error.splitlines()
        return [line for failure in self.failures for line in failure.lines]


@dataclass(frozen=True)
class SuiteResult:
    """The cases of one suite, in its order."""

    pair: Pair
    results: Sequence[Result]

    @property
    def flow(self) -> str:
        first = self.results[0]
        return first.mask(first.trial.suite.flow)

    @property
    def seconds(self) -> float:
        return sum(result.seconds for result in self.results)

    @property
    def fell_short(self) -> bool:
        return any(result.fell_short for result in self.results)

    @property
    def ran(self) -> bool:
        """Whether any of its cases did."""
        return any(result.status not in ("skipped", "not-run") for result in self.results)


@dataclass(frozen=True)
class Report:
    """Everything that was run, and what was not."""

    suites: Sequence[SuiteResult]
    wall: float = 0.0
    """Seconds from the start to the end."""
    directory: Path | None = None
    """Where the files of what fell short are."""
    interrupted: bool = False
    coverage: Sequence[Coverage] = ()
    """What was reached of each config, if that was asked."""
    mutations: Sequence[Mutations] = ()
    """What became of changes of each config, if that was asked."""
    counts: Counter[Status] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", Counter(result.status for result in self.results))

    @property
    def results(self) -> list[Result]:
        return [result for suite in self.suites for result in suite.results]

    @property
    def seconds(self) -> float:
        """The times of all cases together."""
        return sum(suite.seconds for suite in self.suites)

    @property
    def exit_status(self) -> int:
        if self.interrupted:
            return 130
        return 2 if self.counts["errored"] else 1 if self.counts["failed"] else 0
