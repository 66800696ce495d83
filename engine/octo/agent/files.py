"""Files beside a config that agents work with: what they lead to in turn, and how they come to another config."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from octo import edit
from octo.agent.references import Reference, templates_in
from octo.config.agents import SUFFIX
from octo.config.resources import is_file, locate, read_text
from octo.errors import OctoError, UsageError
from octo.values import Json


def needs(file: str, text: str, root: Path) -> Iterator[Reference]:
    """What a file leads to: the modules that Python imports from around it, what a template includes or renders.

    Names that are only worked out while it runs are not seen.
    """
    if file.endswith(".py"):
        yield from (Reference("file", name) for name in _imported(file, text) if is_file(root, name))
        return
    yield from templates_in(text)
    if file.endswith(".j2"):
        yield from (Reference("file", name) for name in _included(text))


def of_bundle(written: Json, root: Path) -> dict[str, str]:
    """The texts of files, by their paths below the root.

    Raises UsageError for what is none, and for files that would have an effect although nothing names them.
    """
    found: dict[str, str] = {}
    for name, text in written.items() if isinstance(written, dict) else ():
        try:
            locate(root, name)
        except OctoError as error:
            raise UsageError(f"the bundle holds a file that cannot be: {error.message}") from error
        if name.endswith(SUFFIX) or any(part.startswith(".") for part in PurePosixPath(name).parts):
            raise UsageError(
                f"the bundle holds a file that no tool works with: `{name}`", hint="take it out of `x-files`"
            )
        if not isinstance(text, str):
            raise UsageError(f"the bundle holds no text for the file `{name}`")
        found[name] = text
    return found


def lay_out(files: Mapping[str, str], root: Path) -> tuple[list[str], list[str]]:
    """Write the files that are not there yet; their names, and those of files that are there with another text.

    Nothing is ever overwritten. Raises OctoError.
    """
    new: list[str] = []
    other: list[str] = []
    for name, text in files.items():
        path = locate(root, name)
        if not path.exists():
            edit.create(path.parent, {path.name: text})
            new.append(name)
        elif not _says(root, name, text):
            other.append(name)
    return new, other


def _says(root: Path, name: str, text: str) -> bool:
    try:
        return read_text(root, name) == text
    except OctoError:
        return False


def _imported(file: str, text: str) -> Iterator[str]:
    """Where the modules may lie that a module imports; most are not files of the config."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    folder = PurePosixPath(file).parent
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for base in (folder, *folder.parents):
                for one in node.names:
                    yield from _modules(base, one.name)
        elif isinstance(node, ast.ImportFrom):
            bases = [folder, *folder.parents][node.level - 1 : node.level] if node.level else [folder, *folder.parents]
            for base in bases:
                for one in node.names:
                    yield from _modules(base, ".".join(filter(None, [node.module, one.name])))


def _modules(folder: PurePosixPath, dotted: str) -> Iterator[str]:
    """The files of a module and of the packages around it."""
    for part in dotted.split("."):
        folder /= part
        yield f"{folder}.py"
        yield str(folder / "__init__.py")


def _included(text: str) -> Iterator[str]:
    """The names of the templates that a Jinja2 template includes, extends or imports, if they are written out."""
    from jinja2 import Environment, TemplateSyntaxError, meta

    try:
        tree = Environment(autoescape=True).parse(text)
    except TemplateSyntaxError:
        return
    yield from (name for name in meta.find_referenced_templates(tree) if name is not None)
