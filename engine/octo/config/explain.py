"""What a block came out as: every setting with its value and the place that it comes from."""

from __future__ import annotations

from octo.block import Block
from octo.config.address import find
from octo.config.model import Config
from octo.errors import UsageError
from octo.fields import Duration, Expression, Model
from octo.values import Json


def explain(config: Config, address: str) -> dict[str, Json]:
    """The block at an address, resolved: defaults filled in, `ref` and `${NAME}` replaced.

    `from` of a setting is the place in a file where it is written, or `default`; an empty default is left out. Raises
    UsageError for an address that names no block.
    """
    try:
        block = find(config, address)
    except UsageError as error:
        hint = error.hint or "`octo graph` draws the blocks of a config"
        raise UsageError(f"`{address}`: {error.message}", hint=hint) from error
    return {
        "address": block.address,
        "type": block.type,
        "label": block.label,
        "from": str(config.origin.locate(block.place.path)),
        "settings": {
            key: {"value": value, "from": _origin(config, block, key)} for key, value in _fields(block).items()
        },
    }


def plain(value: object) -> Json:
    """A setting as JSON: expressions and durations as they are written, blocks as mappings."""
    match value:
        case Expression():
            return value.source
        case Duration():
            return value.text
        case Block():
            label = {} if value.label == value.type else {"label": value.label}
            settings = _fields(value)
            return {"type": value.type, **label, **(settings if value.composite else {"settings": settings})}
        case Model():
            return _fields(value)
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case set() | frozenset():
            return sorted(str(item) for item in value)
        case None | bool() | int() | float():
            return value
    return str(value)


def _fields(model: Model) -> dict[str, Json]:
    """The fields by their keys, without defaults that are empty."""
    values = {key: plain(getattr(model, name)) for key, name in model.yaml_keys().items()}
    return {key: value for key, value in values.items() if _is_written(model, key) or value not in (None, "", [], {})}


def _origin(config: Config, block: Block, key: str) -> str:
    return str(config.origin.locate((*block.place.path, key))) if _is_written(block, key) else "default"


def _is_written(model: Model, key: str) -> bool:
    return model.yaml_keys()[key] in model.model_fields_set
