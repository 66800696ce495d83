"""octo/config/problems.py: a single fault anywhere in a config is reported where it is, with the right hint.

Every sample and a config that uses every structural block is changed in one place at a time, in the ways people
get YAML wrong.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mutants import SOURCES, Mutant, mutants
from octo.config.document import parse
from octo.config.load import load
from octo.errors import ConfigError


def judge(mutant: Mutant, directory: Path) -> tuple[bool, bool, str]:
    """Whether the first problem is at the right place, whether its hint is right, and what was said."""
    file = directory / "config.yaml"
    text = yaml.safe_dump(mutant.data, sort_keys=False, allow_unicode=True, width=10_000)
    file.write_text(text, encoding="utf-8")
    expected = parse(text, str(file)).location(mutant.at, key=mutant.key)
    try:
        load(file, environ={"ANTHROPIC_API_KEY": "key"}, cwd=directory)
    except ConfigError as error:
        for problem in error.problems:
            place = problem.location
            if place is not None and place.line == expected.line and place.column >= expected.column:
                exact = place.column == expected.column or mutant.kind == "unknown-name"
                said = f"{problem.message} / {problem.hint}"
                return exact, mutant.hint is None or mutant.hint in (problem.hint or ""), said
        return False, False, "; ".join(f"{problem} / {problem.hint}" for problem in error.problems)
    return False, False, "accepted"


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    directory = tmp_path_factory.mktemp("mutants")
    found = []
    for name, text in SOURCES.items():
        for mutant in mutants(parse(text, name).data):
            found.append((f"{name} {mutant.kind} {mutant.at}", *judge(mutant, directory)))
    return found


def report(misses: list[str]) -> str:
    return "\n".join([f"{len(misses)} misses", *misses[:60]])


def test_there_are_mutants_of_every_source(verdicts):
    assert {name.split(" ")[0] for name, *_ in verdicts} == set(SOURCES)
    assert len(verdicts) > 300


def test_a_single_fault_is_reported_at_its_line_and_column(verdicts):
    misses = [f"{name}: {said}" for name, placed, _, said in verdicts if not placed]

    assert len(misses) <= 0.05 * len(verdicts), report(misses)


def test_the_hint_names_what_was_meant_or_where_it_belongs(verdicts):
    misses = [f"{name}: {said}" for name, _, hinted, said in verdicts if not hinted]

    assert len(misses) <= 0.10 * len(verdicts), report(misses)
