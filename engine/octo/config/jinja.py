"""Templates in the language of Jinja2: sandboxed, strict about names, never outside the config directory."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import FunctionLoader, StrictUndefined, TemplateError, TemplateNotFound, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from octo.cel import Timestamp
from octo.config import resources
from octo.config.templates import NAMES
from octo.errors import ConfigError, Location, OctoError, Problem
from octo.values import dumps, native, number_text


class JinjaTemplate:
    """A template that Jinja2 renders. Files that it includes are read from below the same root."""

    def __init__(self, root: Path, resource: str) -> None:
        """Raises OctoError when there is no such file, ConfigError when it is no Jinja2."""
        resources.read_text(root, resource)
        self._files: set[str] = set()
        try:
            self._template = _environment(root, self._files).get_template(resource)
        except TemplateSyntaxError as error:
            raise ConfigError([_problem(error)]) from error

    def render(self, scope: Mapping[str, object]) -> str:
        try:
            return self._template.render({name: _as_python(scope[name]) for name in NAMES})
        except Exception as error:  # whatever the expressions of a template run into
            text = str(error) if isinstance(error, TemplateError | OctoError) else f"{type(error).__name__}: {error}"
            place = self._place(error)
            if place is None:
                raise OctoError(text) from error
            raise OctoError(f"line {place.line}: {text}", location=place) from error

    def _place(self, error: Exception) -> Location | None:
        """The innermost line of a template that the error passed."""
        if isinstance(error, TemplateSyntaxError):
            return _problem(error).location
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if frame.filename in self._files and frame.lineno:
                return Location(frame.filename, frame.lineno, 1)
        return None


class _Environment(ImmutableSandboxedEnvironment):
    """Reads a key of a mapping where plain Jinja2 would find a method of the same name, such as `items`."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


def _environment(root: Path, files: set[str]) -> _Environment:
    """Reads templates from below a root, and notes which files they are."""

    def load(name: str) -> tuple[str, str, None]:
        if not resources.locate(root, name).is_file():
            raise TemplateNotFound(name, f"resource `{name}` does not exist")
        file = str(root / name)
        files.add(file)
        return resources.read_text(root, name), file, None

    return _Environment(
        loader=FunctionLoader(load),
        undefined=StrictUndefined,
        autoescape=lambda name: bool(name) and str(name).endswith((".html.j2", ".htm.j2")),
        finalize=_shown,
        keep_trailing_newline=True,
        auto_reload=False,
    )


def _shown(value: Any) -> Any:
    """Values as they are shown everywhere: numbers in their one form, null as `null`, structures as JSON."""
    if value is None or isinstance(value, bool | dict | list | tuple):
        return dumps(value)
    return number_text(value) if isinstance(value, int | float) else value


def _as_python(value: object) -> object:
    if isinstance(value, Timestamp):
        return datetime.fromtimestamp(value.ns / 10**9, UTC)
    return native(dict(value) if isinstance(value, Mapping) else value)


def _problem(error: TemplateSyntaxError) -> Problem:
    message = (error.message or "not Jinja2").rstrip(".")
    place = Location(error.filename or "", error.lineno, 1)
    return Problem(message[:1].lower() + message[1:], place)
