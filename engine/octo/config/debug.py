"""What a call is made with to look inside it: its input, mocks, spies and a breakpoint; the file that says so."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import ConfigDict, Field, model_validator

from octo.config.sheet import Sheet, read
from octo.errors import ConfigError, Problem
from octo.fields import AnyJson, Bool, Expression, Model, Name, Refusals, Text


class MockCase(Model):
    """What a mock does to a message: exactly one of `body`, `error` and `drop`."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": [key]} for key in ("body", "error", "drop")]})

    when: Expression[bool] | None = None
    """Read on the message that the block receives; the first case for which it is true applies."""

    body: AnyJson = None
    """What the body becomes: any value but null."""

    vars: dict[str, AnyJson] = Field(default_factory=dict)
    """Variables to set, beside `body`."""

    error: Text = ""
    """Fail with this text."""

    drop: Bool = False
    """Filter the message out."""

    @model_validator(mode="after")
    def _does_one_thing(self) -> Self:
        refusals = Refusals()
        given = [
            key
            for key, is_given in (("body", self.body is not None), ("error", self.error), ("drop", self.drop))
            if is_given
        ]
        if len(given) != 1:
            found = " and ".join(f"`{key}`" for key in given) or "none"
            refusals.add(f"a mock needs exactly one of `body`, `error` and `drop`, found {found}")
        elif self.vars and given != ["body"]:
            refusals.add(f"`vars` stands only beside `body`, not beside `{given[0]}`", "vars", at="key")
        refusals.raise_if_any()
        return self


class MockSpec(Model):
    """What stands in for a block."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["cases"]}, {"required": ["default"]}]})

    cases: tuple[MockCase, ...] = ()
    """Tried in order; each needs `when`."""

    default: MockCase | None = None
    """Applies when no case does; without it the block then fails."""

    @model_validator(mode="after")
    def _answers_something(self) -> Self:
        refusals = Refusals()
        if not self.cases and self.default is None:
            refusals.add("a mock needs `cases` or a `default`")
        for index, case in enumerate(self.cases):
            if case.when is None:
                hint = "add `when:`, or make it the `default`"
                refusals.add("a case of a mock needs `when`", "cases", index, hint=hint)
        if self.default is not None and self.default.when is not None:
            hint = "remove it, or make this one of the `cases`"
            refusals.add("the `default` of a mock takes no `when`", "default", "when", hint=hint, at="key")
        refusals.raise_if_any()
        return self


class Input(Model):
    """What a flow is called with."""

    data: AnyJson = None
    """The body."""

    vars: dict[str, AnyJson] = Field(default_factory=dict)
    """Initial variables."""


class DebugConfig(Model):
    """How to call a flow, and what to watch and replace in it."""

    input: Input = Input.model_construct()
    """What the flow is called with, where the command line does not say."""

    break_at: Text = ""
    """Address of the block after which the flow halts."""

    spies: tuple[Text, ...] = ()
    """Addresses of blocks whose messages are recorded, before and after."""

    mocks: dict[Name, MockSpec] = Field(default_factory=dict)
    """Addresses of blocks to replace, each with what stands in for it."""


def read_debug_config(path: Path) -> Sheet[DebugConfig]:
    """Read a debug config. Raises ConfigError with all of its problems."""
    what = f'debug config "{path}"'
    try:
        text = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError([Problem(f"parse {what}: it cannot be read: {reason}")]) from None
    return read(DebugConfig, text, str(path), what, title="the debug config", unknown="field {} not found")
