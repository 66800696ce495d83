"""What the doubles of vendors check alike: files by their bytes, schemas by what strict mode wants."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

import jsonschema_rs

from vendor.server import Json

_HEADS = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF8": "image/gif",
    b"%PDF-": "application/pdf",
}


def of_data_url(url: str) -> tuple[str, str] | None:
    """The type that a data URL claims and the one that its bytes show; None when it holds no bytes."""
    claimed, _, text = url.removeprefix("data:").partition(";base64,")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    if not data or base64.b64encode(data).decode() != text:
        return None
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return claimed, "image/webp"
    return claimed, next((kind for head, kind in _HEADS.items() if data.startswith(head)), "")


def is_schema(schema: Json) -> bool:
    try:
        jsonschema_rs.validator_for(schema)
    except (ValueError, jsonschema_rs.ReferencingError):
        return False
    return True


def strict_faults(schema: Json) -> Iterator[str]:
    """Structured outputs, "Supported schemas": objects are closed, and list all their properties as required."""
    for inner in _objects(schema):
        if inner.get("additionalProperties") is not False:
            yield "'additionalProperties' is required to be supplied and to be false."
        if set(inner.get("required", ())) != inner.get("properties", {}).keys():
            yield "'required' is required to be supplied and to be an array including every key in properties."


def _objects(schema: Json) -> Iterator[dict[str, Json]]:
    """The schemas of objects within a schema."""
    if not isinstance(schema, dict):
        return
    type = schema.get("type")
    if type == "object" or (isinstance(type, list) and "object" in type):
        yield schema
    named = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    for inner in [*named, *schema.get("anyOf", ()), schema.get("items")]:
        yield from _objects(inner)
