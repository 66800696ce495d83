"""Let a model repair the message of a chain that failed, and run the chain again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from pydantic import Field, field_validator

from octo.agent.asking import BudgetSpent, Conversation, arguments, said, shown, variables
from octo.agent.reply import cut_off
from octo.block import Block, Chain
from octo.errors import OctoError
from octo.fields import Int, LlmName, ResourceText
from octo.llm.chat import ToolDefinition, ToolResult, user
from octo.message import HIDDEN_PREFIX
from octo.run import ChainFailed, failure_of
from octo.values import kind_of

if TYPE_CHECKING:
    from octo.llm.chat import ChatResponse, ToolCall
    from octo.message import Message
    from octo.run import Run
    from octo.values import Json

REVISE: Final = "revise_message"
ERROR: Final = "error"
"""The variable that tells of the failure; no repair changes it."""
_ATTEMPTS: Final = 3

_ROLE: Final = (
    "A step that processes messages failed. You get the error, the body of the message and its variables, and repair "
    f"the message so that the step succeeds when it runs again. Do so by calling `{REVISE}` with the whole new body; "
    "change no more than the error makes necessary. If the message cannot be repaired, say why and call no tool."
)
_TOOL: Final = ToolDefinition(
    REVISE,
    "Replace the body of the message, and set variables. The step then runs again.",
    {
        "type": "object",
        "required": ["body"],
        "properties": {
            "body": {"description": "The whole new body: any JSON value."},
            "variables": {"type": "object", "description": f"Variables to set, by their names; not `{ERROR}`."},
        },
    },
)


class AiRetry(Block, type="ai-retry", group="ai", composite=True):
    """Run a chain; if it fails, let a model repair the message and run the chain again.

    The model is shown the error, the body and all variables. The whole chain runs again, on the message as the failed
    run left it, so what the chain does outside of the message is done again, too.
    """

    connector: LlmName
    """Name of a configured connector of an `llm-*` type."""

    prompt: ResourceText
    """How to repair messages: text, or `{resource: FILE}` for a file below the config directory."""

    process: Chain = Field(min_length=1)
    """The protected chain."""

    max_attempts: Int = _ATTEMPTS
    """How many times the message is repaired and the chain runs again; 0 or less means 3."""

    error: Chain | None = None
    """Runs when no repair helped, and reads `vars.error` (`message`, `flow`, `block`)."""

    @field_validator("prompt")
    @classmethod
    def _says_something(cls, prompt: ResourceText) -> ResourceText:
        return said(prompt, cls.type)

    async def execute(self, message: Message, run: Run) -> Message:
        failure = await self._failure(message, run)
        if failure is None:
            return message
        talk = self._conversation(message, run)
        spent: BudgetSpent | None = None
        repairs = 0
        reason = ""
        while talk.may_ask:
            try:
                response = await talk.ask()
                call = _repair(message, response)
            except BudgetSpent as error:
                spent = error
                break
            except OctoError as error:
                reason = error.message
                break
            repairs += 1
            failure = await self._failure(message, run)
            if failure is None:
                return message
            talk.go_on(response, _results(response, call, _state(message)))
        self._tell_why(run, repairs, reason)
        return await self._recover(message, run, failure, spent)

    async def _failure(self, message: Message, run: Run) -> OctoError | None:
        """Run the chain on the message; the error if it failed, which the message then tells."""
        message.stopped = False
        try:
            await run.chain(self.process, message)
        except OctoError as error:
            message.vars[ERROR] = failure_of(error, self.place.name)
            return error
        return None

    def _conversation(self, message: Message, run: Run) -> Conversation:
        return Conversation(
            self,
            self.connector,
            message,
            run,
            most_calls=self.max_attempts if self.max_attempts > 0 else _ATTEMPTS,
            system=f"{_ROLE}\n\n{self.prompt.strip()}",
            opening=user(_state(message)),
            tools=(_TOOL,),
        )

    def _tell_why(self, run: Run, repairs: int, reason: str) -> None:
        if repairs:
            tried = f"{repairs} repair{'' if repairs == 1 else 's'} did not help"
            reason = f"{tried}, and then: {reason}" if reason else tried
        if reason:
            run.log("warn", f"the message cannot be repaired: {reason}", block=self.address)

    async def _recover(self, message: Message, run: Run, failure: OctoError, spent: BudgetSpent | None) -> Message:
        """End without a repair: on the error chain if there is one, else with the last failure of the chain."""
        if self.error:
            try:
                return await run.chain(self.error, message)
            except OctoError as error:
                raise ChainFailed("ai-retry error path", error) from error
        if spent is not None:
            raise ChainFailed(f"{spent.message}, and the chain failed", failure) from failure
        raise failure


def _state(message: Message) -> str:
    """What the model reads of a failure."""
    parts = {"Error": message.vars[ERROR], "Body": message.body, "Variables": variables(message)}
    return "\n\n".join(f"{name}:\n{shown(value)}" for name, value in parts.items())


def _repair(message: Message, response: ChatResponse) -> ToolCall:
    """Carry out the first call that repairs the message. Raises OctoError when there is none that can be used."""
    if response.stop_reason == "refusal":
        raise OctoError("the model refused to")
    call = next((call for call in response.calls if call.name == REVISE), None)
    if call is None:
        raise OctoError(f"the model did not call `{REVISE}`")
    if (cut := cut_off(response)) is not None and call is cut.call:
        raise OctoError(f"{cut.by} cut the call of `{REVISE}` off")
    try:
        given = arguments(call)
    except ValueError as error:
        raise OctoError(f"the arguments of `{REVISE}` cannot be used: {error}") from None
    changed: Json = given.get("variables")
    if not isinstance(changed, dict | None):
        raise OctoError(f"the arguments of `{REVISE}` cannot be used: `variables` is {kind_of(changed)}, no object")
    if "body" in given:
        message.body = given["body"]
    for name, value in (changed or {}).items():
        if name.strip() and name != ERROR and not name.startswith(HIDDEN_PREFIX):
            message.vars[name] = value
    return call


def _results(response: ChatResponse, revision: ToolCall, state: str) -> Iterator[ToolResult]:
    """What became of the calls of an answer whose repair did not help."""
    for call in response.calls:
        text = f"the step failed again\n\n{state}" if call is revision else f"not run: only one `{REVISE}` is"
        yield ToolResult(call.id, call.name, text, is_error=True)
