"""Let a model do a task, with chains of blocks as its tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, assert_never

from pydantic import ConfigDict, Field, field_validator

from octo.agent import answer, attachments, roster
from octo.agent.bindings import Binding
from octo.agent.ending import Answered, Drawn, GaveUp, Halted
from octo.agent.inputs import FRAME, NOT_GIVEN, BlockInput
from octo.agent.link import Link
from octo.agent.loop import AgentLoop, Task
from octo.agent.memory.keyed import Keyed
from octo.agent.memory.settings import FACT_TOOLS, InThread
from octo.agent.model import Brain
from octo.agent.value import Agent, NamedAgent
from octo.agent.watched import Watched
from octo.agent.working import Working
from octo.block import Block, Finding, SubFlow
from octo.budget import Limits
from octo.config.address import blocks
from octo.errors import OctoError
from octo.fields import Bool, Int, Text
from octo.llm.chat import ChatMessage, user
from octo.refusals import Refusals, refusal
from octo.values import clean_text, dumps, render

if TYPE_CHECKING:
    from octo.agent.memory.history import History
    from octo.agent.nested import Entry
    from octo.config.explain import CallableTool
    from octo.config.model import Config
    from octo.message import Message
    from octo.run import Run

_NO_INPUT: Final = (
    "ai-agent: `attachments` requires `input`: without it the whole body is sent as JSON, and each file "
    "in the body would go out a second time as base64 text, stay there, and be paid for on every turn"
)
_SAY_INPUT: Final = "say in `input` what is asked, for example `input: body.question`"
_OF_AGENTS: Final = NamedAgent.yaml_keys().keys() - {"name", "description", "input", "attachments", "enabledTools"}
"""Keys that a block which links an agent leaves to it."""


class AiAgent(Block, InThread, Watched, Keyed, Agent, type="ai-agent", group="ai", composite=True):
    """Let a model do a task: it calls the tools as needed, and its final answer becomes the body."""

    model_config = ConfigDict(
        json_schema_extra={
            "required": [],
            "anyOf": [
                {
                    "required": ["connector", "tools"],
                    "anyOf": [{"required": ["prompt"]}, {"required": ["system_prompt"]}],
                },
                {"required": ["agent"]},
                {"required": ["ref"]},
            ],
        }
    )

    link: Link | None = Field(None, alias="agent")
    """An agent with a name that does the work, in place of `connector`, `prompt` and `tools`."""

    input: BlockInput | None = None
    """What the model is asked: an expression, or a fixed text as `{value: TEXT}`. Without it the body, as JSON."""

    attachments: BlockInput | None = None
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

    @field_validator("answer")
    @classmethod
    def _is_a_format(cls, answer: str) -> str:
        if answer not in ("json", "text", ""):
            raise refusal(f"ai-agent: `answer` is `json` or `text`, found `{answer}`")
        return answer

    @field_validator("memory_max_tokens")
    @classmethod
    def _is_renamed(cls, tokens: int | None) -> int | None:
        if tokens:
            raise refusal(
                "ai-agent: `memoryMaxTokens` was renamed to `contextMaxTokens`, which is the budget of the whole "
                "prompt: system text, tools and conversation",
                at="key",
            )
        return tokens

    def required(self) -> dict[str, tuple[str, bool]]:
        return {} if self.link else super().required()

    def refuse(self, refusals: Refusals) -> None:
        super().refuse(refusals)
        if self.link:
            self._refuse_what_the_agent_says(self.link, refusals)
        if self._lacks_input(self) and not self.link:
            refusals.add(_NO_INPUT, "attachments", hint=_SAY_INPUT)
        self.refuse_keys(refusals, self.policy, in_thread=self.memory_thread_id is not None)
        self.refuse_thread(refusals, [tool.name for tool in self.tools])

    def _refuse_what_the_agent_says(self, link: Link, refusals: Refusals) -> None:
        keys = {key: name for key, name in self.yaml_keys().items() if key in _OF_AGENTS}
        for key, name in keys.items():
            if name in self.model_fields_set and (key != "tools" or self.tools):
                refusals.add(
                    f'ai-agent: `{key}` belongs to agent "{link.name}", which the block links',
                    key,
                    hint="change the agent, or put all of it into the block: `octo agents unlink` shows how",
                    at="key",
                )

    def check(self, config: Config) -> Iterator[Finding]:
        yield from self.check_watching()
        if self.link is None:
            yield from self.check_agent(self, self.tools, config)

    def check_agent(self, brain: Brain, tools: tuple[Entry, ...], config: Config) -> Iterator[Finding]:
        """What is wrong with the agent, the block's own or one that it links, once the whole config is known."""
        yield from brain.check_brain(config)
        yield from self.check_keys(brain.policy)
        yield from self.check_thread()
        yield from self._check_budget(brain, config)
        files = self._input("attachments", brain)
        if files.is_given:
            yield from attachments.check(self, brain.connector or "", config)
            yield from attachments.check_fixed(self, files.fixed)
        yield from self._check_memory([brain, *(tool.agent for tool in tools if isinstance(tool.agent, Brain))], config)
        yield from roster.check(roster.laid_over(tools, self.tool_inputs), brain, config)
        yield from roster.check_inputs(tools)
        named = getattr(brain, "tools", tools)  # those that cannot be read have names all the same
        yield from roster.check_overlay(named, self.tool_inputs)
        yield from roster.check_enabled(named, self._input("enabled_tools", brain))

    def _check_budget(self, brain: Brain, config: Config) -> Iterator[Finding]:
        """A limit of money needs someone who tells what a call costs."""
        connector = config.connector(brain.connector or "")
        if self.budget is None or self.budget.max_cost_usd is None or getattr(connector, "reports_cost", False):
            return
        model = brain.model or getattr(connector, "model", "")
        if not any(key.startswith(f"{brain.connector}:{model}") for key in config.ai_pricing):
            yield Finding(
                f'ai-agent: what a call of connector "{brain.connector}" costs is not known',
                ("budget", "maxCostUSD"),
                f"give rates: `aiPricing: {{'{brain.connector}:{model or 'MODEL'}': {{input: …, output: …}}}}`",
            )

    def _check_memory(self, agents: list[Brain], config: Config) -> Iterator[Finding]:
        """What is kept is found again by the block's address, so that must not depend on where it stands."""
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
        working = await self._agent(run)
        brain = working.brain
        thread = self.thread_of(message, run, block=self.address, keep_files=self.keep_attachments)
        history = self.history_for(
            brain.policy, message, run, block=self.address, makes_image=brain.output_type == "image"
        )
        task = Task(
            address=self.address,
            json_only=self.answer != "text" or brain.form is not None,
            opening=self._opening(brain, message, run, history),
            roster=(await self._roster(working, message, run)).with_tools(self.tools_of_memory(thread)),
            may_give_up=self.default is not None and bool(brain.guardrail.strip()),
            limits=self.budget,
            keep_attachments=self.keep_attachments,
            response_media=self.response_media.strip(),
            memory=self.written_down(thread.memory if thread else history.memory, message, run, block=self.label),
            keeps_all=history.keeps_all,
            bounds=brain.bounds,
            scope=thread.scope(self.address) if thread else "",
            events=self.events.process if self.events is not None else None,
            emit=self.emit,
            stream=self.stream,
            stamp=working.stamp,
        )
        loop = AgentLoop(brain, task, message, run)
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

    # ------------------------------------------------------------ the agent

    @cached_property
    def _own(self) -> Working:
        """The agent that is written in the block, with its tools bound as the block has them."""
        return Working(self, roster.laid_over(self.tools, self.tool_inputs))

    async def _agent(self, run: Run) -> Working:
        """The agent that does the work, fixed for this run. Raises OctoError."""
        if self.link is None:
            return self._own
        from octo.agent.linked import resolved

        working = await resolved(self.link, self, run, self.tool_inputs)
        self._refuse_together(self.link.name, working)
        return working

    def _refuse_together(self, name: str, working: Working) -> None:
        """Raises OctoError where the block and the agent that it links do not go together."""
        if self.memory_thread_id is not None and working.brain.policy.remembers:
            raise OctoError(
                f'ai-agent: `memory` of agent "{name}" and `memoryThreadId` of the block are two ways to remember',
                hint="remove one of the two",
            )
        for tool in working.tools if self.user_memory else ():
            if tool.name in FACT_TOOLS:
                raise OctoError(f'agent "{name}": tool `{tool.name}`: the name is reserved while `userMemory` is on')
        if self._lacks_input(working.brain):
            raise OctoError(_NO_INPUT, hint=_SAY_INPUT)

    def _input(self, name: str, brain: Brain) -> BlockInput:
        """An input as the block gives it, else as the agent does."""
        for owner in (self, brain):
            found = getattr(owner, name, None)
            if isinstance(found, BlockInput) and found.is_given:
                return found
        return NOT_GIVEN

    def _lacks_input(self, brain: Brain) -> bool:
        return self._input("attachments", brain).is_given and not self._input("input", brain).is_given

    def callable_tools(self, config: Config) -> Iterator[CallableTool]:
        return roster.explained(self.tools, self.tool_inputs, config)

    async def _roster(self, working: Working, message: Message, run: Run) -> roster.Roster:
        """What the model is offered in this run."""
        entries = working.tools
        if count := roster.unmatched(entries, self.tool_inputs):
            run.log("info", "names in toolInputs that no tool has", block=self.address, count=float(count))
        enabled = self._input("enabled_tools", working.brain)
        if enabled.is_given:
            entries = roster.narrowed(entries, enabled.of(message, run, "ai-agent: enabledTools"), run)
        return roster.offered(await roster.described(entries, run), working.brain.skills)

    def _opening(self, brain: Brain, message: Message, run: Run, history: History) -> ChatMessage | None:
        """The first user turn; none when the history ends with what is asked."""
        asked = self._input("input", brain)
        if not asked.is_given:
            return user(f"{FRAME}\n{dumps(message.body)}")
        text = clean_text(render(asked.of(message, run, "ai-agent: input")))
        if not text:
            if history.lacking:
                raise OctoError(f"ai-agent: {history.lacking}")
            return None
        files = self._input("attachments", brain).of(message, run, "ai-agent: attachments")
        return user(text, *attachments.of_block(self, files, run))

    # ------------------------------------------------------------ what becomes of it

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
