"""The settings of a model whose replies are written down."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator
from pydantic_core import ValidationError

from octo.agent.attachments import decode
from octo.chat_connector import ChatConnector
from octo.errors import ConfigError, OctoError
from octo.fields import AnyJson, Duration, Expression, Int, Model, Name, Number, Text, compile_expression, one_of
from octo.llm import chat
from octo.llm.wires import scripted
from octo.refusals import Refusals, refusal, refuse
from octo.values import Json, dumps, kind_of, render

if TYPE_CHECKING:
    from octo.runtime import Runtime


# ---------------------------------------------------------------- a reply


def _arguments(value: Json) -> Json:
    if isinstance(value, dict | str):
        return value
    raise refusal(f"expected a mapping or text, found {kind_of(value)}")


class Call(Model):
    """A tool call of a reply."""

    name: Name
    """The tool."""

    args: Annotated[AnyJson, AfterValidator(_arguments)] = Field(default_factory=dict)
    """The arguments; text is played as it is, so that it can also be broken JSON."""

    id: Name | None = None
    """Id of the call; by default `call_1`, `call_2`, …, counted over the run."""

    def scripted(self) -> scripted.Call:
        arguments = self.args if isinstance(self.args, str) else dumps(self.args)
        return scripted.Call(self.name, arguments, self.id or "")


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise refusal(f"expected base64 text, found {kind_of(value)}")
    try:
        return decode(value)
    except ValueError as error:
        raise refusal(f"`data` {error}") from None


class File(Model):
    """A file that the model produces."""

    mime_type: Name
    """MIME type of the bytes."""

    data: Annotated[bytes, BeforeValidator(_bytes)]
    """The bytes as base64."""

    name: Text = ""
    """File name."""

    def scripted(self) -> chat.File:
        return chat.File(self.mime_type, self.data, self.name)


class Usage(Model):
    """Tokens that the call reports; what is left out is unknown."""

    input_tokens: Int | None = None
    """Tokens read, as the provider counts them."""
    output_tokens: Int | None = None
    """Tokens written, reasoning included."""
    thinking_tokens: Int | None = None
    """Tokens of the reasoning."""
    cached_tokens: Int | None = None
    """Tokens read from the prompt cache."""
    cache_write_tokens: Int | None = None
    """Tokens written to the prompt cache."""
    prompt_tokens: Int | None = None
    """Everything that was read; by default `inputTokens`."""
    reported_cost_usd: Number | None = Field(default=None, alias="reportedCostUSD")
    """What the call cost, in US dollars."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refusals = Refusals()
        for key, name in self.yaml_keys().items():
            number = getattr(self, name)
            if number is not None and not 0 <= number < math.inf:
                refusals.add(f"expected 0 or more, found {number}", key)
        refusals.raise_if_any()
        return self

    def scripted(self) -> chat.Usage:
        return chat.Usage(**{name: getattr(self, name) for name in type(self).model_fields})


def _seconds(value: Any) -> Any:
    """A bare number is in seconds, as in the header of that name."""
    return f"{value}s" if type(value) in (int, float) else value


class Error(Model):
    """The call fails instead of giving an answer."""

    message: Text
    """What the provider says."""

    status: Int | None = None
    """Fail like an HTTP answer of this status; without it like a connection that broke."""

    retry_after: Annotated[Duration, BeforeValidator(_seconds, json_schema_input_type=Duration | float)] | None = None
    """The wait that the provider asks for; a bare number is in seconds."""

    after_text: Text = ""
    """A streamed call shows this text before it breaks."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refusals = Refusals()
        if self.status is not None and not 400 <= self.status <= 599:
            refusals.add(f"expected a status from 400 to 599, found {self.status}", "status")
        refusals.raise_if_any()
        return self

    def scripted(self) -> scripted.Failure:
        wait = self.retry_after.seconds if self.retry_after else None
        return scripted.Failure(self.message, self.status, wait, self.after_text)


_STOPS = ("end_turn", "tool_use", "max_tokens", "refusal")


class Reply(Model):
    """What the model answers to one call."""

    text: AnyJson = None
    """Text of the answer; any other value is written as compact JSON."""

    calls: tuple[Call, ...] = ()
    """Tools that the model asks for."""

    thinking: Text = ""
    """Reasoning before the answer."""

    files: tuple[File, ...] = ()
    """Files that the model produces."""

    stop: Annotated[Literal["end_turn", "tool_use", "max_tokens", "refusal"], one_of(*_STOPS)] | None = None
    """Why the model stops; by default `tool_use` with calls, else `end_turn`."""

    usage: Usage | None = None
    """Tokens to report; estimated from the text by default, `{}` reports none."""

    delay: Duration | None = None
    """Wait before the reply."""

    error: Error | None = None
    """The call fails instead; nothing but `delay` goes with it, and `usage`, if it tells what it used up."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refusals = Refusals()
        if self.error is not None:
            for key in ("text", "calls", "thinking", "files", "stop"):
                if key in self.model_fields_set:
                    hint = "a stream that breaks after some text is `error: {afterText: …}`" if key == "text" else None
                    refusals.add(f"`{key}` has no effect in a reply with `error`", key, hint=hint, at="key")
        refusals.raise_if_any()
        return self

    def scripted(self) -> scripted.Reply:
        return scripted.Reply(
            text="" if self.text is None else render(self.text),
            calls=tuple(call.scripted() for call in self.calls),
            thinking=self.thinking,
            files=tuple(file.scripted() for file in self.files),
            stop=self.stop,
            usage=self.usage.scripted() if self.usage else None,
            delay=self.delay.seconds if self.delay else 0,
            error=self.error.scripted() if self.error else None,
        )


