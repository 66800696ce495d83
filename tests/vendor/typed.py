"""Holds a JSON value against the types that a vendor publishes for its requests: nested keys and unknown ones too.

Plain validation skips both: pydantic reads a `TypedDict` without looking for further keys, and an `Iterable` not at
all before it is used.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Set
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from typing_extensions import get_type_hints, is_typeddict

Json = Any


def mismatches(value: Json, expected: Any, path: str = "", beyond: Set[str] = frozenset()) -> list[str]:
    """What a value has that its type does not allow, and what it lacks.

    `beyond` are keys that are known not to be the vendor's, wherever they stand.
    """
    expected = _plain(expected)
    origin, arguments = get_origin(expected), get_args(expected)
    if expected in (Any, object):
        return []
    if is_typeddict(expected):
        return list(_of_keys(value, expected, path, beyond))
    if origin in (Union, types.UnionType):
        tried = [mismatches(value, one, path, beyond) for one in arguments]
        return min(tried, key=len)
    if origin is Literal:
        return [] if value in arguments else [f"{path}: {value!r} is none of {arguments}"]
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            return [f"{path}: expected a mapping, found {value!r}"]
        return [fault for key, one in value.items() for fault in mismatches(one, arguments[1], f"{path}.{key}", beyond)]
    if origin is not None:  # a list, an iterable, a sequence
        if not isinstance(value, list):
            return [f"{path}: expected a list, found {value!r}"]
        found = (mismatches(one, arguments[0], f"{path}[{n}]", beyond) for n, one in enumerate(value))
        return [fault for faults in found for fault in faults]
    return (
        [] if _is(value, expected) else [f"{path}: expected {getattr(expected, '__name__', expected)}, found {value!r}"]
    )


@cache
def _hints(expected: type) -> dict[str, Any]:
    return get_type_hints(expected, include_extras=True)


def _plain(expected: Any) -> Any:
    while get_origin(expected) in (Annotated, Required, NotRequired):
        expected = get_args(expected)[0]
    return expected


def _of_keys(value: Json, expected: type, path: str, beyond: Set[str]) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: expected a mapping, found {value!r}"
        return
    hints = _hints(expected)
    for key, hint in hints.items():
        if key in value:
            yield from mismatches(value[key], hint, f"{path}.{key}", beyond)
        elif get_origin(hint) is Required:
            yield f"{path}: lacks `{key}`"
    yield from (f"{path}.{key}: unknown" for key in value if key not in hints and key not in beyond)


def _is(value: Json, expected: Any) -> bool:
    if expected in (None, type(None)):
        return value is None
    if isinstance(value, bool):
        return expected is bool
    return isinstance(value, int | float) if expected is float else isinstance(value, expected)
