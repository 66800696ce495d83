"""What a flow does beside its workers: a bounded number of pieces of work at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeAlias

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""A piece of work; made when it starts."""

Turn: TypeAlias = asyncio.Future[bool]
"""Becomes true when the work that waits for it may start, false when somebody else does that work."""

SIZE: Final = 8
QUEUE: Final = 64


class Pool:
    """Runs up to `size` pieces of work at once; up to `queue` more wait, the oldest first.

    Nothing that waits here can wait for itself: whoever finds the queue full does the work on the spot, and a piece
    of work that hands out pieces of its own and waits for them does those itself that no slot has taken up.
    """

    def __init__(self, size: int = SIZE, queue: int = QUEUE) -> None:
        self._free = size
        self._queue = queue
        self._waiting: dict[Turn, None] = {}

    def offer(self, work: Work, start: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]) -> Turn | None:
        """Have the work done in a task of its own, which `start` makes. None when the queue is full."""
        if not self._free and len(self._waiting) >= self._queue:
            return None
        turn: Turn = asyncio.get_running_loop().create_future()
        # On the task and not inside it: a task that is cancelled before it began never runs its `finally`.
        start(_in_turn(turn, work)).add_done_callback(lambda _: self._leave(turn))
        if self._free:
            self._free -= 1
            turn.set_result(True)
        else:
            self._waiting[turn] = None
        return turn

    def take_back(self, turn: Turn) -> bool:
        """Whether the work still waited; then it is the caller's from now on."""
        if turn.done():
            return False
        del self._waiting[turn]
        turn.set_result(False)
        return True

    async def together(self, works: Sequence[Work], *, inside: bool) -> None:
        """Do all of the work and wait for it. The first failure cancels the rest and is raised.

        `inside` says that the caller occupies a slot itself.
        """
        failure: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as group:
                turns: list[tuple[Turn, Work]] = []
                for work in works:
                    turn = self.offer(work, group.create_task)
                    if turn is None:
                        await work()
                    else:
                        turns.append((turn, work))
                for turn, work in turns if inside else ():
                    if self.take_back(turn):
                        await work()
        except BaseExceptionGroup as failures:
            failure = failures.exceptions[0]
        if failure is not None:
            raise failure

    def _leave(self, turn: Turn) -> None:
        """The task that waited for the turn is over."""
        self._waiting.pop(turn, None)
        if turn.cancelled() or not turn.done() or not turn.result():
            return
        for following in self._waiting:
            if not following.done():
                del self._waiting[following]
                following.set_result(True)
                return
        self._free += 1


async def _in_turn(turn: Turn, work: Work) -> None:
    if await turn:
        await work()
