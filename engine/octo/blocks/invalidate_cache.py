"""Forget what a `cache-scope` has cached."""

from octo.block import Block
from octo.blocks.cache_scope import NAMESPACES, entry_key
from octo.errors import OctoError
from octo.fields import Expression
from octo.message import Message
from octo.run import Run, RunError


class InvalidateCache(Block, type="invalidate-cache", group="storage"):
    """Forget what every `cache-scope` has cached for a key; nothing cached is fine."""

    key: Expression[str]
    """The same value as the `key` of the `cache-scope`. Must not be empty."""

    async def execute(self, message: Message, run: Run) -> Message:
        key = run.evaluate(self.key, message, "invalidate-cache key")
        if not key:
            raise RunError("invalidate-cache key: it is empty")
        try:
            for namespace in NAMESPACES:
                await run.services.entries.delete(namespace, entry_key(key))
        except OctoError as error:
            raise RunError(f'invalidate-cache "{key}": {error.message}', hint=error.hint) from error
        return message
