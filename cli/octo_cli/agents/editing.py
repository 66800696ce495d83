"""Values that come from a file, from `--set`, or out of an editor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from octo import edit
from octo.errors import ConfigError, UsageError
from octo_cli import inputs
from octo_cli.agents.desk import Desk

if TYPE_CHECKING:
    from octo.values import Json

_NEW: Final = """\
# A new agent. It needs a connector and a prompt.
connector:
prompt: |
"""


def check_name(name: str) -> None:
    """Raises UsageError for a text that cannot be the name of an agent."""
    from octo.agent.authored import name_fault

    fault = name_fault(name)
    if fault is not None:
        raise UsageError(f"`{name}` is no name of an agent", hint=fault)


def from_file(desk: Desk, file: Path, name: str, *, strict: bool) -> dict[str, Json]:
    """The value that an agent file holds, or standard input. Raises ConfigError with all that is wrong with it."""
    check_name(name)
    if str(file) == "-":
        return _from_text(desk, inputs.standard_input(desk.session), "standard input", name, strict=strict)
    return _from_text(desk, edit.read(file), str(file), name, strict=strict)


def with_settings(desk: Desk, name: str, assignments: Sequence[str], *, strict: bool) -> dict[str, Json]:
    """The draft, or what is deployed, with some values put into it."""
    from octo.agent import shown

    value = inputs.with_settings(_begun(desk, name) or {}, assignments, "value")
    return _from_text(desk, shown.yaml_text(value), f"draft of {name}", name, strict=strict)


def check_draft(desk: Desk, name: str, *, strict: bool) -> None:
    """Raises ConfigError when something is wrong with the draft that is about to be deployed."""
    from octo.agent import shown, versions
    from octo.store import agents

    row = desk.read(lambda db: agents.draft(db, name, desk.user))
    if row is not None:
        text = shown.yaml_text(versions.decoded(row.value, name))
        _from_text(desk, text, f"draft of {name}", name, strict=strict)


def in_editor(desk: Desk, name: str, *, strict: bool) -> dict[str, Json] | None:
    """What the person makes of the draft; None when nothing was changed.

    Raises UsageError when it cannot be read; the text is then kept in a file that the error names.
    """
    import tempfile

    from octo.agent import shown

    begun = _begun(desk, name)
    before = shown.yaml_text(begun) if begun is not None else _NEW
    with tempfile.NamedTemporaryFile("w", suffix=".agent.yaml", delete=False, encoding="utf-8") as opened:
        opened.write(before)
    file = Path(opened.name)
    _open_editor(desk, file)
    after = file.read_text(encoding="utf-8")
    if after == before:
        file.unlink()
        return None
    try:
        value = _from_text(desk, after, str(file), name, strict=strict)
    except ConfigError:
        desk.session.tell(f"what you wrote is kept in {file}: `octo agents draft {name} --file {file}`")
        raise
    file.unlink()
    return value


def _open_editor(desk: Desk, file: Path) -> None:
    import shlex
    import subprocess

    environ = desk.session.environ
    editor = environ.get("VISUAL") or environ.get("EDITOR")
    if not editor:
        file.unlink()
        raise UsageError("no editor is known", hint="say which in `EDITOR`, or use `--file` or `--set`")
    try:
        status = subprocess.run([*shlex.split(editor), str(file)], env=dict(environ), check=False).returncode
    except OSError as error:
        file.unlink()
        raise UsageError(f"cannot run `{editor}`: {(error.strerror or str(error)).lower()}") from error
    if status:
        file.unlink()
        raise UsageError(f"`{editor}` ended with status {status}, and nothing was changed")


def _begun(desk: Desk, name: str) -> dict[str, Json] | None:
    """The draft, else what is deployed; None for a new agent."""
    from octo.agent import versions
    from octo.store import agents

    row = desk.read(lambda db: agents.draft(db, name, desk.user))
    if row is not None:
        return versions.decoded(row.value, name)
    current = desk.read(lambda db: agents.current(db, name))
    return versions.decoded(current[0], name) if current is not None else None


def _from_text(desk: Desk, text: bytes | str, file: str, name: str, *, strict: bool) -> dict[str, Json]:
    from octo.agent import declared

    value, warnings = declared.from_text(text, file, name, desk.config)
    desk.warn(warnings, strict=strict)
    return value
