"""Forget the conversation of a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octo.agent.memory import keys
from octo.agent.memory.threads import namespace
from octo.block import Block
from octo.errors import OctoError
from octo.fields import Expression, Text
from octo.run import RunError
from octo.store import conversations
from octo.store.conversations import Place
from octo.store.threads import PREFIX

if TYPE_CHECKING:
    from octo.message import Message
    from octo.run import Run


class ClearAgentMemory(Block, type="clear-agent-memory", group="ai"):
    """Forget the conversation of a thread, whichever agents were in it. What is known about people stays."""

    thread_id: Expression
    """The id of the thread, as the `memoryThreadId` of the agent computes it; empty text and null forget nothing."""

    agent_id: Text = ""
    """The `agentId` of the agent whose conversation and history of that thread are forgotten as well."""

    async def execute(self, message: Message, run: Run) -> Message:
        thread = keys.as_text(run.evaluate(self.thread_id, message, "clear-agent-memory threadId"))
        if not thread:
            run.log("warn", "`threadId` is empty, so nothing is forgotten", block=self.address)
            return message
        try:
            for volatile in (False, True):
                await run.services.entries.delete(namespace(volatile=volatile), PREFIX + thread)
            agent, store, mask = self.agent_id.strip(), run.runtime.store, run.runtime.config.environment.mask
            if agent and store.exists():
                place = Place(mask(agent), mask(thread))
                await store.write(lambda db: conversations.delete(db, place))
        except OctoError as error:
            raise RunError(f'clear-agent-memory "{thread}": {error.message}', hint=error.hint) from error
        return message
