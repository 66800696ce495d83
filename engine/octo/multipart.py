"""Multipart form data: from a parts map, as expressions and requests have it, to bytes."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Final

from octo.values import Json, clean_text, kind_of, render

_PART_KEYS: Final = frozenset({"data", "filename", "contentType", "encoding"})
"""A mapping that has none of these is no part."""
_WRITTEN: Final = frozenset({"content-disposition", "content-type"})
"""Headers of a part that follow from its other keys."""
_LINE_BREAK: Final = re.compile(r"[\r\n]")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def encode(parts: Json, boundary: str) -> bytes:
    """The body of a `multipart/form-data` request with that boundary, parts in the order of their names.

    A scalar is a text field, a mapping a part, a list several parts of one name. Raises ValueError.
    """
    if not isinstance(parts, dict):
        raise ValueError(f"expected a parts map, found {kind_of(parts)}")
    body = bytearray()
    for name in sorted(parts):
        for item in parts[name] if isinstance(parts[name], list) else [parts[name]]:
            head, data = _part(clean_text(name), item)
            body += f"--{boundary}\r\n{head}\r\n\r\n".encode() + data + b"\r\n"
    return bytes(body + f"--{boundary}--\r\n".encode())


def _part(name: str, item: Json) -> tuple[str, bytes]:
    """The header lines of one part, and its bytes."""
    try:
        part = _as_part(item)
        head = "\r\n".join(f"{header}: {value}" for header, value in _headers(name, part))
        return head, _data(part)
    except ValueError as error:
        raise ValueError(f'part "{_LINE_BREAK.sub(" ", name)}" of the parts map: {error}') from None


def _as_part(item: Json) -> dict[str, Json]:
    if isinstance(item, list):
        raise ValueError("expected a value or a part, found a list in a list")
    if not isinstance(item, dict):
        return {"data": "" if item is None else render(item)}
    if not item.keys() & _PART_KEYS:
        raise ValueError("expected a part with `data`, found a mapping without it")
    return item


def _headers(name: str, part: dict[str, Json]) -> Iterator[tuple[str, str]]:
    filename, content_type = _line(part, "filename"), _line(part, "contentType")
    disposition = f"form-data; name={_quoted(_one_line(name, 'the name'))}"
    if filename:
        disposition += f"; filename={_quoted(filename)}"
        content_type = content_type or "application/octet-stream"
    yield "Content-Disposition", disposition
    if content_type:
        yield "Content-Type", content_type
    further = part.get("headers") or {}
    if not isinstance(further, dict):
        raise ValueError(f"`headers` must be a mapping, got {kind_of(further)}")
    for header, value in further.items():
        if not _HEADER_NAME.fullmatch(header):
            raise ValueError(f"`{header}` is not the name of a header")
        if header.lower() not in _WRITTEN:
            yield header, _one_line(clean_text(render(value)), f"header `{header}`")


def _data(part: dict[str, Json]) -> bytes:
    text = _text(part, "data")
    match _text(part, "encoding"):
        case "" | "text":
            return clean_text(text).encode()
        case "base64":
            try:
                return base64.b64decode("".join(text.split()), validate=True)
            except ValueError:
                raise ValueError("`data` is not base64") from None
        case other:
            raise ValueError(f"`encoding` must be `text` or `base64`, got `{other}`")


def _text(part: dict[str, Json], key: str) -> str:
    value = part.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"`{key}` must be text, got {kind_of(value)}")
    return value


def _line(part: dict[str, Json], key: str) -> str:
    return _one_line(clean_text(_text(part, key)), f"`{key}`")


def _one_line(text: str, what: str) -> str:
    if _LINE_BREAK.search(text):
        raise ValueError(f"{what} holds a line break")
    return text


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
