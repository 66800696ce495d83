"""Templates in the language of Jinja2: sandboxed, strict about names, never outside the config directory."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import FunctionLoader, StrictUndefined, TemplateError, TemplateNotFound, TemplateSyntaxError

from octo.cel import Timestamp
from octo.cel.frame import Frame
from octo.cel.values import Failure
from octo.config import resources
from octo.config.jinja_limits import BoundedEnvironment, paid_by
from octo.config.templates import NAMES
from octo.errors import ConfigError, Location, OctoError, Problem
from octo.values import native

_WHOLE = "top-level template code"
"""What Jinja2 calls the body of a template in a traceback."""


class JinjaTemplate:
    """A template that Jinja2 renders. Files that it includes are read from below the same root."""

    def __init__(self, root: Path, resource: str) -> None:
        """Raises OctoError when there is no such file, ConfigError when it is no Jinja2."""
        resources.read_text(root, resource)
        self._files: set[str] = set()
        try:
            with paid_by(Frame({}, 0)):
                self._template = _environment(root, self._files).get_template(resource)
        except TemplateSyntaxError as error:
            raise ConfigError([_problem(error)]) from error

    def render(self, scope: Mapping[str, object]) -> str:
        frame = Frame(scope, 0)
        try:
            with paid_by(frame):
                return self._template.render({name: _as_python(scope[name]) for name in NAMES})
        except Exception as error:  # whatever the expressions of a template run into
            place = self._place(error)
            text = self._told(error)
            if place is None:
                raise OctoError(text) from error
            raise OctoError(f"line {place.line}: {text}", location=place) from error

    def _told(self, error: Exception) -> str:
        if isinstance(error, RecursionError):
            wholes = [step.filename for step in self._steps(error) if step.name == _WHOLE]
            again = next((file for file in wholes if wholes.count(file) > 1), None)
            return f"`{Path(again).name}` includes itself" if again else "it calls itself without end"
        if isinstance(error, TemplateError | OctoError | Failure):
            return str(error)
        return f"{type(error).__name__}: {error}"

    def _steps(self, error: Exception) -> list[traceback.FrameSummary]:
        """The lines of templates that an error passed."""
        return [step for step in traceback.extract_tb(error.__traceback__) if step.filename in self._files]

    def _place(self, error: Exception) -> Location | None:
        """The innermost line of a template that the error passed."""
        if isinstance(error, TemplateSyntaxError):
            return _problem(error).location
        lines = [step for step in self._steps(error) if step.lineno]
        return Location(lines[-1].filename, lines[-1].lineno or 1, 1) if lines else None


def _environment(root: Path, files: set[str]) -> BoundedEnvironment:
    """Reads templates from below a root, and notes which files they are."""

    def load(name: str) -> tuple[str, str, None]:
        if not resources.locate(root, name).is_file():
            raise TemplateNotFound(name, f"resource `{name}` does not exist")
        file = str(root / name)
        files.add(file)
        return resources.read_text(root, name), file, None

    return BoundedEnvironment(
        loader=FunctionLoader(load),
        undefined=StrictUndefined,
        autoescape=lambda name: bool(name) and str(name).endswith((".html.j2", ".htm.j2")),
        keep_trailing_newline=True,
        auto_reload=False,
    )


def _as_python(value: object) -> object:
    if isinstance(value, Timestamp):
        return datetime.fromtimestamp(value.ns / 10**9, UTC)
    return native(dict(value) if isinstance(value, Mapping) else value)


def _problem(error: TemplateSyntaxError) -> Problem:
    message = (error.message or "not Jinja2").rstrip(".")
    place = Location(error.filename or "", error.lineno, 1)
    return Problem(message[:1].lower() + message[1:], place)
