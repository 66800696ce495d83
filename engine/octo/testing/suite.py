"""A suite of test cases, as it is written beside a config."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, NamedTuple, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, ValidationInfo, model_validator

from octo.config.document import Document, parse
from octo.config.document import Path as Keys
from octo.config.sheet import Sheet, read
from octo.connectors.llm_scripted import Reply
from octo.debug import Input, MockSpec
from octo.errors import ConfigError, Problem, did_you_mean
from octo.fields import AnyJson, Bool, Duration, Expression, Int, Model, Name, Text
from octo.refusals import Refusals, refusal
from octo.runlog.record import KINDS
from octo.values import Json, kind_of


def _condition(value: Json) -> Json:
    if not isinstance(value, str) or not value.strip():
        found = "blank text" if isinstance(value, str) else kind_of(value)
        raise refusal(f"expected an expression, found {found}", "an expression is text, such as 'body.total > 0'")
    return value


Condition: TypeAlias = Annotated[str, BeforeValidator(_condition, json_schema_input_type=Expression[bool])]
"""An expression that is to be true. One that does not compile is the failure of its case."""


def _some_time(value: Duration) -> Duration:
    if value.ns <= 0:
        raise refusal(f"expected a time limit of more than 0, found `{value.text}`", "within no time, no flow ends")
    return value


TimeLimit: TypeAlias = Annotated[Duration, AfterValidator(_some_time)]
"""The longest that a call may take."""


class Snapshot(Model):
    """What a message is expected to be; what is left out may be anything."""

    body: AnyJson = None
    """Equal to the body, whatever the order of keys."""

    vars: dict[str, AnyJson] = Field(default_factory=dict)
    """Variables that are set and equal; there may be others."""

    that: tuple[Condition, ...] = ()
    """Expressions on the message, which see `body`, `vars`, `eventID`, `correlationID` and `now`."""


class Expectation(Snapshot):
    """How a flow is expected to end. With nothing said, it completes."""

    dropped: Bool = False
    """The flow filters its message out."""

    error: Text | None = None
    """The flow fails, and this is a part of the error text."""

    @model_validator(mode="after")
    def _is_one_outcome(self) -> Self:
        refusals = Refusals()
        ends = [key for key, is_given in (("dropped", self.dropped), ("error", self.error is not None)) if is_given]
        message = [key for key in ("body", "vars", "that") if getattr(self, key)]
        for key in [*ends, *message][1:] if ends else ():
            refusals.add(f"`{key}` cannot be expected together with `{ends[0]}`", key, hint=_ONE_OUTCOME, at="key")
        refusals.raise_if_any()
        return self


_ONE_OUTCOME: Final = "a flow completes with a message, filters it out, or fails"


class Crossing(Model):
    """One time that a message crosses a block."""

    input: Snapshot | None = None
    """The message before."""

    output: Snapshot | None = None
    """The message after."""

    dropped: Bool = False
    """The block filters the message out."""

    error: Text | None = None
    """The block fails, and this is a part of its own error text."""

    @model_validator(mode="after")
    def _ends_one_way(self) -> Self:
        refusals = Refusals()
        given = {"output": self.output is not None, "dropped": self.dropped, "error": self.error is not None}
        ends = [key for key, is_given in given.items() if is_given]
        for key in ends[1:]:
            hint = "a block gives a message, filters it out, or fails"
            refusals.add(f"`{key}` cannot be expected together with `{ends[0]}`", key, hint=hint, at="key")
        refusals.raise_if_any()
        return self


class Counted(Model):
    """What may be expected to happen a number of times."""

    count: Int | None = None
    """Exactly so many times."""

    @model_validator(mode="after")
    def _can_happen(self) -> Self:
        refusals = Refusals()
        if self.count is not None and self.count < 0:
            refusals.add(f"expected 0 or more, found {self.count}", "count")
        records = getattr(self, "records", ())
        if self.count is not None and len(records) > self.count >= 0:
            hint = "entry 0 describes the first time, entry 1 the second; there are more entries than times"
            refusals.add(f"{len(records)} `records`, but a `count` of {self.count}", "records", hint=hint, at="key")
        refusals.raise_if_any()
        return self


class Spied(Counted):
    """How messages are expected to cross a block."""

    records: tuple[Crossing, ...] = ()
    """The first crossings, in order; more may follow, fewer may not."""


class ToolCall(Counted):
    """Calls of a tool, which a model is expected to make: at least one, if `count` does not say how many."""

    name: Name
    """The tool."""

    args: dict[str, AnyJson] = Field(default_factory=dict)
    """Arguments of the call, each equal; there may be others."""

    block: Text = ""
    """Address of the agent's block, if it matters which one it is."""

    failed: Bool | None = None
    """`true`: calls that give an error, also those that are refused before the tool runs; `false`: those that give a
    result. Without it calls that reach the tool."""


class Asked(Model):
    """What a model is sent with one call."""

    that: tuple[Condition, ...] = ()
    """Expressions which see `system`, `messages`, `last`, `tools` and `call`."""


class Sent(Counted):
    """What a block is expected to send to its model."""

    records: tuple[Asked, ...] = ()
    """The first calls of the model, in order; more may follow, fewer may not."""


def _kind(value: Json) -> Json:
    if value not in KINDS:
        shown = f"`{value}`" if isinstance(value, str) else kind_of(value)
        hint = did_you_mean(str(value), KINDS)
        raise refusal(f"expected a kind of records of the run log, found {shown}", hint)
    return value


