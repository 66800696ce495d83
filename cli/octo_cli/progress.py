"""Shows what agents do while they do it: live on a terminal, as log records where that is asked for."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from octo.logline import printable
from octo.observe import (
    AgentEnded,
    AgentGaveUp,
    AgentStarted,
    Event,
    LogLine,
    TextsEmbedded,
    ToolCalled,
    ToolReturned,
    TurnEnded,
    TurnStarted,
)
from octo_cli import logs
from octo_cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.table import Table

    from octo.llm.chat import Usage


@dataclass(slots=True)
class Totals:
    """What all agents of a run, and other blocks that ask models, did together."""

    started: float | None = None
    turns: int = 0
    tool_calls: int = 0
    failed_calls: int = 0
    usage: Usage | None = None
    unmetered: int = 0
    """Calls whose tokens nobody told."""
    unpriced: int = 0
    """Calls whose cost is not known."""
    gave_up: str = ""

    def add(self, usage: Usage | None) -> None:
        """Take note of what a call of a model used."""
        self.unpriced += usage is None or usage.cost_usd is None
        if usage is None:
            self.unmetered += 1
        else:
            self.usage = self.usage + usage if self.usage else usage

    def line(self, now: float) -> str:
        """One line that sums it up. Unknown tokens are said to be unknown, never zero."""
        calls = _count(self.tool_calls, "tool call") + (f" ({self.failed_calls} failed)" if self.failed_calls else "")
        parts = [_count(self.turns, "turn"), calls, self._tokens(), *self._cost()]
        parts.append(span(now - (self.started or now)))
        if self.gave_up:
            parts.append(f"gave up: {self.gave_up}")
        return ", ".join(parts)

    def _tokens(self) -> str:
        read, written = _read(self.usage), self.usage.output_tokens if self.usage else None
        if read is None and written is None:
            return "tokens unknown"
        counts = ((read, "read"), (written, "written"))
        parts = [f"{_count(count, 'token')} {verb}" for count, verb in counts if count is not None]
        return ("at least " if self.unmetered else "") + " and ".join(parts)

    def _cost(self) -> list[str]:
        """What it cost, where anything is known of that."""
        from octo.runlog.words import money

        cost = self.usage.cost_usd if self.usage else None
        return [] if cost is None else [("at least " if self.unpriced else "") + money(cost)]


@dataclass(slots=True)
class Working:
    """An agent that is at work, as the live display shows it."""

    address: str
    since: float
    turn: int = 0
    tokens: int = 0
    """Read and written so far, as far as anybody told."""
    tools: dict[str, str] = field(default_factory=dict)
    """Calls that run, by id."""
    is_brief: bool = False
    """Whether it is no agent, but a block that asks a model for one thing."""

    def line(self, now: float) -> str:
        """What it is doing now. What may be cut off at the edge of the terminal stands last."""
        parts = [self.address, f"turn {max(self.turn, 1)}", span(now - self.since)]
        if self.tokens:
            parts.append(_count(self.tokens, "token"))
        return "  ".join([*parts, ", ".join(self.tools.values()) or "thinking"])


class FlowLog:
    """Observer that writes what flows log to the process log."""

    kinds: Sequence[type[Event]] = (LogLine,)

    def __init__(self, session: Session) -> None:
        self._session = session

    def notify(self, event: Event) -> None:
        if isinstance(event, LogLine):
            logs.write(self._session, event.level, event.text, event.fields)


class Progress:
    """Observer of one run; `close` ends the display and prints the sum.

    With a headline, which says how far a longer work is, the display begins with `open` and ends with it. When it is
    not `live`, something else shows what goes on, and there is only the sum.
    """

    kinds: Sequence[type[Event]] = (
        AgentStarted,
        AgentEnded,
        TurnStarted,
        TurnEnded,
        ToolCalled,
        ToolReturned,
        AgentGaveUp,
        TextsEmbedded,
    )

    def __init__(self, session: Session, headline: Callable[[], str] | None = None, *, live: bool = True) -> None:
        self._session = session
        self._headline = headline
        self._is_live = live
        self._totals = Totals()
        self._working: dict[tuple[str, str], Working] = {}
        self._live: Live | None = None
        self._spinner: Spinner | None = None
        self._out, self._err = session.out, session.err

    def notify(self, event: Event) -> None:
        self._follow(event)
        if self._session.verbose:
            self._tell(event)
        elif isinstance(event, ToolReturned) and event.is_error and self._session.for_people(self._err):
            text = f"tool `{short(event.tool)}` failed: {short(event.text, 500)}"
            self._session.tell(printable(self._session.mask(text)))
        if isinstance(event, AgentStarted | TurnStarted):
            self.open()

    def open(self) -> None:
        """Begin with the display, where there is a person who looks at it."""
        if self._is_live and self._live is None and self._session.for_people(self._err):
            self._live = self._start()

    def close(self) -> None:
        """Take the display off the terminal and say in one line what was done."""
        if self._live is not None:
            self._live.stop()
            self._live = None
            self._session.out, self._session.err = self._out, self._err
        elif self._is_live or not self._session.for_people(self._err):
            return
        if self._headline:
            self._session.tell(self._headline())
        if self._totals.started:
            self._session.tell(printable(self._totals.line(time.monotonic())))

    def _follow(self, event: Event) -> None:
        key = (event.event_id, event.address)
        agent = self._working.get(key)
        totals = self._totals
        match event:
            case AgentStarted():
                self._begin(key)
            case AgentEnded():
                self._working.pop(key, None)
            case TurnStarted():
                agent = agent or self._begin(key, is_brief=True)
                agent.turn = event.iteration
            case TurnEnded():
                totals.turns += 1
                totals.add(event.usage)
                if agent and event.usage:
                    agent.tokens += (_read(event.usage) or 0) + (event.usage.output_tokens or 0)
                if agent and agent.is_brief:
                    self._working.pop(key)
            case TextsEmbedded():
                totals.add(event.usage)
            case ToolCalled():
                totals.tool_calls += 1
                if agent:
                    agent.tools[event.call_id] = f"{event.tool}({short(event.arguments)})"
            case ToolReturned():
                totals.failed_calls += event.is_error
                if agent:
                    agent.tools.pop(event.call_id, None)
            case AgentGaveUp():
                totals.gave_up = event.reason

    def _begin(self, key: tuple[str, str], *, is_brief: bool = False) -> Working:
        now = time.monotonic()
        self._totals.started = self._totals.started or now
        self._working[key] = Working(key[1], now, is_brief=is_brief)
        return self._working[key]

    # ---------------------------------------------------------------- records

    def _tell(self, event: Event) -> None:
        match event:
            case TurnEnded():
                self._log(
                    "model turn failed" if event.error else "model turn",
                    event,
                    turn=event.iteration,
                    model=event.model or None,
                    stop=event.stop_reason or None,
                    toolCalls=event.tool_calls,
                    tokensRead=_read(event.usage),
                    tokensWritten=event.usage.output_tokens if event.usage else None,
                    costUSD=event.usage.cost_usd if event.usage else None,
                    seconds=round(event.seconds, 3),
                    error=event.error.message if event.error else None,
                )
            case ToolCalled():
                self._log("tool called", event, turn=event.iteration, tool=event.tool, arguments=short(event.arguments))
            case ToolReturned():
                self._log(
                    "tool failed" if event.is_error else "tool returned",
                    event,
                    turn=event.iteration,
                    tool=event.tool,
                    result=short(event.text),
                    seconds=round(event.seconds, 3),
                )
            case TextsEmbedded():
                self._log(
                    "embedding failed" if event.error else "texts embedded",
                    event,
                    model=event.model,
                    texts=event.texts,
                    tokensRead=_read(event.usage),
                    costUSD=event.usage.cost_usd if event.usage else None,
                    seconds=round(event.seconds, 3),
                    error=event.error.message if event.error else None,
                )
            case AgentGaveUp():
                self._log("agent gave up", event, reason=event.reason, detail=event.detail or None)

    def _log(self, text: str, event: Event, **fields: Any) -> None:
        logs.write(self._session, "info", text, {"at": event.address, **fields})

    # ---------------------------------------------------------------- the live display

    def _start(self) -> Live:
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        self._spinner = Spinner("dots")
        console = Console(file=self._err, no_color=not self._session.coloured(self._err))
        same_terminal = self._session.for_people(self._out)
        live = Live(
            self,
            console=console,
            refresh_per_second=8,
            transient=True,
            redirect_stderr=False,
            redirect_stdout=same_terminal,
        )
        live.start()
        # What is written meanwhile goes above the display, not through it.
        self._session.err = _Above(console, self._err)
        if same_terminal:
            self._session.out = _Above(console, self._out)
        return live

    def __rich__(self) -> Table:
        """The display at this moment, drawn anew also when something is written above it."""
        from rich.table import Table
        from rich.text import Text

        now = time.monotonic()
        table = Table.grid(padding=(0, 1))
        if self._headline:
            table.add_row(self._spinner, Text(self._headline(), no_wrap=True, overflow="ellipsis"))
        for agent in list(self._working.values()):
            words = self._session.mask(agent.line(now))
            table.add_row(self._spinner, Text(printable(words), no_wrap=True, overflow="ellipsis"))
        return table


class _Above(io.StringIO):
    """Stands in for the terminal while the display is on: what is written appears above it."""

    def __init__(self, console: Console, terminal: TextIO) -> None:
        super().__init__()
        self._console = console
        self._terminal = terminal

    def write(self, text: str) -> int:
        from rich.text import Text

        self._console.print(Text.from_ansi(text.rstrip("\n")), soft_wrap=True)
        return len(text)

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._terminal.fileno()


def _read(usage: Usage | None) -> int | None:
    if usage is None:
        return None
    return usage.prompt_tokens if usage.prompt_tokens is not None else usage.input_tokens


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def span(seconds: float) -> str:
    """How long something took, for people."""
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def short(text: str, limit: int = 80) -> str:
    """The text on one line, with an ellipsis when it is long."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