def _condition(value: Any) -> Any:
    if isinstance(value, str):
        return compile_expression(str(value), bool, scripted.WHEN_NAMES)
    return value


class Rule(Reply):
    """A reply for every call on which a condition holds."""

    when: Annotated[Expression[bool], BeforeValidator(_condition)]
    """Sees `system`, `messages`, `last`, `tools` and `call`; must be true or false."""

    def rule(self) -> scripted.Rule:
        return scripted.Rule(self.when.program, self.scripted())


# ---------------------------------------------------------------- the connector


class Script(Model):
    """A file of replies."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["turns"]}, {"required": ["rules"]}]})

    turns: tuple[Reply, ...] = ()
    """Answered in order, one per model call."""

    rules: tuple[Rule, ...] = ()
    """The first rule whose `when` is true answers; it may answer any number of times."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refusals = Refusals()
        if not self.turns and not self.rules:
            refusals.add("a script holds at least one of `turns` and `rules`")
        refusals.raise_if_any()
        return self


def _read_script(value: Any, info: ValidationInfo) -> Any:
    """The script in a resource. What is wrong with it is reported with its place in that file."""
    if not isinstance(value, str) or info.context is None:
        raise refusal(f"expected the name of a file, found {kind_of(value)}")
    from octo.config.document import parse
    from octo.config.merge import merge
    from octo.config.problems import Describer

    try:
        document = parse(info.context.read(str(value)), str(value), what="script")
        if document.warnings:  # the replies of a second document would never be given
            raise ConfigError(document.warnings)
        if not isinstance(document.data, dict):
            raise ConfigError([document.problem(f"expected a mapping, found {kind_of(document.data)}", ())])
        merged, _ = merge([document])
        try:
            return Script.model_validate(merged.data, context=info.context)
        except ValidationError as error:
            problems = list(Describer(Script, merged, info.context).problems(error))
            raise refusal("; ".join(map(str, problems)), problems[0].hint if len(problems) == 1 else None) from error
    except OctoError as error:
        refuse(error)


class LlmScripted(ChatConnector, type="llm-scripted"):
    """A model whose replies are written down: no network, no key, the same answers in every run."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": [key]} for key in ("turns", "rules", "script")]}
    )

    reports_cost = True

    turns: tuple[Reply, ...] = ()
    """Answered in order, one per model call; each run begins at the first."""

    rules: tuple[Rule, ...] = ()
    """Asked before `turns`: the first rule whose `when` is true answers; it may answer any number of times."""

    script: Annotated[Script, BeforeValidator(_read_script, json_schema_input_type=Name)] | None = None
    """A YAML file that holds `turns` and `rules`, relative to the config directory; they come after those here."""

    model: Name = scripted.NAME
    """Reported as the model that served."""

    on_exhausted: Annotated[Literal["error", "repeat"], one_of("error", "repeat")] = "error"
    """What happens when `turns` are used up: the call fails, or the last turn answers again."""

    chunk_size: Int = 8
    """Characters per fragment of a streamed answer."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refusals = Refusals()
        if not (self.turns or self.rules or self.script):
            refusals.add("llm-scripted requires at least one of `turns`, `rules` and `script`")
        if self.chunk_size < 1:
            refusals.add(f"expected 1 or more, found {self.chunk_size}", "chunkSize")
        refusals.raise_if_any()
        return self

    def knows_web_search(self, model: str) -> bool:
        return True

    @property
    def embeds(self) -> bool:
        return True

    @asynccontextmanager
    async def connect(self, runtime: Runtime) -> AsyncIterator[scripted.ScriptedModel]:
        script = self.script or Script.model_construct()
        yield scripted.ScriptedModel(
            [reply.scripted() for reply in (*self.turns, *script.turns)],
            [rule.rule() for rule in (*self.rules, *script.rules)],
            model=self.model,
            on_exhausted=self.on_exhausted,
            chunk_size=self.chunk_size,
            instance=self.instance,
        )
