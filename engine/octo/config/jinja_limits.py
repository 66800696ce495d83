"""The sandbox of Jinja2, with an end: what a template passes and makes is paid from the budget of an evaluation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final

from jinja2 import Environment, nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from octo.cel.frame import Frame
from octo.values import dumps, number_text

_BITS_MAX: Final = 100_000
"""The longest whole number that `*` and `**` make; far longer ones cannot be shown, only computed for ever."""
_CONTAINERS: Final = (list, tuple, dict)
_TEXTS: Final = (str, bytes)

_PADDING: Final = frozenset({"center", "ljust", "rjust", "zfill", "batch", "slice", "to_bytes", "truncate"})
"""Filters and methods that make as much more as a number says."""
_REPEATING: Final = frozenset({"expandtabs", "indent", "join", "tojson", "translate", "urlize", "wordwrap"})
"""Those that put an argument into what they make, perhaps again and again."""
_FORMATTING: Final = frozenset({"format", "format_map", "strftime"})
_PASSING: Final = frozenset(
    "abs attr count d default dictsort first float groupby int items last length list map max min random reject "
    "rejectattr reverse round select selectattr sort sum unique".split()
)
"""Filters that look at elements; all others may print the whole of what they are given."""

_WIDTH: Final = re.compile(r"\d+")
_WIDTH_IN_ARGUMENT: Final = re.compile(r"\{[^{}]*\{|%[^a-zA-Z%]*\*")

_spending: ContextVar[Frame] = ContextVar("spending")


@contextmanager
def spending(frame: Frame) -> Iterator[None]:
    """Let what is compiled and rendered inside pay from a budget."""
    token = _spending.set(frame)
    try:
        yield
    finally:
        _spending.reset(token)


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Compiles templates so that every loop, macro and block counts, and measures what may become large before it is
    made. Raises Exceeded.
    """

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, finalize=_shown)
        self.filters = {name: _bounded(name, apply) for name, apply in self.filters.items()}
        self.tests["in"] = lambda value, container: value in _passed(container)
        del self.globals["lipsum"]  # as much text as one asks for
        # What rewritten templates call:
        self.octo_step = _step
        self.octo_passed = _passed
        self.octo_printed = _printed
        self.octo_made = _made

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        _Counting().visit(tree)
        return tree

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A key of a mapping, where plain Jinja2 would find a method of the same name, such as `items`."""
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "%" and isinstance(left, _TEXTS):
            _expect(_formatted(left, [right]))
        elif operator == "*":
            _expect(_product(left, right))
        elif operator == "**" and isinstance(left, int) and isinstance(right, int):
            _expect_bits(left.bit_length() * abs(right))
        return _made(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: B902, N805  # as above
        method = getattr(__obj, "__wrapped__", __obj)
        owner = getattr(method, "__self__", None)
        if isinstance(owner, (*_TEXTS, *_CONTAINERS)):
            _spending.get().step(len(owner) >> (0 if isinstance(owner, _CONTAINERS) else 10))
        name = getattr(method, "__name__", "")
        if name == "join" and args:
            owner, args = args[0], (_listed(args[0]), owner) if False else (_listed(args[0]),)
        return _made(super().call(__context, __obj, *args, **kwargs))
