"""Arguments of a tool call, checked against the schema of the tool."""

from __future__ import annotations

import json
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeAlias

from octo.values import Json, dumps

if TYPE_CHECKING:
    import jsonschema_rs

Path: TypeAlias = tuple[str | int, ...]

_MOST_FAULTS: Final = 5
_LONGEST_FAULT: Final = 300
_TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_STANDS_ALONE: Final = "a schema must not refer to other documents"
_FREE_KEYS: Final = frozenset({"description", "title", "default", "examples"})


class Fault(NamedTuple):
    """One thing that is wrong with a value: where in it, and what."""

    path: Path
    text: str

    def __str__(self) -> str:
        return f"at `{shown_path(self.path)}`: {self.text}" if self.path else self.text


class Checker:
    """A JSON Schema, compiled when it is first needed."""

    def __init__(self, schema: dict[str, Json]) -> None:
        self._schema = schema

    @property
    def unusable(self) -> str | None:
        """Why nothing can be checked against the schema, or None. An ordinary schema is not even compiled."""
        return None if _is_ordinary(self._schema) else self._compiled[1]

    def faults(self, value: Json) -> list[Fault]:
        """What is wrong with a value, at most the first few findings; nothing when the schema is unusable."""
        validator = self._compiled[0]
        if validator is None:
            return []
        # With whole doubles as integers, faults quote numbers as the model wrote them.
        return [_fault(error) for error in islice(validator.iter_errors(json.loads(dumps(value))), _MOST_FAULTS)]

    @cached_property
    def _compiled(self) -> tuple[jsonschema_rs.Validator | None, str | None]:
        import jsonschema_rs

        try:
            return jsonschema_rs.validator_for(self._schema, retriever=_read_nothing), None
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            text = str(getattr(error, "message", error))
            return None, _STANDS_ALONE if _STANDS_ALONE in text else text


def _read_nothing(uri: str) -> NoReturn:
    """References to files and to the web are not followed."""
    raise ValueError(_STANDS_ALONE)


def _fault(error: jsonschema_rs.ValidationError) -> Fault:
    from jsonschema_rs import ValidationErrorKind

    path: Path = tuple(error.instance_path)
    if isinstance(error.kind, ValidationErrorKind.Required):
        return Fault((*path, error.kind.property), "is required, but missing")
    text = error.message[:1].lower() + error.message[1:]
    if len(text) > _LONGEST_FAULT:
        # The value comes first and what is wrong with it last.
        text = f"{text[: _LONGEST_FAULT // 2]} … {text[-_LONGEST_FAULT // 2 :]}"
    return Fault(path, text)


def shown_path(path: Path) -> str:
    """A path as one writes it in an expression: `rooms[0].hall`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def _is_ordinary(schema: Any) -> bool:
    """Whether a schema holds only plain keywords used as they should be."""
    if not isinstance(schema, dict):
        return isinstance(schema, bool)
    for key, value in schema.items():
        match key:
            case "type":
                usual = isinstance(value, str) and value in _TYPES
            case "properties":
                usual = isinstance(value, dict) and all(map(_is_ordinary, value.values()))
            case "items" | "additionalProperties":
                usual = _is_ordinary(value)
            case "required":
                usual = isinstance(value, list) and all(isinstance(name, str) for name in value)
                usual = usual and len(set(value)) == len(value)
            case "enum":
                usual = isinstance(value, list) and bool(value)
            case _:
                usual = key in _FREE_KEYS
        if not usual:
            return False
    return True
