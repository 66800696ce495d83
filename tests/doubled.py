"""The flow `main` of a config called with mocks, spies and a breakpoint."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

from octo.config.load import load
from octo.debug import DebugConfig
from octo.doubles import Doubles
from octo.errors import ConfigError
from octo.invocation import envelope, invoke
from octo.runtime import Runtime


class Call:
    """Calls the flow `main` of a config with doubles and gives the envelope, or the texts of the problems."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "config.yaml"

    async def __call__(
        self,
        text: str,
        body: Any = None,
        *,
        mocks: Any = None,
        spies: Sequence[str] = (),
        break_at: str = "",
        flow: str = "main",
        limit: float | None = None,
    ) -> Any:
        self._file.write_text(dedent(text), encoding="utf-8")
        doubles = Doubles(DebugConfig.model_validate({"mocks": mocks or {}}).mocks, spies, break_at)
        try:
            loaded = load(self._file, environ={"PATH": os.environ["PATH"]}, rewrite=doubles.rewrite)
            stage = doubles.on(loaded)
        except ConfigError as error:
            return [problem.message for problem in error.problems]
        opened = Runtime(loaded, stage=stage, clock=lambda: 0, new_id=lambda: "1")
        return envelope(await invoke(opened, flow, body, limit=limit), stage)


def message(body: Any = None, **variables: Any) -> dict[str, Any]:
    parts = {"event_id": "1", "variables": variables or None, "body": body}
    return {name: value for name, value in parts.items() if value is not None}


def answer(**case: Any) -> dict[str, Any]:
    """A mock that always does this."""
    return {"default": case}


def bodies(records: Any, part: str = "output") -> list[Any]:
    return [record[part].get("body") for record in records]


SHOP = """
  flows:
    - name: main
      process:
        - { type: set-payload, name: price, settings: { value: '{"unit": body.sku.size()}' } }
        - { type: set-payload, name: total, settings: { value: 'body.unit * 2.0' } }
"""
