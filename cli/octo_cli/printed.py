"""What the Python code of a config prints: it goes to standard error, for standard output is for the answer."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from threading import get_ident
from typing import TYPE_CHECKING, BinaryIO, cast

from octo_cli.session import Session

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


@contextmanager
def to_standard_error(session: Session) -> Iterator[None]:
    """Give Python code another `sys.stdout`. What octo prints goes to the streams of the session."""
    lines = Lines(session)
    text = io.TextIOWrapper(cast("BinaryIO", lines), "utf-8", "replace", "\n", write_through=True)
    try:
        with redirect_stdout(text):
            yield
    finally:
        lines.flush_all()


class Lines(io.BufferedIOBase):
    """Passes whole lines on, without secrets. Each thread has a line of its own."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._begun: dict[int, bytes] = {}

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer) -> int:
        """Keep what is written, up to the end of its line."""
        piece = bytes(data)
        thread = get_ident()
        *whole, begun = (self._begun.pop(thread, b"") + piece).split(b"\n")
        if begun:
            self._begun[thread] = begun
        if whole:
            self._session.tell("\n".join(map(self._text, whole)))
        return len(piece)

    def flush(self) -> None:
        """Show a line that is not at its end, such as a question."""
        self._show(self._begun.pop(get_ident(), b""))

    def flush_all(self) -> None:
        """Show what no thread has ended."""
        while self._begun:
            self._show(self._begun.popitem()[1])

    def isatty(self) -> bool:
        return self._session.for_people(self._session.err)

    def _show(self, begun: bytes) -> None:
        if begun:
            self._session.tell(self._text(begun), end="")

    def _text(self, line: bytes) -> str:
        return self._session.masked(line.decode("utf-8", errors="replace"))
