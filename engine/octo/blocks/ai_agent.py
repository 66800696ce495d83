"""Let a model do a task, with chains of blocks as its tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, assert_never

from pydantic import BeforeValidator, Field

from octo.agent import answer, attachments, roster
from octo.agent.bindings import Binding
from octo.agent.ending import Answered, Drawn, GaveUp, Halted
from octo.agent.inputs import BlockInput
from octo.agent.loop import AgentLoop, Task
from octo.agent.memory.keyed import Keyed
from octo.agent.memory.settings import InThread
from octo.agent.model import Brain
from octo.agent.value import Agent
from octo.agent.watched import Watched
from octo.block import Block, Finding, SubFlow
from octo.budget import Limits
from octo.config.address import blocks
from octo.errors import OctoError
from octo.fields import Bool, Expression, Int, Refusals, Text
from octo.llm.chat import ChatMessage, user
from octo.values import Json, clean_text, dumps

if TYPE_CHECKING:
    from octo.agent.memory.history import History
    from octo.agent.nested import Entry
    from octo.config.explain import CallableTool
    from octo.config.model import Config
    from octo.message import Message
    from octo.run import Run

_FRAME: Final = "The input of the task, as JSON:"


def _given(value: Json) -> Json:
    return None if isinstance(value, str) and not value.strip() else value


_BLANK_IS_NONE: Final = BeforeValidator(_given)


class AiAgent(Block, InThread, Watched, Keyed, Agent, type="ai-agent", group="ai", composite=True):
    """Let a model do a task: it calls the tools as needed, and its final answer becomes the body."""

    input: Annotated[Expression[str] | None, _BLANK_IS_NONE] = None
    """What the model is asked; without it the whole body, as JSON."""

    attachments: Annotated[Expression | None, _BLANK_IS_NONE] = None
    """Files of the question: a list of `{mimeType, data, name}`, `data` being base64 or a data URL. Needs `input`."""

    keep_attachments: Bool = False
    """Send the files with every model call, not only with the first one."""

    response_media: Text = ""
    """Variable to which files that the model produces are appended."""

    answer: Text = "json"
    """`json` asks the model for JSON only, `text` leaves the format to the prompt."""

    tool_inputs: dict[str, dict[str, Binding]] = Field(default_factory=dict)
    """Parameters of tools that this block binds in its own way: names of tools, each with what `inputs` takes."""

    enabled_tools: BlockInput | None = None
    """The names of the tools that the model is offered, a list; without it all of them."""

    budget: Limits | None = None
    """The most that one run may spend; beyond that the default path is taken."""

    default: SubFlow | None = None
    """What runs when the model refuses, or comes to no answer."""

    memory_max_tokens: Int | None = None
    """Retired: `contextMaxTokens` took its place."""

    spellings: ClassVar[Mapping[str, str]] = {
        **Agent.spellings,
        "user_message": "input",
        "user_attachments": "attachments",
        "user_images": "attachments",
        "memory_id": "memoryId",
        "previous_messages": "previousMessages",
        "tool_inputs": "toolInputs",
        "enabled_tools": "enabledTools",
    }

    def refuse(self, refusals: Refusals) -> None:
        super().refuse(refusals)
        if self.answer not in ("json", "text", ""):
            refusals.add(f"ai-agent: `answer` is `json` or `text`, found `{self.answer}`", "answer")
        if self.attachments is not None and self.input is None:
            refusals.add(
                "ai-agent: `attachments` requires `input`: without it the whole body is sent as JSON, and each file "
                "in the body would go out a second time as base64 text, stay there, and be paid for on every turn",
                "attachments",
                hint="say in `input` what is asked, for example `input: body.question`",
            )
        self.refuse_watching(refusals)
        self.refuse_keys(refusals, self.policy, in_thread=self.memory_thread_id is not None)
        self.refuse_thread(refusals, [tool.name for tool in self.tools])
        if self.memory_max_tokens:
            refusals.add(
                "ai-agent: `memoryMaxTokens` was renamed to `contextMaxTokens`, which is the budget of the whole "
                "prompt: system text, tools and conversation",
                "memoryMaxTokens",
                at="key",
            )

    def check(self, config: Config) -> Iterator[Finding]:
        yield from self.check_brain(config)
        yield from self._check_budget(config)
        if self.attachments is not None:
            yield from attachments.check(self, self.connector or "", config)
        yield from self._check_memory(config)
        yield from self.check_watching()
        yield from roster.check(self._entries, self, config)
        yield from roster.check_overlay(self.tools, self.tool_inputs)

    def _check_budget(self, config: Config) -> Iterator[Finding]:
        """A limit of money needs someone who tells what a call costs."""
        connector = config.connector(self.connector or "")
        if self.budget is None or self.budget.max_cost_usd is None or getattr(connector, "reports_cost", False):
            return
        model = self.model or getattr(connector, "model", "")
        if not any(key.startswith(f"{self.connector}:{model}") for key in config.ai_pricing):
            yield Finding(
                f'ai-agent: what a call of connector "{self.connector}" costs is not known',
                ("budget", "maxCostUSD"),
                f"give rates: `aiPricing: {{'{self.connector}:{model or 'MODEL'}': {{input: …, output: …}}}}`",
            )

    def _check_memory(self, config: Config) -> Iterator[Finding]:
        """What is kept is found again by the block's address, so that must not depend on where it stands."""
        agents: list[Brain] = [self, *(tool.agent for tool in self.tools if isinstance(tool.agent, Brain))]
        if not any(agent.policy.remembers for agent in agents):
            return
        if not self.place.name:
            hint = "add `name:`; what is remembered belongs to that name"
            yield Finding("ai-agent requires a `name` while memory is on", hint=hint)
        elif any(block.address == self.address and block is not self for _, block in blocks(config)):
            hint = "give each a name of its own, or they would share one memory"
            yield Finding(f"ai-agent: two blocks of one chain have the name `{self.place.name}`", hint=hint)
        if not config.flows[int(self.place.path[1])].name:
            hint = "add `name:` to the flow; what is remembered belongs to that name, too"
            yield Finding("ai-agent requires a flow with a `name` while memory is on", hint=hint)

    async def execute(self, message: Message, run: Run) -> Message:
        thread = self.thread_of(message, run, block=self.address, keep_files=self.keep_attachments)
        history = self.history_for(
            self.policy, message, run, block=self.address, makes_image=self.output_type == "image"
        )
        task = Task(
            address=self.address,
            json_only=self.answer != "text" or self.form is not None,
            opening=self._opening(message, run, history),
            roster=self._roster(message, run).with_tools(self.tools_of_memory(thread)),
            may_give_up=self.default is not None and bool(self.guardrail.strip()),
            limits=self.budget,
            keep_attachments=self.keep_attachments,
            response_media=self.response_media.strip(),
            memory=self.written_down(thread.memory if thread else history.memory, message, run, block=self.label),
            keeps_all=history.keeps_all,
            bounds=self.bounds,
            scope=thread.scope(self.address) if thread else "",
            events=self.events.process if self.events is not None else None,
            emit=self.emit,
            stream=self.stream,
        )
        loop = AgentLoop(self, task, message, run)
        ending = await loop.work()
        match ending:
            case Answered(text):
                self._fold(text, message, run)
                await loop.watch.done(text, is_empty=answer.is_empty(text))
            case Drawn(file):
                message.body = attachments.as_value(file)
                await loop.watch.done("")
            case Halted():
                message.stop()
            case GaveUp():
                if not loop.watch.stop_requested:
                    return await self._take_default_path(ending, message, run)
            case _:
                assert_never(ending)
        if loop.watch.stop_requested:
            message.stop()
        return message

    @cached_property
    def _entries(self) -> tuple[Entry, ...]:
        """The tools, bound as this block has them."""
        return roster.laid_over(self.tools, self.tool_inputs)

    def callable_tools(self, config: Config) -> Iterator[CallableTool]:
        return roster.explained(self.tools, self.tool_inputs, config)

    def _roster(self, message: Message, run: Run) -> roster.Roster:
        """What the model is offered in this run."""
        entries = self._entries
        if count := roster.unmatched(entries, self.tool_inputs):
            run.log("info", "names in toolInputs that no tool has", block=self.address, count=float(count))
        if self.enabled_tools is not None and self.enabled_tools.is_given:
            enabled = self.enabled_tools.of(message, run, "ai-agent: enabledTools")
            entries = roster.narrowed(entries, enabled, run)
        return roster.offered(entries, self.skills)

    def _opening(self, message: Message, run: Run, history: History) -> ChatMessage | None:
        """The first user turn; none when the history ends with what is asked."""
        if self.input is None:
            return user(f"{_FRAME}\n{dumps(message.body)}")
        text = clean_text(run.evaluate(self.input, message, "ai-agent: input"))
        if not text:
            if history.lacking:
                raise OctoError(f"ai-agent: {history.lacking}")
            return None
        return user(text, *attachments.evaluated(self, self.attachments, message, run))

    def _fold(self, text: str, message: Message, run: Run) -> None:
        if answer.is_empty(text):
            run.log("warn", "the final answer is empty, the body stays as it is", block=self.address)
        else:
            message.body = answer.fold(text)

    async def _take_default_path(self, ending: GaveUp, message: Message, run: Run) -> Message:
        if self.default is None:
            detail = f" ({ending.detail})" if ending.detail else ""
            raise OctoError(
                f"ai-agent: {ending.reason}{detail}, and no default path is configured",
                hint="add a `default` flow, which runs instead of an answer",
            )
        return await run.chain(self.default.process, message)
