"""What one command line works with: its environment, its streams, and what it has learnt to hide."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TextIO


@dataclass(slots=True)
class Session:
    """Made once per command line and handed to everything that prints."""

    environ: Mapping[str, str]
    """The environment of the process, read once."""
    args: tuple[str, ...] = ()
    out: TextIO = field(default_factory=lambda: sys.stdout)
    """For the answer of the command."""
    err: TextIO = field(default_factory=lambda: sys.stderr)
    """For everything else."""
    mask: Callable[[str], str] = str
    """Hides the values of secret variables; a command that loads a config puts the config's own mask here."""
    debug: bool = False
    verbose: bool = False

    def masked(self, text: str) -> str:
        """The text without secrets, by what there is to hide at the moment."""
        return self.mask(text)

    def tell(self, text: str, *, end: str = "\n") -> None:
        """Write lines to standard error. That nobody can read them is no reason to fail."""
        with suppress(OSError, ValueError):
            self.err.write(text + end)
            self.err.flush()

    def for_people(self, stream: TextIO) -> bool:
        """Whether a person reads this stream."""
        return bool(stream) and stream.isatty()

    def coloured(self, stream: TextIO) -> bool:
        """Whether this stream may carry colour."""
        return self.for_people(stream) and not self.environ.get("NO_COLOR") and self.environ.get("TERM") != "dumb"
