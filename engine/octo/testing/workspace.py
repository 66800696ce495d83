"""The files with which the call of a case can be made by hand."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from octo.testing.trial import Trial, assignments, command_line
from octo.values import Json, Ordered, dumps

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one case."""

    debug_config: Path
    env: Path | None
    envelope: Path
    log: Path

    def remove(self) -> None:
        for path in (self.debug_config, self.env, self.envelope, self.log):
            if path is not None:
                path.unlink(missing_ok=True)


class Workspace:
    """A directory for the owner only, made when something is put there and gone when nothing is left in it."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        """With the variables of an env file, which every case has."""
        self._variables = variables
        self._directory: Path | None = None
        self._keeps = False

    @property
    def directory(self) -> Path | None:
        return self._directory

    def put(self, trial: Trial, mask: Callable[[str], str] = str) -> Files:
        """Write the debug config of a case, and its environment if it has one. The names of files are masked."""
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="octo-test-"))
        stem = f"{trial.number + 1:03}-{re.sub(r'[^a-z0-9]+', '-', mask(trial.name).lower()).strip('-')[:50] or 'case'}"

        def named(suffix: str) -> Path:
            assert self._directory is not None
            return self._directory / f"{stem}{suffix}"

        env = dict(self._assigned(trial))
        files = Files(named(".json"), named(".env") if env else None, named(".envelope.json"), named(".log.jsonl"))
        _write(files.debug_config, dumps(trial.debug_config()) + "\n")
        if files.env is not None:
            _write(files.env, assignments(env))
        return files

    def keep(self, trial: Trial, envelope: Mapping[str, Json] | None, mask: Callable[[str], str] = str) -> str:
        """Write the files of a case that fell short; the command that makes its call."""
        self._keeps = True
        files = self.put(trial, mask)
        if envelope is not None:
            _write(files.envelope, dumps(Ordered(envelope)) + "\n")
        log = ["--events", str(files.log)] if trial.case.needs_records else []
        return command_line([*trial.arguments(files.debug_config), "--envelope", *log], files.env)

    def clear(self) -> None:
        """Remove the directory if nothing was to be kept, whatever processes that were ended have left in it."""
        if not self._keeps:
            self.remove()

    def remove(self) -> None:
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    def _assigned(self, trial: Trial) -> Iterator[tuple[str, str]]:
        for name, value in {**self._variables, **trial.env}.items():
            if _NAME.fullmatch(name):
                yield name, value


def _write(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
