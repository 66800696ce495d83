"""How a block, or a tool, names an agent that is written elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

from pydantic import model_validator

from octo.agent.authored import name_fault
from octo.fields import Int, Model, Text
from octo.refusals import Refusals, refusal
from octo.values import Json

_PIN: Final = re.compile(r"(.*)@([1-9][0-9]*)")


class Link(Model):
    """An agent by its name, as `NAME`, `NAME@7` or `{name: NAME, version: 7}`.

    Without a version it is what is deployed when the block starts.
    """

    name: Text
    """The name of the agent."""

    version: Int | None = None
    """The version that is used, whatever is deployed."""

    shorthand: ClassVar[Any] = Text

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, data: Any) -> Any:
        if not isinstance(data, str):
            return data
        pin = _PIN.fullmatch(data)
        if pin:
            return {"name": pin[1], "version": int(pin[2])}
        if "@" in data:
            raise refusal(f"`{data}` names no version", "a pin ends with the number of a version, as in `NAME@7`")
        return {"name": str(data)}

    @model_validator(mode="after")
    def _can_be(self) -> Self:
        refusals = Refusals()
        if fault := name_fault(self.name):
            refusals.add(f"`{self.name}` is no name of an agent", hint=fault)
        if self.version is not None and self.version < 1:
            refusals.add(f"versions count from 1, found {self.version}", "version")
        refusals.raise_if_any()
        return self

    @property
    def brief(self) -> Json:
        return str(self)

    def __str__(self) -> str:
        return self.name if self.version is None else f"{self.name}@{self.version}"


def is_link(value: Json) -> bool:
    """Whether what stands under `agent` names an agent, and is none itself."""
    return isinstance(value, str) or (isinstance(value, Mapping) and {"name"} <= value.keys() <= {"name", "version"})
