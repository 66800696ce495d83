"""Which suites a change of files concerns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from octo.testing.pairing import Pair, is_suite

State: TypeAlias = dict[Path, tuple[int, int]]
"""Files with the time of their last change and their size."""

_YAML: Final = (".yaml", ".yml")
_IGNORED: Final = frozenset({"__pycache__", "node_modules"})
_MOST: Final = 10_000
"""How many files below a directory are looked at."""


def state(pairs: Sequence[Pair], extra: Iterable[Path] = ()) -> State:
    """The files that matter to suites, as they are now: suites, configs, what lies below them, and extra ones."""
    found: State = {}
    for path in {*extra, *(pair.suite for pair in pairs), *_below({_root(pair.config) for pair in pairs})}:
        try:
            facts = path.stat()
        except OSError:
            continue
        found[path.absolute()] = (facts.st_mtime_ns, facts.st_size)
    return found


def changed(before: State, after: State) -> set[Path]:
    """The files that came, went or are different."""
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def affected(pairs: Sequence[Pair], paths: Iterable[Path], extra: Iterable[Path] = ()) -> list[Pair]:
    """The pairs that a change of these files may concern; the extra files concern all of them."""
    paths = list(paths)
    if {path.absolute() for path in extra}.intersection(paths):
        return list(pairs)
    return [pair for pair in pairs if any(_concerns(path, pair) for path in paths)]


def _concerns(path: Path, pair: Pair) -> bool:
    suite, config, root = pair.suite.absolute(), pair.config.absolute(), _root(pair.config).absolute()
    if path in (suite, config):
        return True
    if path.parent == root and path.suffix.lower() in _YAML:
        return config == root and not is_suite(path)
    return path.is_relative_to(root)


def _root(config: Path) -> Path:
    return config if config.is_dir() else config.parent


def _below(roots: Iterable[Path]) -> Iterator[Path]:
    """The files below directories; hidden ones, such as a store, are left out, but not `.env`."""
    for root in roots:
        count = 0
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if not name.startswith(".") and name not in _IGNORED]
            for name in files:
                count += 1
                if count > _MOST:
                    return
                if name == ".env" or not name.startswith("."):
                    yield Path(folder) / name
