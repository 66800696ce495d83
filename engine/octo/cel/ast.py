"""The syntax tree of an expression. `column` counts from 1, `length` is what a caret marks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from octo.cel.values import Value


class Literal(NamedTuple):
    value: Value
    column: int
    length: int


class Name(NamedTuple):
    """A variable, or the name of a kind."""

    name: str
    absolute: bool
    """Written with a leading dot: variables of comprehensions do not hide it."""
    column: int
    length: int


class Select(NamedTuple):
    """`operand.field` and `operand.?field`."""

    operand: Node
    field: str
    optional: bool
    column: int
    length: int


class Has(NamedTuple):
    """`has(operand.field)`."""

    operand: Node
    field: str
    column: int
    length: int


class Index(NamedTuple):
    """`operand[key]` and `operand[?key]`."""

    operand: Node
    key: Node
    optional: bool
    column: int
    length: int


class ListOf(NamedTuple):
    """`[a, ?b]`; the numbers of the optional elements stand in `optional`."""

    elements: tuple[Node, ...]
    optional: frozenset[int]
    column: int
    length: int


class MapOf(NamedTuple):
    """`{k: v, ?k: v}`; the numbers of the optional entries stand in `optional`."""

    keys: tuple[Node, ...]
    values: tuple[Node, ...]
    optional: frozenset[int]
    column: int
    length: int


class Unary(NamedTuple):
    """`!a` and `-a`."""

    operator: str
    operand: Node
    column: int
    length: int


class Binary(NamedTuple):
    operator: str
    left: Node
    right: Node
    column: int
    length: int


class Logic(NamedTuple):
    """`a && b && c`, `a || b || c`."""

    operator: str
    operands: tuple[Node, ...]
    column: int
    length: int


class Condition(NamedTuple):
    """`condition ? yes : no`."""

    condition: Node
    yes: Node
    no: Node
    column: int
    length: int


class Call(NamedTuple):
    """`name(arguments)`, `target.name(arguments)`."""

    name: str
    target: Node | None
    arguments: tuple[Node, ...]
    column: int
    length: int


class Comprehension(NamedTuple):
    """A macro that evaluates expressions once per element: `operand.macro(variables, filter?, result)`."""

    macro: str
    operand: Node
    variables: tuple[str, ...]
    filter: Node | None
    result: Node
    column: int
    length: int


Node: TypeAlias = (
    Literal | Name | Select | Has | Index | ListOf | MapOf | Unary | Binary | Logic | Condition | Call | Comprehension
)


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below a node."""
    for part in node:
        if isinstance(part, _NODES):
            yield part
        elif type(part) is tuple:
            yield from (item for item in part if isinstance(item, _NODES))


_NODES = (
    Literal,
    Name,
    Select,
    Has,
    Index,
    ListOf,
    MapOf,
    Unary,
    Binary,
    Logic,
    Condition,
    Call,
    Comprehension,
)


def chain(node: Binary) -> list[Binary]:
    """The operators of `a + b - c`, which stand side by side; the first one is the innermost."""
    links = [node]
    while isinstance(node.left, Binary):
        node = node.left
        links.append(node)
    return links[::-1]


def dotted(node: Node) -> str | None:
    """`a.b.c` as one text, if the node is nothing but names joined by dots."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Select) and not node.optional:
        head = dotted(node.operand)
        return head and f"{head}.{node.field}"
    return None


def root(node: Node) -> Node:
    """The node that a chain of selections starts from."""
    while isinstance(node, Select):
        node = node.operand
    return node


def is_part_of(node: Node, names: frozenset[str]) -> bool:
    """Whether the value, if it is a list or a map, is certainly one that stands in a variable of these names."""
    match node:
        case Literal() | ListOf(elements=()) | MapOf(keys=()):
            return True
        case Name():
            return node.name in names
        case Select() | Index():
            return is_part_of(node.operand, names)
        case Condition():
            return is_part_of(node.yes, names) and is_part_of(node.no, names)
        case Call("orValue", optional, (default,)) if optional is not None:
            return is_part_of(optional, names) and is_part_of(default, names)
    return False
