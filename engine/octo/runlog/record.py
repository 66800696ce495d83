"""The one format in which runs are told: a record for each thing that happened, each one line of JSON."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Final, Self

from octo.values import Json, Ordered, dumps, masked, parse

LIMIT: Final = 32768
"""How many bytes of JSON a body or the variables may have by default; larger ones are left out."""


BODY: Final = "body"
VARS: Final = "vars."
"""How `same` names a body, and a variable before its name."""

KINDS: Final = (
    "source.emit",
    "flow.started",
    "flow.completed",
    "flow.dropped",
    "flow.failed",
    "block.pre-invoke",
    "block.post-invoke",
    "agent.turn_start",
    "agent.text",
    "agent.thinking",
    "agent.tool_input",
    "agent.custom",
    "agent.retry",
    "llm.turn",
    "agent.tool_call",
    "agent.tool_result",
    "agent.guardrail",
    "agent.compaction",
    "llm.embed",
    "proxy.request",
    "trace.dropped",
)
"""What a record may be about."""

PIECES: Final = frozenset({"agent.text", "agent.thinking", "agent.tool_input", "agent.custom"})
"""The kinds that tell of an answer while it comes; the record at its end holds all of it."""


@dataclass(frozen=True)
class Record:
    """One thing that happened in a run. What is empty is not written.

    Records form a tree: one that begins something has its own number as `span_id`, the one that ends it the same, and
    what happens in between has that number as `parent_id`.
    """

    seq: int
    """Counts from 1, in the order in which things happened."""
    kind: str
    """One of `KINDS`, as long as octo wrote it."""
    trace_id: str = ""
    """Joins everything that one message caused: the id of that message."""
    span_id: int = 0
    parent_id: int = 0
    event_id: str = ""
    correlation_id: str = ""
    flow: str = ""
    path: str = ""
    """Address of the block."""
    block_type: str = ""
    at: str = ""
    """When it happened, in UTC, to the microsecond."""
    duration_ns: int | None = None
    error: str = ""
    dropped: bool = False
    body: Json = None
    vars: Mapping[str, Json] = field(default_factory=dict)
    same: Mapping[str, int] = field(default_factory=dict)
    """What an earlier record tells, and so is not written again: `body` or `vars.NAME`, with the number of that record.
    Of a record that was made or read by octo, `body` and `vars` hold it all the same."""
    truncated: bool = False
    """Something was too large, and was left out or cut."""
    attrs: Mapping[str, Json] = field(default_factory=dict)
    """What only records of this kind have."""

    @classmethod
    def parse(cls, line: str) -> Self:
        """Read a record from its line. Raises ValueError with what is wrong."""
        data = parse(line)
        if not isinstance(data, dict) or not {"seq", "kind"} <= data.keys():
            raise ValueError("expected a record of a run, an object with `seq` and `kind`")
        return cls(**{FIELDS[name][0]: _read(name, value) for name, value in data.items() if name in FIELDS})

    @cached_property
    def text(self) -> str:
        """The record as one line of JSON."""
        values = vars(self)
        if self.same:
            values = {**values, "body": None if BODY in self.same else self.body, "vars": self._new_vars()}
        parts = Ordered()
        for name, (attribute, _) in FIELDS.items():
            value = values[attribute]
            if value or (value is not None and name in _MAY_BE_ZERO):
                parts[name] = value
        return dumps(parts)

    def _new_vars(self) -> Mapping[str, Json]:
        return {name: value for name, value in self.vars.items() if VARS + name not in self.same}

    def filled(self, earlier: Mapping[int, Record]) -> Record:
        """The record with what it shares with earlier ones, by their numbers, as far as they are there."""
        body, variables = self.body, dict(self.vars)
        for key, number in self.same.items():
            holder = earlier.get(number)
            name = key.removeprefix(VARS)
            if holder is not None and key == BODY:
                body = holder.body
            elif holder is not None and name in holder.vars:
                variables[name] = holder.vars[name]
        return replace(self, body=body, vars=variables) if self.same else self

    @property
    def begins(self) -> bool:
        """Whether more records belong inside this one."""
        return self.span_id == self.seq

    def within(self, limit: int) -> Record:
        """The record without a body and variables that have more bytes than the limit, and its other texts cut."""
        if not any(_exceeds(part, limit) for part in (self.body, self.vars, self.attrs)) and _size(self.text) <= limit:
            return self
        keeps_body, keeps_vars = (
            not _exceeds(value, limit) and _size(dumps(value)) <= limit for value in (self.body, self.vars)
        )
        attrs = _cut(self.attrs, limit)
        if keeps_body and keeps_vars and attrs == self.attrs:
            return self
        return replace(
            self,
            body=self.body if keeps_body else None,
            vars=self.vars if keeps_vars else {},
            attrs=attrs,
            truncated=True,
        )

    def masked(self, mask: Callable[[str], str]) -> Record:
        """The record with the secrets in it hidden."""
        if mask(self.text) == self.text:
            return self
        return replace(
            self,
            flow=mask(self.flow),
            path=mask(self.path),
            correlation_id=mask(self.correlation_id),
            error=mask(self.error),
            body=masked(self.body, mask),
            vars=masked(self.vars, mask),
            attrs=masked(self.attrs, mask),
        )


FIELDS: Final[Mapping[str, tuple[str, type]]] = {
    "seq": ("seq", int),
    "kind": ("kind", str),
    "traceId": ("trace_id", str),
    "spanId": ("span_id", int),
    "parentId": ("parent_id", int),
    "eventId": ("event_id", str),
    "correlationId": ("correlation_id", str),
    "flow": ("flow", str),
    "path": ("path", str),
    "blockType": ("block_type", str),
    "at": ("at", str),
    "durationNs": ("duration_ns", int),
    "error": ("error", str),
    "dropped": ("dropped", bool),
    "body": ("body", object),
    "vars": ("vars", dict),
    "same": ("same", dict),
    "truncated": ("truncated", bool),
    "attrs": ("attrs", dict),
}
"""The names of fields as they are written, in that order, with their attributes and kinds."""

_MAY_BE_ZERO: Final = {"durationNs", "body"}


def instant(ns: int) -> str:
    """A point in time as records write it; `ns` counts from 1970."""
    seconds, rest = divmod(ns, 10**9)
    return f"{_to_the_second(seconds)}.{rest // 1000:06d}Z"


@lru_cache(maxsize=1)  # many records are made in one second
def _to_the_second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def _read(name: str, value: Json) -> Any:
    kind = FIELDS[name][1]
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if name == "same" and isinstance(value, dict):
        return {key: _read("seq", number) for key, number in value.items()}
    if not isinstance(value, kind) or kind is int:
        raise ValueError(f"`{name}` of a record is {_WORDS[kind]}, found `{dumps(value)}`")
    return value


_WORDS: Final = {int: "a whole number", str: "text", bool: "true or false", dict: "an object"}


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def _exceeds(value: Json, limit: int) -> bool:
    """Whether a value is so large that its JSON, which then is not even written, has more bytes than the limit."""
    size, left = 0, [value]
    while left and size <= limit:
        item = left.pop()
        if not isinstance(item, str | list | tuple | Mapping):
            size += 1
            continue
        size += len(item)
        if size <= limit and not isinstance(item, str):
            left.extend(item)
            left.extend(item.values() if isinstance(item, Mapping) else ())
    return size > limit


def _cut(value: Json, limit: int) -> Json:
    """The value with texts cut that have more characters than the limit."""
    match value:
        case str() if len(value) > limit:
            return value[:limit] + "…"
        case list():
            return [_cut(item, limit) for item in value]
        case dict():
            return {key: _cut(item, limit) for key, item in value.items()}
    return value
