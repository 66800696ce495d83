"""What a call is made with to look inside it: its input, mocks, spies, a breakpoint, models; the file that says so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import ConfigDict, Field, model_validator

from octo.config.sheet import Sheet, read
from octo.connector import Connector
from octo.connectors.llm_scripted import LlmScripted, Reply
from octo.errors import ConfigError, Problem
from octo.fields import AnyJson, Bool, Expression, Model, Name, Text
from octo.llm.wires.scripted import UsedUp
from octo.refusals import Refusals

if TYPE_CHECKING:
    from octo.doubles import Stage
    from octo.llm.chat import ChatModel, ChatRequest, ChatResponse, OnDelta
    from octo.llm.embedding import Embedded, EmbedRequest
    from octo.runtime import Runtime


class MockCase(Model):
    """What a mock does to a message: exactly one of `body`, `error` and `drop`."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": [key]} for key in ("body", "error", "drop")]})

    null_keys = frozenset({"body"})

    when: Expression[bool] | None = None
    """Read on the message that the block receives; the first case for which it is true applies."""

    body: AnyJson = None
    """What the body becomes; a null that stands alone counts, one beside another key does not."""

    vars: dict[str, AnyJson] = Field(default_factory=dict)
    """Variables to set, beside `body`."""

    error: Text = ""
    """Fail with this text."""

    drop: Bool = False
    """Filter the message out."""

    @model_validator(mode="after")
    def _does_one_thing(self) -> Self:
        refusals = Refusals()
        alone = "body" in self.model_fields_set and not self.error and not self.drop
        given = [
            key
            for key, is_given in (("body", self.body is not None or alone), ("error", self.error), ("drop", self.drop))
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

    models: dict[Name, tuple[Reply, ...]] = Field(default_factory=dict)
    """Names of connectors to models, each with the replies that are given in the place of the model."""


def read_debug_config(path: Path) -> Sheet[DebugConfig]:
    """Read a debug config. Raises ConfigError with all of its problems."""
    what = f'debug config "{path}"'
    try:
        text = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError([Problem(f"parse {what}: it cannot be read: {reason}")]) from None
    return read(DebugConfig, text, str(path), what, title="the debug config", unknown="field {} not found")


# ---------------------------------------------------------------- written models


def acting(models: Mapping[str, Sequence[Reply]]) -> dict[str, Connector]:
    """Connectors that give written replies, by the names of those in whose place they act."""
    found: dict[str, Connector] = {}
    for name, turns in models.items():
        found[name] = Acting.model_construct(script=LlmScripted.model_construct(turns=tuple(turns)))
        found[name].named(name)
    return found


class Acting(Connector, category="llm"):
    """A connector to a written model, which tells the stage of the run when a reply is missing."""

    script: LlmScripted

    @asynccontextmanager
    async def open(self, runtime: Runtime) -> AsyncIterator[Written]:
        async with self.script.open(runtime) as model:
            yield Written(model, self.instance, runtime.stage)


class Written:
    """A model whose replies are written down for one call."""

    def __init__(self, model: ChatModel, name: str, stage: Stage | None) -> None:
        self._model = model
        self._name = name
        self._stage = stage

    @property
    def media_types(self) -> frozenset[str] | None:
        return self._model.media_types

    def answers_by_tool(self, model: str, *, with_tools: bool) -> bool:
        return self._model.answers_by_tool(model, with_tools=with_tools)

    @property
    def embeds(self) -> bool:
        return self._model.embeds

    async def embed(self, request: EmbedRequest) -> Embedded:
        return await self._model.embed(request)

    async def complete(
        self, request: ChatRequest, *, session: MutableMapping[object, Any], on_delta: OnDelta | None = None
    ) -> ChatResponse:
        if self._stage is not None:
            self._stage.asked[self._name] += 1
        try:
            return await self._model.complete(request, session=session, on_delta=on_delta)
        except UsedUp as error:
            if self._stage is not None:
                self._stage.used_up(self._name, error.call, error.asked)
            raise
