"""What a block came out as: every setting with its value and the place that it comes from."""

from __future__ import annotations

from octo.block import Block
from octo.config.address import find
from octo.config.model import Config
from octo.fields import Duration, Expression, Model
from octo.values import Json


def explain(config: Config, address: str) -> dict[str, Json]:
    """The block at an address, resolved: defaults filled in, `ref` and `${NAME}` replaced.

    `from` of a setting is the place in a file where it is written, or `default`. Raises UsageError for an
    address that names no block.
    """
    block = find(config, address)
    settings = {
        key: {"value": plain(getattr(block, name)), "from": _origin(config, block, key, name)}
        for key, name in block.yaml_keys().items()
    }
    return {
        "address": block.address,
        "type": block.type,
        "name": block.label,
        "from": str(config.origin.locate(block.place.path)),
        "settings": settings,
    }


def plain(value: object) -> Json:
    """A setting as JSON: expressions and durations as they are written, blocks as mappings."""
    match value:
        case Expression():
            return value.source
        case Duration():
            return value.text
        case Block():
            return {"type": value.type, "name": value.label, **_fields(value)}
        case Model():
            return _fields(value)
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case set() | frozenset():
            return sorted(str(item) for item in value)
        case None | bool() | int() | float() | str():
            return value
    return str(value)


def _fields(model: Model) -> dict[str, Json]:
    values = {key: plain(getattr(model, name)) for key, name in model.yaml_keys().items()}
    return {key: value for key, value in values.items() if value is not None}


def _origin(config: Config, block: Block, key: str, name: str) -> str:
    if name not in block.model_fields_set:
        return "default"
    return str(config.origin.locate((*block.place.path, key)))
