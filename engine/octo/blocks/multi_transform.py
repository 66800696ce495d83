"""Set the body and variables in several steps."""

from pydantic import Field, model_validator

from octo.block import Block
from octo.fields import Expression, Model, Name
from octo.message import Message
from octo.refusals import Refusals
from octo.run import Run


class Transform(Model):
    """One step: `{setBody: expression}`, or `{setVar: name, value: expression}`."""

    set_body: Expression | None = None
    """What the body becomes."""

    set_var: Name | None = None
    """The variable to set."""

    value: Expression | None = None
    """What the variable becomes."""


class MultiTransform(Block, type="multi-transform", group="data"):
    """Set the body and variables in several steps; every step sees what the earlier ones did."""

    transforms: tuple[Transform, ...] = Field(min_length=1)
    """The steps, in order."""

    @model_validator(mode="after")
    def _each_sets_one_thing(self) -> "MultiTransform":
        refusals = Refusals()
        for index, step in enumerate(self.transforms):
            at = ("transforms", index)
            if (step.set_body is None) == (step.set_var is None):
                found = "neither `setBody` nor `setVar`" if step.set_body is None else "both `setBody` and `setVar`"
                hint = "write `{setBody: …}` or `{setVar: …, value: …}`"
                refusals.add(f"multi-transform step {index} has {found}", *at, hint=hint)
            elif step.set_body is not None and step.value is not None:
                refusals.add(
                    f"multi-transform step {index}: `setBody` takes no `value`",
                    *at,
                    "value",
                    hint="the expression of `setBody` is the value",
                    at="key",
                )
            elif step.set_var is not None and step.value is None:
                refusals.add(f"multi-transform step {index}: `setVar` requires `value`", *at, hint="add `value:`")
        refusals.raise_if_any()
        return self

    async def execute(self, message: Message, run: Run) -> Message:
        for index, step in enumerate(self.transforms):
            what = f"multi-transform step {index}"
            if step.set_body is not None:
                message.body = run.evaluate(step.set_body, message, what)
            elif step.set_var is not None and step.value is not None:
                message.vars[step.set_var] = run.evaluate(step.value, message, what)
        return message
