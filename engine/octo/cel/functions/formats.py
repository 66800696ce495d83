"""Values to and from JSON, form data and env files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from octo import dotenv
from octo.cel.functions import function
from octo.cel.values import Failure, Value, to_json
from octo.values import clean_text, dumps, parse, render

_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2}).{0,2}", re.S)


@function("toJson")
def to_json_text(value: Value) -> str:
    """The value as compact JSON, keys sorted."""
    return dumps(to_json(value))


@function("fromJson")
def from_json(text: str) -> Value:
    """The value of a JSON text; its numbers are doubles."""
    try:
        return parse(text)
    except ValueError as error:
        raise Failure(f"text is not JSON: {_lower(str(error))}") from None


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


@function("toFormData")
def to_form_data(value: dict[str, Value]) -> str:
    """An object as urlencoded form data, keys sorted; a list repeats its key."""
    from urllib.parse import quote_plus

    return "&".join(f"{quote_plus(key)}={quote_plus(text)}" for key, text in _fields(value))


def _fields(value: dict[str, Value]) -> Iterator[tuple[str, str]]:
    form = to_json(value)
    for key in sorted(form):
        items = form[key] if isinstance(form[key], list) else [form[key]]
        for item in items:
            yield clean_text(key), "" if item is None else clean_text(render(item))


@function("fromFormData")
def from_form_data(text: str) -> dict[str, Value]:
    """The fields of urlencoded form data; a repeated key gives a list."""
    from urllib.parse import unquote_plus

    bad = _BAD_ESCAPE.search(text)
    if bad is not None:
        raise Failure(f"form data has a bad escape `{bad[0]}`")
    found: dict[str, list[str]] = {}
    for field in filter(None, text.split("&")):
        key, _, value = field.partition("=")
        found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return {key: values[0] if len(values) == 1 else values for key, values in found.items()}


@function("toEnv")
def to_env(value: dict[str, Value]) -> str:
    """An object as lines `KEY=value`, sorted; values are quoted where they must be."""
    try:
        return dotenv.dump(to_json(value))
    except ValueError as error:
        raise Failure(str(error)) from None


@function("fromEnv")
def from_env(text: str) -> dict[str, Value]:
    """The variables of an env file; all values are text."""
    try:
        return dotenv.parse(text)
    except ValueError as error:
        raise Failure(str(error)) from None
