"""A tree of YAML as text: one key or item on a line, two spaces a level, comments beside what they are about."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from octo.layout.nodes import Collection, Entry, Node, Scalar, Tree

_WIDTH: Final = 80
"""A list in brackets that is longer is written with one item on a line."""
_HEADER: Final = re.compile(r"((?:[&!]\S*\s+)*)([|>])([^\n]*)\n?")
"""The first line of a text under `|` or `>`: anchor and tag, the sign, and what may follow."""


def text(tree: Tree) -> str:
    """The whole text, with `\\n` as line break."""
    rows = [tree.before.rstrip()] if tree.before else []
    rows += _root(tree.root)
    if tree.after.strip():
        rows.append(tree.after.strip("\n"))
    return "".join(f"{row}\n" for row in rows)


def _root(root: Collection) -> list[str]:
    if _stays_inline(root):
        return [*root.tail, _inline(root) + root.comment]
    opened = root.properties + root.comment if root.properties else root.comment.strip()
    return ([opened] if opened else []) + _body(root, 0)


def _body(collection: Collection, indent: int, *, behind_dash: bool = False) -> list[str]:
    """The lines of a collection, each entry at the indent.

    What stands above the first entry is left out when that entry goes behind a dash: it stands above the dash.
    """
    rows: list[str] = []
    for number, entry in enumerate(collection.entries):
        if number or not behind_dash:
            close = number == 0 or _ends_open(collection.entries[number - 1].value)
            rows += _indented(_spaced(_above(entry), close=close), indent)
        rows += _member(entry.key, entry.value, indent) if entry.key is not None else _item(entry.value, indent)
    return rows + _indented(_trimmed(_spaced(collection.tail)), indent)


def _ends_open(value: Node) -> bool:
    """Whether blank lines behind a value would become part of it."""
    while isinstance(value, Collection) and value.entries and not value.tail:
        value = value.entries[-1].value
    header = _HEADER.match(value.text) if isinstance(value, Scalar) else None
    return header is not None and "+" in header[3].partition("#")[0]


def _above(entry: Entry) -> list[str]:
    """The comments above an entry."""
    if entry.key is not None and isinstance(entry.value, Collection) and _stays_inline(entry.value):
        return entry.before + entry.value.tail
    return entry.before if entry.key is not None else entry.before + _above_dash(entry.value)


def _above_dash(value: Node) -> list[str]:
    """The comments in front of what stands behind a dash."""
    if isinstance(value, Scalar) or (value.properties and not _stays_inline(value)):
        return []
    if _stays_inline(value):
        return value.tail
    return [line for line in (value.comment.strip(), *_above(value.entries[0])) if line]


def _member(key: str, value: Node, indent: int) -> list[str]:
    head = " " * indent + key + (" :" if key.startswith("*") else ":")
    if isinstance(value, Scalar):
        first, *rest = _scalar(value, indent)
        return [head + first, *rest]
    if _stays_inline(value):
        return [f"{head} {_inline(value)}{value.comment}"]
    opened = f" {value.properties}" if value.properties else ""
    return [head + opened + value.comment, *_body(value, indent + 2)]


def _item(value: Node, indent: int) -> list[str]:
    dash = " " * indent + "-"
    if isinstance(value, Scalar):
        first, *rest = _scalar(value, indent)
        return [dash + first, *rest]
    if _stays_inline(value):
        return [f"{dash} {_inline(value)}{value.comment}"]
    if value.properties:
        return [f"{dash} {value.properties}{value.comment}", *_body(value, indent + 2)]
    first, *rest = _body(value, indent + 2, behind_dash=True)
    return [f"{dash} {first.lstrip(' ')}", *rest]


def _indented(lines: list[str], indent: int) -> list[str]:
    return [" " * indent + line if line else "" for line in lines]


# ---------------------------------------------------------------- scalars and brackets


def _scalar(value: Scalar, indent: int) -> list[str]:
    """The lines of a scalar; the first one, with a space before it, goes behind its key or dash."""
    header = _HEADER.match(value.text)
    if header is not None:
        return _literal(value, header, indent)
    first, *rest = value.text.split("\n")
    pad = " " * (indent + 2)
    rows = [f" {first}" if first else "", *(pad + line.lstrip(" \t") if line.strip() else "" for line in rest)]
    rows[-1] += value.comment
    return rows


def _literal(value: Scalar, header: re.Match[str], indent: int) -> list[str]:
    """A text under `|` or `>`, moved as a whole."""
    options = header[3]
    lines = value.text[header.end() :].split("\n")
    if lines and not lines[-1]:
        lines.pop()
    marks = options.partition("#")[0]
    if not value.text.endswith("\n") and "-" not in marks:  # the file ends without a line break: so must the text
        options = "-" + options.replace("+", "", "+" in marks)
        marks = options.partition("#")[0]
    digit = re.search(r"\d", marks)
    if digit:
        depth = max(value.column, 0) + int(digit[0])
        options = options.replace(digit[0], "2", 1)
    else:
        depth = next((len(line) - len(line.lstrip(" ")) for line in lines if line.strip(" ")), 0)
    if "+" not in marks:
        while lines and len(lines[-1]) <= depth and not lines[-1].strip(" "):
            lines.pop()
    pad = " " * (indent + 2)
    return [
        f" {header[1]}{header[2]}{options}".rstrip(),
        *(pad + line[depth:] if line[depth:] else "" for line in lines),
    ]


def _stays_inline(collection: Collection) -> bool:
    """Whether a collection stays on the line of its key: an empty one, or a short list of scalars in brackets."""
    if not collection.entries:
        return True
    if not collection.flow or not collection.is_list or any(collection.tail):
        return False
    plain = all(
        isinstance(entry.value, Scalar)
        and not entry.value.comment
        and "\n" not in entry.value.text
        and not any(entry.before)
        for entry in collection.entries
    )
    return plain and len(_inline(collection)) <= _WIDTH


def _inline(collection: Collection) -> str:
    opened = f"{collection.properties} " if collection.properties else ""
    if not collection.is_list:
        return opened + "{}"
    items = [entry.value.text for entry in collection.entries if isinstance(entry.value, Scalar)]
    return f"{opened}[{', '.join(items)}]"


# ---------------------------------------------------------------- blank lines


def _spaced(lines: Iterable[str], *, close: bool = False) -> list[str]:
    """The lines with no two blank ones in a row; `close` to what is above, with none at the start."""
    rows: list[str] = []
    for line in lines:
        if line or (rows[-1] if rows else not close):
            rows.append(line)
    return rows


def _trimmed(rows: list[str]) -> list[str]:
    """The rows without blank ones at their ends."""
    start = next((index for index, row in enumerate(rows) if row), len(rows))
    end = next((index for index in range(len(rows), 0, -1) if rows[index - 1]), 0)
    return rows[start:end]
