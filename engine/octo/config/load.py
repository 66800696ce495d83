"""From the text of a file or a directory to a checked `Config`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from pydantic_core import ValidationError

from octo.config import address, agents, check, environment, merge
from octo.config.context import Context
from octo.config.document import Document
from octo.config.environment import Environment
from octo.config.model import Config, Origin
from octo.config.parser import MAX_PROBLEMS, too_many
from octo.config.problems import Describer
from octo.errors import ConfigError, Location, Problem
from octo.values import Json

Rewrite: TypeAlias = Callable[[dict[str, Json]], tuple[dict[str, Json], list[Problem]]]
"""Takes merged data and gives what is built instead, and what is wrong with doing so."""


def load(
    path: str | Path,
    *,
    environ: Mapping[str, str],
    cwd: Path | None = None,
    rewrite: Rewrite | None = None,
    read: set[Path] | None = None,
) -> Config:
    """Load and check one file, or every YAML file of one directory.

    `environ` is the environment of the run; nothing is read from the process. `cwd` is where `./.env` is looked
    for. `rewrite` may change the merged data before anything is built from it. The files beside the config that it
    reads, or looks for, are added to `read`, also when that ends in problems. Raises ConfigError with every problem
    found; warnings are on the config.
    """
    path = Path(path)
    return build(merge.read(path), path, environ=environ, cwd=cwd, rewrite=rewrite, read=read)


def build(
    documents: Sequence[Document],
    path: Path,
    *,
    environ: Mapping[str, str],
    cwd: Path | None = None,
    rewrite: Rewrite | None = None,
    read: set[Path] | None = None,
) -> Config:
    """A config from the documents of its file or directory, which were read before; else as `load`."""
    root = path if path.is_dir() else path.parent
    environment_values, problems = environment.resolve(documents, root=root, environ=environ, cwd=cwd or Path())
    substituted = []
    for document in documents:
        result, found = environment.substitute(document, environment_values)
        substituted.append(result)
        problems += found
    agent_files, looked_at, found = agents.files(documents, root)
    problems += found
    merged, found = merge.merge(substituted, agent_files)
    problems += found
    mocked = False
    if rewrite is not None:
        data, found = rewrite(merged.data)
        mocked = data is not merged.data
        merged = replace(merged, data=data)
        problems += found

    beside = set() if read is None else read
    beside.update(environment.files(documents, root), looked_at)
    context = Context(root, merged.data, beside, mocked=mocked)
    describer = Describer(Config, merged, context)
    config: Config | None = None
    try:
        config = Config.model_validate(merged.data, context=context)
    except ValidationError as error:
        problems += describer.problems(error)

    declared, found = agents.check(merged, context, describer, environment_values)
    problems += found
    if config is not None:
        config.put_at(
            Origin(path, root, environment_values, environ, describer.locate, context.templates, tuple(declared))
        )
        address.place(config)
        for where, finding in check.check(config):
            place = (*where, *finding.path)
            if not describer.is_unresolved(place):
                problems.append(describer.at(place, finding.message, finding.hint, warning=finding.warning))

    warnings = [problem for document in documents for problem in document.warnings]
    warnings += [problem for problem in problems if problem.severity == "warning"]
    errors = in_order([problem for problem in problems if problem.severity == "error"])
    if errors or config is None:
        shown = in_order([*_first(errors), *_first(in_order(warnings))])
        raise ConfigError([_masked(problem, environment_values) for problem in shown])
    config.put_at(
        replace(config.origin, warnings=tuple(_masked(problem, environment_values) for problem in in_order(warnings)))
    )
    return config


def _masked(problem: Problem, environment: Environment) -> Problem:
    """The problem without secret values, which an expression may hold through `${NAME}`."""
    excerpt = problem.excerpt
    if excerpt is not None:
        before = environment.mask(excerpt.text[: excerpt.column - 1])
        excerpt = replace(excerpt, text=environment.mask(excerpt.text), column=len(before) + 1)
    hint = problem.hint and environment.mask(problem.hint)
    return replace(problem, message=environment.mask(problem.message), hint=hint, excerpt=excerpt)


def _first(problems: list[Problem]) -> list[Problem]:
    """As many problems as are shown, and a word on the rest."""
    if len(problems) <= MAX_PROBLEMS:
        return problems
    return [*problems[:MAX_PROBLEMS], too_many(problems[MAX_PROBLEMS])]


def in_order(problems: list[Problem]) -> list[Problem]:
    """In the order of the files, each once."""
    first: dict[object, Problem] = {}
    for problem in problems:
        first.setdefault((problem.location or id(problem), problem.message), problem)
    return sorted(first.values(), key=lambda problem: problem.location or Location("", 0, 0))
