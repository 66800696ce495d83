"""Where a tool parameter gets its value: from the model, from the config, or from an expression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import model_validator

from octo.fields import AnyJson, Bool, Expression, Model
from octo.refusals import refusal
from octo.values import Json, clone, kind_of

if TYPE_CHECKING:
    from octo.message import Message
    from octo.run import Run


class Binding(Model):
    """The source of one tool parameter: `{ai: true}`, `{value: X}` or `{expr: TEXT}`.

    Anything else, a bare value or another mapping, is itself the value.
    """

    ai: Bool = False
    """The model fills the parameter in, as it does without a binding."""

    value: AnyJson = None
    """A fixed value; null and empty text leave the parameter to the model."""

    expr: Expression | None = None
    """Computed at the call: `body` is the body that the agent received, `vars` are those of the moment."""

    null_keys: ClassVar[frozenset[str]] = frozenset({"value"})
    shorthand: ClassVar[Any] = AnyJson

    @model_validator(mode="before")
    @classmethod
    def _static_unless_marked(cls, data: Any) -> Any:
        if not isinstance(data, dict) or len(data) != 1 or not cls.yaml_keys().keys() & data.keys():
            return {"value": data}
        if data.get("ai", True) is False:
            raise refusal("expected `{ai: true}`, found `{ai: false}`", "leave the parameter out, or bind it")
        return data

    @property
    def brief(self) -> Json:
        if self.expr is not None or self.ai:
            return {"ai": True} if self.ai else {"expr": getattr(self.expr, "source", self.expr)}
        return {"value": self.value} if isinstance(self.value, dict) else self.value

    @property
    def fills(self) -> bool:
        """Whether the parameter is taken out of the model's hands."""
        return self.expr is not None or not (self.value is None or self.value == "")


def bound(inputs: Mapping[str, Binding]) -> dict[str, Binding]:
    """The bindings that fill a parameter in."""
    return {name: binding for name, binding in inputs.items() if binding.fills}


def shown_schema(schema: dict[str, Json], filled: Mapping[str, Binding]) -> dict[str, Json]:
    """The schema that the model sees: without the parameters that are filled in for it."""
    if not filled:
        return schema
    shown = dict(schema)
    properties, required = shown.get("properties"), shown.get("required")
    if isinstance(properties, dict):
        shown["properties"] = {name: part for name, part in properties.items() if name not in filled}
    if isinstance(required, list):
        shown["required"] = [name for name in required if name not in filled]
        if not shown["required"]:
            del shown["required"]
    return shown


def lay_over(arguments: Json, filled: Mapping[str, Binding], *, received: Json, message: Message, run: Run) -> Json:
    """The arguments with every bound parameter written over what the model sent.

    Raises ValueError when the model sent something that has no parameters, OctoError when a binding fails.
    """
    if not filled:
        return arguments
    if not isinstance(arguments, dict):
        raise ValueError(f"expected an object, got {kind_of(arguments)}")
    values = {
        name: clone(binding.value)
        if binding.expr is None
        else run.evaluate(binding.expr, message, f"input `{name}`", body=received)
        for name, binding in filled.items()
    }
    return arguments | values
