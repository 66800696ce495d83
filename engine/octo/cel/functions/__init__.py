"""How a function of expressions is declared, and how it is found by its name.

A function is one decorated Python function: its signature declares which kinds it takes, its docstring is its
reference text, its file says its subject. Nothing else lists it, and a file is imported only when an expression
uses a name of it. A function whose first parameter is the Frame of the evaluation reaches what is around it: all
variables, templates, random bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pkgutil import get_data, iter_modules
from typing import NamedTuple, TypeAlias

from octo.cel.frame import Frame
from octo.cel.values import (
    INT_MAX,
    INT_MIN,
    KINDS,
    NUMBERS,
    Duration,
    Failure,
    Kind,
    Optional,
    Timestamp,
    UInt,
    Value,
    kind_of,
    plain,
)

Number: TypeAlias = int | UInt | float
Whole: TypeAlias = int
"""A position or a count. JSON has doubles only, so a double without fraction is taken as well."""

_ACCEPTED: Mapping[str, frozenset[type]] = {
    "bool": frozenset({bool}),
    "int": frozenset({int}),
    "UInt": frozenset({UInt}),
    "float": frozenset({float}),
    "Number": NUMBERS,
    "Whole": NUMBERS,
    "str": frozenset({str}),
    "bytes": frozenset({bytes}),
    "list": frozenset({list}),
    "dict": frozenset({dict}),
    "Timestamp": frozenset({Timestamp}),
    "Duration": frozenset({Duration}),
    "Optional": frozenset({Optional}),
    "Kind": frozenset({Kind}),
    "None": frozenset(),
    "Value": frozenset(KINDS),
}
_FRAME = "Frame"
_PARAMETERS_OF_GENERICS = re.compile(r"\[[^\]]*\]+")
_DECLARATION = re.compile(r"^@function\(((?:\s*\"[\w.]+\",?)+)", re.M)


class Parameter:
    """Which kinds one argument may have."""

    __slots__ = ("accepted", "direct", "whole")

    def __init__(self, annotation: str) -> None:
        names = {name.strip() for name in _PARAMETERS_OF_GENERICS.sub("", annotation).split("|")}
        self.accepted = frozenset[type]().union(*(_ACCEPTED[name] for name in names))
        self.whole = "Whole" in names
        self.direct = self.accepted
        """The kinds that reach the function as they are."""
        if self.whole:
            self.direct = frozenset({int}).union(*(_ACCEPTED[name] for name in names - {"Whole"}))

    def fit(self, value: Value) -> Value:
        """The argument as the function takes it. Raises TypeError when it takes none of this kind."""
        value = plain(value)
        kind = type(value)
        if kind in self.direct:
            return value
        if self.whole and (kind is UInt or (kind is float and value.is_integer())) and INT_MIN <= value <= INT_MAX:
            return int(value)
        raise TypeError


class Function:
    """One overload of a function. Names with a leading dot are called behind their first argument."""

    __slots__ = ("extra", "implementation", "names", "parameters", "reaches", "required", "rest", "result", "words")

    def __init__(self, names: tuple[str, ...], implementation: Callable[..., Value], extra: Extra | None) -> None:
        code = implementation.__code__
        annotations = implementation.__annotations__
        words = code.co_varnames[: code.co_argcount]
        self.names = names
        self.implementation = implementation
        self.extra = extra
        """What has to be installed for it."""
        self.reaches = bool(words) and annotations[words[0]] == _FRAME
        """Called with the frame of the evaluation before its arguments."""
        self.words = words[1:] if self.reaches else words
        self.parameters = tuple(Parameter(annotations[word]) for word in self.words)
        self.required = len(self.parameters) - len(implementation.__defaults__ or ())
        self.rest = Parameter(annotations[code.co_varnames[code.co_argcount]]) if code.co_flags & 0x04 else None
        self.result = _only_kind(annotations["return"])

    @property
    def documentation(self) -> str:
        return self.implementation.__doc__ or ""

    def takes(self, count: int) -> bool:
        return self.required <= count and (count <= len(self.parameters) or self.rest is not None)

    def accepts(self, kinds: Sequence[Kind | None]) -> bool:
        """Whether arguments of these kinds may fit; None stands for a kind that is not known yet."""
        return all(
            kind is None or any(KINDS[accepted] is kind for accepted in parameter.accepted)
            for kind, parameter in zip(kinds, self.spread(len(kinds)), strict=True)
        )

    def fit(self, values: Sequence[Value]) -> list[Value]:
        """The arguments as the implementation takes them; TypeError when they do not fit."""
        spread = self.spread(len(values))
        return [parameter.fit(value) for value, parameter in zip(values, spread, strict=True)]

    def spread(self, count: int) -> list[Parameter]:
        own = list(self.parameters[:count])
        return own + [self.rest] * (count - len(own)) if self.rest is not None else own


class Extra(NamedTuple):
    """An optional dependency: a package, and the extra that installs it."""

    package: str
    name: str


def function(*names: str, extra: Extra | None = None) -> Callable[[Callable[..., Value]], Function]:
    """Declare a function of expressions: `"name"` is called `name(x)`, `".name"` is called `x.name()`."""

    def declare(implementation: Callable[..., Value]) -> Function:
        return Function(names, implementation, extra)

    return declare


def _only_kind(annotation: str) -> Kind | None:
    names = _PARAMETERS_OF_GENERICS.sub("", annotation)
    accepted = _ACCEPTED.get(names, frozenset())
    return KINDS[next(iter(accepted))] if len(accepted) == 1 else None


@cache
def overloads(name: str) -> tuple[Function, ...]:
    """The overloads of a name, or none. Imports the files that declare them."""
    modules = (import_module(f"{__name__}.{module}") for module in _declared().get(name, ()))
    return tuple(
        member
        for module in modules
        for member in vars(module).values()
        if isinstance(member, Function) and name in member.names
    )


def known() -> Iterable[str]:
    """All names of functions; those with a leading dot are methods."""
    return _declared().keys()


@cache
def _declared() -> Mapping[str, list[str]]:
    """Name of a function -> the files that declare it, read off the sources: far cheaper than importing all."""
    found: dict[str, list[str]] = {}
    for module, name in _declarations():
        files = found.setdefault(name, [])
        if module not in files:
            files.append(module)
    return found


def _declarations() -> Iterator[tuple[str, str]]:
    for module in iter_modules(__path__):
        source = get_data(__name__, f"{module.name}.py")
        for match in _DECLARATION.finditer((source or b"").decode()):
            for name in match[1].split('"')[1::2]:
                yield module.name, name


def call(name: str, candidates: Sequence[Function], values: Sequence[Value], frame: Frame) -> Value:
    """Call the first overload that takes these values."""
    for candidate in candidates:
        try:
            arguments = candidate.fit(values)
        except TypeError:
            continue
        within = (frame,) if candidate.reaches else ()
        return candidate.implementation(*within, *arguments)
    raise Failure(f"no such overload: {signature(name, [kind_of(value) for value in values])}")


def signature(name: str, kinds: Sequence[Kind | None]) -> str:
    """A call as error texts show it: `size(int)`, `string.contains(int)`."""
    shown = [kind.name if kind else "dyn" for kind in kinds]
    if name.startswith("."):
        return f"{shown[0]}{name}({', '.join(shown[1:])})"
    return f"{name}({', '.join(shown)})"
