"""Send the elements of a list, or the pieces of a text, through the rest of the flow one by one."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import model_validator

from octo.block import Finding, SubFlow, Takeover
from octo.config.model import Config, Flow
from octo.errors import OctoError
from octo.fields import Expression, Int, Text, one_of
from octo.message import Message
from octo.refusals import Refusals
from octo.run import Run, RunError
from octo.values import Json, clone, kind_of

NEEDS = {"expression": "items", "delimiter": "delimiter", "chunk": "chunkSize"}
"""The setting that a mode cannot do without."""


class Split(Takeover, type="split", group="control"):
    """Send each element of a list through the rest of the flow as a message of its own.

    The caller gets its own message back as soon as all elements are on their way. Each element has its own outcome:
    one that fails goes to the flow's `error` chain alone. Elements carry `vars.groupId`, `groupIndex` and `groupSize`,
    by which an `aggregate` brings them together again.
    """

    mode: Annotated[
        Literal["expression", "lines", "delimiter", "chunk"], one_of("expression", "lines", "delimiter", "chunk")
    ] = "expression"
    """Where elements come from: a list, or the text of the body cut into lines, at a delimiter, or by length."""

    items: Expression[list[Json]] | None = None
    """The list, in mode `expression`."""

    delimiter: Text | None = None
    """What separates the elements, in mode `delimiter`."""

    chunk_size: Int | None = None
    """Characters of an element, in mode `chunk`."""

    on_error: Annotated[Literal["skip", "abort"], one_of("skip", "abort")] = "skip"
    """What to do when an element cannot be sent on its way: leave it out, or fail."""

    build_response: SubFlow | None = None
    """Makes the caller's answer; reads `vars.groupId` and `vars.groupSize`."""

    @model_validator(mode="after")
    def _the_mode_has_what_it_needs(self) -> "Split":
        refusals = Refusals()
        needed = NEEDS.get(self.mode)
        if self.mode == "chunk" and self.chunk_size is not None and self.chunk_size < 1:
            refusals.add("`chunkSize` must be greater than 0", "chunkSize")
        elif needed is not None and not getattr(self, self.yaml_keys()[needed]):
            refusals.add(f"split requires `{needed}` in mode `{self.mode}`", hint=f"add `{needed}:`")
        refusals.raise_if_any()
        return self

    def check(self, config: Config) -> Iterator[Finding]:
        yield from super().check(config)
        for mode, key in NEEDS.items():
            if mode != self.mode and getattr(self, self.yaml_keys()[key]) is not None:
                yield Finding(f"`{key}` has no effect in mode `{self.mode}`", (key,), "remove it", warning=True)

    async def take(self, message: Message, run: Run, rest: Flow) -> Message:
        elements = self._elements(message, run)
        count = float(len(elements))
        group: dict[str, Json] = {"groupId": message.event_id, "groupSize": count}
        for index, element in enumerate(elements):
            known = self.mode == "expression" or index == count - 1
            variables = message.vars | group | {"groupIndex": float(index), "groupSize": count if known else -1.0}
            single = Message(
                clone(element),
                variables,
                event_id=run.runtime.new_id(),
                correlation_id=message.correlation_id,
                trace_id=message.trace_id,
            )
            try:
                await run.hand_on(single, rest)
            except OctoError as error:
                if self.on_error == "abort":
                    raise RunError(f"split element {index}: {error.message}", hint=error.hint) from error
                run.log("warn", f"split element {index}: {error.message}", flow=run.flow, event_id=single.event_id)
        message.vars.update(group)
        return await run.chain(self.build_response.process, message) if self.build_response else message

    def _elements(self, message: Message, run: Run) -> list[Json]:
        if self.items is not None and self.mode == "expression":
            return run.evaluate(self.items, message, "split items")
        body = message.body["rawData"] if message.raw else message.body
        if not isinstance(body, str):
            raise RunError(f"split items: mode `{self.mode}` needs a text body, got {kind_of(body)}")
        if not body:
            return []
        match self.mode:
            case "delimiter":
                return list(body.split(self.delimiter))
            case "chunk":
                size = self.chunk_size or 1
                return [body[start : start + size] for start in range(0, len(body), size)]
        return [line.removesuffix("\r") for line in body.removesuffix("\n").split("\n")]
