"""From the syntax tree to nested closures, the steps of an evaluation."""

from __future__ import annotations

from typing import NamedTuple

from octo.cel import steps
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
from octo.cel.frame import Step
from octo.cel.functions import overloads
from octo.cel.operators import BINARY
from octo.cel.values import KIND_NAMES

_NESTED = 16
"""Up to that many operators in a row are compiled into each other, which is fast, but as deep as they are many."""


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
                return steps.constant(node.value)
            case Name():
                return self.name(node)
            case Select():
                return self.select(node)
            case Has():
                return steps.testing(self.compile(node.operand), node)
            case Index():
                return steps.indexing(self.compile(node.operand), self.compile(node.key), node)
            case ListOf():
                return steps.listing([self.compile(element) for element in node.elements], node)
            case MapOf():
                keys = [self.compile(key) for key in node.keys]
                return steps.mapping(keys, [self.compile(value) for value in node.values], node)
            case Unary():
                return steps.unary(self.compile(node.operand), node)
            case Binary():
                return self.binary(node)
            case Logic():
                return steps.logic([self.compile(operand) for operand in node.operands], node)
            case Condition():
                condition = self.compile(node.condition)
                return steps.condition(condition, self.compile(node.yes), self.compile(node.no), node.condition)
            case Call():
                return self.call(node)
            case Comprehension():
                return self.comprehension(node)

    def name(self, node: Name) -> Step:
        name = node.name
        if name in self.scope and not node.absolute:
            return steps.place(self.scope[name])
        return steps.variable(node, KIND_NAMES.get(name))

    def select(self, node: Select) -> Step:
        kind = KIND_NAMES.get(dotted(node) or "")
        if kind is not None and isinstance(head := root(node), Name) and head.name not in self.scope:
            return steps.constant(kind)
        if node.optional:
            return steps.selecting_optionally(self.compile(node.operand), node)
        match node.operand:
            case Name(name, absolute=False) if name in self.scope:
                return steps.selecting_place(self.scope[name], node)
        return steps.selecting(self.compile(node.operand), node)

    def binary(self, node: Binary) -> Step:
        links = chain(node)
        step = self.compile(links[0].left)
        if len(links) <= _NESTED:
            for link in links:
                step = self.operator(link, step)
            return step
        place = self.places
        self.places += 1
        return steps.chaining(step, [self.operator(link, steps.place(place)) for link in links], place)

    def operator(self, node: Binary, left: Step) -> Step:
        right = self.compile(node.right)
        match node.operator:
            case "==" if isinstance(node.right, Literal) and type(node.right.value) is str:
                return steps.equality_with_text(left, node.right.value)
            case "+":
                return steps.adding(left, right, node)
            case "in":
                return steps.containing(left, right, node)
            case "==" | "!=":
                return steps.equality(left, right, node)
        operate = BINARY[node.operator]
        if isinstance(node.right, Literal):
            return steps.binary_with_constant(operate, left, node.right.value, node)
        return steps.binary(operate, left, right, node)

    def call(self, node: Call) -> Step:
        name, arguments = resolve(node, self.scope)
        candidates = [candidate for candidate in overloads(name) if candidate.takes(len(arguments))]
        compiled = [self.compile(argument) for argument in arguments]
        match candidates, compiled:
            case _, [optional, other] if name in (".or", ".orValue"):
                return steps.otherwise(name, candidates, optional, other, node)
            case [only], [argument] if not only.reaches:
                return steps.calling_one(name, only, argument, node)
            case [only], [first, second] if not only.reaches:
                return steps.calling_two(name, only, first, second, node)
        return steps.calling(name, candidates, compiled, node)

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
