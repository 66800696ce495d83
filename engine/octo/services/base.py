"""What a runtime asks of its surroundings, whoever provides it."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from octo.errors import OctoError, StoreError
from octo.message import Message
from octo.values import Json


class Entry(NamedTuple):
    """A stored value."""

    value: Json
    version: int
    """1 for a new entry; each write adds 1."""


class Conflict(StoreError):
    """Someone else has written the entry in the meantime."""

    def __init__(self) -> None:
        super().__init__("kv: object version conflict")


class Entries(Protocol):
    """Versioned key/value entries in namespaces, each a key space of its own. All methods raise StoreError.

    A namespace whose name ends in `_volatile` or `_secrets` lives in memory and may vanish at any time; all others
    survive a restart.
    """

    async def get(self, namespace: str, key: str) -> Entry | None:
        """The entry, or None when there is none or it has expired."""

    async def put(
        self, namespace: str, key: str, value: Json, *, expected: int | None = None, ttl: int | None = None
    ) -> int:
        """Store a value; the version it has now.

        `expected` is the version that must be there, 0 for none; without it whatever is there is replaced. Raises
        Conflict. `ttl` is how many nanoseconds the entry lives, by default for ever.
        """

    async def delete(self, namespace: str, key: str, *, expected: int | None = None) -> None:
        """Remove an entry; a missing one is fine. Raises Conflict when it is not of the version `expected`."""


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """A message that was taken from a queue, and the reply to it, if its sender waits for one."""

    message: Message
    reply: asyncio.Future[Message] | None = None

    def answer(self, message: Message) -> None:
        """Send the reply; a sender that has given up does not get it."""
        if self.reply is not None and not self.reply.done():
            self.reply.set_result(message)

    def fail(self, error: OctoError) -> None:
        """Let the sender fail with an error."""
        if self.reply is not None and not self.reply.done():
            self.reply.set_exception(error)


class Subscription(Protocol):
    """One of those who take the messages of a subject: each message goes to one of them."""

    async def take(self) -> Delivery:
        """The next message, as soon as there is one."""


class Queues(Protocol):
    """Messages for one taker each. A subject is there from the first use on."""

    async def send(self, subject: str, message: Message) -> None:
        """Hand a copy over. Raises OctoError when the queue does not accept it."""

    async def request(self, subject: str, message: Message) -> Message:
        """Hand a copy over and wait for the reply. Raises OctoError, also with what the taker has failed with."""

    def subscribed(self, subject: str) -> AbstractAsyncContextManager[Subscription]:
        """Join those who take the messages of a subject, as long as the context lasts."""


class Inbox(Protocol):
    """The copies of one subscriber."""

    async def take(self) -> tuple[Message, int]:
        """The next copy, as soon as there is one, and how many were lost before it for want of room."""


class Topics(Protocol):
    """Messages for everybody who has subscribed, a copy for each. Nothing is kept for those who come later."""

    async def publish(self, subject: str, message: Message) -> None:
        """Give every subscriber a copy; never waits for one. Raises OctoError."""

    def subscribed(self, subject: str) -> AbstractAsyncContextManager[Inbox]:
        """Get copies of what is published, as long as the context lasts."""


@dataclass(frozen=True, slots=True)
class Services:
    """All services of a runtime."""

    entries: Entries
    queues: Queues
    topics: Topics
