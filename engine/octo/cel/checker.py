"""What can be told to be wrong before any value is there: names, functions, argument counts, kinds of literals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from octo.cel.ast import (
    Binary,
    Call,
    Comprehension,
    Condition,
    Has,
    Index,
    ListOf,
    Literal,
    Logic,
    MapOf,
    Name,
    Node,
    Select,
    Unary,
    chain,
    dotted,
    root,
)
from octo.cel.functions import Function, known, overloads, signature
from octo.cel.operators import BINARY
from octo.cel.parser import MACROS
from octo.cel.values import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    KIND_NAMES,
    LIST,
    MAP,
    NULL,
    OPTIONAL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Duration,
    Failure,
    Kind,
    Timestamp,
    UInt,
    Value,
    kind_of,
)
from octo.errors import ExpressionError, did_you_mean, missing_extra, near

_NUMERIC = frozenset({INT, UINT, DOUBLE})
_SAMPLES: Mapping[Kind, Value] = {
    BOOL: True,
    INT: 1,
    UINT: UInt(1),
    DOUBLE: 1.0,
    STRING: "",
    BYTES: b"",
    LIST: [],
    MAP: {},
    TIMESTAMP: Timestamp(0),
    DURATION: Duration(0),
}
"""One value of each kind: an operator joins two kinds if it joins their samples."""


def check(tree: Node, source: str, names: Iterable[str]) -> frozenset[str]:
    """Refuse what cannot be right; returns which of the names the expression reads."""
    checker = _Checker(source, frozenset(names))
    checker.kind(tree)
    return frozenset(checker.read)


def resolve(call: Call, scope: Iterable[str]) -> tuple[str, tuple[Node, ...]]:
    """The full name of the function that is called, and all its arguments.

    `math.abs(x)` is a function called `math.abs`, unless a variable of that name is in scope; `x.size()` is the
    method `.size` with `x` as its first argument.
    """
    if call.target is None:
        return call.name, call.arguments
    head = root(call.target)
    space = dotted(call.target)
    if space is not None and isinstance(head, Name) and (head.absolute or head.name not in scope):
        name = f"{space}.{call.name}"
        if overloads(name):
            return name, call.arguments
    return f".{call.name}", (call.target, *call.arguments)


class _Checker:
    """One walk over a tree. A kind of None means that it shows only in the evaluation."""

    def __init__(self, source: str, names: frozenset[str]) -> None:
        self.source = source
        self.names = names
        self.read: set[str] = set()
        self.scope: list[str] = []

    def error(self, message: str, at: Node, hint: str | None = None) -> ExpressionError:
        return ExpressionError(message, source=self.source, column=at.column, length=at.length, hint=hint)

    def kind(self, node: Node) -> Kind | None:
        match node:
            case Literal():
                return kind_of(node.value)
            case Name():
                return self.name(node)
            case Select():
                return self.select(node)
            case Has():
                self.container(node.operand, node)
                return BOOL
            case Index():
                return self.index(node)
            case ListOf():
                for number, element in enumerate(node.elements):
                    self.entry(element, optional=number in node.optional)
                return LIST
            case MapOf():
                return self.map(node)
            case Unary():
                return self.unary(node)
            case Binary():
                return self.binary(node)
            case Logic():
                for operand in node.operands:
                    self.bool(operand, f"`{node.operator}` needs bools on both sides")
                return BOOL
            case Condition():
                self.bool(node.condition, "the condition before `?` must be a bool")
                yes, no = self.kind(node.yes), self.kind(node.no)
                return yes if yes is no else None
            case Call():
                return self.call(node)
            case Comprehension():
                return self.comprehension(node)

    def name(self, node: Name) -> Kind | None:
        if node.name in self.scope and not node.absolute:
            return None
        if node.name in self.names:
            self.read.add(node.name)
            return None
        if node.name in KIND_NAMES:
            return TYPE
        raise self.error(f"undeclared reference to '{node.name}'", node, self.name_hint(node.name))

    def name_hint(self, name: str) -> str:
        match = near(name, [*self.scope, *self.names])
        if match is not None:
            return f"did you mean `{match}`?"
        quoted = f'text stands in quotes: `"{name}"`'
        if not self.names:
            return quoted
        return f"{did_you_mean(name, sorted(self.names))}; {quoted}"

    def select(self, node: Select) -> Kind | None:
        name = dotted(node)
        if name in KIND_NAMES and isinstance(head := root(node), Name) and head.name not in self.scope:
            return TYPE
        self.container(node.operand, node)
        return OPTIONAL if node.optional else None

    def container(self, operand: Node, at: Select | Has) -> None:
        kind = self.kind(operand)
        if kind is not None and kind not in (MAP, OPTIONAL, NULL):
            raise self.error(f"no such key: {at.field}", at, f"a value of kind `{kind.name}` has no fields")

    def index(self, node: Index) -> Kind | None:
        kind, key = self.kind(node.operand), self.kind(node.key)
        if kind is not None and kind not in (MAP, LIST, OPTIONAL, NULL):
            hint = "a character is read by `charAt`, a part by `substring`" if kind is STRING else None
            raise self.error(f"no such overload: {kind.name}[{key.name if key else 'dyn'}]", node, hint)
        if kind is LIST and key is not None and key not in _NUMERIC:
            raise self.error(f"no such overload: list[{key.name}]", node)
        return OPTIONAL if node.optional else None

    def map(self, node: MapOf) -> Kind:
        for number, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
            kind = self.kind(key)
            if kind is not None and kind not in (STRING, INT, UINT, BOOL):
                raise self.error(f"a value of kind `{kind.name}` cannot be the key of a map", key)
            self.entry(value, optional=number in node.optional)
        return MAP

    def entry(self, node: Node, *, optional: bool) -> None:
        kind = self.kind(node)
        if optional and kind not in (None, OPTIONAL):
            raise self.error("an entry marked with `?` must be an optional value", node)

    def bool(self, node: Node, message: str) -> None:
        kind = self.kind(node)
        if kind is not None and kind is not BOOL:
            raise self.error(f"{message}, got {kind.name}", node)

    def unary(self, node: Unary) -> Kind | None:
        kind = self.kind(node.operand)
        if kind is None:
            return None if node.operator == "-" else BOOL
        if node.operator == "!":
            if kind is not BOOL:
                raise self.error(f"no such overload: !{kind.name}", node)
            return BOOL
        if kind not in (INT, DOUBLE):
            raise self.error(f"no such overload: -{kind.name}", node)
        return kind

    def binary(self, node: Binary) -> Kind | None:
        links = chain(node)
        kind = self.kind(links[0].left)
        for link in links:
            kind = self.operator(link, kind, self.kind(link.right))
        return kind

    def operator(self, node: Binary, left: Kind | None, right: Kind | None) -> Kind | None:
        if node.operator in ("==", "!="):
            if left is None or right is None or left is right or NULL in (left, right):
                return BOOL
            if left in _NUMERIC and right in _NUMERIC:
                return BOOL
            raise self.error(f"no such overload: {left.name} {node.operator} {right.name}", node)
        if left is None or right is None:
            return self.half_known(node, left, right)
        return self.joined(node, left, right)

    def half_known(self, node: Binary, left: Kind | None, right: Kind | None) -> Kind | None:
        """One side is open: still wrong if no kind at all could stand there."""
        if node.operator == "in" and right is not None and right not in (LIST, MAP):
            raise self.error(f"no such overload: dyn in {right.name}", node)
        if node.operator in ("<", "<=", ">", ">=", "in"):
            return BOOL
        return None

    def joined(self, node: Binary, left: Kind, right: Kind) -> Kind | None:
        if left not in _SAMPLES or right not in _SAMPLES:
            raise self.error(f"no such overload: {left.name} {node.operator} {right.name}", node)
        try:
            return kind_of(BINARY[node.operator](_SAMPLES[left], _SAMPLES[right]))
        except Failure as failure:
            raise self.error(failure.message, node) from None

    def call(self, node: Call) -> Kind | None:
        name, arguments = resolve(node, self.scope)
        candidates = overloads(name)
        if not candidates:
            raise self.unknown(node)
        kinds = [self.kind(argument) for argument in arguments]
        fitting = [candidate for candidate in candidates if candidate.takes(len(arguments))]
        if not fitting:
            raise self.error(_wrong_count(name, candidates, len(arguments)), node)
        fitting = [candidate for candidate in fitting if candidate.accepts(kinds)]
        if not fitting:
            raise self.error(f"no such overload: {signature(name, kinds)}", node)
        self.requirements(node.name, fitting, node)
        results = {candidate.result for candidate in fitting}
        return results.pop() if len(results) == 1 else None

    def requirements(self, name: str, functions: Sequence[Function], at: Node) -> None:
        """What functions need beyond their arguments: an extra that is installed, any of the variables."""
        for function in functions:
            if function.extra and (hint := missing_extra(*function.extra)):
                raise self.error(f"function `{name}` needs the package `{function.extra.package}`", at, hint)
            if function.reaches:
                self.read |= self.names

    def unknown(self, node: Call) -> ExpressionError:
        """No function has this name. If it hangs on an unknown variable, that is the error to tell."""
        space = dotted(node.target) if node.target is not None else None
        names = {name.removeprefix(".") for name in known()} | MACROS
        if node.target is not None:
            spaces = {name.partition(".")[0] for name in names if "." in name}
            if space not in spaces or space in self.scope or space in self.names:
                self.kind(node.target)
                space = None
        name = f"{space}.{node.name}" if space else node.name
        return self.error(f"undeclared reference to function '{name}'", node, self.function_hint(name, names))

    def function_hint(self, name: str, names: Iterable[str]) -> str | None:
        if name in names:
            method = f".{name}" in known() or name in MACROS
            return f"it is called behind its value: `x.{name}()`" if method else f"it is called `{name}(x)`"
        match = near(name, names)
        return f"did you mean `{match}`?" if match else None

    def comprehension(self, node: Comprehension) -> Kind | None:
        kind = self.kind(node.operand)
        optional = node.macro in ("optMap", "optFlatMap")
        allowed = (OPTIONAL,) if optional else (LIST,) if node.macro == "sortBy" else (LIST, MAP)
        if kind is not None and kind not in allowed:
            raise self.error(f"no such overload: {kind.name}.{node.macro}()", node)
        self.scope.extend(node.variables)
        if node.filter is not None:
            self.bool(node.filter, f"the condition of `{node.macro}` must be a bool")
        if node.macro in ("all", "exists", "exists_one", "existsOne", "filter"):
            self.bool(node.result, f"the condition of `{node.macro}` must be a bool")
        else:
            self.kind(node.result)
        del self.scope[-len(node.variables) :]
        if optional:
            return OPTIONAL
        if node.macro in ("transformMap", "transformMapEntry"):
            return MAP
        return LIST if node.macro in ("filter", "map", "sortBy", "transformList") else BOOL


def _wrong_count(name: str, candidates: Sequence[Function], count: int) -> str:
    """`substring` takes 1 or 2 arguments, got 3. The value before the dot is not counted."""
    before = 1 if name.startswith(".") else 0
    lowest = min(candidate.required for candidate in candidates) - before
    highest = max(len(candidate.parameters) for candidate in candidates) - before
    if any(candidate.rest is not None for candidate in candidates):
        expected = f"at least {max(lowest, 1)}"
    else:
        expected = str(lowest) if lowest == highest else f"{lowest} to {highest}"
    noun = "argument" if expected in ("1", "at least 1") else "arguments"
    return f"`{name.removeprefix('.')}` takes {expected} {noun}, got {count - before}"
