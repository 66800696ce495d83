"""A YAML file beside a config that is read into one model, with the place of everything in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any, Generic, TypeVar

from pydantic_core import ValidationError

from octo import registry
from octo.config.document import Document, Path, parse
from octo.config.environment import natural
from octo.config.merge import Merged
from octo.config.problems import UNKNOWN, Describer
from octo.errors import ConfigError, OctoError, Problem
from octo.fields import Model
from octo.values import Json, kind_of

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Sheet(Generic[M]):
    """What a file says, and where it says it."""

    value: M
    document: Document

    def problem(self, path: Path, message: str, hint: str | None = None, *, key: bool = False) -> Problem:
        """A problem with the value at a path of keys, or with its key."""
        return self.document.problem(message, path, key=key, hint=hint)


def read(
    model: type[M], text: bytes | str, file: str, what: str, *, title: str = "", unknown: str = UNKNOWN
) -> Sheet[M]:
    """Read a file, whose text is given, into a model. An empty file is an empty mapping.

    For error texts: `what` is read (`suite`), what a user calls the file (`the suite`), and what is said of an
    unknown key. Raises ConfigError with all of its problems.
    """
    document = parse(text, file, what=what)
    if document.warnings:
        raise ConfigError([_refused(problem, what) for problem in document.warnings])
    if document.data is None:
        document = document.with_data({})
    if not isinstance(document.data, dict):
        keys = ", ".join(f"`{key}`" for key in model.yaml_keys())
        message = f"parse {what}: expected a mapping with keys such as {keys}, found {kind_of(document.data)}"
        raise ConfigError([replace(document.problem(message, ()), length=1)])
    context = _Context()
    try:
        value = model.model_validate(document.data, context=context)
    except ValidationError as error:
        merged = Merged(document.data, (document,), {})
        describer = Describer(model, merged, context, title=title or f"the {what}", unknown=unknown)
        found = sorted(describer.problems(error), key=lambda problem: problem.location or (file, 0, 0))
        raise ConfigError([replace(problem, message=f"parse {what}: {problem.message}") for problem in found]) from None
    return Sheet(value, document)


def _refused(problem: Problem, what: str) -> Problem:
    """A warning as an error: nobody would tell of it, and what it is about would count for nothing."""
    return replace(problem, message=f"parse {what}: {problem.message}", severity="error")


class _Context:
    """What validation may ask: there is nothing around such a file."""

    root = FilePath()
    processors: Mapping[str, Mapping[str, Json]] = {}
    connectors: Mapping[str, str] = {}
    block = staticmethod(registry.block)
    connector = staticmethod(registry.connector)
    natural = staticmethod(natural)

    def __init__(self) -> None:
        self.mocked = False
        self.refs: list[str] = []
        self.shared: dict[object, Any] = {}

    def read(self, resource: str) -> str:
        raise OctoError(f"`{resource}`: a file may be named in a config only")

    def declare(self, template: str, alias: str | None) -> None:
        raise OctoError(f"`{template}`: a template may be declared in a config only")
