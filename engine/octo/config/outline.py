"""A config as it is written, before any of its blocks is built: finding a block, and putting another in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

from octo.block import Block, Branch, Chain, Place
from octo.config.model import Config, Flow
from octo.values import Json

_Path = tuple[str | int, ...]


class Outline(Block):
    """A block of which only the name, the type and the branches are known."""

    node: ClassVar[Mapping[str, Json]] = {}
    processors: ClassVar[Mapping[str, Mapping[str, Json]]] = {}
    link: ClassVar[Json] = None
    """The agent that it names, if it does."""

    def branches(self) -> Iterator[Branch]:
        """What looks like a chain, or like branches with one each; made when somebody asks."""
        for key, value in _settings(self.node, self.processors).items():
            for name, path, chain in _chains(key, value):
                prefix = f"{self.address}[{name}]"
                here = (*self.place.path, *path)
                if isinstance(chain, dict):
                    yield Branch(name, path, (_outline(chain, prefix, here, self.processors),), lone=True)
                else:
                    yield Branch(name, path, _outlines(chain, prefix, here, self.processors))


def outline(data: Mapping[str, Json]) -> Config:
    """The flows of merged data, with outlines in the place of blocks."""
    processors = {
        str(entry["name"]): entry
        for entry in _list(data.get("processors"))
        if isinstance(entry, dict) and entry.get("name")
    }
    flows = []
    for index, flow in enumerate(_list(data.get("flows"))):
        if not isinstance(flow, dict) or not isinstance(flow.get("name"), str):
            continue
        name = str(flow["name"])
        process, error = (
            _outlines(_list(flow.get(key)), prefix, ("flows", index, key), processors)
            for key, prefix in (("process", name), ("error", f"{name}[error]"))
        )
        flows.append(Flow.model_construct(name=name, process=process, error=error))
    return Config.model_construct(flows=tuple(flows))


def put(data: dict[str, Json], path: _Path, block: Block) -> dict[str, Json]:
    """The data with a block in the place of the one at a path; what is given stays as it is."""
    return edit(data, path, lambda _: block)


def edit(data: dict[str, Json], path: _Path, change: Callable[[Json], Json]) -> dict[str, Json]:
    """The data with a change of what is at a path; what is given stays as it is. Blocks that are built are left alone.

    Raises KeyError when nothing is there.
    """
    processors = {str(entry.get("name")): entry for entry in _list(data.get("processors")) if isinstance(entry, dict)}
    edited: dict[str, Json] = _edit(data, path, change, processors)
    return edited


def _edit(
    node: Json, path: _Path, change: Callable[[Json], Json], processors: Mapping[str, Mapping[str, Json]]
) -> Json:
    if not path:
        return change(node)
    if isinstance(node, Block):
        return node
    step, *rest = path
    if isinstance(node, list):
        return [_edit(item, tuple(rest), change, processors) if at == step else item for at, item in enumerate(node)]
    if not isinstance(node, dict):
        raise KeyError(step)
    settings = node.get("settings")
    if step not in node and isinstance(settings, dict) and step in settings:
        return {**node, "settings": _edit(settings, path, change, processors)}
    value = node[step] if step in node else _settings(node, processors)[str(step)]
    return {**node, step: _edit(value, tuple(rest), change, processors)}


def _outlines(chain: list[Json], prefix: str, path: _Path, processors: Mapping[str, Mapping[str, Json]]) -> Chain:
    return tuple(
        _outline(node, prefix, (*path, index), processors) for index, node in enumerate(chain) if isinstance(node, dict)
    )


def _outline(node: dict[str, Json], prefix: str, path: _Path, processors: Mapping[str, Mapping[str, Json]]) -> Outline:
    name, ref = _word(node, "name"), _word(node, "ref")
    type = _word(node, "type") or _word(processors.get(ref, {}), "type")
    selector = name or ref or type
    block = Outline.model_construct()
    block.put_at(Place(name, name or type, selector, f"{prefix}.{selector}", path, ref))
    link = _settings(node, processors).get("agent") if type == "ai-agent" else None
    block.__dict__.update(type=type, node=node, processors=processors, link=link)
    return block


def _settings(node: Mapping[str, Json], processors: Mapping[str, Mapping[str, Json]]) -> dict[str, Json]:
    """The settings of a block: those of its processor, those under `settings:`, those beside `type`."""
    base = processors.get(_word(node, "ref"), {}).get("settings")
    own = node.get("settings")
    beside = {key: value for key, value in node.items() if not key.startswith("x-")}
    return (base if isinstance(base, dict) else {}) | (own if isinstance(own, dict) else {}) | beside


def _chains(key: str, value: Json) -> Iterator[tuple[str, _Path, list[Json] | dict[str, Json]]]:
    """The chains of one setting, each with its name in addresses and its path; a mapping is a lone block."""
    if isinstance(value, dict) and isinstance(value.get("process"), list):
        yield key, (key, "process"), value["process"]
    elif isinstance(value, list) and any(_is_block(item) for item in value):
        yield key, (key,), value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if not isinstance(item, dict):
                continue
            name = _word(item, "name") or str(index)
            if isinstance(item.get("process"), list):
                yield name, (key, index, "process"), item["process"]
            if key == "tools" and isinstance(item.get("agent"), dict | str):
                agent = item["agent"] if isinstance(item["agent"], dict) and "name" not in item["agent"] else {}
                yield name, (key, index, "agent"), {"type": "ai-agent", **agent}


def _is_block(node: Json) -> bool:
    return isinstance(node, dict) and ("type" in node or "ref" in node)


def _word(node: Mapping[str, Json], key: str) -> str:
    value = node.get(key)
    return str(value) if isinstance(value, str) else ""


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
