"""The expression language: `compile(source, names)` gives a Program, calling it gives a JSON value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from octo.cel.checker import check
from octo.cel.compiler import compile_tree
from octo.cel.frame import Frame
from octo.cel.parser import parse
from octo.cel.values import Failure, Timestamp, to_json
from octo.errors import ExpressionError
from octo.values import Json

__all__ = ["Program", "Timestamp", "compile"]

_TOO_DEEP = "values are nested too deeply to evaluate"


class Program:
    """A compiled expression. It has no state: threads and tasks may share it."""

    __slots__ = ("_places", "_step", "names", "source")

    def __init__(self, source: str, names: Iterable[str]) -> None:
        tree = parse(source)
        self.source = source
        self.names = check(tree, source, names)
        self._step, self._places = compile_tree(tree)

    def __call__(self, activation: Mapping[str, object]) -> Json:
        """Evaluate and turn the result into JSON, in which all numbers are doubles. Raises ExpressionError."""
        try:
            return to_json(self._step(Frame(activation, self._places)))
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
        return ExpressionError(failure.message, source=self.source, column=failure.column or 1, length=failure.length)


def compile(source: str, names: Iterable[str]) -> Program:
    """Compile an expression that may read these variables. Raises ExpressionError, with the column of the fault."""
    try:
        return Program(source, names)
    except RecursionError:
        raise ExpressionError("expression is nested too deeply", source=source) from None
