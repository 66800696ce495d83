"""Run a program of the local machine."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from octo.block import Block, Finding, SubFlow
from octo.errors import ExpressionError, OctoError
from octo.fields import Bool, Duration, Expression, Int, Name, Text, one_of
from octo.message import Dropped, Message
from octo.process import CHUNK, Child, resolve, running
from octo.refusals import Refusals
from octo.run import Run, RunError
from octo.values import Json, clean_text, kind_of, render

if TYPE_CHECKING:
    from octo.config.model import Config

_INTERPRETERS: Final = frozenset(
    "sh bash zsh dash ksh csh fish env xargs awk gawk python perl ruby node php".split()  # noqa: SIM905 (a list of words)
)
_VERSION: Final = re.compile(r"[\d.]*(\.exe)?$", re.IGNORECASE)
_LONGEST_LINE: Final = 1024 * 1024

Stream: TypeAlias = Literal["stdout", "stderr"]
EventKind = Annotated[Literal["stdout", "stderr", "exit"], one_of("stdout", "stderr", "exit")]


class CliRun(Block, type="cli-run", group="integration"):
    """Run a program of the local machine and wait for it; no shell is involved.

    The body becomes `{exitCode, stdout, stderr, lines}`. An exit code of -1 means that the program was killed.
    """

    program: Expression[str]
    """The program: a bare name, which is looked up on `PATH`, or an absolute path."""

    args: Expression[list[Json]] | None = None
    """Its arguments, a list of text. They reach the program as they are."""

    stdin: Expression[str] | None = None
    """What the program reads on standard input; without it, nothing."""

    allow: tuple[Name, ...] | None = Field(None, min_length=1)
    """The programs that may be run; without it, any."""

    allow_interpreters: Bool = False
    """Accept shells and interpreters under `allow`, through which every program can be run."""

    env: tuple[Name, ...] = ()
    """Names of environment variables that the program gets. It gets no others, not even `PATH`."""

    work_dir: Text | None = None
    """Directory in which the program runs, relative to the config directory; by default that of octo itself."""

    timeout: Duration = Duration("30s")
    """How long the program may run before it is killed."""

    max_output_bytes: Int = 1024 * 1024
    """How much of the output is kept, both streams together, in whole lines. The rest is only counted."""

    on_exit: Annotated[Literal["fail", "continue"], one_of("fail", "continue")] = "fail"
    """Whether an exit code other than 0 fails the block."""

    events: SubFlow | None = None
    """Runs for each line of output on `{type, text, index}`, and once at the end on `{type, exitCode, lines}`.

    It sees the variables of the message; what it makes of them is ignored. A stop in it kills the program.
    """

    emit: tuple[EventKind, ...] | None = None
    """Which events there are: `stdout`, `stderr`, `exit`; by default all. Needs `events`."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refusals = Refusals()
        if self.timeout.ns <= 0:
            refusals.add(f"cli-run: `timeout` must be positive, found `{self.timeout.text}`", "timeout")
        if self.max_output_bytes < 0:
            refusals.add(f"cli-run: `maxOutputBytes` is negative: {self.max_output_bytes}", "maxOutputBytes")
        if self.emit is not None and self.events is None:
            refusals.add("cli-run: `emit` requires `events`", "emit", hint="add `events: {process: [...]}`", at="key")
        refusals.raise_if_any()
        return self

    def check(self, config: Config) -> Iterator[Finding]:
        for index, entry in enumerate(self.allow or ()):
            try:
                path = resolve(entry, config.environ)
            except OctoError as error:
                yield Finding(f"cli-run: {error.message}", ("allow", index), error.hint)
                continue
            if not self.allow_interpreters and _INTERPRETERS & {_bare_name(entry), _bare_name(path)}:
                yield Finding(
                    f"cli-run: `{entry}` is an interpreter, through which every program can be run",
                    ("allow", index),
                    "remove it, or set `allowInterpreters: true`",
                )
        constant = self._constant(config)
        if constant is not None:
            try:
                self._permit(resolve(constant, config.environ), config)
            except OctoError as error:
                yield Finding(f"cli-run: {error.message}", ("program",), error.hint)
        elif self.allow is None:
            yield Finding(
                "cli-run: the message decides which program is run, and any is allowed",
                ("program",),
                "list the programs under `allow`",
                warning=True,
            )

    def _constant(self, config: Config) -> str | None:
        """The program, when it does not depend on the message."""
        program = self.program.program
        if program.names <= {"env"}:
            with suppress(ExpressionError):
                return render(program({"env": config.environment.values}))
        return None

    def _permit(self, path: str, config: Config) -> None:
        """Raise OctoError for a program that is not on the list."""
        if self.allow is None:
            return
        for entry in self.allow:
            with suppress(OctoError):  # an entry that is not there allows nothing
                if resolve(entry, config.environ) == path:
                    return
        raise OctoError(f'"{path}" is not allowed', hint="`allow` lists the programs that may be run")

    async def execute(self, message: Message, run: Run) -> Message:
        config = run.runtime.config
        supplied = {**config.environment.values, **config.environ}
        stdin = None if self.stdin is None else run.evaluate(self.stdin, message, f"cli-run {self.label}: stdin")
        try:
            argv = [self._path(message, run), *self._arguments(message, run)]
            context = running(
                argv,
                stdin=stdin,
                env={name: supplied[name] for name in self.env if name in supplied},
                cwd=config.root / self.work_dir if self.work_dir else None,
            )
            async with context as child:
                observed = _Observed(self, child, message, run)
                await observed.to_the_end()
        except RunError:
            raise
        except OctoError as error:
            raise RunError(f"cli-run {self.label}: {error.message}", hint=error.hint) from error
        message.body = observed.result()
        if observed.stopped:
            message.stop()
        elif child.code != 0 and self.on_exit == "fail":
            raise RunError(f'cli-run {self.label}: "{argv[0]}" exited {child.code}', hint=observed.reason())
        return message

    def _path(self, message: Message, run: Run) -> str:
        config = run.runtime.config
        path = resolve(run.evaluate(self.program, message, f"cli-run {self.label}: program"), config.environ)
        self._permit(path, config)
        return path

    def _arguments(self, message: Message, run: Run) -> list[str]:
        if self.args is None:
            return []
        arguments = run.evaluate(self.args, message, f"cli-run {self.label}: args")
        for index, argument in enumerate(arguments):
            if not isinstance(argument, str):
                raise OctoError(
                    f"args must be a list of text, entry {index} is {kind_of(argument)}",
                    hint="make text of it with `string(…)`",
                )
        return [clean_text(argument) for argument in arguments]


