"""Results as people, CI servers and programs read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias
from xml.sax.saxutils import escape, quoteattr

import octo
from octo.errors import Location, Problem
from octo.logline import printable
from octo.testing.coverage import Coverage
from octo.testing.results import Report, Result, SuiteResult
from octo.values import Json, Ordered

if TYPE_CHECKING:
    from octo.testing.mutate import Mutations

Look: TypeAlias = Literal["", "good", "bad", "faint"]

_MARKS: Final = {"passed": "PASS", "failed": "FAIL", "errored": "ERROR", "skipped": "SKIP", "not-run": "NOT RUN"}
_PLURALS: Final = {
    "flow": "flows",
    "block": "blocks",
    "branch": "branches",
    "tool": "tools",
    "error path": "error paths",
    "default path": "default paths",
}
_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MESSAGE: Final = 160


class Line(NamedTuple):
    """A line for the terminal; the first `head` characters have its look."""

    text: str
    look: Look = ""
    head: int = 0


# ---------------------------------------------------------------- for people


def suite_lines(suite: SuiteResult, *, verbose: bool = False) -> Iterator[Line]:
    """What is told of a suite: one line, and below it what did not pass."""
    word, look = _verdict(suite)
    head = f"{word} {printable(str(suite.pair.suite))}"
    yield Line(f"{head}  ({printable(suite.flow)})  {_ms(suite.seconds)}", look, 4)
    told = ""
    for result in suite.results:
        if verbose or result.status != "passed" or result.notes:
            yield from _case_lines(result, told, verbose=verbose)
        told = result.error or told


def _verdict(suite: SuiteResult) -> tuple[str, Look]:
    if suite.fell_short:
        return "FAIL", "bad"
    return ("ok  ", "good") if suite.ran else ("----", "faint")


def _case_lines(result: Result, told: str, *, verbose: bool) -> Iterator[Line]:
    """What is told of a case; `told` is the last error that was, which is not repeated."""
    mark = f"  --- {_MARKS[result.status]}"
    look: Look = "bad" if result.fell_short else "good" if result.status == "passed" else "faint"
    yield Line(f"{mark}: {printable(result.name)}{_remark(result)}", look, len(mark))
    yield from (Line(f"        note: {printable(note)}") for note in result.notes)
    if not result.fell_short:
        return
    if result.is_flaky:
        yield Line(f"        flaky: {_flaky(result)}")
    for failure in result.failures:
        yield from (Line(f"        {printable(line)}") for line in failure.lines)
        if failure.location:
            yield Line(f"          at {failure.location}", "faint", 200)
    if result.error and result.error == told:
        yield Line("        the same error")
    elif result.error:
        yield from (Line(f"        {printable(line)}") for line in result.lines)
    if verbose and result.stderr:
        yield from (Line(f"        {printable(line)}", "faint", 200) for line in result.stderr.splitlines())
    if result.reproduce:
        yield Line(f"        reproduce: {printable(result.reproduce)}")


def _remark(result: Result) -> str:
    match result.status:
        case "skipped":
            return f" ({printable(result.skip)})"
        case "not-run":
            return " (interrupted)" if result.interrupted else ""
    times = f", {result.runs} runs" if result.runs > 1 else ""
    return f" ({_ms(result.seconds)}{times})"


def total_lines(report: Report) -> Iterator[Line]:
    """The sum of all, the flaky cases, and where the files of what fell short are."""
    yield Line("")
    counts = report.counts
    words = [f"{counts[status]} {status}" for status in ("passed", "failed", "errored", "skipped")]
    if counts["not-run"]:
        words.append(f"{counts['not-run']} not run")
    yield Line(f"{', '.join(words)}  ({_ms(report.seconds)})")
    flaky = [result for result in report.results if result.is_flaky]
    if flaky:
        yield Line("")
        yield from (Line(f"flaky: {printable(result.title)}: {_flaky(result)}") for result in flaky)
    if report.coverage:
        yield Line("")
        for coverage in report.coverage:
            yield from _coverage_lines(coverage)
    if report.mutations:
        yield Line("")
        for mutations in report.mutations:
            yield from _mutation_lines(mutations)
    if report.directory is not None:
        yield Line("")
        yield Line(f"the runs are in {report.directory}")


def _coverage_lines(coverage: Coverage) -> Iterator[Line]:
    shown = [f"{reached} of {total} {_PLURALS[kind]}" for kind, (reached, total) in coverage.counts().items()]
    yield Line(f"coverage of {printable(str(coverage.path))}: {', '.join(shown) or 'nothing to reach'}")
    for part in coverage.missing():
        yield Line(f"  not reached: {part.kind} {printable(part.address)}  at {part.location}")


def _mutation_lines(mutations: Mutations) -> Iterator[Line]:
    noticed = mutations.total - len(mutations.unnoticed)
    yield Line(f"changes of {printable(str(mutations.path))}: {noticed} of {mutations.total} noticed")
    for mutant in mutations.unnoticed:
        yield Line(f"  not noticed: {printable(mutant.what)}  at {mutant.location}")


def _flaky(result: Result) -> str:
    return f"passed in {result.passed_runs} of {result.runs} runs"


def _ms(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"


# ---------------------------------------------------------------- for GitHub


def github(report: Report) -> Iterator[str]:
    """Workflow commands that show what fell short beside the lines of the suites."""
    for result in report.results:
        if not result.fell_short:
            continue
        if result.failures:
            for failure in result.failures:
                yield _annotation(result, "\n".join(failure.lines), failure.location or result.trial.place("name"))
        else:
            yield _annotation(result, result.error, result.trial.place("name"))


def github_problems(problems: Iterable[Problem]) -> Iterator[str]:
    """Workflow commands that show beside their lines what is wrong with suites that could not be read."""
    for problem in problems:
        if problem.severity == "error":
            text = f"{problem.message}\nhint: {problem.hint}" if problem.hint else problem.message
            yield _command(problem.location, "octo test", text)


def _annotation(result: Result, text: str, place: Location) -> str:
    return _command(place, result.title, text)


def _command(place: Location | None, title: str, text: str) -> str:
    keys: dict[str, object] = {} if place is None else {"file": place.file, "line": place.line, "col": place.column}
    keys["title"] = title
    return f"::error {','.join(f'{key}={_property(str(value))}' for key, value in keys.items())}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


# ---------------------------------------------------------------- JUnit


def junit(report: Report) -> str:
    """The report as JUnit XML."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {_totals('octo', report.results)}>"]
    for suite in report.suites:
        lines.append(f"  <testsuite {_totals(str(suite.pair.suite), suite.results)}>")
        for result in suite.results:
            lines += _testcase(result)
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>", ""])


