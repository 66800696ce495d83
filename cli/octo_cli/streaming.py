"""`--stream`: shows what agents say while they say it, on standard error."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, TextIO

from octo.llm.chat import Retry, TextDelta
from octo.logline import printable
from octo.observe import AgentStarted, Event, ModelDelta, ToolCalled, TurnEnded, TurnStarted
from octo_cli.progress import short
from octo_cli.session import Session

_BROKE_OFF: Final = "[the answer broke off and begins anew: {}]"


@dataclass(eq=False)
class Speaker:
    """An agent that gives one answer, piece by piece."""

    address: str
    waiting: list[str] = field(default_factory=list)
    """What it said while another had the floor."""
    is_over: bool = False


class Stream:
    """Observer that writes answers as they come. `close` ends what is not at its end.

    One speaker has the floor until its answer is over; what others say meanwhile follows then. A line says who speaks,
    where it is not the one who spoke before, or who began. On a terminal there is a line for each tool call, too.
    """

    kinds: Sequence[type[Event]] = (AgentStarted, TurnStarted, ModelDelta, TurnEnded, ToolCalled)

    def __init__(self, session: Session) -> None:
        self._session = session
        self._out, self._err = session.out, session.err
        self._speaking: ContextVar[Speaker | None] = ContextVar("octo.stream.speaking", default=None)
        self._floor: Speaker | None = None
        self._others: list[Speaker] = []
        self._above = ""
        """The address of the one who spoke last; at first, of the one who began."""
        self._in_line = False
        """Whether the last line has no end yet."""
        session.err = _Beside(session.err, self._end_line)
        if session.for_people(self._out) and session.for_people(self._err):
            session.out = _Beside(session.out, self._end_line)

    def notify(self, event: Event) -> None:
        match event:
            case AgentStarted():
                self._above = self._above or event.address
            case TurnStarted():
                self._speaking.set(Speaker(event.address))
            case ModelDelta():
                speaker = self._speaking.get()
                if speaker is not None:
                    self._piece(speaker, event)
            case TurnEnded() if not event.purpose:
                self._over()
            case ToolCalled() if self._session.for_people(self._err) and not self._session.verbose:
                self._end_line()
                self._aside(f"→ {event.tool}({short(event.arguments)})")

    def close(self) -> None:
        """End the line, and show what is left of answers that did not come to an end."""
        self._end_line()
        self._floor = None
        while self._others:
            self._hear_next()
            self._end_line()
        self._session.out, self._session.err = self._out, self._err

    def _piece(self, speaker: Speaker, event: ModelDelta) -> None:
        match event.delta:
            case TextDelta(text):
                self._say(speaker, text)
            case Retry(reason=reason) if speaker is self._floor:
                self._end_line()
                self._aside(_BROKE_OFF.format(short(reason, 500)))
            case Retry():
                speaker.waiting.clear()

    def _say(self, speaker: Speaker, text: str) -> None:
        if self._floor is None:
            self._take_floor(speaker)
        if speaker is self._floor:
            self._write(printable(self._session.masked(text)))
            return
        if speaker not in self._others:
            self._others.append(speaker)
        speaker.waiting.append(text)

    def _over(self) -> None:
        speaker = self._speaking.get()
        if speaker is None:
            return
        speaker.is_over = True
        if speaker is self._floor:
            self._end_line()
            self._floor = None
            while self._others and self._floor is None:
                self._hear_next()

    def _hear_next(self) -> None:
        speaker = self._others.pop(0)
        self._take_floor(speaker, waited=True)
        self._write(printable(self._session.masked("".join(speaker.waiting))))
        if speaker.is_over:
            self._end_line()
            self._floor = None

    def _take_floor(self, speaker: Speaker, *, waited: bool = False) -> None:
        if waited or (self._above and speaker.address != self._above):
            self._end_line()
            self._aside(f"── {speaker.address}")
        self._floor, self._above = speaker, speaker.address

    # ------------------------------------------------------------ writing

    def _aside(self, text: str) -> None:
        """A line that nobody said."""
        words = printable(self._session.masked(text))
        if self._session.coloured(self._err):
            import typer

            words = typer.style(words, dim=True)
        self._write(words + "\n")

    def _end_line(self) -> None:
        if self._in_line:
            self._write("\n")

    def _write(self, text: str) -> None:
        if text:
            self._in_line = not text.endswith("\n")
            with suppress(OSError, ValueError):  # that nobody can read it is no reason to fail
                self._err.write(text)
                self._err.flush()


class _Beside(io.StringIO):
    """Stands in for a stream while answers come: what is written begins on a line of its own."""

    def __init__(self, stream: TextIO, end_line: Callable[[], None]) -> None:
        super().__init__()
        self._stream = stream
        self._end_line = end_line

    def write(self, text: str) -> int:
        self._end_line()
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()
