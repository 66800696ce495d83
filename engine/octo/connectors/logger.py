"""Logs that flows write to, besides the process log."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from octo import logline
from octo.connector import Connector
from octo.errors import ConnectorError, OctoError
from octo.fields import Bool, Name, one_of
from octo.values import Json, masked, render

if TYPE_CHECKING:
    from octo.runtime import Runtime

_STREAMS = ("stdout", "stderr")


class Logger(Connector, type="logger"):
    """A log of its own, for `log` blocks that name it. It does not obey `LOG_LEVEL`."""

    output: Name = "stdout"
    """`stdout`, `stderr`, or the path of a file to append to, relative to the config directory.

    Lines on standard output stand between whatever else a command prints there.
    """

    format: Annotated[Literal["text", "json"], one_of("text", "json")] = "text"
    """`text` writes `key=value` lines, `json` one JSON object a line."""

    level: Annotated[Literal["debug", "info", "warn", "error"], one_of("debug", "info", "warn", "error")] = "info"
    """Lines below this level are left out."""

    add_source: Bool = False
    """Add where in the config the `log` block stands, as `source`."""

    @asynccontextmanager
    async def open(self, runtime: Runtime) -> AsyncIterator[OpenLog]:
        if self.output in _STREAMS:
            yield OpenLog(self, runtime, self._stream(runtime))
        else:
            with _appending(runtime.config.root / self.output) as put:
                yield OpenLog(self, runtime, put)

    def _stream(self, runtime: Runtime) -> Callable[[str], object]:
        put = runtime.outputs.get(self.output)
        if put is None:
            raise ConnectorError(
                f"this runtime has no {self.output}",
                hint=f'hand it over: `Runtime(config, outputs={{"{self.output}": print}})`',
            )
        return put


class OpenLog:
    """An open log."""

    def __init__(self, settings: Logger, runtime: Runtime, put: Callable[[str], object]) -> None:
        self.add_source = settings.add_source
        self._settings = settings
        self._threshold = logline.rank(settings.level)
        self._clock = runtime.clock
        self._mask = runtime.config.environment.mask
        self._put = put

    def write(self, level: str, text: str, fields: Mapping[str, Json]) -> None:
        """Write one line, unless its level is too low. Raises OctoError when it cannot be written."""
        if logline.rank(level) < self._threshold:
            return
        if self._settings.format == "json":
            line = logline.as_json(self._clock(), level, self._mask(text), masked(dict(fields), self._mask))
        else:
            shown = {name: self._mask(render(value)) for name, value in fields.items()}
            line = logline.as_text(self._clock(), level, self._mask(text), shown)
        try:
            self._put(line)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            message = f'logger "{self._settings.instance}": cannot write {self._settings.output}: {reason}'
            raise OctoError(message) from error


@contextmanager
def _appending(path: Path) -> Iterator[Callable[[str], None]]:
    """Appends lines to a file, each with one write, so that those of several processes do not mix."""
    try:
        file = open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600))  # noqa: SIM115 (closed below)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConnectorError(f"cannot open the log file {path}: {reason}") from error

    def put(line: str) -> None:
        file.write(line.encode("utf-8", errors="replace") + b"\n")
        file.flush()

    with file:
        yield put
