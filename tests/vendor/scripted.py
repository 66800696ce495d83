"""The part that all vendors' doubles share: answers from a script, refusals, faults on top."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from vendor.faults import Fault
from vendor.server import Answer, Request, Server

Reply = TypeVar("Reply")


class ScriptedServer(Server, Generic[Reply]):
    """Answers one request after the other from a script: a list of replies, or a function of the request.

    An `Answer` in the place of a reply goes out as it is. A refused request uses up no reply.
    """

    def __init__(
        self,
        script: Iterable[Reply | Answer] | Callable[[Request], Reply | Answer],
        *,
        faults: Sequence[Fault] = (),
    ) -> None:
        super().__init__()
        self._script = script if callable(script) else _in_turn(script)
        self._faults = faults

    @property
    def refusals(self) -> list[str]:
        """Why requests were refused, in order; empty when all were as the vendor wants them."""
        return [request.refusal for request in self.requests if request.refusal is not None]

    @abstractmethod
    def refuse(self, request: Request) -> Answer | None:
        """The vendor's refusal of a request that breaks its rules; None for a good one."""

    @abstractmethod
    def render(self, reply: Reply, request: Request) -> Answer:
        """A reply as bytes of the wire, with the faults that it carries."""

    def answer(self, request: Request) -> Answer:
        refusal = self.refuse(request)
        if refusal is not None:
            return refusal
        reply = self._script(request)
        answer = reply if isinstance(reply, Answer) else self.render(reply, request)
        for fault in self._faults:
            answer = fault(answer)
        return answer


def _in_turn(script: Iterable[Reply | Answer]) -> Callable[[Request], Reply | Answer]:
    replies = iter(script)

    def next_reply(_: Request) -> Reply | Answer:
        for reply in replies:
            return reply
        raise AssertionError("one more request came than the script has replies")

    return next_reply
