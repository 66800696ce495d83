"""Which suites a change of files concerns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from octo.testing.pairing import Pair, is_suite

State: TypeAlias = dict[Path, tuple[int, int]]
"""Files with the time of their last change and their size."""

Reads: TypeAlias = Mapping[Path, Iterable[Path]]
"""Configs, each with the files beside it that it reads or looks for."""

_NOTHING: Final[Reads] = MappingProxyType({})
_PYTHON: Final = ".py"
_YAML: Final = (".yaml", ".yml")
_IGNORED: Final = frozenset({"__pycache__", "node_modules"})
_MOST: Final = 10_000
"""How many files below a directory are looked at."""


def state(pairs: Sequence[Pair], extra: Iterable[Path] = (), reads: Reads = _NOTHING) -> State:
    """The files that matter to suites, as they are now: suites, configs, Python files below them, what configs read,
    and extra ones. Nothing else: reports, what flows write and the files of editors are no reason to run again.
    """
    found: State = {}
    read = {path for pair in pairs for path in reads.get(pair.config, ())}
    for path in {*extra, *read, *(pair.suite for pair in pairs), *_below({_root(pair.config) for pair in pairs})}:
        try:
            facts = path.stat()
        except OSError:
            continue
        found[path.absolute()] = (facts.st_mtime_ns, facts.st_size)
    return found


def changed(before: State, after: State) -> set[Path]:
    """The files that came, went or are different."""
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def affected(
    pairs: Sequence[Pair], paths: Iterable[Path], extra: Iterable[Path] = (), reads: Reads = _NOTHING
) -> list[Pair]:
    """The pairs that a change of these files may concern; the extra files concern all of them."""
    paths = list(paths)
    if {path.absolute() for path in extra}.intersection(paths):
        return list(pairs)
    return [pair for pair in pairs if any(_concerns(path, pair, reads) for path in paths)]


def _concerns(path: Path, pair: Pair, reads: Reads) -> bool:
    suite, config, root = pair.suite.absolute(), pair.config.absolute(), _root(pair.config).absolute()
    if path in (suite, config) or any(path == read.absolute() for read in reads.get(pair.config, ())):
        return True
    if path.suffix.lower() in _YAML:
        return path.parent == config and not is_suite(path)
    return path.suffix == _PYTHON and path.is_relative_to(root)


def _root(config: Path) -> Path:
    return config if config.is_dir() else config.parent


def _below(roots: Iterable[Path]) -> Iterator[Path]:
    """The YAML files of directories, and the Python files below them."""
    for root in roots:
        count = 0
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if not name.startswith(".") and name not in _IGNORED]
            for name in files:
                count += 1
                if count > _MOST:
                    return
                path = Path(folder) / name
                if not name.startswith(".") and (path.suffix == _PYTHON or _is_yaml_of(path, root)):
                    yield path


def _is_yaml_of(path: Path, directory: Path) -> bool:
    return path.parent == directory and path.suffix.lower() in _YAML
