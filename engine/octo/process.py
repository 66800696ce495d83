"""A program of the local machine as a child process: found, started, read, and never left behind."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Final, cast

from octo.errors import OctoError

CHUNK: Final = 64 * 1024
PATIENCE: Final = 5.0
"""Seconds that what a program has started may hold its output open after the program itself has ended."""


def resolve(program: str, environ: Mapping[str, str]) -> str:
    """The absolute path of a program, given as a bare name or as an absolute path. Links are not followed.

    Raises OctoError when there is no such program.
    """
    path = Path(program)
    if not program:
        raise OctoError("the program is empty text")
    if not path.is_absolute() and path.name != program:
        raise OctoError(
            f'program "{program}" is a relative path',
            hint="name a program that is on `PATH`, or write an absolute path",
        )
    found = shutil.which(os.path.normpath(program), path=environ.get("PATH", ""))
    if found is None and path.is_absolute() and path.exists():
        if path.is_dir():
            raise OctoError(f'program "{program}" is a directory', hint="name a program in it")
        raise OctoError(f'program "{program}" may not be executed', hint=f"`chmod +x {program}` allows it")
    if found is None:
        where = "" if path.is_absolute() else " on `PATH`"
        raise OctoError(f'program "{program}" is not found{where}', hint="is it installed, and may it be executed?")
    return os.path.normpath(Path(found).absolute())


class Child(asyncio.SubprocessProtocol):
    """A running program: its output as two streams, its end as a mark."""

    def __init__(self) -> None:
        self.stdout = asyncio.StreamReader(CHUNK)
        self.stderr = asyncio.StreamReader(CHUNK)
        self.exited = asyncio.Event()
        self._killed = False
        self._readers = {1: self.stdout, 2: self.stderr}
        self._transport: asyncio.SubprocessTransport | None = None
        self._patience: asyncio.TimerHandle | None = None

    @property
    def code(self) -> int:
        """The exit code; -1 when a signal ended the program."""
        code = self._transport.get_returncode() if self._transport else None
        return -1 if code is None or code < 0 or self._killed else code

    def kill(self) -> None:
        """End the program, and what it has started in its process group, at once."""
        if self.exited.is_set() or self._transport is None:
            return
        self._killed = True
        with suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(self._transport.get_pid(), signal.SIGKILL)
            else:
                self._transport.kill()

    def send(self, data: bytes) -> None:
        """Write standard input and close it."""
        assert self._transport is not None
        pipe = cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))
        pipe.write(data)
        pipe.close()

    async def end(self) -> None:
        """Leave nothing of the program behind."""
        self.kill()
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self.exited.wait()
        if self._patience is not None:
            self._patience.cancel()
        if self._transport is not None:
            self._transport.close()

    # ------------------------------------------------------------ what the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        for number, reader in self._readers.items():
            reader.set_transport(self._pipe(number))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._readers[fd].feed_data(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd in self._readers:
            self._readers[fd].feed_eof()

    def process_exited(self) -> None:
        self.exited.set()
        self._patience = asyncio.get_running_loop().call_later(PATIENCE, self._let_go)

    def _let_go(self) -> None:
        """Close what is still open, unless a slow reader is the reason."""
        waiting = [number for number in self._readers if not self._pipe(number).is_closing()]
        for number in waiting:
            if self._pipe(number).is_reading():
                self._pipe(number).close()
        if waiting:
            self._patience = asyncio.get_running_loop().call_later(PATIENCE, self._let_go)

    def _pipe(self, number: int) -> asyncio.ReadTransport:
        assert self._transport is not None
        return cast(asyncio.ReadTransport, self._transport.get_pipe_transport(number))


@asynccontextmanager
async def running(
    argv: Sequence[str], *, stdin: str | None, env: Mapping[str, str], cwd: Path | None
) -> AsyncIterator[Child]:
    """Start a program with exactly these arguments and variables; it ends when the context does.

    Raises OctoError when it cannot be started.
    """
    try:
        _, child = await asyncio.get_running_loop().subprocess_exec(
            Child,
            *map(_native, argv),
            stdin=DEVNULL if stdin is None else PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={_native(name): _native(value) for name, value in env.items()},
            cwd=cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise OctoError(f'cannot start "{argv[0]}": {_reason(error, cwd)}') from error
    try:
        if stdin is not None:
            child.send(stdin.encode("utf-8", errors="replace"))
        yield child
    finally:
        await child.end()


def _reason(error: OSError | ValueError, cwd: Path | None) -> str:
    if cwd is not None and not cwd.is_dir():
        return f"there is no directory `{cwd}`"
    return ((isinstance(error, OSError) and error.strerror) or str(error)).lower()


def _native(text: str) -> str | bytes:
    """Text as the system takes it: UTF-8 whatever the locale says."""
    return text.encode("utf-8", errors="surrogateescape") if os.name == "posix" else text
