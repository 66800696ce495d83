"""From bytes to the events of a stream; what the events mean is not known here."""

from __future__ import annotations

import json
import re
from typing import Final, Protocol

EVENT_LIMIT: Final = 32 * 1024 * 1024
"""The most bytes that one event, or one answer that is not streamed, may have."""

DONE: Final = "[DONE]"
"""The data of an event that is no JSON: some vendors end their streams with it."""

_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_BLANK_LINE: Final = re.compile(rb"(?:\r\n|\r|\n)(?:\r\n|\r(?!\n)|\n)")
_FIELD: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry|:)")
_BOM: Final = b"\xef\xbb\xbf"


class TooLong(ValueError):
    """An event, or a whole answer, has more bytes than anybody should send."""


class Damaged(ValueError):
    """The bytes of a stream are not those that were sent."""


class Framing(Protocol):
    """Cuts a stream into the data of its events, which is JSON as a rule, however the network cut it into chunks."""

    def feed(self, chunk: bytes) -> list[str]:
        """Take the next bytes; gives the data of each event that they complete. Raises TooLong, or Damaged."""

    def finish(self) -> list[str]:
        """The stream is over: the data of what was still open and is whole all the same. Raises Damaged."""

    def is_stream(self, head: bytes) -> bool:
        """Whether bytes can be the beginning of a stream in this framing, cut off anywhere."""


class EventFraming:
    """The framing of server-sent events.

    Lines are cut as bytes, before decoding: so no character is ever torn. The names, ids and retry times that
    events may carry are ignored.
    """

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._size = 0
        self._line: list[bytes] = []
        self._data: list[str] = []
        self._after_cr = False
        self._first_line = True

    def feed(self, chunk: bytes) -> list[str]:
        """Take the next bytes; gives the data of each event that they complete. Raises TooLong."""
        if not chunk:
            return []
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        *lines, rest = _LINE_END.split(chunk)
        self._after_cr = not rest and chunk.endswith(b"\r")
        events: list[str] = []
        for end in lines:
            self._count(len(end))
            self._line.append(end)
            line, self._line = b"".join(self._line), []
            if self._take(line):
                events.extend(self._event())
        if rest:
            self._count(len(rest))
            self._line.append(rest)
        return events

    def finish(self) -> list[str]:
        """The stream is over: an event without its closing blank line counts if it is whole in itself."""
        self._take(b"".join(self._line))
        self._line = []
        return [data for data in self._event() if data == DONE or _is_json(data)]

    def is_stream(self, head: bytes) -> bool:
        return _FIELD.match(head) is not None

    def _take(self, line: bytes) -> bool:
        """Note a line; true when it is the blank one that ends an event."""
        if self._first_line:
            line = line.removeprefix(_BOM)
            self._first_line = False
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" ").decode("utf-8", errors="replace"))
        return not line

    def _event(self) -> list[str]:
        data, self._data, self._size = "\n".join(self._data), [], 0
        return [data] if data else []

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > self._limit:
            raise TooLong(f"an event of the answer is longer than {self._limit // 2**20} MiB")


class WholeEvents:
    """Holds back the bytes of a stream until the event that they belong to is whole; no byte is changed."""

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._held = bytearray()

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes; gives those of the events that are whole. Raises TooLong."""
        start = max(len(self._held) - 3, 0)
        self._held += chunk
        end = start + max((match.end() for match in _BLANK_LINE.finditer(self._held[start:])), default=-start)
        whole = bytes(self._held[:end])
        del self._held[:end]
        if len(self._held) > self._limit:
            raise TooLong(f"an event of the answer is longer than {self._limit // 2**20} MiB")
        return whole

    def finish(self) -> bytes:
        """The stream is over: an event without its closing blank line, if it is whole in itself. Raises Damaged."""
        rest = EventFraming(self._limit)
        if rest.feed(bytes(self._held)) or rest.finish():
            return bytes(self._held) + b"\n\n"
        if b"data:" in self._held:
            raise Damaged("the answer broke off in the middle of an event")
        return b""


def _is_json(data: str) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True
