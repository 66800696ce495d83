"""The macros that evaluate an expression once per element, as closures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from octo.cel.ast import Comprehension, Node
from octo.cel.frame import Frame, Step
from octo.cel.operators import no_overload
from octo.cel.values import (
    Exceeded,
    Failure,
    Optional,
    Value,
    items,
    keys,
    kind_of,
    map_key,
    plain,
)

Elements: TypeAlias = Callable[[Frame], Iterable[Value]]
"""What a comprehension passes: it puts the variables of one element after the other into the frame."""


def comprehension(
    node: Comprehension, operand: Step, places: Sequence[int], condition: Step | None, result: Step
) -> Step:
    """The closure of a comprehension whose parts are compiled; `places` says where its variables stand."""
    if node.macro in ("optMap", "optFlatMap"):
        return _optional(node, operand, places[0], result)
    elements = _singles(node, operand, places[0]) if len(places) == 1 else _pairs(node, operand, places)
    if condition is not None:
        elements = _filtered(elements, condition, node.filter or node)
    match node.macro:
        case "all" | "exists":
            return _quantified(node, elements, result)
        case "exists_one" | "existsOne":
            return _exactly_one(node, elements, result)
        case "filter":
            return _filter(node, elements, result)
        case "sortBy":
            return _sorted(node, elements, result)
        case "transformMap":
            return _transformed_map(node, elements, places[0], result)
        case "transformMapEntry":
            return _merged_entries(node, elements, result)
    return _mapped(elements, result)


# Elements


def _singles(node: Comprehension, operand: Step, place: int) -> Elements:
    """The elements of a list, the keys of a map."""

    def elements(frame: Frame) -> Iterable[Value]:
        values = _container(node, operand(frame))
        if type(values) is dict:
            values = keys(values)
        _pay(frame, len(values), node)
        places = frame.places
        for value in values:
            places[place] = value
            yield value

    return elements


def _pairs(node: Comprehension, operand: Step, places: Sequence[int]) -> Elements:
    """Index and element of a list, key and value of a map."""
    first, second = places

    def elements(frame: Frame) -> Iterable[Value]:
        values = _container(node, operand(frame))
        pairs = items(values) if type(values) is dict else list(enumerate(values))
        _pay(frame, len(pairs), node)
        places = frame.places
        for places[first], places[second] in pairs:
            yield places[second]

    return elements


def _container(node: Comprehension, value: Value) -> Value:
    value = plain(value)
    kind = type(value)
    if kind is list or (kind is dict and node.macro != "sortBy"):
        return value
    raise no_overload(f"{kind_of(value).name}.{node.macro}()").at(node.column, node.length)


def _pay(frame: Frame, count: int, node: Comprehension) -> None:
    try:
        frame.step(count)
    except Failure as failure:
        raise failure.at(node.column, node.length) from None


def _filtered(elements: Elements, condition: Step, at: Node) -> Elements:
    def passed(frame: Frame) -> Iterable[Value]:
        for value in elements(frame):
            if _bool(condition(frame), at):
                yield value

    return passed


def _bool(value: Value, at: Node) -> bool:
    if value is True or value is False:
        return bool(value)
    raise Failure(f"the condition must be a bool, got {kind_of(value).name}", at.column, at.length)


# Macros


def _quantified(node: Comprehension, elements: Elements, condition: Step) -> Step:
    """`all` and `exists`: one element that decides is enough, even if others fail."""
    decisive = node.macro == "exists"

    def decided(frame: Frame) -> Value:
        failed: Failure | None = None
        for _ in elements(frame):
            try:
                if _bool(condition(frame), node.result) is decisive:
                    return decisive
            except Exceeded:
                raise
            except Failure as failure:
                failed = failed or failure
        if failed is not None:
            raise failed
        return not decisive

    return decided


def _exactly_one(node: Comprehension, elements: Elements, condition: Step) -> Step:
    def decided(frame: Frame) -> Value:
        return sum(_bool(condition(frame), node.result) for _ in elements(frame)) == 1

    return decided


def _filter(node: Comprehension, elements: Elements, condition: Step) -> Step:
    def filtered(frame: Frame) -> Value:
        result = []
        for value in elements(frame):
            chosen = condition(frame)
            if chosen is True or _bool(chosen, node.result):
                result.append(value)
        return result

    return filtered


def _mapped(elements: Elements, result: Step) -> Step:
    return lambda frame: [result(frame) for _ in elements(frame)]


def _sorted(node: Comprehension, elements: Elements, result: Step) -> Step:
    from octo.cel.functions.lists import sort_by

    def ordered(frame: Frame) -> Value:
        pairs = [(result(frame), value) for value in elements(frame)]
        try:
            return sort_by(pairs)
        except Failure as failure:
            raise failure.at(node.column, node.length) from None

    return ordered


def _transformed_map(node: Comprehension, elements: Elements, key: int, result: Step) -> Step:
    return lambda frame: {map_key(frame.places[key]): result(frame) for _ in elements(frame)}


def _merged_entries(node: Comprehension, elements: Elements, result: Step) -> Step:
    at = node.result

    def merged(frame: Frame) -> Value:
        entries: dict[Value, Value] = {}
        for _ in elements(frame):
            entry = result(frame)
            if not isinstance(entry, Mapping):
                message = f"`transformMapEntry` needs a map here, got {kind_of(entry).name}"
                raise Failure(message, at.column, at.length)
            for key, value in entry.items():
                if key in entries:
                    raise Failure(f"key of a map is repeated: {keys({key: None})[0]}", at.column, at.length)
                entries[key] = value
        return entries

    return merged


def _optional(node: Comprehension, operand: Step, place: int, result: Step) -> Step:
    """`optMap` wraps its result again, `optFlatMap` expects an optional value."""
    flat = node.macro == "optFlatMap"

    def mapped(frame: Frame) -> Value:
        value = operand(frame)
        if type(value) is not Optional:
            raise no_overload(f"{kind_of(value).name}.{node.macro}()").at(node.column, node.length)
        if not value.present:
            return value
        frame.places[place] = value.value
        changed = result(frame)
        if not flat:
            return Optional(changed)
        if type(changed) is Optional:
            return changed
        at = node.result
        message = f"`optFlatMap` needs an optional value here, got {kind_of(changed).name}"
        raise Failure(message, at.column, at.length)

    return mapped
