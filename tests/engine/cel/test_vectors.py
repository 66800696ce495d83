"""octo/cel: the published conformance vectors of the language.

They lie outside the repository. `OCTO_CEL_VECTORS` names the file; without it nothing is collected here.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from octo.cel import compile as compile_expression
from octo.cel.values import KIND_NAMES, Duration, Optional, Timestamp, UInt, equal, items, kind_of
from octo.errors import ExpressionError

OTHER_LANGUAGES = {
    "network_ext": "addresses and networks are no kinds of this language",
    "block_ext": "common subexpressions are written by optimizers, not by people",
    "bindings_ext": "variables are set by blocks, not inside an expression",
    "proto2": "there are no protobuf messages",
    "dynamic": "there are no protobuf messages",
}
ALWAYS_CHECKED = "names and the kinds of literals are always checked before an evaluation"
NO_DOTS = "variables have no dots in their names"
MISPRINT = "the expected bytes hold a backslash that the expression does not"
DIFFERENT = {
    ("AND", "short_circuit_type_right"): ALWAYS_CHECKED,
    ("OR", "short_circuit_type_left"): ALWAYS_CHECKED,
    **{
        ("receiver_function_names", word): ALWAYS_CHECKED
        for word in ("as", "for", "function", "let", "package", "namespace", "return", "var", "while")
    },
    ("qualified_identifier_resolution", "qualified_ident"): NO_DOTS,
    ("qualified_identifier_resolution", "map_field_select"): NO_DOTS,
    ("bytes_literals", "triple_single_quoted_unescaped_punctuation"): MISPRINT,
    ("bytes_literals", "triple_double_quoted_unescaped_punctuation"): MISPRINT,
}


def vectors() -> list[Any]:
    path = os.environ.get("OCTO_CEL_VECTORS")
    if not path:
        return []
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    return [
        pytest.param(vector, id=f"{vector['file']}-{vector['sec']}-{vector['name']}")
        for vector in found
        if vector["file"] not in OTHER_LANGUAGES and (vector["sec"], vector["name"]) not in DIFFERENT
    ]


def value(form: list[Any]) -> Any:
    """The value that a vector writes as `[kind, ...]`."""
    match form:
        case ["null"]:
            return None
        case ["int", text]:
            return int(text)
        case ["uint", text]:
            return UInt(text)
        case ["double", text]:
            return float(text)
        case ["bytes", text]:
            return bytes.fromhex(text)
        case ["list", elements]:
            return [value(element) for element in elements]
        case ["map", entries]:
            return {value(key): value(item) for key, item in entries}
        case ["type", name]:
            return KIND_NAMES[name]
        case ["duration", seconds, nanos]:
            return Duration(int(seconds) * 10**9 + int(nanos))
        case ["timestamp", seconds, nanos]:
            return Timestamp(int(seconds) * 10**9 + int(nanos))
        case ["bool" | "string", plain]:
            return plain
    raise ValueError(form)


def same(left: Any, right: Any) -> bool:
    """Equal, of the same kinds all through, and NaN is itself."""
    if kind_of(left) is not kind_of(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        pairs = items(left)
        return len(left) == len(right) and all(
            any(same(key, other) and same(item, found) for other, found in items(right)) for key, item in pairs
        )
    if isinstance(left, Optional):
        return left.present == right.present and same(left.value, right.value)
    if isinstance(left, float) and math.isnan(left):
        return math.isnan(right)
    return equal(left, right)


if vectors():

    @pytest.mark.parametrize("vector", vectors())
    def test_a_published_vector_holds(vector: dict[str, Any]) -> None:
        activation = {name: value(form) for name, form in vector["bind"].items()}
        names = {*vector["decl"], *activation}
        if vector["exp"] == ["ERR"]:
            with pytest.raises(ExpressionError):
                compile_expression(vector["expr"], names).evaluate(activation)
        else:
            result = compile_expression(vector["expr"], names).evaluate(activation)

            assert same(result, value(vector["exp"])), result
