"""How a model is asked: the settings that an agent has beside its tools."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    cast,
    runtime_checkable,
)

from pydantic import ValidationInfo, field_validator, model_validator

from octo.agent.arguments import Checker
from octo.agent.asking import said
from octo.agent.authored import OF_BRAINS
from octo.agent.form import Form
from octo.agent.memory.compaction import DEFAULT_TOKENS, Bounds
from octo.agent.memory.policy import Policy
from octo.agent.skills import Skill, advertised, skill_faults
from octo.block import Finding
from octo.errors import did_you_mean
from octo.fields import BLANK_IS_ABSENT, Int, JsonSchema, LlmName, Model, Number, ResourceText, Text, camel, one_of
from octo.refusals import Refusals, refusal
from octo.values import Json, dumps

if TYPE_CHECKING:
    from octo.config.model import Config
    from octo.observe import AgentStamp

_TURNS: Final = 8
_MOST_TURNS: Final = 1000
_AT_ONCE: Final = 10
_HOTTEST: Final = 2


class _Limits(NamedTuple):
    """The numbers that a setting may be."""

    least: float
    most: float
    told: str
    hint: str | None = None


_LIMITS: Final = {
    "max_iterations": _Limits(-math.inf, _MOST_TURNS, f"at most {_MOST_TURNS}"),
    "max_parallel_tools": _Limits(0, math.inf, "at least 1", "1 runs the calls one after another; leave it out for 10"),
    "max_tokens": _Limits(1, math.inf, "at least 1"),
    "messages_context_length": _Limits(0, math.inf, "at least 0"),
    "temperature": _Limits(0, math.inf, "at least 0"),
}


@runtime_checkable
class KnowsEfforts(Protocol):
    """A connector whose API takes certain words only as `reasoningEffort`."""

    efforts: ClassVar[tuple[str, ...]]


@runtime_checkable
class Thinks(Protocol):
    """A connector whose model thinks before it answers, within so many tokens if `thinking` is `budgeted`."""

    thinking: str
    thinking_budget: int | None


class Brain(Model):
    """A prompt and a model."""

    connector: LlmName | None = None
    """Name of a configured connector of an `llm-*` type."""

    prompt: ResourceText | None = None
    """What the agent is to do: text, or `{resource: FILE}` for a file below the config directory."""

    guardrail: Text = ""
    """When to stop trying. With a `default` the model can then take the default path of its own accord."""

    model: Annotated[Text | None, BLANK_IS_ABSENT] = None
    """Model id; without it the connector's."""

    temperature: Number | None = None
    """Sent only when it is set."""

    max_tokens: Int | None = None
    """Most tokens of one answer; without it the connector's."""

    reasoning_effort: Annotated[Text | None, BLANK_IS_ABSENT] = None
    """How hard to think, in the provider's own word; `none` is off. Without it the connector's setting."""

    output_type: Annotated[Literal["text", "image"], one_of("text", "image")] = "text"
    """What the answer is; an agent that makes an `image` calls no tools."""

    output_schema: JsonSchema | None = None
    """JSON Schema of the answer, as a mapping or as text that holds JSON. It counts when it has properties.

    The model is asked for an answer of that form, is shown once where it failed, and then the block fails.
    """

    max_iterations: Int = _TURNS
    """Most model calls of one run, at most 1000; 0 or less means 8."""

    max_parallel_tools: Int = _AT_ONCE
    """How many tool calls of one turn run at once; 1 runs them one after another, 0 means 10."""

    context_max_tokens: Int = DEFAULT_TOKENS
    """How many tokens a prompt may have, before the conversation in it is made shorter; 0 or less means 200000."""

    memory_compaction: Text = "prune"
    """How that is done: `prune` leaves the oldest exchanges out, `summarize` has the model sum them up."""

    memory: Policy | None = None
    """What is remembered from run to run, for example `{kind: window, contextLength: 20}`; without it nothing."""

    messages_context_length: Int | None = None
    """Oldest spelling of `memory: {kind: auto, contextLength: N}`; `memory` counts before it."""

    skills: tuple[Skill, ...] = ()
    """Instructions that the model loads when it needs them."""

    spellings: ClassVar[Mapping[str, str]] = OF_BRAINS
    written: ClassVar[Mapping[str, Json]] = {}
    """All keys as they are written; an agent is told from others by them."""

    @model_validator(mode="wrap")
    @classmethod
    def _remember(cls, data: Any, validate: Callable[[Any], Self]) -> Self:
        agent = validate(data)
        if isinstance(data, dict):
            agent.__dict__["written"] = data
        return agent

    @cached_property
    def form(self) -> Form | None:
        """The form of the answer, where one is asked for."""
        schema = self.output_schema
        return Form(schema) if schema and schema.get("properties") and self.output_type == "text" else None

    @cached_property
    def inline_stamp(self) -> AgentStamp:
        """Which agent it is, if it is written in its block."""
        from octo.agent.stamp import inline

        return inline(self)

    @cached_property
    def policy(self) -> Policy:
        """Whether the agent remembers, in whichever spelling it says so."""
        return self.memory or Policy.of_length(self.messages_context_length or 0)

    @property
    def bounds(self) -> Bounds:
        """How long the prompt may be."""
        tokens = self.context_max_tokens if self.context_max_tokens > 0 else DEFAULT_TOKENS
        return Bounds(tokens, cast("Literal['prune', 'summarize']", self.memory_compaction or "prune"))

    def window(self, config: Config) -> int:
        """How many tokens the model reads at once, as far as that is said or known; else 0."""
        from octo.llm.facts import context_window  # here, for few agents keep all

        if self.memory is not None and self.memory.context_window:
            return self.memory.context_window
        connector: object = config.connector(self.connector or "")
        return context_window(self.model or getattr(connector, "model", None) or "") or 0

    @property
    def turns(self) -> int:
        """How many model calls one run may make."""
        return self.max_iterations if self.max_iterations > 0 else _TURNS

    @property
    def at_once(self) -> int:
        """How many tool calls of one turn may run at once."""
        return self.max_parallel_tools or _AT_ONCE

    @field_validator("prompt")
    @classmethod
    def _says_something(cls, prompt: ResourceText | None) -> ResourceText | None:
        return prompt if prompt is None else said(prompt, "ai-agent")

    @field_validator("max_iterations", "max_parallel_tools", "max_tokens", "messages_context_length", "temperature")
    @classmethod
    def _means_something(cls, number: float | None, info: ValidationInfo) -> float | None:
        limits = _LIMITS[info.field_name or ""]
        if number is not None and not limits.least <= number <= limits.most:
            raise refusal(
                f"ai-agent: `{camel(info.field_name or '')}` is {limits.told}, found {dumps(number)}", limits.hint
            )
        return number

    @field_validator("output_schema")
    @classmethod
    def _can_be_checked(cls, schema: dict[str, Json] | None) -> dict[str, Json] | None:
        if schema is not None and (reason := Checker(schema).unusable):
            raise refusal(f"ai-agent: `outputSchema` is not usable: {reason}")
        return schema

    @field_validator("memory_compaction")
    @classmethod
    def _is_a_way(cls, way: str) -> str:
        if way not in ("prune", "summarize", ""):
            raise refusal(f"ai-agent: `memoryCompaction` is `prune` or `summarize`, found `{way}`")
        return way

    @field_validator("skills")
    @classmethod
    def _have_what_they_need(cls, skills: tuple[Skill, ...]) -> tuple[Skill, ...]:
        refusals = Refusals()
        for text, path in skill_faults(skills):
            refusals.add(text, *path)
        refusals.raise_if_any()
        return skills

    @model_validator(mode="after")
    def _is_usable(self) -> Self:
        refusals = Refusals()
        self.refuse(refusals)
        refusals.raise_if_any()
        return self

    def required(self) -> dict[str, tuple[str, bool]]:
        """The keys that an agent cannot do without: what each is called, and whether it is given."""
        return {
            "connector": ("a connector", self.connector is not None),
            "prompt": ("a prompt", self.prompt is not None and bool(self.prompt.strip())),
        }

    def refuse(self, refusals: Refusals) -> None:
        """Note everything about keys together that cannot be used."""
        required = self.required()
        absent = [what for key, (what, given) in required.items() if not given and key not in self.model_fields_set]
        if absent:
            refusals.add(f"ai-agent requires {', '.join(absent)}")
        for key, (what, given) in required.items():
            if not given and key in self.model_fields_set:
                refusals.add(f"ai-agent requires {what}, found none", key)

    def check_brain(self, config: Config) -> Iterator[Finding]:
        """What is wrong with the settings once the whole config is known."""
        effort = self.reasoning_effort
        connector: object = config.connector(self.connector or "")
        if effort and isinstance(connector, KnowsEfforts) and effort not in connector.efforts:
            yield Finding(
                f'ai-agent: connector "{self.connector}" knows no effort `{effort}`',
                ("reasoningEffort",),
                did_you_mean(effort, connector.efforts),
            )
        cap = self.max_tokens
        if isinstance(connector, Thinks) and connector.thinking == "budgeted" and cap is not None and not effort:
            budget = connector.thinking_budget or 0
            if cap <= budget:
                yield Finding(
                    f"ai-agent: `maxTokens` is {cap}, not above the `thinkingBudget` {budget} of connector "
                    f'"{self.connector}", so the model does not think',
                    ("maxTokens",),
                    warning=True,
                )
        if self.temperature is not None and self.temperature > _HOTTEST:
            shown = dumps(self.temperature)
            yield Finding(
                f"ai-agent: `temperature` is {shown}, and no provider is known to take more than {_HOTTEST}",
                ("temperature",),
                warning=True,
            )
        if self.output_schema and self.form is None:
            why, hint = (
                "it has no `properties`",
                "it is for objects: `{type: object, properties: {…}}`",
            )
            if self.output_type == "image":
                why, hint = "the answer is an image", "remove it"
            yield Finding(f"ai-agent: `outputSchema` has no effect: {why}", ("outputSchema",), hint, warning=True)
        for index, skill in enumerate(self.skills):
            for finding in skill.check(config.templates):
                yield replace(finding, path=("skills", index, *finding.path))