def _totals(name: str, results: Sequence[Result]) -> str:
    statuses = [result.status for result in results]
    return _attributes(
        name=name,
        tests=len(statuses),
        failures=statuses.count("failed"),
        errors=statuses.count("errored"),
        skipped=statuses.count("skipped") + statuses.count("not-run"),
        time=_seconds(sum(result.seconds for result in results)),
    )


def _testcase(result: Result) -> list[str]:
    attributes = _attributes(
        name=result.name, classname=result.mask(result.trial.suite.flow), time=_seconds(result.seconds)
    )
    inner = list(_inside(result))
    if not inner:
        return [f"    <testcase {attributes}/>"]
    return [f"    <testcase {attributes}>", *(f"      {line}" for line in inner), "    </testcase>"]


def _inside(result: Result) -> Iterator[str]:
    match result.status:
        case "failed":
            first = " ".join(result.failures[0].lines)
            attributes = _attributes(message=_cut(first), type="assertion")
            yield f"<failure {attributes}>{_text(_whole(result))}</failure>"
        case "errored":
            yield f"<error {_attributes(message=_cut(result.error), type='run')}>{_text(result.error)}</error>"
        case "skipped":
            yield f"<skipped {_attributes(message=result.skip)}/>"
        case "not-run":
            yield f"<skipped {_attributes(message='interrupted' if result.interrupted else 'not run')}/>"
    if result.reproduce:
        yield f"<system-out>{_text(result.reproduce)}</system-out>"


