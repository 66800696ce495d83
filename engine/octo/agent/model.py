"""How a model is asked: the settings that an agent has beside its tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, Protocol, Self, cast, runtime_checkable

from pydantic import model_validator

from octo.agent.authored import OF_BRAINS
from octo.agent.form import Form
from octo.agent.memory.compaction import DEFAULT_TOKENS, Bounds
from octo.agent.memory.policy import Policy
from octo.agent.skills import Skill, advertised, skill_faults
from octo.block import Finding
from octo.errors import did_you_mean
from octo.fields import Int, JsonSchema, LlmName, Model, Number, Refusals, ResourceText, Text, one_of

if TYPE_CHECKING:
    from octo.config.model import Config
    from octo.observe import AgentStamp

_TURNS: Final = 8
_MOST_TURNS: Final = 1000
_AT_ONCE: Final = 10


@runtime_checkable
class KnowsEfforts(Protocol):
    """A connector whose API takes certain words only as `reasoningEffort`."""

    efforts: ClassVar[tuple[str, ...]]


class Brain(Model):
    """A prompt and a model."""

    connector: LlmName | None = None
    """Name of a configured connector of an `llm-*` type."""

    prompt: ResourceText | None = None
    """What the agent is to do: text, or `{resource: FILE}` for a file below the config directory."""

    guardrail: Text = ""
    """When to stop trying. With a `default` the model can then take the default path of its own accord."""

    model: Text | None = None
    """Model id; without it the connector's."""

    temperature: Number | None = None
    """Sent only when it is set."""

    max_tokens: Int | None = None
    """Most tokens of one answer; without it the connector's."""

    reasoning_effort: Text | None = None
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
    """How many tokens the whole prompt may have, before the conversation in it is made shorter; 0 means 200000."""

    memory_compaction: Text = "prune"
    """How that is done: `prune` leaves the oldest exchanges out, `summarize` has the model sum them up."""

    memory: Policy | None = None
    """What is remembered from run to run, for example `{kind: window, contextLength: 20}`; without it nothing."""

    messages_context_length: Int | None = None
    """Oldest spelling of `memory: {kind: auto, contextLength: N}`; `memory` counts before it."""

    skills: tuple[Skill, ...] = ()
    """Instructions that the model loads when it needs them."""

    spellings: ClassVar[Mapping[str, str]] = OF_BRAINS

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
        """Note everything about the values that cannot be used."""
        required = self.required()
        absent = [what for key, (what, given) in required.items() if not given and key not in self.model_fields_set]
        if absent:
            refusals.add(f"ai-agent requires {', '.join(absent)}")
        for key, (what, given) in required.items():
            if not given and key in self.model_fields_set:
                refusals.add(f"ai-agent requires {what}, found none", key)
        if self.max_iterations > _MOST_TURNS:
            refusals.add(
                f"ai-agent: `maxIterations` is at most {_MOST_TURNS}, found {self.max_iterations}", "maxIterations"
            )
        if self.max_parallel_tools < 0:
            refusals.add(
                f"ai-agent: `maxParallelTools` is at least 1, found {self.max_parallel_tools}",
                "maxParallelTools",
                hint="1 runs the calls one after another; leave it out for 10",
            )
        if self.memory_compaction not in ("prune", "summarize", ""):
            refusals.add(
                f"ai-agent: `memoryCompaction` is `prune` or `summarize`, found `{self.memory_compaction}`",
                "memoryCompaction",
            )
        if self.max_tokens is not None and self.max_tokens < 1:
            refusals.add(f"ai-agent: `maxTokens` is at least 1, found {self.max_tokens}", "maxTokens")
        if self.messages_context_length is not None and self.messages_context_length < 0:
            refusals.add(
                f"ai-agent: `messagesContextLength` is at least 0, found {self.messages_context_length}",
                "messagesContextLength",
            )
        for text, path in skill_faults(self.skills):
            refusals.add(text, "skills", *path)

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
        for index, skill in enumerate(self.skills):
            if not skill.has_template(config.templates):
                yield Finding(
                    f"ai-agent skill `{skill.name}`: there is no template `{skill.resource}`",
                    ("skills", index, "resource"),
                    did_you_mean(skill.resource, config.templates) or "write the file, below the config directory",
                    warning=True,
                )


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
