"""The steps of an evaluation: closures that take its frame and give a value, one maker for each kind of node."""

from __future__ import annotations

from collections.abc import Callable

from octo.cel.ast import Binary, Call, Has, Index, ListOf, Logic, MapOf, Name, Node, Select, Unary, dotted
from octo.cel.frame import Frame, Step
from octo.cel.functions import Function, call
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
from octo.cel.values import Exceeded, Failure, Optional, Value, equal, kind_of, map_key
from octo.errors import shortened

_SMALL = 128
"""Texts and lists up to this length cost nothing: counting would take longer than making them."""
_LONG = 1 << 12
"""Arguments longer than this cost a step for each 1024 characters, bytes or elements, for a function reads them."""
_SIZED = frozenset({str, bytes, list, dict})
_CONTAINERS = frozenset({list, dict})


# Values and variables


def constant(value: Value) -> Step:
    return lambda frame: value


def place(number: int) -> Step:
    return lambda frame: frame.places[number]


def variable(node: Name, kind: Value) -> Step:
    name = node.name

    def looked_up(frame: Frame) -> Value:
        try:
            return frame.activation[name]
        except KeyError:
            if kind is not None:
                return kind
            raise Failure(f"undeclared reference to '{name}'", node.column, node.length) from None

    return looked_up


def listing(elements: list[Step], node: ListOf) -> Step:
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


def mapping(keys: list[Step], values: list[Step], node: MapOf) -> Step:
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


def selecting(operand: Step, node: Select) -> Step:
    field = node.field

    def selected(frame: Frame) -> Value:
        value = operand(frame)
        try:
            return value[field] if type(value) is dict else select(value, field)
        except (KeyError, Failure):
            raise _no_such_key(node) from None

    return selected


def selecting_place(place: int, node: Select) -> Step:
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


def selecting_optionally(operand: Step, node: Select) -> Step:
    field = node.field
    return lambda frame: select_optional(operand(frame), field)


def testing(operand: Step, node: Has) -> Step:
    field = node.field
    return lambda frame: has(operand(frame), field)


def indexing(operand: Step, key: Step, node: Index) -> Step:
    look = index_optional if node.optional else index

    def indexed(frame: Frame) -> Value:
        value, at = operand(frame), key(frame)
        try:
            return look(value, at)
        except Failure as failure:
            raise failure.at(node.column, node.length) from None

    return indexed


# Operators


def unary(operand: Step, node: Unary) -> Step:
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


def chaining(first: Step, links: list[Step], place: int) -> Step:
    """Operators one after another, each with the result so far as its left side."""

    def chained(frame: Frame) -> Value:
        value = first(frame)
        for link in links:
            frame.places[place] = value
            value = link(frame)
        return value

    return chained


def binary(operate: Callable[[Value, Value], Value], left: Step, right: Step, node: Binary) -> Step:
    column, length = node.column, node.length

    def operated(frame: Frame) -> Value:
        try:
            return operate(left(frame), right(frame))
        except Failure as failure:
            raise failure.at(column, length) from None

    return operated


def binary_with_constant(operate: Callable[[Value, Value], Value], left: Step, right: Value, node: Binary) -> Step:
    column, length = node.column, node.length

    def operated(frame: Frame) -> Value:
        try:
            return operate(left(frame), right)
        except Failure as failure:
            raise failure.at(column, length) from None

    return operated


def equality_with_text(operand: Step, text: str) -> Step:
    def equals(frame: Frame) -> Value:
        value = operand(frame)
        return value == text if type(value) is str else equal(value, text)

    return equals


def equality(left: Step, right: Step, node: Binary) -> Step:
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


def adding(left: Step, right: Step, node: Binary) -> Step:
    column = node.column

    def added(frame: Frame) -> Value:
        try:
            result = add(left(frame), right(frame))
        except Failure as failure:
            raise failure.at(column) from None
        return _paid(frame, result, node)

    return added


def containing(left: Step, right: Step, node: Binary) -> Step:
    def contained(frame: Frame) -> Value:
        element, container = left(frame), right(frame)
        try:
            if type(container) is list:
                frame.step(len(container) >> 4)
            return is_in(element, container)
        except Failure as failure:
            raise failure.at(node.column, node.length) from None

    return contained


def condition(asked: Step, yes: Step, no: Step, at: Node) -> Step:
    def chosen(frame: Frame) -> Value:
        value = asked(frame)
        if value is True:
            return yes(frame)
        if value is False:
            return no(frame)
        message = f"the condition before `?` must be a bool, got {kind_of(value).name}"
        raise Failure(message, at.column, at.length)

    return chosen


def logic(operands: list[Step], node: Logic) -> Step:
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


def calling_one(name: str, target: Function, argument: Step, node: Call) -> Step:
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


def calling_two(name: str, target: Function, first: Step, second: Step, node: Call) -> Step:
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


def otherwise(name: str, candidates: list[Function], optional: Step, other: Step, node: Call) -> Step:
    """`.or` and `.orValue`: what stands in for an absent value is evaluated only then."""

    def chosen(frame: Frame) -> Value:
        value = optional(frame)
        if type(value) is Optional and value.present:
            return value if name == ".or" else value.value
        instead = other(frame)
        try:
            return call(name, candidates, (value, instead), frame)
        except Failure as failure:
            raise failure.at(node.column, node.length) from None

    return chosen


def calling(name: str, candidates: list[Function], arguments: list[Step], node: Call) -> Step:
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
