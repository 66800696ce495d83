"""Multipart form data."""

from __future__ import annotations

from octo import multipart
from octo.cel.functions import function
from octo.cel.values import Failure, Value, to_bytes, to_json


@function("fromMultipart")
def from_raw_body(body: dict[Value, Value]) -> dict[Value, Value]:
    """The parts of a raw body, by their names; a repeated name gives a list of parts."""
    parts, data, content_type = body.get("parts"), body.get("rawData"), body.get("contentType")
    if isinstance(parts, dict):
        return parts  # decoded where the bytes still were: not all of them are text in `rawData`
    if not isinstance(data, str) or not isinstance(content_type, str):
        raise Failure("`fromMultipart` needs a raw body, with `rawData` and `contentType`")
    return _decoded(data, content_type)


@function("fromMultipart")
def from_multipart(data: str, content_type: str) -> dict[Value, Value]:
    """The parts of a text with that content type, which names the boundary."""
    return _decoded(data, content_type)


def _decoded(data: str, content_type: str) -> dict[Value, Value]:
    try:
        return multipart.decode(to_bytes(data), content_type)
    except ValueError as error:
        raise Failure(f"text is not multipart: {error}") from None


@function("multipart")
def no_parts() -> dict[Value, Value]:
    """A parts map without parts, to add parts to."""
    return {}


@function(".addPart")
def add_part(parts: dict[Value, Value], name: str, part: Value) -> dict[Value, Value]:
    """The parts map with one more part: a text field, or an object with `data`, `filename`, `contentType`,
    `encoding` (`text` or `base64`) and `headers`, as far as needed."""
    try:
        return multipart.add(parts, name, multipart.part(name, to_json(part)))
    except ValueError as error:
        raise Failure(str(error)) from None


@function("toMultipart")
def to_multipart(parts: dict[Value, Value], boundary: str = "octo-multipart") -> str:
    """The parts map as a text, parts in the order of their names."""
    try:
        body = multipart.encode(to_json(parts), boundary)
    except ValueError as error:
        raise Failure(str(error)) from None
    try:
        return body.decode()
    except UnicodeDecodeError:
        hint = "a request sends it with `bodyType: multipart`"
        raise Failure("a part holds bytes that are no text", hint=hint) from None
