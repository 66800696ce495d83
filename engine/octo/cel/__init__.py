"""The expression language: `compile(source, names)` gives a Program, calling it gives a JSON value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from octo.cel.ast import is_part_of
from octo.cel.checker import check
from octo.cel.compiler import compile_tree
from octo.cel.frame import SURROUNDINGS, Frame, Surroundings
from octo.cel.parser import parse
from octo.cel.values import Failure, Timestamp, to_json
from octo.errors import ExpressionError
from octo.values import Json

__all__ = ["SURROUNDINGS", "Program", "Surroundings", "Timestamp", "compile"]

_CONTAINERS = frozenset({dict, list})
_TOO_DEEP = "values are nested too deeply to evaluate"


class Program:
    """A compiled expression. It has no state: threads and tasks may share it."""

    __slots__ = ("_is_json", "_places", "_step", "names", "source")

    def __init__(self, source: str, names: Iterable[str], json: Iterable[str] = ()) -> None:
        tree = parse(source)
        self.source = source
        self.names = check(tree, source, names)
        """Which of the names it may read."""
        self._step, self._places = compile_tree(tree)
        self._is_json = is_part_of(tree, frozenset(json))

    def __call__(self, activation: Mapping[str, object]) -> Json:
        """Evaluate and turn the result into JSON, in which all numbers are doubles. Raises ExpressionError."""
        try:
            value = self._step(Frame(activation, self._places))
            return value if self._is_json and type(value) in _CONTAINERS else to_json(value)
        except Failure as failure:
            raise self._error(failure) from None
        except RecursionError:
            raise self._error(Failure(_TOO_DEEP)) from None

    def evaluate(self, activation: Mapping[str, object]) -> object:
        """The value as the language knows it, int and double apart. Raises ExpressionError."""
        try:
            return self._step(Frame(activation, self._places))
        except Failure as failure:
            raise self._error(failure) from None
        except RecursionError:
            raise self._error(Failure(_TOO_DEEP)) from None

    def _error(self, failure: Failure) -> ExpressionError:
        return ExpressionError(
            failure.message, source=self.source, column=failure.column or 1, length=failure.length, hint=failure.hint
        )


def compile(source: str, names: Iterable[str], *, json: Iterable[str] = ()) -> Program:
    """Compile an expression that may read these variables. Raises ExpressionError, with the column of the fault.

    Those in `json` hold decoded JSON, in which all numbers are doubles: a part of it that comes out unchanged is the
    result as it is, however large it may be.
    """
    try:
        return Program(source, names, json)
    except RecursionError:
        raise ExpressionError("expression is nested too deeply", source=source) from None
