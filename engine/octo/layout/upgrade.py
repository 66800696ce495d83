"""Older spellings of what agents remember, written as they are today without a change of what they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import yaml

from octo.config import document, parser
from octo.config.agents import SUFFIX
from octo.config.document import Document, Path
from octo.errors import ConfigError, Location, Problem
from octo.layout import nodes, printer
from octo.layout.lay_out import comments
from octo.layout.nodes import Collection, Entry, Node, NotKept, Scalar
from octo.values import Json

BakedId: TypeAlias = Literal["", "memory-id", "run"]
"""What becomes of an id in `memory`: empty when nobody has said."""

_LENGTHS: Final = ("contextLength", "context_length")
_OLDEST: Final = ("messagesContextLength", "messages_context_length")
_IDS: Final = ("memoryId", "memory_id")
_HISTORIES: Final = ("previousMessages", "previous_messages")
_CHANGED: Final = {"memory", "inputs", *_OLDEST, *_IDS, *_HISTORIES}
"""The keys that may be added, changed or removed."""


def upgrade(content: bytes, file: str, baked_id: BakedId = "") -> bytes:
    """The content of a file in today's spellings, not yet laid out. Unchanged where there are no older ones.

    Raises ConfigError for what is no YAML, for an id in `memory` of which nobody has said what becomes of it, and for
    what cannot be upgraded.
    """
    before = document.parse(content, file, what="file")
    text = content.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    try:
        tree = nodes.read(text, parser.events(text))
        if tree is None:
            return content
        kept = comments(tree)
        work = _Upgrade(before, baked_id)
        work.walk(tree.root, before.data, ())
        work.named_agents(tree.root, before.data)
        if work.problems:
            raise ConfigError(work.problems)
        if not work.changes:
            return content
        result = printer.text(tree)
        again = nodes.read(result, parser.events(result))
    except (NotKept, yaml.YAMLError):
        raise _left_alone(file) from None
    if again is None or comments(again) != kept or _rest(document.parse(result, file).data) != _rest(before.data):
        raise _left_alone(file)
    return result.encode("utf-8")


def _left_alone(file: str) -> ConfigError:
    message = "cannot be upgraded without losing a comment or changing something else"
    return ConfigError([Problem(message, Location(file, 1, 1), "it has been left as it is")])


def _rest(value: Json) -> Json:
    """The value without all that an upgrade may change."""
    match value:
        case dict():
            return {key: _rest(item) for key, item in value.items() if key not in _CHANGED}
        case list():
            return [_rest(item) for item in value]
    return value


class _Upgrade:
    """Goes through a tree and what it says, and changes the tree."""

    def __init__(self, source: Document, baked_id: BakedId) -> None:
        self._source = source
        self._baked_id = baked_id
        self._processors = dict(_types(source.data))
        self.changes = 0
        self.problems: list[Problem] = []

    def walk(self, node: Node, data: Json, path: Path) -> None:
        """Upgrade every agent at or below a value."""
        for child, value, below in _children(node, data, path):
            self.walk(child, value, below)
        if not isinstance(node, Collection) or not isinstance(data, dict):
            return
        if (data.get("type") or self._processors.get(str(data.get("ref")))) == "ai-agent":
            settings = _value(node, "settings")
            if isinstance(settings, Collection) and isinstance(data.get("settings"), dict):
                self._agent(settings, data["settings"], (*path, "settings"), settings)
            else:
                self._agent(node, data, path, node)
        nested = _value(node, "agent")
        if isinstance(nested, Collection) and isinstance(data.get("agent"), dict):
            inputs = _value(node, "inputs")
            owner = inputs if isinstance(inputs, Collection) else Collection(False, False, "")
            self._agent(nested, data["agent"], (*path, "agent"), owner)
            if owner is not inputs and owner.entries:
                node.entries.append(Entry([], "inputs", owner))

    def named_agents(self, root: Node, data: Json) -> None:
        """Upgrade the agents that have a name: those of a config, or the one that a file holds."""
        if not isinstance(data, dict):
            return
        if self._source.file.endswith(SUFFIX):
            if isinstance(root, Collection):
                self._agent(root, data, (), None)
            return
        for section, entries, below in _children(root, data, ()):
            for agent, said, path in _children(section, entries, below) if below == ("agents",) else ():
                if isinstance(agent, Collection) and isinstance(said, dict):
                    self._agent(agent, said, path, None)

    # ------------------------------------------------------------ one agent

    def _agent(self, agent: Collection, data: dict[str, Json], path: Path, owner: Collection | None) -> None:
        """Upgrade one agent. What names a memory or a history stands in `owner`; agents with a name have none."""
        oldest = next((key for key in _OLDEST if key in data), None)
        if oldest is not None and data.get("memory") is not None:
            self._remove(agent, oldest)
        elif oldest is not None:
            self._oldest(agent, oldest, data[oldest])
        memory, said = _value(agent, "memory"), data.get("memory")
        if isinstance(said, dict) and said.get("kind") in ("auto", "manual"):
            if not isinstance(memory, Collection):
                hint = "write the mapping in its place, or upgrade it by hand"
                self.problems.append(
                    self._source.problem("`memory` is an alias", (*path, "memory"), key=True, hint=hint)
                )
            elif said["kind"] == "auto":
                self._auto(memory, said, (*path, "memory"), owner)
            else:
                self._manual(memory, (*path, "memory"), owner)

    def _oldest(self, agent: Collection, key: str, length: Json) -> None:
        if not length:
            self._remove(agent, key)
            return
        self.changes += 1
        entry = next(entry for entry in agent.entries if _plain(entry.key) == key)
        written = entry.value if isinstance(entry.value, Scalar) else Scalar(str(length))
        comment, written.comment = written.comment, ""
        window = [Entry([], "kind", Scalar("window")), Entry([], "contextLength", written)]
        entry.key, entry.value = "memory", Collection(False, False, "", entries=window, comment=comment)

    def _auto(self, memory: Collection, said: dict[str, Json], path: Path, owner: Collection | None) -> None:
        baked = next((said[key] for key in _IDS if isinstance(said.get(key), str) and said[key].strip()), "")
        if not any(said.get(key) for key in _LENGTHS):
            self._set_kind(memory, "off")
            for key in (*_LENGTHS, *_IDS):
                self._remove(memory, key)
            return
        if baked and not self._baked_id:
            hint = "`--keep-as-memory-id` keeps it for every run, `--use-run-memory-id` leaves it to the runs"
            key = next(key for key in _IDS if key in said)
            message = f"`memory` has an id of its own, `{baked}`"
            self.problems.append(self._source.problem(message, (*path, key), hint=hint))
            return
        if baked and self._baked_id == "memory-id" and owner is None:
            self._refuse((*path, next(key for key in _IDS if key in said)), f"memoryId: {{value: {baked}}}")
            return
        self._set_kind(memory, "window")
        kept = next((entry.value for entry in memory.entries if _plain(entry.key) in _IDS), None)
        for key in _IDS:
            self._remove(memory, key)
            if owner is not None:
                self._remove(owner, key)  # it was not read so far, and would be from now on
        if owner is not None and baked and self._baked_id == "memory-id":
            self._put(owner, "memoryId", kept or Scalar(baked))

    def _manual(self, memory: Collection, path: Path, owner: Collection | None) -> None:
        messages = _value(memory, "messages")
        if owner is None and isinstance(messages, Collection) and messages.entries:
            self._refuse((*path, "messages"), "previousMessages: {value: [...]}")
            return
        self._set_kind(memory, "off")
        self._remove(memory, "messages")
        if owner is not None:
            for key in _HISTORIES:
                self._remove(owner, key)
            self._put(owner, "previousMessages", messages or Collection(True, True, ""))

    def _refuse(self, path: Path, instead: str) -> None:
        """What belongs to the blocks that link an agent, wherever they are."""
        message = f"`{path[-1]}` belongs to the blocks that link the agent"
        hint = f"write `{instead}` into each of them, and take it out here"
        self.problems.append(self._source.problem(message, path, key=True, hint=hint))

    # ------------------------------------------------------------ changing the tree

    def _set_kind(self, memory: Collection, kind: str) -> None:
        self.changes += 1
        value = _value(memory, "kind")
        if isinstance(value, Scalar):
            value.text = kind

    def _put(self, mapping: Collection, key: str, value: Node) -> None:
        mapping.flow = False
        mapping.entries.append(Entry([], key, Collection(False, False, "", entries=[Entry([], "value", value)])))

    def _remove(self, mapping: Collection, key: str) -> None:
        before = len(mapping.entries)
        mapping.entries[:] = [entry for entry in mapping.entries if _plain(entry.key) != key]
        self.changes += before - len(mapping.entries)


def _types(data: Json) -> Iterator[tuple[str, str]]:
    """The types of the processors of a file, by their names."""
    processors = data.get("processors") if isinstance(data, dict) else None
    for processor in processors if isinstance(processors, list) else ():
        if isinstance(processor, dict):
            yield str(processor.get("name")), str(processor.get("type"))


def _children(node: Node, data: Json, path: Path) -> Iterator[tuple[Node, Json, Path]]:
    """What stands in a collection, each with what it says."""
    if not isinstance(node, Collection):
        return
    for at, entry in enumerate(node.entries):
        if node.is_list and isinstance(data, list) and at < len(data):
            yield entry.value, data[at], (*path, at)
        elif not node.is_list and isinstance(data, dict) and _plain(entry.key) in data:
            yield entry.value, data[_plain(entry.key)], (*path, _plain(entry.key))


def _value(node: Node, key: str) -> Node | None:
    entries = node.entries if isinstance(node, Collection) and not node.is_list else []
    return next((entry.value for entry in entries if _plain(entry.key) == key), None)


def _plain(key: str | None) -> str:
    return (key or "").strip("'\"")
