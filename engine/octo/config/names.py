"""The names that settings hold: which flows a flow calls, and which connectors a block uses."""

from __future__ import annotations

from collections.abc import Iterator

from octo.block import Block
from octo.config.address import walk
from octo.config.model import Flow
from octo.fields import FlowName, Model


def calls_of(flow: Flow) -> Iterator[str]:
    """The names of the flows that a flow calls, as often as it does."""
    for chain in (flow.process, flow.error or ()):
        for block in walk(chain):
            yield from names_in(block, FlowName)


def names_in(model: Model, kind: type[str]) -> list[str]:
    """The names of a kind in the settings of a model, those of inner blocks left out; each once."""
    return list(dict.fromkeys(_found(model, kind)))


def _found(value: object, kind: type[str]) -> Iterator[str]:
    match value:
        case str() if isinstance(value, kind):
            yield str(value)
        case Model():
            for name in type(value).model_fields:
                inner = getattr(value, name)
                if not isinstance(inner, Block):
                    yield from _found(inner, kind)
        case tuple() | list():
            for item in value:
                if not isinstance(item, Block):
                    yield from _found(item, kind)
        case dict():
            for item in value.values():
                yield from _found(item, kind)
