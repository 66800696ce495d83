"""Values to and from JSON, form data and env files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from octo.cel.functions import function
from octo.cel.values import Failure, Value, kind_of, to_json
from octo.values import clean_text, dumps, parse, render

_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2}).{0,2}", re.S)
_NO_ENV_KEY = re.compile(r"[=#'\"\s]")
_NEEDS_QUOTES = re.compile(r"[\s#'\"\\]")
_ENV_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_ENV_ESCAPE = re.compile(r"\\(.)", re.S)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}


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
    variables = to_json(value)
    return "\n".join(f"{_env_key(key)}={_env_value(key, variables[key])}" for key in sorted(variables))


def _env_key(key: str) -> str:
    if not key:
        raise Failure("the name of an environment variable is empty")
    if _NO_ENV_KEY.search(key):
        raise Failure(f"`{key}` is no name of an environment variable")
    return key


def _env_value(key: str, value: Value) -> str:
    if isinstance(value, list | dict):
        raise Failure(f"value of `{key}` is a {kind_of(value).name}, an environment variable holds text")
    text = "" if value is None else render(value)
    return f'"{text.translate(_ENV_ESCAPES)}"' if not text or _NEEDS_QUOTES.search(text) else text


@function("fromEnv")
def from_env(text: str) -> dict[str, Value]:
    """The variables of an env file; all values are text."""
    variables: dict[str, Value] = {}
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        line = line.strip().removeprefix("\ufeff")
        if not line or line.startswith("#"):
            continue
        key, equals, value = line.partition("=")
        key = re.sub(r"^export\s+", "", key).strip()
        if not equals or not key:
            raise Failure(f"line {number} is no assignment `KEY=value`")
        variables[key] = _unquoted(value.strip())
    return variables


def _unquoted(value: str) -> str:
    if len(value) < 2 or value[0] != value[-1] or value[0] not in "'\"":
        return value
    inner = value[1:-1]
    if value[0] == "'":
        return inner
    return _ENV_ESCAPE.sub(lambda match: _CONTROLS.get(match[1], match[1]), inner)
