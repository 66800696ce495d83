"""What validation finds wrong, as errors of pydantic, and what it may ask of the load that it is part of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, Protocol

from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from octo.errors import OctoError, Problem, near, shortened
from octo.values import Json


class LoadContext(Protocol):
    """What validation may ask of the load that it is part of."""

    root: Path
    """The directory below which resources lie."""
    processors: Mapping[str, Mapping[str, Json]]
    """The named reusable blocks, as written."""
    mocked: bool
    """Whether mocks stand in for blocks, so that what a processor holds may never be built."""
    refs: list[str]
    """The processors that are being built, outermost first."""
    connectors: Mapping[str, str]
    """The types of the declared connectors, by their names."""
    shared: dict[object, Any]
    """What validators keep for the rest of this load; each owner has its key."""

    def block(self, type: str) -> type[Any]:
        """The class of a block type; raises OctoError with a near miss as its hint."""

    def connector(self, type: str) -> type[Any]:
        """The class of a connector type; raises OctoError with a near miss as its hint."""

    def natural(self, text: str) -> Json:
        """The value that a plain YAML scalar of this text has."""

    def read(self, resource: str) -> str:
        """The text of a file below the root; raises OctoError."""

    def declare(self, template: str, alias: str | None) -> None:
        """Read a text template below the root; raises OctoError, or ConfigError with the faults of its text."""


def refusal(
    message: str,
    hint: str | None = None,
    *,
    at: str = "value",
    named: bool = False,
    owned: bool = False,
    refers: bool = False,
) -> PydanticCustomError:
    """A problem at the value (or, with `at="key"`, at the key) that is being validated.

    One that is `named` shows the name of the key as well as the place, one that is `owned` the block around it. One
    that `refers` is about a name that leads nowhere, which an agent finds out when it works.
    """
    told = {"message": message, "hint": hint, "at": at, "named": named, "owned": owned, "refers": refers}
    return PydanticCustomError("refused", "{message}", told)


ECHO: Final = PydanticCustomError("echo", "follows from another problem")
"""The problem of something that refers to what is itself reported; it is not shown."""


def refuse(error: OctoError) -> NoReturn:
    """Turn an error of the engine into a problem at the value that is being validated."""
    raise refusal(error.message, error.hint) from error


class Refusals:
    """Collects what a model finds wrong with itself beyond the kinds of its fields."""

    def __init__(self) -> None:
        self._found: list[InitErrorDetails] = []

    def add(
        self, message: str, *path: str | int, hint: str | None = None, at: str = "value", refers: bool = False
    ) -> None:
        """Note a problem at a path below the model, in YAML spelling."""
        told = {"message": message, "hint": hint, "at": at, "named": False, "across": True, "refers": refers}
        self._found.append({"type": PydanticCustomError("refused", "{message}", told), "loc": path, "input": None})

    def relay(self, problems: Sequence[Problem]) -> None:
        """Note problems that have a place of their own, in another file."""
        for problem in problems:
            kind = PydanticCustomError("elsewhere", "{message}", {"message": problem.message, "problem": problem})
            self._found.append({"type": kind, "loc": (), "input": None})

    def raise_if_any(self) -> None:
        if self._found:
            raise ValidationError.from_exception_data("refused", self._found)


def stray(data: Mapping[str, Json], words: Sequence[str]) -> PydanticCustomError | None:
    """The problem of a mapping that lacks a word which stands, misspelt or too deep, somewhere in it."""
    for key, value in data.items():
        if key not in words and (match := near(key, words)):
            return refusal(f'unknown field "{shortened(key)}"', f"did you mean `{match}`?", at=f"key:{key}")
        for word in words:
            if isinstance(value, dict) and isinstance(value.get(word), str):
                return refusal(
                    f'unknown field "{word}" in `{shortened(key)}`',
                    f"`{word}` belongs one level up",
                    at=f"key:{key}/{word}",
                )
    return None
