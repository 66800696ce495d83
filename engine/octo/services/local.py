"""Queues and topics within one process. What waits in them is lost when the process ends."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from octo.errors import OctoError
from octo.message import Message
from octo.services.base import Delivery, Inbox, Subscription

ROOM: Final = 1024
"""How many messages wait under a subject, and for one subscriber of a topic."""


class LocalQueues:
    """Queues whose messages wait in memory until somebody takes them."""

    def __init__(self) -> None:
        self._subjects: dict[str, _Subject] = {}

    async def send(self, subject: str, message: Message) -> None:
        self._subject(subject).put(Delivery(message.clone()))

    async def request(self, subject: str, message: Message) -> Message:
        queue = self._subject(subject)
        if queue.deserted:
            raise OctoError("stopped")
        delivery = Delivery(message.clone(), asyncio.get_running_loop().create_future())
        queue.put(delivery)
        assert delivery.reply is not None
        try:
            return await delivery.reply
        finally:
            queue.take_back(delivery)
            self._forget(subject)

    @asynccontextmanager
    async def subscribed(self, subject: str) -> AsyncIterator[Subscription]:
        queue = self._subject(subject)
        queue.subscribers += 1
        queue.deserted = False
        try:
            yield queue
        finally:
            queue.subscribers -= 1
            if not queue.subscribers:
                queue.desert()
                self._forget(subject)

    def _subject(self, name: str) -> _Subject:
        return self._subjects.setdefault(name, _Subject())

    def _forget(self, name: str) -> None:
        """Subjects may be made of data: one that nobody uses any more takes no room."""
        queue = self._subjects.get(name)
        if queue is not None and not (queue.waiting or queue.subscribers or queue.deserted):
            del self._subjects[name]


class _Subject:
    """What waits under one subject."""

    def __init__(self) -> None:
        self.waiting: deque[Delivery] = deque()
        self.subscribers = 0
        self.deserted = False
        """There were subscribers, and the last one has gone."""
        self._arrived = asyncio.Event()

    def put(self, delivery: Delivery) -> None:
        if len(self.waiting) >= ROOM:
            raise OctoError("subject buffer full", hint=f"{ROOM} messages wait, and no flow takes them fast enough")
        self.waiting.append(delivery)
        self._arrived.set()

    async def take(self) -> Delivery:
        while not self.waiting:
            self._arrived.clear()
            await self._arrived.wait()
        return self.waiting.popleft()

    def take_back(self, delivery: Delivery) -> None:
        """Remove what nobody waits for any more, unless it was taken."""
        if delivery in self.waiting:
            self.waiting.remove(delivery)

    def desert(self) -> None:
        """Those who wait for a reply wait in vain."""
        self.deserted = True
        for delivery in self.waiting:
            delivery.fail(OctoError("stopped"))
        self.waiting = deque(delivery for delivery in self.waiting if delivery.reply is None)


class LocalTopics:
    """Topics whose subscribers each have their own copies in memory."""

    def __init__(self) -> None:
        self._inboxes: dict[str, list[_Inbox]] = {}

    async def publish(self, subject: str, message: Message) -> None:
        for inbox in self._inboxes.get(subject, ()):
            inbox.put(message)

    @asynccontextmanager
    async def subscribed(self, subject: str) -> AsyncIterator[Inbox]:
        inbox = _Inbox()
        self._inboxes.setdefault(subject, []).append(inbox)
        try:
            yield inbox
        finally:
            self._inboxes[subject].remove(inbox)
            if not self._inboxes[subject]:
                del self._inboxes[subject]


class _Inbox:
    """The copies of one subscriber."""

    def __init__(self) -> None:
        self._copies: asyncio.Queue[Message] = asyncio.Queue(ROOM)
        self._lost = 0

    def put(self, message: Message) -> None:
        if self._copies.full():
            self._lost += 1
        else:
            self._copies.put_nowait(message.clone())

    async def take(self) -> tuple[Message, int]:
        message = await self._copies.get()
        lost, self._lost = self._lost, 0
        return message, lost