_ACT: Final = (
    "You work on one task and act by calling the tools. Call them as needed, as often as needed, and rely on what "
    "they return. When the task is done, reply with the final result and call no more tools."
)
_BY_TOOL: Final = (
    "You work on one task and act by calling the tools. Call them as needed, as often as needed, and rely on what "
    "they return. When the task is done, give the final result by calling `{}`."
)
_MAKE: Final = "You work on one task, whose result is one image."
_JSON_ONLY: Final = (
    " The final result is JSON only, without prose around it and without code fences, "
    "unless the text that follows asks for another format."
)


def system_prompt(agent: Brain, *, json_only: bool, answer_tool: str = "") -> str:
    """What the model is told before the conversation; the same text in every request of every run.

    `answer_tool` is the name of the tool by which the answer is given, if it is.
    """
    if agent.output_type == "image":
        how = _MAKE
    elif answer_tool:
        how = _BY_TOOL.format(answer_tool)
    else:
        how = _ACT + (_JSON_ONLY if json_only else "")
    parts = [how, (agent.prompt or "").strip()]
    if agent.skills:
        parts.append(advertised(agent.skills))
    guardrail = agent.guardrail.strip()
    if guardrail:
        parts.append(f"Guardrail: {guardrail}")
    return "\n\n".join(parts)
