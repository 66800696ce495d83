"""Change one mapping of a YAML file; every line outside of it stays as it is, and so do the comments in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import yaml

from octo.config import document, parser
from octo.config.document import Path
from octo.errors import ConfigError, Location, Problem
from octo.layout import nodes, printer
from octo.layout.lay_out import comments, same
from octo.layout.nodes import Collection, NotKept, Scalar, Tree
from octo.values import Json

REMOVED: Final = object()
"""Stands for a key that is taken out."""


@dataclass(frozen=True, slots=True)
class Part:
    """A mapping in the text of a file."""

    text: str
    """Of the file, with `\\n` as line break."""
    start: int
    end: int
    column: int

    def own_text(self) -> str:
        """The mapping alone, as if it stood at the left margin."""
        lines = self.text[self.start : self.end].split("\n")
        rest = (line[self.column :] if not line[: self.column].strip() else line for line in lines[1:])
        return "\n".join([lines[0], *rest]) + "\n"

    def replaced(self, lines: str) -> str:
        """The text of the file with other lines in the place of the mapping."""
        first, *rest = lines.rstrip("\n").split("\n")
        pad = " " * self.column
        moved = "\n".join([first, *(pad + line if line else "" for line in rest)])
        return self.text[: self.start] + moved + self.text[self.end :]


def change(
    content: bytes, file: str, path: Path, keys: Mapping[str, object], dump: Callable[[Json], str]
) -> tuple[bytes, str, int]:
    """The content with some keys of a mapping set, or taken out if they are `REMOVED`.

    A new key stands where the first of those stood that are changed; the order of new keys is that of `keys`. Gives
    the content, the lines of the mapping alone, and how many comments went with what was taken out. Raises ConfigError
    for what cannot be changed without changing something else. `dump` writes a value as YAML.
    """
    written = {key: value if value is REMOVED else dump({key: value}) for key, value in keys.items()}
    before = document.parse(content, file, what="file").data
    text, restored = _plain(content)
    try:
        part = _find(text, path)
        tree = _tree(part.own_text())
        _set(tree.root, written)
        lines = printer.text(tree)
        result = part.replaced(lines)
        lost = _comments(text) - _comments(result)
        after = document.parse(result.encode("utf-8"), file, what="file").data
    except (NotKept, yaml.YAMLError, ConfigError):
        raise _left_alone(file, text, path) from None
    wanted = {
        key: text if text is REMOVED else document.parse(str(text), file).data[key] for key, text in written.items()
    }
    if not same(after, _changed(before, path, wanted)):
        raise _left_alone(file, text, path)
    return restored(result), lines, lost.total()


def put(content: bytes, file: str, path: Path, value: str) -> bytes:
    """The content with another text in the place of a text, or of a mapping in braces. Raises ConfigError."""
    before = document.parse(content, file, what="file").data
    text, restored = _plain(content)
    try:
        node = _node(text, path)
        if not isinstance(node, yaml.ScalarNode) and not getattr(node, "flow_style", False):
            raise NotKept
        result = text[: node.start_mark.index] + value + text[node.end_mark.index :]
        after = document.parse(result.encode("utf-8"), file, what="file").data
    except (NotKept, yaml.YAMLError, ConfigError):
        raise _left_alone(file, text, path) from None
    if not same(after, _changed(before, path[:-1], {str(path[-1]): value})):
        raise _left_alone(file, text, path)
    return restored(result)


def in_braces(content: bytes, path: Path) -> bool:
    """Whether a mapping or a list is written in brackets."""
    return bool(getattr(_node(_plain(content)[0], path), "flow_style", False))


def _plain(content: bytes) -> tuple[str, Callable[[str], bytes]]:
    """The text with `\\n` as line break, and what writes such a text as the content is written."""
    text = content.decode("utf-8")
    newline = "\r\n" if "\r\n" in text else "\n"
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    plain = text.removeprefix(mark).replace("\r\n", "\n").replace("\r", "\n")
    return plain, lambda changed: (mark + changed.replace("\n", newline)).encode("utf-8")


def _left_alone(file: str, text: str, path: Path) -> ConfigError:
    """The error of what cannot be changed, at the innermost thing around it that can be found."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert root is not None
    around = [root]
    for step in path:
        try:
            around.append(_below(around[-1], step))
        except NotKept:
            break
    message = "this cannot be changed without changing something else"
    if any(getattr(one, "flow_style", False) for one in around[:-1]):
        message = "this stands between brackets, where nothing of several lines can stand"
    mark = around[-1].start_mark
    place = Location(file, mark.line + 1, mark.column + 1)
    return ConfigError([Problem(message, place, "it has been left as it is; change it by hand")])


def _find(text: str, path: Path) -> Part:
    """The mapping at a path. Raises NotKept."""
    node = _node(text, path)
    if not isinstance(node, yaml.MappingNode) or node.start_mark.index == node.end_mark.index:
        raise NotKept
    start, end = node.start_mark.index, node.end_mark.index
    if not node.flow_style:
        end = start + len(_without_what_follows(text[start:end]))
    return Part(text, start, end, node.start_mark.column)


def _node(text: str, path: Path) -> yaml.Node:
    """What stands at a path. Raises NotKept for what is shared with another place."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    assert node is not None
    for step in path:
        inner = _below(node, step)
        if inner.start_mark.index < node.start_mark.index or inner.end_mark.index > node.end_mark.index:
            raise NotKept
        node = inner
    return node


def _below(node: yaml.Node, step: str | int) -> yaml.Node:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        found: yaml.Node = node.value[step]
        return found
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == step:
                inner: yaml.Node = value
                return inner
    raise NotKept


def _without_what_follows(text: str) -> str:
    """A block of YAML without the blank lines and comments behind it."""
    lines = text.split("\n")
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    return "\n".join(lines)


def _tree(text: str) -> Tree:
    tree = nodes.read(text, parser.events(text))
    if tree is None:
        raise NotKept
    return tree


def _comments(text: str) -> Counter[str]:
    tree = nodes.read(text, parser.events(text))
    return comments(tree) if tree else Counter()


def _set(mapping: Collection, keys: Mapping[str, object]) -> None:
    """Set keys in a tree, each to what its YAML says; those that are there keep the comments above them."""
    mapping.flow = False
    at = next((index for index, entry in enumerate(mapping.entries) if entry.key in keys), len(mapping.entries))
    new = [entry for text in keys.values() if text is not REMOVED for entry in _tree(str(text)).root.entries]
    old = {entry.key: entry for entry in mapping.entries}
    if new and at < len(mapping.entries):
        new[0].before = mapping.entries[at].before
    for entry in new:
        before = old.get(entry.key)
        if before is not None:
            entry.before = before.before
            if isinstance(entry.value, Scalar) and isinstance(before.value, Scalar) and "\n" not in entry.value.text:
                entry.value.comment = before.value.comment
    kept = [entry for entry in mapping.entries if entry.key not in keys]
    mapping.entries[:] = [*kept[:at], *new, *kept[at:]]


def _changed(data: Json, path: Path, keys: Mapping[str, object]) -> Json:
    """What the file must say afterwards."""
    if not path:
        kept = {key: value for key, value in data.items() if key not in keys}
        return kept | {key: value for key, value in keys.items() if value is not REMOVED}
    step, *rest = path
    inner = _changed(data[step], tuple(rest), keys)
    if isinstance(data, list):
        return [inner if index == step else item for index, item in enumerate(data)]
    return {key: inner if key == step else item for key, item in data.items()}
