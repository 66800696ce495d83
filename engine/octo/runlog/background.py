"""Writes records down beside the run, which never waits for a disk or for the reader of a pipe."""

from __future__ import annotations

from collections import deque
from threading import Condition, Thread
from typing import Final, TextIO

from octo.runlog.record import Record

ROOM: Final = 4096
"""How many records wait by default."""
PATIENCE: Final = 10.0
"""Seconds that the end waits for what is not written yet."""


class BackgroundWriter:
    """Sink whose records a thread writes. When as many wait as there is room for, further ones are dropped; a record
    says how many. Once writing fails, no more is written; `error` tells."""

    def __init__(self, stream: TextIO, *, room: int = ROOM) -> None:
        self.error: OSError | None = None
        self._stream = stream
        self._room = room
        self._waiting: deque[Record] = deque()
        self._dropped = 0
        self._last_dropped: Record | None = None
        self._changed = Condition()
        self._closed = False
        self._thread = Thread(target=self._work, daemon=True, name="octo run log")
        self._thread.start()

    def __call__(self, record: Record) -> None:
        with self._changed:
            if len(self._waiting) < self._room:
                self._waiting.append(record)
                self._changed.notify()
            else:
                self._dropped += 1
                self._last_dropped = record

    def close(self) -> None:
        """Write what waits, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(PATIENCE)

    def _work(self) -> None:
        while records := self._next():
            if self.error is None:
                self._write(records)

    def _next(self) -> list[Record]:
        """What waits now; nothing when the end has come."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            records = [*self._waiting, *self._loss()]
            self._waiting.clear()
            return records

    def _loss(self) -> list[Record]:
        if self._last_dropped is None:
            return []
        last, self._last_dropped = self._last_dropped, None
        dropped, self._dropped = self._dropped, 0
        return [Record(last.seq, "trace.dropped", at=last.at, attrs={"count": dropped})]

    def _write(self, records: list[Record]) -> None:
        try:
            self._stream.writelines(record.text + "\n" for record in records)
            self._stream.flush()
        except OSError as error:
            self.error = error
