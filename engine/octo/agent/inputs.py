"""Inputs that belong to a block and not to its agent: fixed, or computed from the message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import model_validator

from octo.fields import AnyJson, Expression, Model
from octo.refusals import refusal
from octo.values import Json, clone, parse

if TYPE_CHECKING:
    from octo.message import Message
    from octo.run import Run


FRAME: Final = "The input of the task, as JSON:"
"""Stands before the body, where nothing else says what is asked."""


class BlockInput(Model):
    """An input of a block: text is an expression, anything else is itself the value.

    `{value: X}` and `{expr: TEXT}` say which of the two is meant. Blank text and null count as not given.
    """

    value: AnyJson = None
    """A fixed value."""

    expr: Expression | None = None
    """Computed from the message when the block starts."""

    null_keys: ClassVar[frozenset[str]] = frozenset({"value"})
    shorthand: ClassVar[Any] = AnyJson

    @model_validator(mode="before")
    @classmethod
    def _by_kind(cls, data: Any) -> Any:
        if isinstance(data, str):
            return {"expr": data} if data.strip() else {"value": None}
        if not isinstance(data, dict) or len(data) != 1 or not data.keys() & {"value", "expr", "ai"}:
            return {"value": data}
        if "ai" in data:
            raise refusal("`{ai: true}` is for parameters of tools", "write a value or an expression", at="key:ai")
        return data

    @property
    def brief(self) -> Json:
        if self.expr is not None:
            return self.expr.source
        return None if isinstance(self.value, str | dict) else self.value

    @property
    def is_given(self) -> bool:
        """Whether anything is written: an expression is, whatever it will yield."""
        return self.expr is not None or not (
            self.value is None or (isinstance(self.value, str) and not self.value.strip())
        )

    @property
    def fixed(self) -> Json:
        """The value, if it is the same for all messages: one that is written, or an expression that is plain JSON."""
        if self.expr is None:
            return self.value if self.is_given else None
        try:
            return parse(self.expr.source)
        except ValueError:
            return None

    def of(self, message: Message, run: Run, what: str) -> Json:
        """The value for a message; `what` names the setting in error texts. Raises OctoError."""
        return clone(self.value) if self.expr is None else run.evaluate(self.expr, message, what)


NOT_GIVEN: Final = BlockInput.model_construct()
"""Stands for an input that is not written."""
