"""The sandbox of Jinja2, with an end: what a template passes and makes is paid from the budget of an evaluation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import FunctionType
from typing import Any, Final

from jinja2 import Undefined, nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from octo.cel.frame import Frame
from octo.values import dumps, number_text

_BITS_MAX: Final = 100_000
"""The longest whole number that is made; longer ones cannot be printed, only computed without end."""
_PADDING: Final = frozenset({"batch", "center", "ljust", "rjust", "slice", "to_bytes", "truncate", "zfill"})
"""Filters and methods that add as much as a number says."""
_REPEATING: Final = frozenset({"expandtabs", "indent", "join", "tojson", "translate", "urlize", "wordwrap"})
"""Those that put an argument into what they make, again and again."""
_FORMATTING: Final = frozenset({"format", "format_map", "strftime"})
_PASSING: Final = frozenset(
    {
        *("abs", "attr", "count", "d", "default", "dictsort", "first", "float", "groupby", "int", "items", "last"),
        *("length", "list", "map", "max", "min", "random", "reject", "rejectattr", "reverse", "round", "select"),
        *("selectattr", "sort", "sum", "unique"),
    }
)
"""Filters that look at the elements of a list; all others may print the whole of it."""

_NUMBER: Final = re.compile(r"\d+")
_NUMBER_FROM_ARGUMENT: Final = re.compile(r"\{[^{}]*\{|%[^a-zA-Z%]*\*")

_budget: ContextVar[Frame] = ContextVar("octo.config.jinja_limits.budget")


@contextmanager
def paid_by(frame: Frame) -> Iterator[None]:
    """Let what is compiled and rendered inside spend the budget of an evaluation."""
    token = _budget.set(frame)
    try:
        yield
    finally:
        _budget.reset(token)


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Counts what every loop, macro and block passes, and refuses what would become too large before it is made.

    Works inside `paid_by`; raises Exceeded.
    """

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, finalize=_shown)
        self.filters = {name: _bounded(name, function) for name, function in self.filters.items()}
        self.tests["in"] = lambda value, container: value in _passed(container)
        del self.globals["lipsum"]  # gives as much text as one asks for
        self.step, self.passed, self.printed, self.made = _OWN

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        _Counting().visit(tree)
        return tree

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A key of a mapping where plain Jinja2 would find a method of the same name, such as `items`."""
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "%" and isinstance(left, str | bytes):
            _expect(_formatted(str(left), [right]))
        elif operator == "*":
            _expect_product(left, right)
        elif operator == "**" and isinstance(left, int) and isinstance(right, int):
            _expect_bits(left.bit_length() * abs(right))
        return _made(super().call_binop(context, operator, left, right))

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        if function.__class__ is FunctionType and function in _OWN:
            return function(*args)
        method = getattr(function, "__wrapped__", function)  # Jinja2 wraps `format` of texts
        owner = getattr(method, "__self__", None)
        if isinstance(owner, str | bytes | list | tuple | dict):
            name = getattr(method, "__name__", "")
            _passed(owner)
            if name == "join" and args:
                args = (_listed(args[0]), *args[1:])
                _foresee(name, args[0], [owner])
            else:
                _foresee(name, owner, [*args, *kwargs.values()])
        elif owner is not None and getattr(method, "__name__", "") in _FORMATTING | _PADDING:
            _foresee(method.__name__, "".join(arg for arg in args if isinstance(arg, str)), args)
        return _made(super().call(context, function, *args, **kwargs))


class _Counting(NodeTransformer):
    """Rewrites a template so that it calls the budget."""

    def generic_visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> nodes.Node:
        super().generic_visit(node, *args, **kwargs)
        match node:
            case nodes.Template() | nodes.For() | nodes.Macro() | nodes.CallBlock() | nodes.Block():
                size = sum(len(text.data) for part in node.body for text in _own_texts(part))
                cost = nodes.Const((_COSTS[type(node)], size))
                node.body.insert(0, nodes.ExprStmt(_call("step", cost)).set_lineno(node.lineno))
                if isinstance(node, nodes.For) and node.test is not None:
                    node.iter = _call("passed", node.iter)
            case nodes.Compare():
                for operand in node.ops:
                    if operand.op in ("in", "notin", "eq", "ne"):
                        operand.expr = _call("passed", operand.expr)
            case nodes.Getitem(arg=nodes.Slice()):
                node.node = _call("passed", node.node)
            case nodes.Concat():
                node.nodes = [_call("printed", part) for part in node.nodes]
                return _call("made", node)
        return node


_COSTS: Final = {nodes.For: 1, nodes.Macro: 10, nodes.CallBlock: 10, nodes.Block: 10, nodes.Template: 100}
"""The steps of one pass, by the time it takes."""


def _own_texts(node: nodes.Node) -> Iterator[nodes.TemplateData]:
    """The literal texts of a node that are not in the body of a further loop, macro or block."""
    if isinstance(node, nodes.TemplateData):
        yield node
    elif not isinstance(node, nodes.For | nodes.Macro | nodes.CallBlock | nodes.Block):
        for child in node.iter_child_nodes():
            yield from _own_texts(child)


def _call(name: str, argument: Any) -> nodes.Call:
    return nodes.Call(nodes.EnvironmentAttribute(name), [argument], [], None, None, lineno=argument.lineno)


def _bounded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter whose work is paid for. Some take the context or the environment before the value."""
    before = 1 if hasattr(function, "jinja_pass_arg") else 0

    @wraps(function)
    def apply(*args: Any, **kwargs: Any) -> Any:
        value, rest = args[before], args[before + 1 :]
        if name == "join":
            value = _listed(value)
        _passed(value)
        if name == "round":
            precision = max((abs(arg) for arg in (*rest, *kwargs.values()) if isinstance(arg, int)), default=0)
            _expect_bits(precision * 4)
        elif name not in _PASSING:
            _foresee(name, value, [*rest, *kwargs.values()])
        return _made(function(*args[:before], value, *rest, **kwargs))

    return apply


