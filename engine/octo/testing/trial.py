"""One case on its way: what the file says for all cases and what the case says itself, put together."""

from __future__ import annotations

import random
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from octo.config.document import Path as Keys
from octo.config.sheet import Sheet
from octo.connectors.llm_scripted import Reply
from octo.debug import Input, acting
from octo.doubles import Doubles
from octo.errors import ConfigError, ExpressionError, Location, Problem
from octo.testing.differ import dotted
from octo.testing.pairing import Pair
from octo.testing.suite import Case, Suite, read_suite
from octo.values import Json, Ordered


@dataclass(frozen=True)
class Trial:
    """A case of a suite, with the config that it calls."""

    pair: Pair
    sheet: Sheet[Suite]
    index: int
    """Of the case, within its suite."""
    number: int = 0
    """Of the case, within all that are run."""

    @property
    def suite(self) -> Suite:
        return self.sheet.value

    @property
    def case(self) -> Case:
        return self.suite.cases[self.index]

    @property
    def name(self) -> str:
        return self.case.name

    @property
    def title(self) -> str:
        """The case, and the suite that it stands in."""
        return f"{self.pair.suite} › {self.name}"

    @property
    def limit(self) -> float:
        """Seconds that the call may take."""
        return (self.case.timeout or self.suite.timeout).seconds

    @property
    def env(self) -> dict[str, str]:
        """What the suite adds to the environment."""
        return self.suite.env | self.case.env

    @property
    def input(self) -> Input:
        given = self.case.input
        if isinstance(given, str):
            return self.suite.inputs[given]
        return given or Input.model_construct()

    @cached_property
    def doubles(self) -> Doubles:
        """What the case replaces and watches; problems are reported at their place in the suite."""
        case, suite = self.case, self.suite
        mocks = {name: spec for name, spec in {**suite.mocks, **case.mocks}.items() if spec is not None}
        return Doubles(mocks, tuple(case.spies), models=acting(self.turns()), report=self._report)

    def turns(self) -> dict[str, tuple[Reply, ...]]:
        """The replies of each written model."""
        merged = {**self.suite.models, **self.case.models}
        return {name: turns for name, turns in merged.items() if turns is not None}

    def notes(self) -> Iterator[str]:
        """What the case seems to expect and does not."""
        case = self.case
        for section, entries in (("spies", case.spies), ("sent", case.sent)):
            for name, entry in entries.items():
                if entry.count is None and not entry.records:
                    yield f"`{section}: {name}` expects nothing: give it a `count` or `records`"
        yield from _empty(self.sheet.document.data["cases"][self.index], ())

    def _report(self, path: Keys, message: str, hint: str | None) -> Problem:
        section, name = str(path[0]), path[1]
        if section == "spies":
            return self.problem(("spies", list(self.case.spies)[int(name)]), message, hint)
        here: Mapping[str, object] = getattr(self.case, section)
        if name in here:
            return self.problem((section, name), message, hint)
        return self.sheet.problem((section, name), message, hint, key=True)

    def problem(self, path: Keys, message: str, hint: str | None = None) -> Problem:
        """A problem with a key of the case."""
        return self.sheet.problem(("cases", self.index, *path), message, hint, key=True)

    def place(self, *path: str | int, key: bool = False) -> Location:
        """Where something of the case stands in its suite, or its key."""
        return self.sheet.document.location(("cases", self.index, *path), key=key)

    def place_of_call(self, tool: str) -> Location:
        """Where a written turn calls a tool; the name of the case where none does."""
        written = self.sheet.document.data
        for top in (("cases", self.index), ()):
            node = written["cases"][self.index] if top else written
            for name, turns in (node.get("models") or {}).items():
                for number, turn in enumerate(turns or ()):
                    for index, call in enumerate(turn.get("calls") or ()):
                        if call.get("name") == tool:
                            keys = (*top, "models", name, number, "calls", index)
                            return self.sheet.document.location(keys, key=False)
        return self.place("name")

    def place_of_expression(self, error: ExpressionError, *path: str | int) -> Location | None:
        """Where an error lies within an expression of the case."""
        return self.sheet.document.expression_problem(error, "", ("cases", self.index, *path)).location

    # ------------------------------------------------------------ as a command

    def debug_config(self) -> Ordered:
        """The debug config with which `octo invoke` does what the case does."""
        written = self.sheet.document.data
        case = written["cases"][self.index]
        given = case.get("input")
        parts = Ordered(input=written["inputs"][given] if isinstance(given, str) else given)
        parts["spies"] = list(self.case.spies)
        for section in ("mocks", "models"):
            merged = {**(written.get(section) or {}), **(case.get(section) or {})}
            parts[section] = {name: value for name, value in merged.items() if value is not None}
        return Ordered((key, value) for key, value in parts.items() if value)

    def arguments(self, debug_config: Path) -> list[str]:
        """The arguments of `octo` that make the call of the case."""
        timeout = self.case.timeout or self.suite.timeout
        return [
            "invoke",
            *("--store", ":memory:"),
            *("--config", str(self.pair.config)),
            *("--flow", self.suite.flow),
            *("--run-debug-config", str(debug_config)),
            *("--timeout", timeout.text),
        ]


def _empty(value: Json, keys: Keys) -> Iterator[str]:
    """Where a list of expressions is empty."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _empty(item, (*keys, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "that" and item == [] and keys[:1] in _EXPECTING:
                yield f"`{dotted((*keys, key))}` is empty and expects nothing"
            elif key not in ("body", "vars", "args"):
                yield from _empty(item, (*keys, key))


_EXPECTING: Final = tuple((section,) for section in ("expect", "spies", "sent", "log"))


def trials(pairs: Iterable[Pair], *, containing: str = "") -> list[Trial]:
    """The cases of suites, in their order; with a text, those whose names contain it, whatever the case of letters.

    Raises ConfigError with the problems of all suites.
    """
    found: list[Trial] = []
    problems: list[Problem] = []
    sheets: dict[Path, Sheet[Suite]] = {}
    for pair in pairs:
        try:
            if pair.suite not in sheets:
                sheets[pair.suite] = read_suite(pair.suite)
        except ConfigError as error:
            problems += error.problems
            continue
        sheet = sheets[pair.suite]
        found += [Trial(pair, sheet, index) for index in range(len(sheet.value.cases))]
    if problems:
        raise ConfigError(problems)
    chosen = [trial for trial in found if containing.casefold() in trial.name.casefold()]
    return [replace(trial, number=number) for number, trial in enumerate(chosen)]


def shuffled(found: Sequence[Trial], seed: str) -> list[Trial]:
    """The cases in the order that a seed gives."""
    return random.Random(seed).sample(found, len(found))


def by_suite(found: Iterable[Trial]) -> Iterator[tuple[Pair, list[Trial]]]:
    """The cases of each pair, in order."""
    groups: dict[Pair, list[Trial]] = {}
    for trial in found:
        groups.setdefault(trial.pair, []).append(trial)
    yield from groups.items()


def command_line(arguments: Sequence[str], env_file: Path | None) -> str:
    """What to type into a shell to make a call; with an environment that stands in a file of assignments."""
    command = shlex.join(["octo", *arguments])
    return f"(set -a; . {shlex.quote(str(env_file))}; {command})" if env_file else command


def assignments(env: Mapping[str, str]) -> str:
    """A file of assignments for a shell."""
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in env.items())
