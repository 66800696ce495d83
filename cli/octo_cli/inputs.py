"""`--data`, files and standard input: the body and the variables that a flow begins with."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from json import JSONDecodeError, loads
from pathlib import Path
from typing import NamedTuple

from octo import encoding
from octo.errors import Location, Problem, UsageError
from octo.values import Json, clean_text, kind_of, parse, render
from octo_cli import diagnostics
from octo_cli.session import Session


class Body(NamedTuple):
    """What a flow is called with."""

    value: Json
    """The body; the text itself when a content type is given."""
    content_type: str | None = None


def body(session: Session, data: str | None, content_type: str | None = None, default: Json = None) -> Body:
    """The body: `--data` if it is not empty, else the default, else what is piped in, else null.

    `--data @FILE` reads a file, `--data -` reads standard input even from a terminal. With a content type the
    text is taken as it is.
    """
    if not data and default is not None:
        return Body(render(default), content_type) if content_type else Body(default)
    if not data:
        text, source = _piped(session), "stdin is not valid JSON"
    elif data == "-":
        text, source = standard_input(session), "stdin is not valid JSON"
    elif data.startswith("@"):
        text, source = _file(session, data[1:], option="--data"), f"decode body: `{data[1:]}`"
    else:
        text, source = data, "decode body"
    if not text or not text.strip():
        return Body(None)
    return Body(clean_text(text), content_type) if content_type else Body(decode(text.strip(), source))


def mapping(session: Session, option: str, text: str | None) -> dict[str, Json]:
    """The JSON object that an option holds, or the file after its `@`; empty when the option is not given."""
    if not text:
        return {}
    prefix = f"parse {option} JSON"
    if text.startswith("@"):
        prefix = f"{prefix}: `{text[1:]}`"
        text = _file(session, text[1:], option=option)
    value = decode(text, prefix)
    if not isinstance(value, dict):
        raise UsageError(f"{prefix}: expected an object, found {kind_of(value)}", hint="for example '{\"a\": 1}'")
    names = [name for name, _ in loads(text, object_pairs_hook=list)]
    for name in value:
        if names.count(name) > 1:
            raise UsageError(f"{prefix}: `{name}` is given {names.count(name)} times", hint="keep one of them")
    return value


def decode(text: str, prefix: str) -> Json:
    """A strict JSON value; a fault is a UsageError that begins with the prefix."""
    try:
        return parse(text)
    except JSONDecodeError as error:
        raise UsageError(f"{prefix}: {error}", hint=_quoting(text) if prefix == "decode body" else None) from None
    except ValueError as error:
        raise UsageError(f"{prefix}: {error}") from None


def with_settings(value: Json, assignments: Sequence[str], what: str = "body") -> Json:
    """The body, or `what` it is, with each `a.b=1` of `--set` put below it: JSON if that parses, else text."""
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        keys = path.split(".")
        if not equals or not all(keys):
            raise UsageError(f"`--set {assignment}`: expected `PATH=VALUE`", hint="for example `--set order.id=7`")
        value = _placed(value, keys, _loosely(text), f"--set {assignment}", what)
    return value


def attachments(names: Sequence[str]) -> list[Json]:
    """The files of `--attach`, each as `{mimeType, data, name}`."""
    return [_attachment(name) for name in names]


def with_attachments(value: Json, attached: Sequence[Json]) -> Json:
    """The body with what is attached appended to its list `files`."""
    if not attached:
        return value
    if value is not None and not isinstance(value, dict):
        raise UsageError(f"`--attach` puts files into `body.files`, but the body is {kind_of(value)}, not a mapping")
    present = (value or {}).get("files")
    if present is not None and not isinstance(present, list):
        raise UsageError(f"`--attach` appends to `body.files`, but that is {kind_of(present)}, not a list")
    return {**(value or {}), "files": [*(present or []), *attached]}


def path(text: str) -> Path:
    """The path that an argument names, whatever the locale's idea of file names is."""
    return Path(text if text.isascii() else os.fsdecode(text.encode("utf-8", errors="surrogateescape")))


# ---------------------------------------------------------------- reading


def standard_input(session: Session) -> str:
    """All of standard input, also of a terminal."""
    return "" if sys.stdin is None else _decoded(session, sys.stdin.buffer.read(), "stdin", "stdin")


def _piped(session: Session) -> str:
    """What a pipe or a file feeds to standard input; a terminal or a null device feeds nothing."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # no standard input at all
        return ""
    fed = stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
    return standard_input(session) if fed else ""


def _file(session: Session, name: str, *, option: str) -> str:
    return _decoded(session, _bytes(name, option=option), name, f"`{option}`: `{name}`")


def _decoded(session: Session, data: bytes, file: str, what: str) -> str:
    """The text of a file. Bytes that are not UTF-8 become U+FFFD, which is warned of; other encodings are refused."""
    wrong = encoding.misfit(data)
    if wrong is not None and wrong.encoding:
        raise UsageError(f"{what} is {wrong.encoding}, expected UTF-8", hint=encoding.HINT)
    if wrong is not None:
        column = len(wrong.before) - wrong.before.rfind("\n")
        diagnostics.warn(session, read_anyway(wrong, Location(file, wrong.before.count("\n") + 1, column)))
    return data.decode("utf-8-sig", errors="replace")


def read_anyway(wrong: encoding.Misfit, location: Location) -> Problem:
    """The warning for a text that is read though it is not all UTF-8."""
    return Problem(f"{wrong.message}, read as U+FFFD", location, encoding.HINT, severity="warning")


def _bytes(name: str, *, option: str) -> bytes:
    if not name:
        raise UsageError(f"`{option}`: the name of the file is empty", hint=f"write `{option} @FILE`")
    try:
        return path(name).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"`{option}`: cannot read `{name}`: {reason.lower()}") from error


# ---------------------------------------------------------------- shaping


def _quoting(text: str) -> str | None:
    """The hint for bare words, which are most often meant as text."""
    words = len(text) <= 40 and not any(mark in text for mark in "\"'{}[]:")
    return f"text is written with quotes: '\"{text}\"'" if words else None


def _loosely(text: str) -> Json:
    try:
        return parse(text)
    except ValueError:
        return clean_text(text)


def _placed(value: Json, keys: Sequence[str], item: Json, option: str, where: str) -> Json:
    if not keys:
        return item
    key, *rest = keys
    if isinstance(value, list):
        if not (key.isascii() and key.isdigit() and int(key) <= len(value)):
            raise UsageError(f"`{option}`: `{where}` is a list of {len(value)}, `{key}` is no place in it")
        index = int(key)
        old = value[index] if index < len(value) else None
        return [*value[:index], _placed(old, rest, item, option, f"{where}.{key}"), *value[index + 1 :]]
    if value is not None and not isinstance(value, dict):
        raise UsageError(f"`{option}`: `{where}` is {kind_of(value)}, not a mapping")
    old = (value or {}).get(key)
    return {**(value or {}), key: _placed(old, rest, item, option, f"{where}.{key}")}


def _attachment(name: str) -> Json:
    from base64 import b64encode

    content = _bytes(name, option="--attach")
    file = path(name)
    return {"mimeType": _media_type(content, file), "data": b64encode(content).decode(), "name": clean_text(file.name)}


def _media_type(content: bytes, file: Path) -> str:
    """By what the bytes are; by the name only when they do not tell."""
    from mimetypes import guess_type

    from octo.llm.media import sniff

    return sniff(content) or guess_type(file.name)[0] or "application/octet-stream"