# ---------------------------------------------------------------- what is called while a template is rendered


def _step(cost: tuple[int, int]) -> None:
    """Pay for one pass of a body: steps, and the characters that stand in it."""
    budget = _budget.get()
    budget.step(cost[0])
    budget.spend(cost[1])


def _passed(value: Any) -> Any:
    """The value, of which all may be looked at."""
    if isinstance(value, str | bytes):
        _budget.get().step(len(value) >> 10)
    elif isinstance(value, Sized) and not isinstance(value, Undefined):
        _budget.get().step(len(value))
    return value


def _printed(value: Any) -> Any:
    """The value, all of which becomes text."""
    _expect(_weight(value))
    return value


def _made(value: Any) -> Any:
    """The value, which is new."""
    if isinstance(value, str | bytes):
        _budget.get().spend(len(value))
    elif isinstance(value, list | tuple | dict):
        _budget.get().step(len(value))
    return value


def _shown(value: Any) -> Any:
    """Values as they are shown everywhere: numbers in their one form, null as `null`, structures as JSON."""
    if value is None or isinstance(value, bool | dict | list | tuple):
        return _made(dumps(_printed(value)))
    return _made(number_text(value) if isinstance(value, int | float) else value)


_OWN: Final = (_step, _passed, _printed, _made)
"""What rewritten templates call."""


# ---------------------------------------------------------------- what would be made


def _foresee(name: str, value: Any, arguments: list[Any] | tuple[Any, ...]) -> None:
    """Refuse a filter or method if what it makes may be larger than what is left."""
    if name in _FORMATTING:
        _expect(_formatted(str(value), arguments))
    elif name in _PADDING:
        _expect(_weight(value) + sum(_weight(argument, numbers=True) for argument in arguments))
    elif name in _REPEATING:
        _expect(_weight(value) * (1 + sum(_weight(argument, numbers=True) for argument in arguments)))
    elif name == "replace" and len(arguments) > 1 and isinstance(value, str | bytes):
        _expect(len(value) + value.count(arguments[0]) * len(arguments[1]))
    else:
        _expect(_weight(value) + sum(_weight(argument) for argument in arguments))


def _formatted(form: str, arguments: list[Any] | tuple[Any, ...]) -> int:
    """The most that a format with its arguments may become."""
    widths = sum(int(digits) if len(digits) < 12 else 10**12 for digits in _NUMBER.findall(form))
    numbers = _NUMBER_FROM_ARGUMENT.search(form) is not None
    places = form.count("{") + form.count("%")
    return len(form) + widths + places * sum(_weight(argument, numbers=numbers) for argument in arguments)


def _expect(size: int) -> None:
    """Refuse what is larger than what is left."""
    _budget.get().foresee(size)


def _expect_product(left: Any, right: Any) -> None:
    for value, count in ((left, right), (right, left)):
        if isinstance(value, str | bytes | list | tuple) and isinstance(count, int):
            _expect(len(value) * max(count, 0))
    if isinstance(left, int) and isinstance(right, int):
        _expect_bits(left.bit_length() + right.bit_length())


def _expect_bits(bits: int) -> None:
    if bits > _BITS_MAX:
        raise OverflowError(f"a number of more than {_BITS_MAX} bits")


def _weight(value: Any, *, numbers: bool = False) -> int:
    """How many characters and elements a value has at every depth; with `numbers`, also what its numbers say.

    One value may stand at many places of a structure, so counting is paid for and ends with what is left.
    """
    budget = _budget.get()
    left = budget.left
    weight = 0
    rest = [value]
    while rest and weight <= left:
        item = rest.pop()
        weight += 1
        if isinstance(item, str | bytes):
            weight += len(item)
        elif isinstance(item, Mapping):
            budget.step(len(item))
            weight += sum(len(key) for key in item if isinstance(key, str))
            rest.extend(item.values())
        elif isinstance(item, list | tuple | range):
            budget.step(len(item))
            rest.extend(item)
        elif numbers and isinstance(item, int | float) and item == item:
            weight += int(min(abs(item), 10**12))
    return weight


def _listed(value: Any) -> Any:
    """The value, or a list of what a generator still gives."""
    return list(value) if isinstance(value, Iterator) else value
