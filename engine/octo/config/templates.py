"""Text templates below the config directory: `{{ expression }}` spans, or Jinja2 where the file name ends in `.j2`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from octo import cel
from octo.config import resources
from octo.config.source import SourceText
from octo.errors import ConfigError, ExpressionError, OctoError, Problem
from octo.fields import JSON_NAMES, MESSAGE_NAMES
from octo.values import Json, render

NAMES: Final = MESSAGE_NAMES | {"settings"}
"""What a template sees; what the place that renders it does not have is null."""
DEPTH_LIMIT: Final = 8
"""How deep templates may render each other."""

_NOTHING: Final = dict.fromkeys(NAMES)
_DEPTH: Final = "depth of templates"
"""Beside the names of a scope; no expression can name it."""
NOT_FOUND: Final = "resource: not found"
"""What is wrong with a name that leads to nothing."""


class Template(Protocol):
    """A template that was read."""

    def render(self, scope: Mapping[str, object]) -> str:
        """The text with the values of a scope in it; raises OctoError with the place of the failure."""


class Templates:
    """The text templates of a config: those that it declares, and every other file below its root.

    A file is read once: a declared one while the config is loaded, any other when it is first rendered.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: dict[str, Template] = {}

    def declare(self, resource: str, alias: str | None = None) -> None:
        """Read a template and give it another name, if any.

        Raises OctoError when there is no such file, ConfigError with everything that is wrong with its text.
        """
        template = self._parse(resource)
        self._read[resource] = template
        if alias:
            self._read[alias] = template

    def __contains__(self, name: str) -> bool:
        """Whether a template is declared by this name, or a file has it."""
        return name in self._read or self._exists(name)

    def fault(self, name: str) -> str | None:
        """Why no template can be read by this name; None when there is one."""
        try:
            if name in self:
                return None
        except OctoError as error:
            return error.message
        return "resource: it is no regular file" if resources.locate(self._root, name).exists() else NOT_FOUND

    def __iter__(self) -> Iterator[str]:
        """The names of the templates that were read."""
        return iter(self._read)

    def render(self, name: str, scope: Mapping[str, object]) -> str:
        """The text of a template, by alias or resource id, with the values of a scope in it. Raises OctoError."""
        depth = scope.get(_DEPTH, 0)
        assert isinstance(depth, int)
        if depth == DEPTH_LIMIT:
            raise OctoError(f'template-resource "{name}": templates render each other more than {DEPTH_LIMIT} deep')
        template = self._find(name)
        try:
            return template.render({**_NOTHING, **scope, _DEPTH: depth + 1})
        except OctoError as error:
            message = f'template-resource "{name}": {error.message}'
            raise OctoError(message, hint=error.hint, location=error.location) from error

    def _find(self, name: str) -> Template:
        found = self._read.get(name)
        if found is None:
            try:
                if fault := self.fault(name):
                    raise OctoError(fault, hint=f"templates are looked for below `{self._root}`")
                found = self._read[name] = self._parse(name)
            except OctoError as error:
                message = f'load template "{name}": {error.message}'
                raise OctoError(message, hint=error.hint, location=error.location) from error
        return found

    def _exists(self, name: str) -> bool:
        return resources.locate(self._root, name).is_file()

    def _parse(self, resource: str) -> Template:
        if resource.endswith(".j2"):
            from octo.config import jinja

            return jinja.JinjaTemplate(self._root, resource)
        return TextTemplate(SourceText(str(self._root / resource), resources.read_text(self._root, resource)))


@dataclass(frozen=True, slots=True)
class Span:
    """An expression of a template, and the index in the text where it begins."""

    program: cel.Program
    start: int


class TextTemplate:
    """Plain text with `{{ expression }}` spans. The first `}}` ends a span."""

    def __init__(self, source: SourceText) -> None:
        """Raises ConfigError with every span that does not compile."""
        self._source = source
        self._problems: list[Problem] = []
        self._pieces = tuple(self._parse(source.text))
        if self._problems:
            raise ConfigError(self._problems)

    def render(self, scope: Mapping[str, object]) -> str:
        return "".join(piece if isinstance(piece, str) else self._value(piece, scope) for piece in self._pieces)

    def _value(self, span: Span, scope: Mapping[str, object]) -> str:
        try:
            value: Json = span.program(scope)
        except ExpressionError as error:
            place = self._source.location(span.start + error.column - 1)
            raise OctoError(
                f"line {place.line}, column {place.column}: evaluate expression: {error.message}",
                hint=error.hint,
                location=place,
            ) from error
        return render(value)

    def _parse(self, text: str) -> Iterator[str | Span]:
        end = 0
        while (opening := text.find("{{", end)) >= 0:
            yield text[end:opening]
            closing = text.find("}}", opening + 2)
            if closing < 0:
                self._refuse("`{{` is not closed: `}}` is missing", opening, opening + 2)
                return
            yield from self._span(text[opening + 2 : closing], opening + 2)
            end = closing + 2
        yield text[end:]

    def _span(self, inner: str, start: int) -> Iterator[Span]:
        expression = inner.strip()
        start += len(inner) - len(inner.lstrip())
        if not expression:
            self._refuse("expected an expression between `{{` and `}}`, found nothing", start - len(inner) - 2, start)
            return
        try:
            yield Span(cel.compile(expression, NAMES, json=JSON_NAMES), start)
        except ExpressionError as error:
            index = start + error.column - 1
            message = f'compile expression "{expression}": {error.message}'
            cut_off = expression.count("{") > expression.count("}")
            hint = "the first `}}` ends the span: put a blank between two braces" if cut_off else error.hint
            self._refuse(message, index, index + error.length, hint)

    def _refuse(self, message: str, start: int, end: int, hint: str | None = None) -> None:
        self._problems.append(self._source.problem(message, start, end, hint))