class Logged(Counted):
    """Records of the run log: at least one, if `count` does not say how many."""

    kind: Annotated[str, BeforeValidator(_kind, json_schema_input_type=Text)]
    """The kind of the records, such as `block.post-invoke` or `llm.turn`."""

    path: Text = ""
    """Address of their block, if it matters."""

    that: tuple[Condition, ...] = ()
    """Expressions that hold for them, which see the fields of a record, such as `body`, `error` and `attrs`."""


def _input(value: Json, info: ValidationInfo) -> Input | str | None:
    if value is None or isinstance(value, dict):
        return None if value is None else Input.model_validate(value, context=info.context)
    if not isinstance(value, str):
        hint = "write `{data: …, vars: …}`, or the name of one of the `inputs`"
        raise refusal(f"expected an input, found {kind_of(value)}", hint)
    return value


class Case(Model):
    """One call of the flow, and what is expected of it."""

    name: Name
    """Says what is tested; no other case of the file has it."""

    input: Annotated[Input | str | None, PlainValidator(_input)] = None
    """The name of one of the `inputs`, or `{data, vars}`; without it the flow gets an empty message."""

    mocks: dict[Name, MockSpec | None] = Field(default_factory=dict)
    """Like the file's, for this case: one replaces the file's of the same address, null takes it away."""

    models: dict[Name, tuple[Reply, ...] | None] = Field(default_factory=dict)
    """Like the file's, for this case: a list replaces the file's of the same name, null takes it away."""

    env: dict[Name, Text] = Field(default_factory=dict)
    """Environment variables, on top of the file's."""

    expect: Expectation = Expectation.model_construct()
    """How the flow ends; without it, that it completes."""

    spies: dict[Name, Spied] = Field(default_factory=dict)
    """Addresses of blocks, each with how messages cross it."""

    tools: tuple[ToolCall, ...] = ()
    """Tools that models call."""

    sent: dict[Name, Sent] = Field(default_factory=dict)
    """Addresses of blocks that ask a model, each with what the model is sent."""

    log: tuple[Logged, ...] = ()
    """Records of the run log."""

    timeout: TimeLimit | None = None
    """The longest that the call may take; without it, the file's."""

    skip: Text = ""
    """Why the case is not run; if it is empty, the case is run."""

    @property
    def needs_records(self) -> bool:
        """Whether the run log tells what is expected."""
        return bool(self.tools or self.sent or self.log)


class Suite(Model):
    """Test cases of one flow."""

    flow: Name
    """The flow that every case calls."""

    inputs: dict[Name, Input] = Field(default_factory=dict)
    """Inputs that cases share, by names."""

    mocks: dict[Name, MockSpec] = Field(default_factory=dict)
    """Addresses of blocks to replace in every case, each with what stands in for it."""

    models: dict[Name, tuple[Reply, ...]] = Field(default_factory=dict)
    """Names of connectors to models, each with the replies that are given in the place of the model."""

    env: dict[Name, Text] = Field(default_factory=dict)
    """Environment variables of every case."""

    timeout: TimeLimit = Duration("30s")
    """The longest that the call of a case may take."""

    cases: tuple[Case, ...] = Field(min_length=1)
    """The test cases."""


def read_suite(path: Path) -> Sheet[Suite]:
    """Read a suite. Raises ConfigError with all of its problems."""
    what, file = "suite", str(path)
    try:
        text = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError([Problem(f"suite `{path}` cannot be read: {reason}")]) from None
    problems: list[Problem] = []
    sheet = None
    try:
        sheet = read(Suite, text, file, what)
        document = sheet.document
    except ConfigError as error:
        problems += error.problems
        try:
            document = parse(text, file)
        except ConfigError:
            raise error from None
    problems += _references(document)
    if problems or sheet is None:
        raise ConfigError(sorted(problems, key=lambda problem: problem.location or (file, 0, 0)))
    return sheet


# ---------------------------------------------------------------- names that refer to something


class _Fault(NamedTuple):
    path: Keys
    message: str
    hint: str | None
    key: bool = False


def _references(document: Document) -> Iterator[Problem]:
    """What is wrong between the cases and the rest of the file, as far as both can be read."""
    suite = document.data if isinstance(document.data, dict) else {}
    cases = suite.get("cases")
    for fault in _faults(suite, cases if isinstance(cases, list) else []):
        problem = document.problem(fault.message, fault.path, key=fault.key, hint=fault.hint)
        yield replace(problem, message=f"parse suite: {problem.message}")


def _faults(suite: Mapping[str, Json], cases: list[Json]) -> Iterator[_Fault]:
    inputs = _mapping(suite.get("inputs"))
    names: Counter[str] = Counter()
    for index, case in enumerate(cases):
        if not isinstance(case, dict):
            continue
        place: Keys = ("cases", index)
        name, named_input = case.get("name"), case.get("input")
        if isinstance(name, str):
            names[name] += 1
            if names[name] == 2:
                yield _Fault((*place, "name"), f'two cases are called "{name}"', "give one of them another name")
        if isinstance(named_input, str) and named_input not in inputs:
            text = f'there is no input "{named_input}" (inputs: {", ".join(inputs) or "none"})'
            yield _Fault((*place, "input"), text, did_you_mean(named_input, inputs) or "add it under `inputs`")
        for section, word in (("mocks", "mock"), ("models", "model")):
            there = _mapping(suite.get(section))
            for key, value in _mapping(case.get(section)).items():
                if value is None and key not in there:
                    text = f'null takes the file\'s {word} "{key}" away, but the file has none'
                    yield _Fault((*place, section, key), text, did_you_mean(key, there) or "remove it", key=True)


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}
