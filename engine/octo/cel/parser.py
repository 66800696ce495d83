"""From tokens to the syntax tree. Macros are recognized here; names are resolved later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
    children,
)
from octo.cel.lexer import Token, tokenize
from octo.cel.values import INT_MAX
from octo.errors import ExpressionError

NESTING_MAX = 200

_STRENGTH: Mapping[str, int] = {
    "?": 1,
    "||": 2,
    "&&": 3,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), 4),
    **dict.fromkeys("+-", 5),
    **dict.fromkeys("*/%", 6),
}
_RESERVED = frozenset(
    {"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop"}
    | {"package", "namespace", "return", "var", "void", "while"}
)
_CONSTANTS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}

_ONE_VARIABLE: Mapping[str, tuple[int, ...]] = {
    "all": (2,),
    "exists": (2,),
    "exists_one": (2,),
    "existsOne": (2,),
    "filter": (2,),
    "map": (2, 3),
    "sortBy": (2,),
    "optMap": (2,),
    "optFlatMap": (2,),
}
_TWO_VARIABLES: Mapping[str, tuple[int, ...]] = {
    "all": (3,),
    "exists": (3,),
    "exists_one": (3,),
    "existsOne": (3,),
    "transformList": (3, 4),
    "transformMap": (3, 4),
    "transformMapEntry": (3, 4),
}
MACROS = frozenset({*_ONE_VARIABLE, *_TWO_VARIABLES, "has"})


def parse(source: str) -> Node:
    """The tree of an expression. Raises ExpressionError for text that is none."""
    parser = _Parser(source)
    tree = parser.expression()
    parser.expect("end")
    parser.refuse_depth(tree)
    return tree


class _Parser:
    """Recursive descent over the tokens of one source, by the binding strength of operators."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = tokenize(source)
        self.place = 0
        self.depth = 0

    # Tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    def take(self) -> Token:
        token = self.tokens[self.place]
        self.place += 1
        return token

    def accept(self, kind: str) -> bool:
        if self.tokens[self.place].kind == kind:
            self.place += 1
            return True
        return False

    def expect(self, kind: str) -> Token:
        token = self.token
        if token.kind == kind:
            return self.take()
        if kind == "end":
            raise self.error(f"unexpected {token}", token)
        raise self.error(f"expected `{kind}`, found {token}", token)

    def error(self, message: str, at: Token | Node, hint: str | None = None) -> ExpressionError:
        return ExpressionError(message, source=self.source, column=at.column, length=at.length, hint=hint)

    # Operators

    def expression(self, strength: int = 0) -> Node:
        """An expression whose operators bind more strongly than `strength`."""
        self.depth += 1
        if self.depth > NESTING_MAX:
            raise self.too_deep(self.token)
        left = self.operand()
        while (own := _STRENGTH.get(self.token.kind, 0)) > strength:
            operator = self.take()
            if operator.kind == "?":
                yes = self.expression(1)
                self.expect(":")
                left = Condition(left, yes, self.expression(), operator.column, 1)
            elif own <= 3:
                left = self.logic(operator, left, own)
            else:
                left = Binary(operator.kind, left, self.expression(own), operator.column, operator.length)
        self.depth -= 1
        return left

    def logic(self, operator: Token, first: Node, strength: int) -> Node:
        """One node for the whole of `a && b && c`, however long."""
        operands = [first, self.expression(strength)]
        while self.accept(operator.kind):
            operands.append(self.expression(strength))
        return Logic(operator.kind, tuple(operands), operator.column, operator.length)

    def operand(self) -> Node:
        """Signs before a value, the value, and the selections, indexes and calls behind it."""
        signs: list[Token] = []
        while self.token.kind in ("!", "-"):
            signs.append(self.take())
        if signs and signs[-1].kind == "-" and type(self.token.value) in (int, float):
            node = self.negative(signs.pop())
        else:
            node = self.primary()
        while True:
            if self.accept("."):
                selected = self.member(node)
                called = not selected.optional and self.tokens[self.place - 1].kind == "name" and self.accept("(")
                node = self.method(selected, self.arguments()) if called else selected
            elif self.token.kind == "[":
                node = self.index(node)
            else:
                break
        for sign in reversed(signs):
            node = Unary(sign.kind, node, sign.column, 1)
        return node

    def negative(self, sign: Token) -> Node:
        """The smallest integer has no positive twin, so the sign belongs to the literal."""
        token = self.take()
        length = token.column + token.length - sign.column
        if type(token.value) is int and token.value > INT_MAX + 1:
            raise self.error("integer out of range", token)
        return Literal(-token.value, sign.column, length)

    # Values

    def primary(self) -> Node:
        token = self.take()
        match token.kind:
            case "literal":
                if type(token.value) is int and token.value > INT_MAX:
                    raise self.error("integer out of range", token)
                return Literal(token.value, token.column, token.length)
            case "name" if token.text in _CONSTANTS:
                return Literal(_CONSTANTS[token.text], token.column, token.length)
            case "name" | ".":
                named = self.name(token)
                return self.function(named, self.arguments()) if self.accept("(") else named
            case "(":
                inner = self.expression()
                self.expect(")")
                return inner
            case "[":
                return self.list(token)
            case "{":
                return self.map(token)
        raise self.error(f"unexpected {token}", token)

    def name(self, token: Token) -> Name:
        absolute = token.kind == "."
        if absolute:
            token = self.expect("name")
        if token.text in _RESERVED:
            raise self.error(f"`{token.text}` is a reserved word", token)
        return Name(token.text, absolute, token.column, token.length)

    def function(self, named: Name, arguments: tuple[Node, ...]) -> Node:
        if named.name == "has":
            return self.has(named, arguments)
        return Call(named.name, None, arguments, named.column, named.length)

    def list(self, opening: Token) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        while not self.accept("]"):
            if self.accept("?"):
                optional.add(len(elements))
            elements.append(self.expression())
            self.separate("]")
        return ListOf(tuple(elements), frozenset(optional), opening.column, 1)

    def map(self, opening: Token) -> Node:
        keys: list[Node] = []
        values: list[Node] = []
        optional: set[int] = set()
        while not self.accept("}"):
            if self.accept("?"):
                optional.add(len(keys))
            keys.append(self.expression())
            self.expect(":")
            values.append(self.expression())
            self.separate("}")
        return MapOf(tuple(keys), tuple(values), frozenset(optional), opening.column, 1)

    def separate(self, closing: str) -> None:
        if not self.accept(",") and self.token.kind != closing:
            raise self.error(f"expected `,` or `{closing}`, found {self.token}", self.token)

    def arguments(self) -> tuple[Node, ...]:
        """Arguments up to the closing parenthesis; the opening one is taken."""
        if self.accept(")"):
            return ()
        arguments = [self.expression()]
        while self.accept(","):
            arguments.append(self.expression())
        if self.token.kind != ")":
            raise self.error(f"expected `,` or `)`, found {self.token}", self.token)
        self.place += 1
        return tuple(arguments)

    def member(self, operand: Node) -> Select:
        optional = self.accept("?")
        token = self.take()
        if token.kind == "quoted" or (token.kind == "name" and token.text not in _CONSTANTS):
            return Select(operand, token.value, optional, token.column, token.length)
        raise self.error(f"expected a name after `.`, found {token}", token)

    def index(self, operand: Node) -> Node:
        self.expect("[")
        optional = self.accept("?")
        start = self.token
        key = self.expression()
        end = self.expect("]")
        return Index(operand, key, optional, start.column, end.column - start.column)

    # Macros

    def has(self, named: Name, arguments: tuple[Node, ...]) -> Node:
        match arguments:
            case (Select(operand, field, _, column, length),):
                return Has(operand, field, column, length)
            case (argument,):
                raise self.error("`has` needs a field selection, as in `has(body.name)`", argument)
        raise self.error(f"`has` takes 1 argument, got {len(arguments)}", named)

    def method(self, selected: Select, arguments: tuple[Node, ...]) -> Node:
        """What was read as the selection of a field turns out to be called: a macro or a function."""
        name, count = selected.field, len(arguments)
        if name not in MACROS:
            return Call(name, selected.operand, arguments, selected.column, selected.length)
        if count in _ONE_VARIABLE.get(name, ()):
            return self.comprehension(selected, arguments, variables=1)
        if count in _TWO_VARIABLES.get(name, ()):
            return self.comprehension(selected, arguments, variables=2)
        if name == "has":
            raise self.error("`has` is written `has(body.name)`", selected)
        counts = sorted({*_ONE_VARIABLE.get(name, ()), *_TWO_VARIABLES.get(name, ())})
        raise self.error(f"`{name}` takes {' or '.join(map(str, counts))} arguments, got {count}", selected)

    def comprehension(self, selected: Select, arguments: tuple[Node, ...], *, variables: int) -> Node:
        names: list[str] = []
        for argument in arguments[:variables]:
            if not isinstance(argument, Name) or argument.absolute or argument.name in names:
                found = "a second name for" if isinstance(argument, Name) else "a name for"
                raise self.error(f"`{selected.field}` needs {found} its variable here", argument)
            names.append(argument.name)
        *conditions, result = arguments[variables:]
        return Comprehension(
            selected.field,
            selected.operand,
            tuple(names),
            conditions[0] if conditions else None,
            result,
            selected.column,
            selected.length,
        )

    # Depth

    def refuse_depth(self, tree: Node) -> None:
        """Selections, calls and conditions nest without brackets; what is compiled from them nests as deep."""
        if len(self.tokens) <= NESTING_MAX:
            return
        level: list[Node] = [tree]
        for _ in range(NESTING_MAX + 1):
            level = [child for node in level for child in _below(node)]
            if not level:
                return
        raise self.too_deep(level[0])

    def too_deep(self, at: Token | Node) -> ExpressionError:
        return self.error(f"expression is nested more than {NESTING_MAX} levels deep", at)


def _below(node: Node) -> Iterator[Node]:
    """The nodes one level down; the operands of `a + b - c` are all on one level."""
    if isinstance(node, Binary):
        links = chain(node)
        yield links[0].left
        yield from (link.right for link in links)
    else:
        yield from children(node)
