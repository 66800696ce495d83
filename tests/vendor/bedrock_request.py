"""The shape of a Converse request: the vendor's own model of its service, held to in full.

The model is the one that `botocore` carries. Its own validator skips unknown keys' values, patterns, choices and most
limits; here everything counts that the model says. Rules about several places at once are in `bedrock_rules`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from botocore.model import OperationModel, Shape
from botocore.session import Session

from vendor.server import Json


@dataclass(frozen=True)
class Converse:
    """A request whose shape is right."""

    model: str
    body: Json

    @property
    def messages(self) -> list[Json]:
        return self.body.get("messages", [])

    @property
    def system(self) -> list[Json]:
        return self.body.get("system", [])

    @property
    def tools(self) -> list[Json]:
        return self.body.get("toolConfig", {}).get("tools", [])

    @property
    def specs(self) -> list[Json]:
        return [tool["toolSpec"] for tool in self.tools if "toolSpec" in tool]

    @property
    def choice(self) -> Json:
        return self.body.get("toolConfig", {}).get("toolChoice", {"auto": {}})

    @property
    def inference(self) -> Json:
        return self.body.get("inferenceConfig", {})

    @property
    def more(self) -> Json:
        return self.body.get("additionalModelRequestFields", {})

    @property
    def is_claude(self) -> bool:
        return "claude" in self.model


def read(model: str, body: Json, operation: str) -> Converse:
    """The checked request. Raises ValueError with a text for the first thing that is wrong."""
    shape = operation_model(operation).input_shape
    assert shape is not None
    fault = next(_faults(shape, {"modelId": model, **body} if isinstance(body, dict) else body, ""), None)
    if isinstance(body, dict) and "modelId" in body:
        fault = "modelId: is a part of the path"
    if fault is not None:
        raise ValueError(f"1 validation error detected: {fault}")
    return Converse(model, body)


@cache
def operation_model(name: str) -> OperationModel:
    return Session().get_service_model("bedrock-runtime").operation_model(name)


def _faults(shape: Shape, value: Json, path: str) -> Iterator[str]:
    """What is wrong with a value, as the model of the service tells its shape."""
    limits = shape.metadata
    match shape.type_name:
        case "structure" if limits.get("document") or shape.is_document_type:
            return
        case "structure":
            yield from _faults_of_structure(shape, value, path)
        case "list" if isinstance(value, list):
            yield from _out_of_bounds(len(value), limits, path)
            for number, item in enumerate(value):
                yield from _faults(shape.member, item, f"{path}.{number}")
        case "map" if isinstance(value, dict):
            yield from _out_of_bounds(len(value), limits, path)
            for key, item in value.items():
                yield from _faults(shape.key, key, f"{path}.{key}")
                yield from _faults(shape.value, item, f"{path}.{key}")
        case "string" if isinstance(value, str):
            yield from _out_of_bounds(len(value), limits, path)
            if "enum" in limits and value not in limits["enum"]:
                yield f"{path}: Member must satisfy enum value set: {limits['enum']}"
            if "pattern" in limits and not re.fullmatch(limits["pattern"], value):
                yield f"{path}: Member must satisfy regular expression pattern: {limits['pattern']}"
        case "blob" if isinstance(value, str):
            data = decoded(value)
            if data is None:
                yield f"{path}: Member must be base64"
            else:
                yield from _out_of_bounds(len(data), limits, path)
        case "integer" | "long" if type(value) is int:
            yield from _out_of_bounds(value, limits, path)
        case "float" | "double" if type(value) in (int, float):
            yield from _out_of_bounds(value, limits, path)
        case "boolean" if isinstance(value, bool):
            return
        case kind:
            yield f"{path}: Member must be a {kind}"


def _faults_of_structure(shape: Shape, value: Json, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: Member must be a structure"
        return
    for name in shape.required_members:
        if value.get(name) is None:
            yield f"{path}.{name}: Member must not be null".lstrip(".")
    if shape.is_tagged_union and len(value) != 1:
        yield f"{path}: exactly one of {', '.join(shape.members)} must be set, found {', '.join(value) or 'none'}"
    for name, item in value.items():
        inner = f"{path}.{name}".lstrip(".")
        if name not in shape.members:
            yield f"{inner}: extraneous key [{name}] is not permitted"
        else:
            yield from _faults(shape.members[name], item, inner)


def _out_of_bounds(size: float, limits: Json, path: str) -> Iterator[str]:
    if size < limits.get("min", size):
        yield f"{path}: Member must have a length or value of at least {limits['min']}"
    if size > limits.get("max", size):
        yield f"{path}: Member must have a length or value of at most {limits['max']}"


def decoded(text: str) -> bytes | None:
    """The bytes of padded base64 in the standard alphabet, and of nothing else."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data).decode() == text else None
