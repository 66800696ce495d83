"""From the syntax tree to nested closures. Each takes the frame of an evaluation and gives a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

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
from octo.cel.checker import resolve
from octo.cel.comprehensions import comprehension
from octo.cel.frame import Frame, Step
from octo.cel.functions import Function, call, overloads
from octo.cel.operators import (
    BINARY,
    add,
    has,
    index,
    index_optional,
    is_in,
    negate,
    no_overload,
    select,
    select_optional,
)
from octo.cel.values import KIND_NAMES, Exceeded, Failure, Optional, Value, equal, kind_of, map_key
from octo.errors import shortened

_NESTED = 16
"""Up to that many operators in a row are compiled into each other, which is fast, but as deep as they are many."""
_SMALL = 128
"""Texts and lists up to this length cost nothing: counting would take longer than making them."""
_LONG = 1 << 12
"""Arguments longer than this cost a step for each 1024 characters, bytes or elements, for a function reads them."""
_SIZED = frozenset({str, bytes, list, dict})
_CONTAINERS = frozenset({list, dict})


class Compiled(NamedTuple):
    step: Step
    places: int
    """How many places for variables of comprehensions a frame needs."""


def compile_tree(tree: Node) -> Compiled:
    """Compile a checked tree."""
    compiler = _Compiler()
    step = compiler.compile(tree)
    return Compiled(step, compiler.places)


class _Compiler:
    """Knows which variables are in scope, and at which place of the frame each stands."""

    def __init__(self) -> None:
        self.places = 0
        self.scope: dict[str, int] = {}

    def compile(self, node: Node) -> Step:
        match node:
            case Literal():
                return _constant(node.value)
            case Name():
                return self.name(node)
            case Select():
                return self.select(node)
            case Has():
                return _has(self.compile(node.operand), node)
            case Index():
                return _index(self.compile(node.operand), self.compile(node.key), node)
            case ListOf():
                return _list([self.compile(element) for element in node.elements], node)
            case MapOf():
                keys = [self.compile(key) for key in node.keys]
                return _map(keys, [self.compile(value) for value in node.values], node)
            case Unary():
                return _unary(self.compile(node.operand), node)
            case Binary():
                return self.binary(node)
            case Logic():
                return _logic([self.compile(operand) for operand in node.operands], node)
            case Condition():
                condition = self.compile(node.condition)
                return _condition(condition, self.compile(node.yes), self.compile(node.no), node.condition)
            case Call():
                return self.call(node)
            case Comprehension():
                return self.comprehension(node)

    def name(self, node: Name) -> Step:
        name = node.name
        if name in self.scope and not node.absolute:
            return _place(self.scope[name])
        return _variable(node, KIND_NAMES.get(name))

    def select(self, node: Select) -> Step:
        kind = KIND_NAMES.get(dotted(node) or "")
        if kind is not None and isinstance(head := root(node), Name) and head.name not in self.scope:
            return _constant(kind)
        if node.optional:
            return _select_optional(self.compile(node.operand), node)
        match node.operand:
            case Name(name, absolute=False) if name in self.scope:
                return _select_place(self.scope[name], node)
        return _select(self.compile(node.operand), node)

    def binary(self, node: Binary) -> Step:
        links = chain(node)
        step = self.compile(links[0].left)
        if len(links) <= _NESTED:
            for link in links:
                step = self.operator(link, step)
            return step
        place = self.places
        self.places += 1
        return _chain(step, [self.operator(link, _place(place)) for link in links], place)

    def operator(self, node: Binary, left: Step) -> Step:
        right = self.compile(node.right)
        match node.operator:
            case "==" if isinstance(node.right, Literal) and type(node.right.value) is str:
                return _equals_text(left, node.right.value)
            case "+":
                return _add(left, right, node)
            case "in":
                return _in(left, right, node)
            case "==" | "!=":
                return _equality(left, right, node)
        operate = BINARY[node.operator]
        if isinstance(node.right, Literal):
            return _binary_constant(operate, left, node.right.value, node)
        return _binary(operate, left, right, node)

    def call(self, node: Call) -> Step:
        name, arguments = resolve(node, self.scope)
        candidates = [candidate for candidate in overloads(name) if candidate.takes(len(arguments))]
        steps = [self.compile(argument) for argument in arguments]
        match candidates, steps:
            case _, [optional, other] if name in (".or", ".orValue"):
                return _otherwise(name, candidates, optional, other, node)
            case [only], [argument] if not only.reaches:
                return _call_one(name, only, argument, node)
            case [only], [first, second] if not only.reaches:
                return _call_two(name, only, first, second, node)
        return _call(name, candidates, steps, node)

    def comprehension(self, node: Comprehension) -> Step:
        operand = self.compile(node.operand)
        outer = self.scope
        first = self.places
        self.places += len(node.variables)
        self.scope = {**outer, **{name: first + number for number, name in enumerate(node.variables)}}
        condition = node.filter and self.compile(node.filter)
        result = self.compile(node.result)
        self.scope = outer
        return comprehension(node, operand, range(first, first + len(node.variables)), condition, result)


# Values and variables


def _constant(value: Value) -> Step:
    return lambda frame: value


def _place(number: int) -> Step:
    return lambda frame: frame.places[number]


def _variable(node: Name, kind: Value) -> Step:
    name = node.name

    def variable(frame: Frame) -> Value:
        try:
            return frame.activation[name]
        except KeyError:
            if kind is not None:
                return kind
            raise Failure(f"undeclared reference to '{name}'", node.column, node.length) from None

    return variable


def _list(elements: list[Step], node: ListOf) -> Step:
    if not node.optional:
        return lambda frame: [element(frame) for element in elements]

    def listed(frame: Frame) -> Value:
        result = []
        for number, element in enumerate(elements):
            value = element(frame)
            if number in node.optional:
                value = _as_optional(value, node.elements[number])
                if not value.present:
                    continue
                value = value.value
            result.append(value)
        return result

    return listed


def _map(keys: list[Step], values: list[Step], node: MapOf) -> Step:
    def mapped(frame: Frame) -> Value:
        result: dict[Value, Value] = {}
        for number, key_step in enumerate(keys):
            at = node.keys[number]
            key, value = key_step(frame), values[number](frame)
            if number in node.optional:
                value = _as_optional(value, node.values[number])
                if not value.present:
                    continue
                value = value.value
            if type(key) is float:
                raise Failure("a value of kind `double` cannot be the key of a map", at.column, at.length)
            try:
                held = map_key(key)
            except Failure as failure:
                raise failure.at(at.column, at.length) from None
            if held in result:
                raise Failure(f"key of a map is repeated: {shortened(str(key))}", at.column, at.length)
            result[held] = value
        return result

    return mapped


def _as_optional(value: Value, at: Node) -> Optional:
    if type(value) is Optional:
        return value
    message = f"an entry marked with `?` must be an optional value, got {kind_of(value).name}"
    raise Failure(message, at.column, at.length)


# Selections


def _select(operand: Step, node: Select) -> Step:
    field = node.field

    def selected(frame: Frame) -> Value:
        value = operand(frame)
        try:
            return value[field] if type(value) is dict else select(value, field)
        except (KeyError, Failure):
            raise _no_such_key(node) from None

    return selected


def _select_place(place: int, node: Select) -> Step:
    """The same on a variable of a comprehension: most of what is evaluated once per element."""
    field = node.field

    def selected(frame: Frame) -> Value:
        value = frame.places[place]
        try:
            return value[field] if type(value) is dict else select(value, field)
        except (KeyError, Failure):
            raise _no_such_key(node) from None

    return selected


def _no_such_key(node: Select) -> Failure:
    """A selection that finds nothing, and how to ask first."""
    field, operand = node.field, dotted(node.operand)
    hint = f"`{operand or ''}.?{field}.orValue(…)` reads it if it is there, or something else"
    if operand:
        hint = f"`has({operand}.{field})` tells whether it is there, {hint}"
    return Failure(f"no such key: {field}", node.column, node.length, hint)


def _select_optional(operand: Step, node: Select) -> Step:
    field = node.field
    return lambda frame: select_optional(operand(frame), field)


def _has(operand: Step, node: Has) -> Step:
    field = node.field
    return lambda frame: has(operand(frame), field)


def _index(operand: Step, key: Step, node: Index) -> Step:
    look = index_optional if node.optional else index

    def indexed(frame: Frame) -> Value:
        value, at = operand(frame), key(frame)
        try:
            return look(value, at)
        except Failure as failure:
            raise failure.at(node.column, node.length) from None

    return indexed


# Operators


def _unary(operand: Step, node: Unary) -> Step:
    if node.operator == "-":

        def negated(frame: Frame) -> Value:
            value = operand(frame)
            try:
                return negate(value)
            except Failure as failure:
                raise failure.at(node.column) from None

        return negated

    def inverted(frame: Frame) -> Value:
        value = operand(frame)
        if value is True:
            return False
        if value is False:
            return True
        raise no_overload(f"!{kind_of(value).name}").at(node.column)

    return inverted


def _chain(first: Step, links: list[Step], place: int) -> Step:
    """Operators one after another, each with the result so far as its left side."""

    def chained(frame: Frame) -> Value:
        value = first(frame)
        for link in links:
            frame.places[place] = value
            value = link(frame)
        return value

    return chained


def _binary(operate: Callable[[Value, Value], Value], left: Step, right: Step, node: Binary) -> Step:
    column, length = node.column, node.length

    def operated(frame: Frame) -> Value:
        try:
            return operate(left(frame), right(frame))
        except Failure as failure:
            raise failure.at(column, length) from None

    return operated


def _binary_constant(operate: Callable[[Value, Value], Value], left: Step, right: Value, node: Binary) -> Step:
    column, length = node.column, node.length

    def operated(frame: Frame) -> Value:
        try:
            return operate(left(frame), right)
        except Failure as failure:
            raise failure.at(column, length) from None

    return operated


def _equals_text(operand: Step, text: str) -> Step:
    def equals(frame: Frame) -> Value:
        value = operand(frame)
        return value == text if type(value) is str else equal(value, text)

    return equals


def _equality(left: Step, right: Step, node: Binary) -> Step:
    compare, column, length = BINARY[node.operator], node.column, node.length

    def compared(frame: Frame) -> Value:
        one, other = left(frame), right(frame)
        try:
            if type(one) in _CONTAINERS and len(one) > _SMALL:
                frame.step(len(one))
            return compare(one, other)
        except Failure as failure:
            raise failure.at(column, length) from None

    return compared


def _add(left: Step, right: Step, node: Binary) -> Step:
    column = node.column

    def added(frame: Frame) -> Value:
        try:
            result = add(left(frame), right(frame))
        except Failure as failure:
            raise failure.at(column) from None
        return _paid(frame, result, node)

    return added


def _in(left: Step, right: Step, node: Binary) -> Step:
    def contained(frame: Frame) -> Value:
        element, container = left(frame), right(frame)
        try:
            if type(container) is list:
                frame.step(len(container) >> 4)
            return is_in(element, container)
        except Failure as failure:
            raise failure.at(node.column, node.length) from None

    return contained


def _condition(condition: Step, yes: Step, no: Step, at: Node) -> Step:
    def chosen(frame: Frame) -> Value:
        value = condition(frame)
        if value is True:
            return yes(frame)
        if value is False:
            return no(frame)
        message = f"the condition before `?` must be a bool, got {kind_of(value).name}"
        raise Failure(message, at.column, at.length)

    return chosen


def _logic(operands: list[Step], node: Logic) -> Step:
    """`&&` and `||`: one operand that decides is enough, even if others fail."""
    decisive = node.operator == "||"
    neutral = not decisive

    def decided(frame: Frame) -> Value:
        failed: Failure | None = None
        for number, operand in enumerate(operands):
            try:
                value = operand(frame)
            except Exceeded:
                raise
            except Failure as failure:
                failed = failed or failure
                continue
            if value is decisive:
                return decisive
            if value is not neutral:
                at = node.operands[number]
                message = f"`{node.operator}` needs bools on both sides, got {kind_of(value).name}"
                failed = failed or Failure(message, at.column, at.length)
        if failed is not None:
            raise failed
        return neutral

    return decided


# Calls


def _call_one(name: str, target: Function, argument: Step, node: Call) -> Step:
    implementation = target.implementation
    accepted = target.spread(1)[0].direct

    def called(frame: Frame) -> Value:
        value = argument(frame)
        try:
            if type(value) in _SIZED and len(value) > _LONG:
                frame.step(len(value) >> 10)
            result = implementation(value) if type(value) in accepted else call(name, (target,), (value,), frame)
        except Failure as failure:
            raise failure.at(node.column, node.length) from None
        return _paid(frame, result, node)

    return called


def _call_two(name: str, target: Function, first: Step, second: Step, node: Call) -> Step:
    implementation = target.implementation
    one, two = (parameter.direct for parameter in target.spread(2))

    def called(frame: Frame) -> Value:
        left, right = first(frame), second(frame)
        try:
            if type(left) in _SIZED and len(left) > _LONG:
                frame.step(len(left) >> 10)
            if type(right) in _SIZED and len(right) > _LONG:
                frame.step(len(right) >> 10)
            if type(left) in one and type(right) in two:
                result = implementation(left, right)
            else:
                result = call(name, (target,), (left, right), frame)
        except Failure as failure:
            raise failure.at(node.column, node.length) from None
        return _paid(frame, result, node)

    return called


def _otherwise(name: str, candidates: list[Function], optional: Step, other: Step, node: Call) -> Step:
    """`.or` and `.orValue`: what stands in for an absent value is evaluated only then."""

    def chosen(frame: Frame) -> Value:
        value = optional(frame)
        if type(value) is Optional and value.present:
            return value if name == ".or" else value.value
        otherwise = other(frame)
        try:
            return call(name, candidates, (value, otherwise), frame)
        except Failure as failure:
            raise failure.at(node.column, node.length) from None

    return chosen


def _call(name: str, candidates: list[Function], arguments: list[Step], node: Call) -> Step:
    def called(frame: Frame) -> Value:
        values = [argument(frame) for argument in arguments]
        try:
            for value in values:
                if type(value) in _SIZED and len(value) > _LONG:
                    frame.step(len(value) >> 10)
            result = call(name, candidates, values, frame)
        except Failure as failure:
            raise failure.at(node.column, node.length) from None
        return _paid(frame, result, node)

    return called


def _paid(frame: Frame, result: Value, node: Node) -> Value:
    """The result, after the budget has been charged for it if it is large."""
    kind = type(result)
    if (kind is str or kind is list or kind is bytes) and len(result) > _SMALL:
        try:
            frame.grow(result)
        except Failure as failure:
            raise failure.at(node.column, node.length) from None
    return result
