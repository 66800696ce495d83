"""Hold an answer to a JSON Schema: the tool by which some models give it, and what is wrong with what they gave."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import count
from typing import Final

from octo.agent.answer import unfenced
from octo.agent.arguments import Checker, Fault
from octo.llm.chat import ToolDefinition
from octo.values import Json, clone, dumps, parse

NAME: Final = "structured_output"
TAKEN: Final = "the answer is taken"
"""The result of the call that gave the answer. No tool of a config has it: their results are JSON."""


class Form:
    """The form that an answer must have."""

    def __init__(self, schema: dict[str, Json]) -> None:
        self.schema = schema

    @cached_property
    def checker(self) -> Checker:
        return Checker(self.schema)

    def tool(self, taken: Collection[str]) -> ToolDefinition:
        """The tool whose arguments are the answer, under a name that no other one has."""
        names = (f"{NAME}_{number}" if number > 1 else NAME for number in count(1))
        return ToolDefinition(
            name=next(name for name in names if name not in taken),
            description="Give the final result. Call this once, when the task is done; nothing else is run after it.",
            input_schema=self.schema,
        )

    def fitted(self, text: str) -> str:
        """The answer, if it has the form. Raises ValueError that tells a model where it has not.

        A property that may be missing may also be null, as the strict form of a schema has it; it is left out.
        """
        try:
            value = parse(unfenced(text))
        except ValueError as error:
            raise ValueError(f"the answer is not JSON: {error}") from None
        first = faults = self.checker.faults(value)
        pruned = clone(value)
        while faults and _without_nulls(pruned, faults):
            faults = self.checker.faults(pruned)
        if faults:
            raise ValueError("; ".join(map(str, first)))
        return dumps(pruned) if first else text


def _without_nulls(value: Json, faults: Sequence[Fault]) -> bool:
    """Take properties that are null out of a value, those that faults are about; whether there were any."""
    found = False
    for fault in faults:
        holder = value
        for step in fault.path[:-1]:
            holder = holder[step]
        if fault.path and isinstance(holder, dict) and fault.path[-1] in holder and holder[fault.path[-1]] is None:
            del holder[fault.path[-1]]
            found = True
    return found
