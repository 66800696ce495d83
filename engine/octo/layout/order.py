"""The order of keys in a config: what a thing is and what it is called come first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from octo.layout.nodes import Collection, Node, has_anchor

_BLOCK: Final = ("type", "ref", "name", "settings")
_SECTIONS: Final = {
    "env": ("name",),
    "connectors": ("name", "type", "settings"),
    "processors": ("name", "type", "settings"),
    "flows": ("name", "description"),
}
"""The leading keys of the entries of a section."""
_AGENT: Final = ("name", "description", "connector", "model")
_TOOL: Final = ("name", "description")


def arrange(root: Node) -> None:
    """Put the leading keys of everything in a config, or in an agent file, first; the others stay in their order."""
    for section, leading in _SECTIONS.items():
        for entry in _mappings(_member(root, section)):
            _lead(entry, leading)
            if section == "flows":
                for chain in ("process", "error"):
                    _chain(_member(entry, chain))

    agents = _member(root, "agents")
    for agent in (*_mappings(agents), *_values(agents)):
        _agent(agent)
    if _member(root, "prompt") is not None or _member(root, "system_prompt") is not None:
        _agent(root)


def _agent(agent: Node | None) -> None:
    """An agent with a name, and its tools."""
    if not isinstance(agent, Collection) or agent.is_list or not agent.entries:
        return
    _lead(agent, _AGENT)
    for tool in _mappings(_member(agent, "tools")):
        _lead(tool, _TOOL)
        _chain(_member(tool, "process"))
        _agent(_member(tool, "agent"))


def _chain(value: Node | None) -> None:
    for block in _mappings(value):
        _lead(block, _BLOCK)
        for holder in (block, _member(block, "settings")):
            for chain in _chains(holder):
                _chain(chain)


def _chains(holder: Node | None) -> Iterator[Node]:
    """The chains in the settings of a block: lists of blocks, and what is under `process` of a mapping."""
    for value in _values(holder):
        if isinstance(value, Collection) and value.is_list:
            items = list(_mappings(value))
            if any(_member(item, "type") or _member(item, "ref") for item in items):
                yield value
            yield from (chain for item in items if (chain := _member(item, "process")) and not _member(item, "type"))
        elif (chain := _member(value, "process")) is not None:
            yield chain


def _lead(mapping: Collection, leading: tuple[str, ...]) -> None:
    if has_anchor(mapping):  # an alias must not come to stand before its anchor
        return
    rank = {key: index for index, key in enumerate(leading)}
    first, before = mapping.entries[0], mapping.entries[0].before
    mapping.entries.sort(key=lambda entry: rank.get(_plain(entry.key), len(rank)))
    if mapping.entries[0] is not first:  # what stands above a mapping is about all of it
        first.before = []
        mapping.entries[0].before = before + mapping.entries[0].before


def _member(node: Node | None, key: str) -> Node | None:
    entries = node.entries if isinstance(node, Collection) and not node.is_list else []
    return next((entry.value for entry in entries if _plain(entry.key) == key), None)


def _values(node: Node | None) -> Iterator[Node]:
    if isinstance(node, Collection) and not node.is_list:
        yield from (entry.value for entry in node.entries)


def _mappings(node: Node | None) -> Iterator[Collection]:
    """The items of a list that are mappings with something in them."""
    if isinstance(node, Collection) and node.is_list:
        for entry in node.entries:
            value = entry.value
            if isinstance(value, Collection) and not value.is_list and value.entries:
                yield value


def _plain(key: str | None) -> str:
    return (key or "").strip("'\"")
