"""Keep what a chain makes of the body, and use it again for a while."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from octo.block import Block, SubFlow
from octo.errors import OctoError
from octo.fields import Duration, Expression
from octo.values import clean_text, dumps

if TYPE_CHECKING:
    from octo.message import Message
    from octo.run import Run
    from octo.services.base import Entry

NAMESPACES: Final = ("cache_volatile", "cache")
"""Where cached bodies live: those that show a secret in memory only, all others in the store."""


def entry_key(key: str) -> str:
    """What the entry of a key is called; no object block can name it."""
    return sha256(clean_text(key).encode()).hexdigest()


class CacheScope(Block, type="cache-scope", group="control", composite=True):
    """Run a chain, or put the body in place that it gave for the same key not long ago."""

    key: Expression[str]
    """What the result depends on; anything but text counts as its compact JSON."""

    ttl: Duration = Duration("60s")
    """How long a body is used again; `0` for ever, or until `invalidate-cache`."""

    body: SubFlow
    """Runs when nothing is cached, on the message itself. What it leaves as the body is cached, unless it stops."""

    async def execute(self, message: Message, run: Run) -> Message:
        key = entry_key(run.evaluate(self.key, message, "cache-scope key"))
        entry = await self._cached(key, run)
        if entry is not None:
            message.body = entry.value
            return message
        await run.chain(self.body.process, message)
        if not message.stopped:
            await self._keep(key, message, run)
        return message

    async def _cached(self, key: str, run: Run) -> Entry | None:
        """A cache that cannot be read has nothing."""
        for namespace in NAMESPACES:
            try:
                entry = await run.services.entries.get(namespace, key)
            except OctoError as error:
                run.log("warn", f"cache-scope: {error.message}", block=self.address, hint=error.hint)
                return None
            if entry is not None:
                return entry
        return None

    async def _keep(self, key: str, message: Message, run: Run) -> None:
        """A body that cannot be cached is right all the same."""
        text = dumps(message.body)
        secret = run.runtime.config.environment.mask(text) != text
        try:
            await run.services.entries.put(NAMESPACES[not secret], key, message.body, ttl=self.ttl.ns or None)
        except OctoError as error:
            run.log("warn", f"cache-scope: not cached: {error.message}", block=self.address, hint=error.hint)