def _whole(result: Result) -> str:
    """All failures with their places."""
    parts = [[*failure.lines, f"  at {failure.location}"] for failure in result.failures]
    return "\n".join(line for lines in parts for line in lines)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MESSAGE else f"{line[: _MESSAGE - 1]}…"


def _attributes(**values: object) -> str:
    return " ".join(f"{name}={quoteattr(_valid(str(value)))}" for name, value in values.items())


def _text(text: str) -> str:
    return escape(_valid(text))


def _valid(text: str) -> str:
    """The text without characters that no XML document can hold."""
    return _NO_XML.sub("\ufffd", text)


def _seconds(span: float) -> str:
    return f"{span:.3f}"


# ---------------------------------------------------------------- JSON


def as_json(report: Report) -> Ordered:
    """The report as one JSON value."""
    counts = report.counts
    parts = Ordered(dolphin=octo.__version__, wallMs=_whole_ms(report.wall))
    if report.directory is not None:
        parts["workDir"] = str(report.directory)
    parts["totals"] = Ordered(
        cases=len(report.results),
        passed=counts["passed"],
        failed=counts["failed"],
        errored=counts["errored"],
        skipped=counts["skipped"],
        notRun=counts["not-run"],
        elapsedMs=_whole_ms(report.seconds),
    )
    parts["suites"] = [_suite(suite) for suite in report.suites]
    if report.coverage:
        parts["coverage"] = [_coverage(coverage) for coverage in report.coverage]
    if report.mutations:
        parts["mutations"] = [_mutations(mutations) for mutations in report.mutations]
    return parts


def _coverage(coverage: Coverage) -> Ordered:
    counts = coverage.counts().items()
    return Ordered(
        config=str(coverage.path),
        reached=Ordered((kind, Ordered(reached=reached, total=total)) for kind, (reached, total) in counts),
        missing=[Ordered(kind=part.kind, address=part.address, at=str(part.location)) for part in coverage.missing()],
    )


def _mutations(mutations: Mutations) -> Ordered:
    return Ordered(
        config=str(mutations.path),
        total=mutations.total,
        unnoticed=[Ordered(what=mutant.what, at=str(mutant.location)) for mutant in mutations.unnoticed],
    )


def _suite(suite: SuiteResult) -> Ordered:
    return Ordered(
        path=str(suite.pair.suite),
        config=str(suite.pair.config),
        flow=suite.flow,
        elapsedMs=_whole_ms(suite.seconds),
        cases=[_case(result) for result in suite.results],
    )


def _case(result: Result) -> Ordered:
    parts = Ordered(name=result.name, status=result.status, elapsedMs=_whole_ms(result.seconds))
    if result.fell_short:
        parts["summary"] = _cut(" ".join(result.lines))
    if result.failures:
        parts["failures"] = [
            Ordered(summary=failure.summary, detail="\n".join(failure.detail), at=str(failure.location))
            for failure in result.failures
        ]
    more: dict[str, Json] = {
        "error": result.error,
        "stderr": result.stderr,
        "skip": result.skip if result.status == "skipped" else "",
        "reproduce": result.reproduce,
    }
    parts.update((key, value) for key, value in more.items() if value)
    if result.notes:
        parts["notes"] = list(result.notes)
    if result.interrupted:
        parts["interrupted"] = True
    if result.runs > 1:
        parts["runs"] = Ordered(total=result.runs, passed=result.passed_runs, flaky=result.is_flaky)
    if result.envelope is not None:
        parts["outcome"] = _outcome(result.envelope)
    return parts


def _outcome(envelope: Any) -> Ordered:
    parts = Ordered((key, envelope[key]) for key in ("result", "dropped", "error") if key in envelope)
    if "spies" in envelope:
        parts["spies"] = {spy["address"]: spy["records"] for spy in envelope["spies"]}
    return parts


def _whole_ms(seconds: float) -> int:
    return round(seconds * 1000)
