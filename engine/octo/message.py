"""The unit that flows: a body, variables, ids."""

from __future__ import annotations

from typing import Final

from octo.values import Json, Ordered, clone, dumps

HIDDEN_PREFIX: Final = "__"
"""Variables of the runtime itself; they are never shown to a user."""


class Dropped(Exception):
    """Raised to filter a message out; the rest of its chain is skipped and nothing has failed."""


class Message:
    """What travels through a flow. Blocks assign a whole new `body`; nobody edits a body in place."""

    __slots__ = ("_body", "body_schema", "correlation_id", "event_id", "raw", "stopped", "trace_id", "vars")

    def __init__(
        self,
        body: Json = None,
        vars: dict[str, Json] | None = None,
        *,
        event_id: str,
        correlation_id: str = "",
        raw: bool = False,
        trace_id: str = "",
    ) -> None:
        self._body = body
        self.vars: dict[str, Json] = {} if vars is None else vars
        self.event_id = event_id
        """32 lowercase hex digits, stable for the life of the message."""
        self.correlation_id = correlation_id
        self.trace_id = trace_id or event_id
        """Id of the first message of all that led to this one."""
        self.raw = raw
        """The body is `{contentType, rawData}`, and a raw-aware sink writes `rawData` verbatim."""
        self.stopped = False
        """The flow completes right here; every enclosing chain honours it."""
        self.body_schema: Json = None

    @property
    def body(self) -> Json:
        return self._body

    @body.setter
    def body(self, value: Json) -> None:
        """Replace the body; an ordinary body ends raw mode."""
        self._body = value
        self.raw = False

    def set_raw(self, content_type: str, data: str) -> None:
        """Make the body raw content of a MIME type."""
        self._body = {"contentType": content_type, "rawData": data}
        self.raw = True

    def stop(self) -> None:
        """Complete the flow right after the current block."""
        self.stopped = True

    def clone(self, *, event_id: str | None = None) -> Message:
        """A copy that shares nothing with this one but the values of variables; with a new id when given."""
        return self._copy(clone(self._body), event_id or self.event_id)

    def scope(self) -> Message:
        """A copy with variables of its own and the same body."""
        return self._copy(self._body, self.event_id)

    def adopt(self, other: Message) -> None:
        """Take over body (with its raw mark), variables and stop mark of another message."""
        self._body, self.raw, self.body_schema = other._body, other.raw, other.body_schema
        self.vars = other.vars
        self.stopped = other.stopped

    def _copy(self, body: Json, event_id: str) -> Message:
        copy = Message(
            body,
            dict(self.vars),
            event_id=event_id,
            correlation_id=self.correlation_id,
            raw=self.raw,
            trace_id=self.trace_id,
        )
        copy.body_schema = self.body_schema
        return copy

    def shown(self) -> Ordered:
        """The message as users see it: fixed key order, empty parts left out, variables of the runtime hidden."""
        variables = {name: value for name, value in self.vars.items() if not name.startswith(HIDDEN_PREFIX)}
        parts: dict[str, Json] = {
            "event_id": self.event_id,
            "correlation_id": self.correlation_id or None,
            "variables": variables or None,
            "body": self._body,
            "body_schema": self.body_schema,
            "raw_content": self.raw or None,
        }
        return Ordered((name, value) for name, value in parts.items() if value is not None)

    def text(self) -> str:
        """One line of JSON: the parts in the order of `shown`, everything inside them with sorted keys."""
        return dumps(self.shown())
