"""Small projects to start from: a config, a test suite beside it, and an example of an env file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from octo import edit
from octo.config.scalars import core
from octo.values import dumps

Kind: TypeAlias = Literal["flow", "agent"]

_STARTERS: Final = Path(__file__).parent / "starters"
_CALLS: Final[dict[Kind, tuple[str, str]]] = {
    "flow": ("greet", '{"name": "Ada"}'),
    "agent": ("support", '{"question": "Where is order 17?"}'),
}
"""The flow of each project, and a body to call it with."""


@dataclass(frozen=True, slots=True)
class Project:
    """A project that has been made, and how to try it."""

    files: tuple[Path, ...]
    config: Path
    flow: str
    data: str


def start(directory: Path, kind: Kind) -> Project:
    """Make the files of a project. Raises UsageError when one of them is there already."""
    name = directory.resolve().name or kind
    written = name if re.fullmatch(r"[A-Za-z][\w-]*", name) and core(name) == name else dumps(name)
    files = {
        file.name: file.read_text(encoding="utf-8").replace("name: NAME", f"name: {written}")
        for file in sorted((_STARTERS / kind).iterdir())
    }
    edit.create(directory, files)
    flow, data = _CALLS[kind]
    return Project(tuple(directory / file for file in files), directory / f"{kind}.yaml", flow, data)
