"""For Python tests: a runtime from YAML text, in process."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent

from octo.config.load import load
from octo.config.model import Config
from octo.observe import Observer
from octo.runtime import Runtime


def config(text: str, *, environ: Mapping[str, str] | None = None, files: Mapping[str, str] | None = None) -> Config:
    """A config from YAML text, with an environment of its own and files beside it. Raises ConfigError."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for name, content in {"config.yaml": dedent(text), **(files or {})}.items():
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, encoding="utf-8")
        return load(root / "config.yaml", environ=environ or {}, cwd=root)


@asynccontextmanager
async def runtime(
    text: str,
    *,
    environ: Mapping[str, str] | None = None,
    files: Mapping[str, str] | None = None,
    observers: Sequence[Observer] = (),
) -> AsyncIterator[Runtime]:
    """An open runtime from YAML text."""
    async with Runtime(config(text, environ=environ, files=files), observers=observers) as opened:
        yield opened
