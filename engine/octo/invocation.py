"""Calls of flows, from opening the runtime to closing it; how it ended, and the envelope that says so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from octo.errors import ConfigError, OctoError
from octo.message import Dropped, Message
from octo.values import Json, Ordered

if TYPE_CHECKING:
    from octo.doubles import Stage
    from octo.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended: with a message, an error, or neither when the flow dropped its message."""

    message: Message | None = None
    error: OctoError | None = None

    @property
    def dropped(self) -> bool:
        return self.message is None and self.error is None


class TimeIsUp(OctoError):
    """A call of a flow took longer than it may."""

    def __init__(self, flow: str, limit: float, *, at_work: Sequence[str]) -> None:
        """`at_work` are the addresses of the blocks that were not done, the innermost first."""
        hint = f"the time limit of a call is {limit:g} s here: give it more with `--timeout`, in a suite with `timeout`"
        super().__init__(f'call flow "{flow}": context deadline exceeded', hint=hint)
        self.address = at_work[0] if at_work else ""


async def invoke(
    runtime: Runtime,
    flow: str,
    body: Json = None,
    *,
    vars: dict[str, Json] | None = None,
    content_type: str | None = None,
    memory_id: str = "",
    limit: float | None = None,
) -> Outcome:
    """Open a runtime, call a flow, and close the runtime again. `limit` is the time for the call, in seconds.

    Raises OctoError when the runtime does not open, and when a reply was asked of a model in whose place written ones
    are given, and it is not written. A flow that fails, does not exist or runs out of time is an outcome.
    """
    async with AsyncExitStack() as opening:
        await opening.enter_async_context(runtime)
        opened = opening.pop_all()
    try:
        async with opened:
            try:
                message = await call(
                    runtime, flow, body, vars=vars, content_type=content_type, memory_id=memory_id, limit=limit
                )
                outcome = Outcome(message)
            except Dropped:
                outcome = Outcome()
    except OctoError as error:
        outcome = Outcome(error=error)
    if runtime.stage is not None and runtime.stage.problems:
        raise ConfigError(runtime.stage.problems)
    return outcome


async def call(
    runtime: Runtime,
    flow: str,
    body: Json = None,
    *,
    vars: dict[str, Json] | None = None,
    content_type: str | None = None,
    memory_id: str = "",
    limit: float | None = None,
) -> Message:
    """Call a flow of an open runtime. Raises Dropped, and OctoError when it fails or runs out of time."""
    clock = asyncio.timeout(limit)
    try:
        async with clock:
            return await runtime.invoke(flow, body, vars=vars, content_type=content_type, memory_id=memory_id)
    except TimeoutError as error:
        if not clock.expired():
            raise
        raise TimeIsUp(flow, limit or 0, at_work=getattr(error.__cause__, "__notes__", ())) from error


def envelope(outcome: Outcome, stage: Stage | None = None) -> Ordered:
    """How a call ended and what its doubles saw, as it is printed once secrets are masked."""
    parts = Ordered()
    failure = ""
    if stage is not None and stage.break_at:
        parts["reached"] = stage.snapshot is not None
        parts["block"] = stage.break_at
        if stage.snapshot is not None:
            parts["message"] = stage.snapshot
        elif outcome.error is None and stage.failure:  # the flow recovered, the block did not
            failure = stage.failure
    elif outcome.message is not None:
        parts["result"] = outcome.message.shown()
    elif outcome.dropped:
        parts["dropped"] = True
    if stage is not None and stage.records:
        parts["spies"] = [Ordered(address=name, records=records) for name, records in stage.records.items()]
    if outcome.error is not None:
        failure = outcome.error.message
    if failure:
        parts["error"] = failure
    return parts
