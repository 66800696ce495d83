"""The model calls of a block that is no agent: charged, told, and kept as one short conversation."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from octo import budget
from octo.agent.reply import is_malformed, readable
from octo.agent.telling import Telling
from octo.config.pricing import bill, bill_of_failure
from octo.errors import OctoError, ProviderError
from octo.fields import ResourceText
from octo.llm.chat import (
    ChatMessage,
    ChatModel,
    ChatRequest,
    ChatResponse,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
)
from octo.message import HIDDEN_PREFIX, Message
from octo.refusals import refusal
from octo.values import Json, dumps, parse

if TYPE_CHECKING:
    from octo.block import Block
    from octo.budget import Budget
    from octo.llm.chat import Usage
    from octo.run import Run


class BudgetSpent(OctoError):
    """Nothing is left to pay a model call with."""


class Conversation:
    """What a block asks a model, and what the model answers, in at most `most_calls` model calls."""

    def __init__(
        self,
        block: Block,
        connector: str,
        message: Message,
        run: Run,
        *,
        most_calls: int,
        system: str,
        opening: ChatMessage,
        tools: tuple[ToolDefinition, ...] = (),
        tool_choice: ToolChoice = "auto",
        max_tokens: int | None = None,
    ) -> None:
        self.calls = 0
        """How many model calls were made."""
        self._most_calls = most_calls
        self._type = block.type
        self._run = run
        self._model = run.connector(connector, ChatModel)  # type: ignore[type-abstract]  # never instantiated
        self._telling = Telling(run, block.address, message.event_id)
        self._request = ChatRequest(
            messages=(opening,),
            system=system,
            tools=tools,
            tool_choice=tool_choice,
            max_tokens=max_tokens,
            cache_key=f"{run.runtime.config.service.name or ''}/{block.address}",
        )

    @property
    def may_ask(self) -> bool:
        """Whether a model call is left."""
        return self.calls < self._most_calls

    async def ask(self) -> ChatResponse:
        """The next answer of the model; a tool call in a form that cannot be read is asked for once more.

        Raises BudgetSpent, and OctoError when the call fails.
        """
        response = await self._call()
        return await self._call() if is_malformed(response) and self.may_ask else response

    def go_on(self, response: ChatResponse, results: Iterable[ToolResult]) -> None:
        """Take an answer into the conversation, with what became of its tool calls."""
        turns = (response.message, ChatMessage("tool", tuple(results)))
        self._request = replace(self._request, messages=(*self._request.messages, *turns))

    async def _call(self) -> ChatResponse:
        with budget.opened(None) as budgets:
            if excess := budget.excess(budgets):
                raise BudgetSpent(f"{self._type}: {budget.EXCEEDED}", hint=excess)
            return await self._told(budgets)

    async def _told(self, budgets: Iterable[Budget]) -> ChatResponse:
        """Make one model call, charge it and tell of it."""
        self.calls += 1
        started = time.perf_counter()
        pricing = self._run.runtime.config.ai_pricing
        self._telling.turn_started(self.calls)
        try:
            response = await self._model.complete(self._request, session=self._run.session)
        except ProviderError as error:
            paid = bill_of_failure(pricing, error)
            if paid is not None:
                _charge(paid, budgets)
            self._telling.turn_ended(self.calls, time.perf_counter() - started, self._request, error=error, paid=paid)
            raise OctoError(f"{self._type}: {error.message}", hint=error.hint, location=error.location) from error
        response = replace(response, message=readable(response.message, self.calls))
        paid = bill(pricing, response)
        _charge(paid, budgets)
        self._telling.turn_ended(self.calls, time.perf_counter() - started, self._request, response, paid=paid)
        return response


def _charge(paid: Usage | None, budgets: Iterable[Budget]) -> None:
    for one in budgets:
        one.charge(paid)


def said(prompt: ResourceText, block_type: str) -> ResourceText:
    """A prompt that says something. Anything else is a problem of the setting."""
    if not prompt.strip():
        raise refusal(f"{block_type} requires a prompt, found none")
    return prompt


def arguments(call: ToolCall) -> dict[str, Json]:
    """The arguments of a call. Raises ValueError, which tells the model what is wrong with them."""
    try:
        value = parse(call.arguments) if call.arguments.strip() else {}
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("expected an object")
    return value


def variables(message: Message) -> dict[str, Json]:
    """The variables of a message, but for those of the runtime itself."""
    return {name: value for name, value in message.vars.items() if not name.startswith(HIDDEN_PREFIX)}


def shown(value: Json) -> str:
    """A value as the model reads it: JSON, or words that say why it has no such form."""
    try:
        return dumps(value)
    except (TypeError, OctoError) as error:
        return f"(no JSON: {error})"
