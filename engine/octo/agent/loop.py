"""The agent's loop: ask the model, run the tools it calls, until it answers or gives up."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from octo import budget
from octo.agent import answer, attachments
from octo.agent.calls import Calls
from octo.agent.ending import Answered, Drawn, Ending, GaveUp, Halted
from octo.agent.form import TAKEN
from octo.agent.memory import summary
from octo.agent.memory.compaction import Bounds, Context
from octo.agent.memory.session import Memory, NoMemory, Recalled, Transcript
from octo.agent.model import system_prompt
from octo.agent.reply import cut_off, is_malformed, limit, readable, remedy, unfit
from octo.agent.roster import Roster
from octo.agent.tools import GIVE_UP, Surroundings
from octo.agent.watch import Stopped, Watch
from octo.budget import Budget, Limits
from octo.config.pricing import bill, bill_of_failure
from octo.errors import OctoError, ProviderError
from octo.llm.chat import (
    ChatMessage,
    ChatModel,
    ChatRequest,
    ChatResponse,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from octo.values import dumps, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from octo.agent.events import EventType
    from octo.agent.model import Brain
    from octo.agent.reply import CutOff
    from octo.block import Chain
    from octo.llm.chat import ToolDefinition
    from octo.message import Message
    from octo.observe import AgentStamp
    from octo.run import Run

_DETAIL: Final = 2000
"""How many characters of the words of a refusal are kept."""


@dataclass(frozen=True, slots=True)
class Task:
    """What one run of an agent is to do, beyond what the agent itself says."""

    address: str
    """Of the block that runs the agent."""
    json_only: bool
    """Whether the model is asked for JSON without prose."""
    opening: ChatMessage | None
    """The first user turn, with the files that ride on it; none when the recalled conversation ends with one."""
    roster: Roster = field(default_factory=Roster)
    """What the model may call."""
    may_give_up: bool = False
    """Whether the model is offered to take the default path."""
    limits: Limits | None = None
    """The most that may be spent, if that is limited."""
    keep_attachments: bool = False
    """Send the files again with every later turn."""
    response_media: str = ""
    """Variable that receives the files that the model produces; empty for none."""
    memory: Memory = field(default_factory=NoMemory)
    """Where the conversation comes from and where it is kept."""
    keeps_all: bool = False
    """Whether all of the conversation is kept, its older part as a summary."""
    bounds: Bounds = field(default_factory=Bounds)
    """How long the prompt may be."""
    scope: str = ""
    """Stands before the names of tools in `vars.toolScope`; by default something new in every run."""
    events: Chain | None = None
    """Runs on each event, if there is someone to tell."""
    emit: tuple[EventType, ...] = ()
    """Which events there are; all if it is empty."""
    stream: bool = False
    """Whether answers are told in pieces, as they come."""
    stamp: AgentStamp | None = None
    """Which agent it is, if it is not written in its block."""


class AgentLoop:
    """One run of an agent. Tools work on the message; the transcript is what the model has seen and said."""

    def __init__(self, agent: Brain, task: Task, message: Message, run: Run) -> None:
        self.agent = agent
        self.task = task
        self.message = message
        self.run = run
        self.model = run.connector(agent.connector or "", ChatModel)  # type: ignore[type-abstract]  # never instantiated
        self.transcript = Transcript(Recalled(), task.opening)
        self.usage: Usage | None = None
        self.iteration = 0
        self.watch = Watch(task, message, run)
        self._form = agent.form
        self._definitions = self._offered()
        self._answer_tool = self._tool_of_answer()
        self._system = system_prompt(
            agent, json_only=task.json_only, answer_tool=self._answer_tool.name if self._answer_tool else ""
        )
        self.context = self._context()
        self._was_shown = False
        """Whether the model was shown where its answer has not the form that is asked for."""
        self._insists = False
        """Whether the model was told to call the tool of the answer, as it had ended without."""
        self._calls = Calls(
            task.roster.tools,
            message,
            Surroundings(run, message.body, task.scope or f"run-{run.runtime.new_id()}"),
            at_once=agent.at_once,
            watch=self.watch,
        )
        self._was_cut_off = False
        self._budgets: tuple[Budget, ...] = ()
        """What model calls are charged to."""
        self._served_by = ""
        """The connector that answered last."""

    def _context(self) -> Context:
        bounds, summarize, warn, watcher = self.task.bounds, self._summarize, self._warn, self.watch
        if not self.task.keeps_all:
            return Context(bounds, summarize=summarize, warn=warn, watcher=watcher)
        from octo.agent.memory.whole import WholeConversation

        schemas = (dumps(tool.input_schema) + tool.description for tool in self._definitions)
        return WholeConversation(
            bounds,
            window=self.agent.window(self.run.runtime.config),
            beside=(len(self._system) + sum(map(len, schemas))) // 4,
            summarize=summarize,
            warn=warn,
            watcher=watcher,
        )

    def _tool_of_answer(self) -> ToolDefinition | None:
        """The tool whose arguments are the answer, if this model gives an answer of a certain form by one."""
        by_tool = self._form and self.model.answers_by_tool(self.agent.model or "", with_tools=bool(self._definitions))
        return self._form.tool({tool.name for tool in self._definitions}) if self._form and by_tool else None

    def _offered(self) -> tuple[ToolDefinition, ...]:
        if self.agent.output_type == "image":
            return ()
        definitions = tuple(tool.definition(self.run.runtime.config) for tool in self.task.roster.tools)
        return (*definitions, GIVE_UP) if self.task.may_give_up else definitions

    async def work(self) -> Ending:
        """Run to the end. Raises OctoError when the model cannot be asked or gives no usable reply."""
        prompt = self.task.opening.text if self.task.opening else ""
        self.watch.telling.started(self.agent, self.task.stamp, prompt)
        try:
            with budget.opened(self.task.limits) as self._budgets:
                await self._recall()
                ending = await self._until_stopped()
                self.transcript.iterations = self.iteration
                await self.task.memory.save(self.transcript, ending, self.context)
        except OctoError as error:
            self._tell_end(error=error)
            raise
        if isinstance(ending, GaveUp):
            await self.watch.gave_up(ending.reason, ending.detail)
        self._tell_end(reason=ending.reason if isinstance(ending, GaveUp) else None)
        return ending

    def _tell_end(self, *, reason: str | None = None, error: OctoError | None = None) -> None:
        self.watch.telling.ended(self.iteration, self._calls.count, self.usage, reason=reason, error=error)

    async def _recall(self) -> None:
        recalled = await self.task.memory.load()
        self.transcript = Transcript(recalled, self.task.opening)
        self.context.recalled(recalled)
        if recalled.system:
            self._system = f"{self._system}\n\n{recalled.system}"

    async def _until_stopped(self) -> Ending:
        try:
            return await self._turns()
        except Stopped:
            return self._halted()

    async def _turns(self) -> Ending:
        while self.iteration < self.agent.turns:
            self.iteration += 1
            self.watch.iteration = self.iteration
            await self.context.make_room(self.transcript)
            response = await self._ask()
            if response is None:
                self.iteration -= 1
                return GaveUp(budget.EXCEEDED, budget.excess(self._budgets))
            self._collect_files(response)
            if self.watch.stop_requested and response.calls:
                return self._halted()
            self.transcript.append(response.message)
            if self.watch.stop_requested:
                return self._halted()
            ending = self._ending(response)
            if ending is not None:
                return ending
            cut = cut_off(response)
            self._was_cut_off = cut is not None
            if response.calls:
                ending = await self._run_calls(response.calls, cut)
                await self.task.memory.checkpoint(self.transcript, self.context)
            if self._calls.stop_requested or self.watch.stop_requested:
                return self._halted()
            if ending is not None:
                return ending
        return GaveUp("exceeded max iterations")

    def _halted(self) -> Halted:
        return Halted("stopped by the events chain") if self.watch.stop_requested else Halted()

    async def _run_calls(self, calls: tuple[ToolCall, ...], cut: CutOff | None) -> Answered | None:
        """Run the calls of one turn: all, or those before the one that gives the answer."""
        given = self._given(calls if cut is None else calls[:-1])
        before = calls if given is None else calls[: calls.index(given)]
        results = await self._calls.run(before, cut=cut) if before else ()
        if given is None or self._form is None:
            self.transcript.append(ChatMessage("tool", results))
            return None
        try:
            text = self._form.fitted(given.arguments)
            taken = ToolResult(given.id, given.name, TAKEN)
        except ValueError as fault:
            text = None
            taken = ToolResult(given.id, given.name, f"invalid arguments: {fault}", is_error=True)
        after = (
            ToolResult(call.id, call.name, "not run: the answer was given before it", is_error=True)
            for call in calls[len(before) + 1 :]
        )
        self.transcript.append(ChatMessage("tool", (*results, taken, *after)))
        if text is None:
            self._show_fault(taken.text, given.arguments)
            return None
        self.transcript.append(ChatMessage("assistant", (Text(text),)))
        return Answered(text)

    def _given(self, calls: Sequence[ToolCall]) -> ToolCall | None:
        """The call that gives the answer, if there is one among those that are whole."""
        name = self._answer_tool.name if self._answer_tool else None
        return next((call for call in calls if call.name == name), None)

    # ------------------------------------------------------------ asking

    async def _ask(self) -> ChatResponse | None:
        """The reply of this turn; the call is repeated once when the reply is none. None when the budget is spent."""
        response = await self._call_model()
        if response is not None and is_malformed(response) and not self.watch.stop_requested:
            response = await self._call_model()
            if response is not None and is_malformed(response):
                why = f" ({response.stop_detail})" if response.stop_detail else ""
                raise OctoError(f"ai-agent: the model called a tool in a form that cannot be read, twice in a row{why}")
        if response is not None and self._says_nothing(response) and not self.watch.stop_requested:
            response = await self._call_model()
            if response is not None and self._says_nothing(response):
                raise OctoError(
                    "ai-agent: the model gave an empty answer twice, and no tool ran",
                    hint=remedy(response),
                )
        if self.iteration == 1 and not self.task.keep_attachments:
            self.transcript.drop_files()
        return response

    async def _call_model(self) -> ChatResponse | None:
        if budget.excess(self._budgets):
            return None
        request = self._request()
        response = await self._complete(request)
        self._served_by = response.connector
        self.context.measured(request.messages, response.usage)
        return response

    async def _complete(self, request: ChatRequest, purpose: str = "") -> ChatResponse:
        """Make a model call: charged and told, whatever it is for."""
        started = time.perf_counter()
        on_delta = None if purpose else self.watch.on_delta
        try:
            await self.watch.turn_started(purpose)
            response = await self.model.complete(request, session=self.run.session, on_delta=on_delta)
            await self.watch.answered()
        except Stopped:
            self.watch.turn_abandoned(time.perf_counter() - started, request)
            raise
        except ProviderError as error:
            paid = bill_of_failure(self.run.runtime.config.ai_pricing, error)
            if paid is not None:
                self._charge(paid)
            await self.watch.turn_failed(time.perf_counter() - started, request, error, purpose, paid)
            raise OctoError(f"ai-agent: {error.message}", hint=error.hint, location=error.location) from error
        response = replace(response, message=readable(response.message, self.iteration))
        paid = self._charge(bill(self.run.runtime.config.ai_pricing, response))
        await self.watch.turn_ended(time.perf_counter() - started, request, response, purpose, paid)
        return response

    def _charge(self, paid: Usage | None) -> Usage | None:
        if paid is not None:
            self.usage = paid if self.usage is None else self.usage + paid
        for one in self._budgets:
            one.charge(paid)
        return paid

    async def _summarize(self, turns: Sequence[ChatMessage]) -> str:
        """A summary of turns by the same model; blank when there is none, or nothing left to pay it with."""
        if budget.excess(self._budgets):
            return ""
        try:
            response = await self._complete(summary.request(turns, model=self.agent.model or None), summary.PURPOSE)
        except OctoError as error:
            self._warn(f"the conversation could not be summarized: {error.message}")
            return ""
        return response.text

    def _warn(self, text: str) -> None:
        self.run.log("warn", text, block=self.task.address)

    def _request(self) -> ChatRequest:
        agent = self.agent
        tool = self._answer_tool
        return ChatRequest(
            messages=self.transcript.sent(),
            system=self._system,
            tools=self._definitions if tool is None else (*self._definitions, tool),
            tool_choice="auto" if tool is None else "any",
            may_think_first=tool is not None and not self._insists,
            output_schema=self._form.schema if self._form and tool is None else None,
            output_type=agent.output_type,
            web_search=self.task.roster.web_search,
            model=agent.model or None,
            max_tokens=agent.max_tokens,
            temperature=agent.temperature,
            reasoning_effort=agent.reasoning_effort or None,
            only=self._served_by if self._calls.acted else "",
            cache=bool(self._definitions) or not isinstance(self.task.memory, NoMemory),
            cache_key=f"{self.run.runtime.config.service.name or ''}/{self.task.address}",
        )

    def _says_nothing(self, response: ChatResponse) -> bool:
        """An empty answer before any tool ran; after one it may mean that all is done."""
        return (
            not response.calls
            and response.stop_reason not in ("refusal", "pause")
            and not response.message.files
            and not self._calls.any_ran
            and answer.is_empty(response.text)
        )

    # ------------------------------------------------------------ a reply

    def _collect_files(self, response: ChatResponse) -> None:
        name = self.task.response_media
        if name and response.message.files:
            self.message.vars[name] = attachments.with_produced(self.message.vars.get(name), response.message.files)

    def _ending(self, response: ChatResponse) -> Ending | None:
        """How the reply ends the run, if it does. Calls that it still holds are answered, not run."""
        calls, cut = response.calls, cut_off(response)
        if response.stop_reason == "refusal":
            return self._give_up(GaveUp("model refused", _why(response)), calls)
        if not calls:
            return None if response.stop_reason == "pause" else self._answered(response)
        if cut is not None and self._was_cut_off:
            reason = "context window full" if response.fills_window else "output cap reached"
            return self._give_up(GaveUp(reason), calls)
        if self.task.may_give_up:
            for call in calls if cut is None else calls[:-1]:
                if call.name == GIVE_UP.name:
                    return self._give_up(GaveUp("model refused", _reason(call)), calls, taken=call)
        return None

    def _answered(self, response: ChatResponse) -> Ending | None:
        if response.stop_reason == "max_tokens":
            self.run.log("warn", f"the answer was cut off by {limit(response)}", block=self.task.address)
        if self.agent.output_type == "image":
            return _drawn(response)
        if self._form is None:
            return Answered(response.text)
        try:
            return Answered(self._form.fitted(response.text))
        except ValueError as error:
            fault = str(error)
        if self._answer_tool is None:
            self._show_fault(fault, response.text)
            self._say(f"The final result has not the form that is asked for: {fault}. Give it again, whole, as JSON.")
        elif self._insists:
            raise unfit(
                f"ai-agent: the model gave its answer without calling `{self._answer_tool.name}`", response.text
            )
        else:
            self._insists = True
            self._say(f"Give the final result now, by calling `{self._answer_tool.name}`.")
        return None

    def _show_fault(self, fault: str, answer: str) -> None:
        """The model is shown once where its answer failed; after that the run fails."""
        if self._was_shown:
            raise unfit(f"ai-agent: the answer has not the form of `outputSchema`: {fault}", answer)
        self._was_shown = True

    def _say(self, text: str) -> None:
        self.transcript.append(ChatMessage("user", (Text(text),)))

    def _give_up(self, ending: GaveUp, calls: tuple[ToolCall, ...], taken: ToolCall | None = None) -> GaveUp:
        if calls:
            results = tuple(
                ToolResult(call.id, call.name, "the default path is taken")
                if call is taken
                else ToolResult(call.id, call.name, "not run: the run ended", is_error=True)
                for call in calls
            )
            self.transcript.append(ChatMessage("tool", results))
        if taken is not None or ending.detail:
            self.message.vars["guardrailReason"] = ending.detail
        return ending


def _why(response: ChatResponse) -> str:
    """Why the model refused: as the provider says, else as it says itself."""
    words = " ".join((response.stop_detail or response.text).split())
    return words if len(words) <= _DETAIL else f"{words[:_DETAIL]}…"


def _drawn(response: ChatResponse) -> Drawn:
    """The image of an answer that is to be one."""
    if response.message.files:
        return Drawn(response.message.files[0])
    raise unfit("ai-agent: the model made no image", response.text)


def _reason(call: ToolCall) -> str:
    """The reason that the model gave for giving up."""
    try:
        arguments = parse(call.arguments)
    except ValueError:
        return ""
    reason = arguments.get("reason") if isinstance(arguments, dict) else None
    return reason if isinstance(reason, str) else ""
