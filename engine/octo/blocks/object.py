"""Read, write and delete values in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from octo.block import Block
from octo.errors import OctoError
from octo.fields import BLANK_IS_ABSENT, Bool, Expression, Text
from octo.run import RunError

if TYPE_CHECKING:
    from octo.message import Message
    from octo.run import Run
    from octo.values import Json


class _Object(Block):
    """One value under a key."""

    key: Expression[str]
    """The key; anything but text counts as its compact JSON. Must not be empty."""

    volatile: Bool = False
    """Use the values in memory, which end with the process, and not those in the store."""

    @property
    def _namespace(self) -> str:
        return "user_volatile" if self.volatile else "user"

    def _key(self, message: Message, run: Run) -> str:
        key = run.evaluate(self.key, message, f"{self.type} key")
        if not key:
            raise RunError(f"{self.type} key: it is empty")
        return key

    def _failure(self, key: str, error: OctoError) -> RunError:
        return RunError(f'{self.type} "{key}": {error.message}', hint=error.hint)


class ObjectRead(_Object, type="object-read", group="storage"):
    """Read a value that `object-write` has stored."""

    as_: Text = ""
    """Variable that takes the value; without it the value becomes the body."""

    default: Annotated[Expression | None, BLANK_IS_ABSENT] = None
    """Used when nothing is stored. Without it the body becomes null, or the variable stays as it was."""

    exists_var: Text = ""
    """Variable that says whether something was stored, whatever the default."""

    async def execute(self, message: Message, run: Run) -> Message:
        key = self._key(message, run)
        try:
            entry = await run.services.entries.get(self._namespace, key)
        except OctoError as error:
            raise self._failure(key, error) from error
        if entry is not None:
            self._take(entry.value, message)
        elif self.default is not None:
            self._take(run.evaluate(self.default, message, f'object-read "{key}": default'), message)
        elif not self.as_:
            message.body = None
        if self.exists_var:
            message.vars[self.exists_var] = entry is not None
        return message

    def _take(self, value: Json, message: Message) -> None:
        if self.as_:
            message.vars[self.as_] = value
        else:
            message.body = value


class ObjectWrite(_Object, type="object-write", group="storage"):
    """Store a value under a key, for later messages, other flows and later runs."""

    value: Annotated[Expression | None, BLANK_IS_ABSENT] = None
    """What is stored; without it the body. Values of secret variables in it are stored as `***`."""

    async def execute(self, message: Message, run: Run) -> Message:
        key = self._key(message, run)
        value = run.evaluate(self.value, message, "object-write value") if self.value else message.body
        try:
            await run.services.entries.put(self._namespace, key, value)
        except OctoError as error:
            raise self._failure(key, error) from error
        return message


class ObjectDelete(_Object, type="object-delete", group="storage"):
    """Delete the value under a key; one that is not stored is fine."""

    async def execute(self, message: Message, run: Run) -> Message:
        key = self._key(message, run)
        try:
            await run.services.entries.delete(self._namespace, key)
        except OctoError as error:
            raise self._failure(key, error) from error
        return message
