"""From the text of a file or a directory to a checked `Config`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from pydantic_core import ValidationError

from octo import registry
from octo.config import address, check, environment, merge, resources
from octo.config.document import Document
from octo.config.environment import Environment
from octo.config.model import Config, Origin
from octo.config.parser import MAX_PROBLEMS, too_many
from octo.config.problems import Describer
from octo.config.templates import Templates
from octo.errors import ConfigError, Location, OctoError, Problem
from octo.values import Json

Rewrite: TypeAlias = Callable[[dict[str, Json]], tuple[dict[str, Json], list[Problem]]]
"""Takes merged data and gives what is built instead, and what is wrong with doing so."""


class _Context:
    """What validation may ask of this load."""

    natural = staticmethod(environment.natural)

    def __init__(self, root: Path, data: Mapping[str, Json], read: set[Path], *, mocked: bool) -> None:
        self.root = root
        self.mocked = mocked
        self._read = read
        self.shared: dict[object, Any] = {}
        self.refs: list[str] = []
        self._types: dict[object, type[Any] | OctoError] = {}
        self.templates = Templates(root)
        self.processors: Mapping[str, Mapping[str, Json]] = {
            str(entry["name"]): entry for entry in _named(data.get("processors"))
        }
        self.connectors: Mapping[str, str] = {
            str(entry["name"]): str(entry.get("type")) for entry in _named(data.get("connectors"))
        }

    def block(self, type: str) -> type[Any]:
        return self._remembered(registry.block, type)

    def connector(self, type: str) -> type[Any]:
        return self._remembered(registry.connector, type)

    def _remembered(self, find: Callable[[str], type[Any]], type_name: str) -> type[Any]:
        """What a type name leads to; looking for one that leads nowhere takes long."""
        key = (find, type_name)
        if key not in self._types:
            try:
                self._types[key] = find(type_name)
            except OctoError as error:
                self._types[key] = error
        found = self._types[key]
        if isinstance(found, OctoError):
            raise found
        return found

    def read(self, resource: str) -> str:
        self._read.add(self.root / resource)
        return resources.read_text(self.root, resource)

    def declare(self, template: str, alias: str | None) -> None:
        self._read.add(self.root / template)
        self.templates.declare(template, alias)


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
    environment_values, problems = environment.resolve(documents, root=root, environ=environ, cwd=cwd or Path.cwd())
    substituted = []
    for document in documents:
        result, found = environment.substitute(document, environment_values)
        substituted.append(result)
        problems += found
    merged, found = merge.merge(substituted)
    problems += found
    mocked = False
    if rewrite is not None:
        data, found = rewrite(merged.data)
        mocked = data is not merged.data
        merged = replace(merged, data=data)
        problems += found

    beside = set() if read is None else read
    beside.update(environment.files(documents, root))
    context = _Context(root, merged.data, beside, mocked=mocked)
    describer = Describer(Config, merged, context)
    config: Config | None = None
    try:
        config = Config.model_validate(merged.data, context=context)
    except ValidationError as error:
        problems += describer.problems(error)

    if config is not None:
        config.put_at(Origin(path, root, environment_values, environ, describer.locate, context.templates))
        address.place(config)
        for where, finding in check.check(config):
            problems.append(
                describer.at((*where, *finding.path), finding.message, finding.hint, warning=finding.warning)
            )

    warnings = [problem for document in documents for problem in document.warnings]
    warnings += [problem for problem in problems if problem.severity == "warning"]
    errors = _in_order([problem for problem in problems if problem.severity == "error"])
    if errors or config is None:
        shown = _in_order([*_first(errors), *_first(_in_order(warnings))])
        raise ConfigError([_masked(problem, environment_values) for problem in shown])
    config.put_at(
        replace(config.origin, warnings=tuple(_masked(problem, environment_values) for problem in _in_order(warnings)))
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


def _named(entries: Json) -> Iterator[dict[str, Json]]:
    """The entries that have a name; what is wrong with the others is reported by the models."""
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name"):
            yield entry


def _in_order(problems: list[Problem]) -> list[Problem]:
    """In the order of the files, each once."""
    first: dict[object, Problem] = {}
    for problem in problems:
        first.setdefault((problem.location or id(problem), problem.message), problem)
    return sorted(first.values(), key=lambda problem: problem.location or Location("", 0, 0))
