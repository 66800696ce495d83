"""Small projects to start from: a config, a test suite beside it, and an example of an env file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from octo import edit, schema
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
    """Make the files of a project, and the schemas by which editors complete them.

    Raises UsageError when one of the files is there already.
    """
    name = (directory.resolve().name or kind).replace("${", "{")  # which would refer to a variable
    written = name if re.fullmatch(r"[A-Za-z][\w-]*", name) and core(name) == name else dumps(name)
    files = {
        file.name: file.read_text(encoding="utf-8").replace("name: NAME", f"name: {written}")
        for file in sorted((_STARTERS / kind).iterdir())
    }
    edit.create(directory, files)
    made = [directory / file for file in files]
    made += _schemas(directory / ".schemas")
    flow, data = _CALLS[kind]
    return Project(tuple(made), directory / f"{kind}.yaml", flow, data)


def _schemas(directory: Path) -> list[Path]:
    """Write the schemas that are not there already; which they are."""
    files = {schema.file_name(kind): schema.KINDS[kind] for kind in ("config", "suite")}
    missing = {name: schema.text(make()) for name, make in files.items() if not (directory / name).exists()}
    edit.create(directory, missing)
    return [directory / name for name in missing]