def _bare_name(program: str) -> str:
    """The name of a program without its version: `python` for `/usr/bin/python3.12`."""
    return _VERSION.sub("", Path(program).name)


class _Observed:
    """A program at work: keeps its output up to the cap, and tells the observer of each line."""

    def __init__(self, block: CliRun, child: Child, message: Message, run: Run) -> None:
        self.stopped = False
        self._block = block
        self._child = child
        self._message = message
        self._run = run
        self._kept: dict[Stream, list[str]] = {"stdout": [], "stderr": []}
        self._room = block.max_output_bytes
        self._lines = 0
        self._cut: set[Stream] = set()
        self._timed_out = False
        self._one_at_a_time = asyncio.Lock()

    def result(self) -> dict[str, Json]:
        """The body that the block leaves."""
        return {
            "exitCode": float(self._child.code),
            "stdout": "".join(self._kept["stdout"]),
            "stderr": "".join(self._kept["stderr"]),
            "lines": float(self._lines),
        }

    def reason(self) -> str | None:
        """What to tell a user whose program failed."""
        if self._timed_out:
            return f"it was killed after {self._block.timeout.text}; raise `timeout` if it needs more"
        last = next((line.strip() for line in reversed(self._kept["stderr"]) if line.strip()), None)
        return f"the last it wrote on standard error: {last}" if last else None

    async def to_the_end(self) -> None:
        """Wait for the program, within its time limit, and for all of its output."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._limit())
            group.create_task(self._follow("stdout", self._child.stdout))
            group.create_task(self._follow("stderr", self._child.stderr))
        await self._child.exited.wait()
        if self._tells("exit"):
            await self._tell({"type": "exit", "exitCode": float(self._child.code), "lines": float(self._lines)})

    async def _limit(self) -> None:
        try:
            async with asyncio.timeout(self._block.timeout.seconds):
                await self._child.exited.wait()
        except TimeoutError:
            self._timed_out = True
            self._child.kill()

    async def _follow(self, name: Stream, stream: asyncio.StreamReader) -> None:
        """Take one stream in. When nobody wants its lines any more, they are counted only."""
        rest = b""
        while chunk := await stream.read(CHUNK):
            if name in self._cut or (self._room < 0 and not self._tells(name)):
                self._lines += chunk.count(b"\n")
                rest = b"" if chunk.endswith(b"\n") else b"..."
                continue
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                await self._take(name, line)
            if len(rest) > _LONGEST_LINE:
                self._cut_off(name)
        if rest:
            await self._take(name, rest)

    async def _take(self, name: Stream, line: bytes) -> None:
        index = self._lines
        self._lines += 1
        if self.stopped or name in self._cut:
            return
        if len(line) > _LONGEST_LINE:
            self._cut_off(name)
            return
        line = line.removesuffix(b"\r")
        text = line.decode("utf-8", errors="replace")
        if self._room >= 0:
            self._room -= len(line) + 1
            if self._room >= 0:
                self._kept[name].append(text + "\n")
        if self._tells(name):
            await self._tell({"type": name, "text": text, "index": float(index)})

    def _cut_off(self, name: Stream) -> None:
        if name not in self._cut:
            self._cut.add(name)
            self._kept[name].append(f"[a line is longer than 1 MiB, so the rest of {name} is left out]\n")

    # ------------------------------------------------------------ the observer

    def _tells(self, kind: str) -> bool:
        return self._block.events is not None and (self._block.emit is None or kind in self._block.emit)

    async def _tell(self, body: dict[str, Json]) -> None:
        """Run the observer on an event of its own; the program waits for it when its output piles up."""
        assert self._block.events is not None
        async with self._one_at_a_time:
            if self.stopped:
                return
            event = self._run.runtime.message(body, vars=dict(self._message.vars))
            event.correlation_id = self._message.correlation_id
            try:
                await self._run.chain(self._block.events.process, event)
            except Dropped:
                return
            except OctoError as error:
                self._run.log(
                    "warning", f"cli-run {self._block.label}: events: {error.message}", block=self._block.address
                )
                return
            if event.stopped:
                self.stopped = True
                self._child.kill()
