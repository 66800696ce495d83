"""Which suites a path names, and which config each of them tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from octo.config import merge
from octo.errors import ConfigError, UsageError, near

_EXTENSIONS = (".yaml", ".yml")
_MARK = "_test"


@dataclass(frozen=True, order=True)
class Pair:
    """A suite and the config that it tests: a file, or a directory."""

    suite: Path
    config: Path


def pairs(paths: Iterable[Path], config: Path | None = None) -> list[Pair]:
    """The pairs that paths name, each once, in the order of the paths of suites.

    `config` is tested by all of them, whatever lies beside them. Raises UsageError for a path that names none.
    """
    if config is not None and not config.exists():
        raise UsageError(f"`--config`: `{config}` does not exist")
    found: dict[tuple[Path, Path], Pair] = {}
    for path in paths:
        for pair in _named(path):
            chosen = pair if config is None else Pair(pair.suite, config)
            found.setdefault((chosen.suite.resolve(), chosen.config.resolve()), chosen)
    return sorted(found.values())


def _named(path: Path) -> Iterator[Pair]:
    if path.is_dir():
        yield from _in_directory(path)
    elif not path.exists():
        raise UsageError(f"`{path}` does not exist", hint=_near(path))
    elif path.suffix.lower() not in _EXTENSIONS:
        raise UsageError(f"`{path}` is no YAML file", hint="name a suite, a flow file or a directory")
    elif is_suite(path):
        beside = _flow_file(path)
        yield Pair(path, beside if beside.is_file() else path.parent)
    else:
        suite = path.with_name(f"{path.stem}{_MARK}{path.suffix}")
        if not suite.is_file():
            raise UsageError(f"`{path}` has no suite `{suite}` beside it", hint=f"write one: `{suite.name}`")
        yield Pair(suite, path)


def _in_directory(directory: Path) -> Iterator[Pair]:
    suites = sorted(file for file in directory.iterdir() if is_suite(file) and file.is_file())
    if not suites:
        hint = "the name of a suite ends in `_test.yaml`; directories below are not looked into"
        raise UsageError(f"directory `{directory}` holds no suite", hint=hint)
    apart = _is_a_collection(directory)
    for suite in suites:
        beside = _flow_file(suite)
        yield Pair(suite, beside if apart and beside.is_file() else directory)


def _is_a_collection(directory: Path) -> bool:
    """Whether the files of a directory are configs of their own, for they use the same names."""
    try:
        _, problems = merge.merge(merge.read(directory))
    except ConfigError:
        return False
    return any("is defined more than once" in problem.message for problem in problems)


def is_suite(path: Path) -> bool:
    """Whether a file has the name of a suite."""
    return path.suffix.lower() in _EXTENSIONS and path.stem.endswith(_MARK)


def _flow_file(suite: Path) -> Path:
    return suite.with_name(suite.stem.removesuffix(_MARK) + suite.suffix)


def _near(path: Path) -> str | None:
    """The sibling that was probably meant."""
    if not path.parent.is_dir():
        return None
    match = near(path.name, [sibling.name for sibling in path.parent.iterdir()])
    return f"did you mean `{path.parent / match}`?" if match else None
