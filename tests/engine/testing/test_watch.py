"""octo/testing/watch.py: which suites a change of files concerns."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from octo.testing.pairing import Pair
from octo.testing.watch import affected, changed, state

PAIRS = [
    Pair(Path("flows/a_test.yaml"), Path("flows/a.yaml")),
    Pair(Path("flows/b_test.yaml"), Path("flows/b.yaml")),
    Pair(Path("app/c_test.yaml"), Path("app")),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("flows", "app/parts", "app/.octo", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    for path in (*(pair.suite for pair in PAIRS), Path("flows/a.yaml"), Path("flows/b.yaml"), Path("app/d.yaml")):
        path.write_text("x", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("flows/a_test.yaml", "a"),
        ("flows/a.yaml", "a"),
        ("flows/tool.py", "ab"),
        ("flows/parts/text.md", "a"),
        ("flows/other.yaml", ""),
        ("app/d.yaml", "c"),
        ("app/e_test.yaml", ""),
        ("app/parts/f.yaml", ""),
        ("flows/README.md", ""),
        ("flows/report.json", ""),
        ("flows/a.yaml~", ""),
        ("flows/.a.yaml.swp", ""),
        ("flows/4913", ""),
        ("flows/out/rows.csv", ""),
        ("app/.octo/octo.db", ""),
        (".env", "abc"),
        ("elsewhere/x.py", ""),
    ],
)
def test_a_change_concerns_the_suites_that_may_see_it(folder, path, expected):
    reads = {Path("flows/a.yaml"): [Path("flows/parts/text.md")]}
    before = state(PAIRS, [Path(".env")], reads)
    file = folder / path
    file.parent.mkdir(exist_ok=True)
    file.write_text("another text", encoding="utf-8")

    found = affected(PAIRS, changed(before, state(PAIRS, [Path(".env")], reads)), [Path(".env")], reads)

    assert "".join(pair.suite.stem[0] for pair in found) == expected


def test_a_file_that_goes_or_is_touched_has_changed(folder):
    before = state(PAIRS)
    Path("flows/a.yaml").unlink()
    os.utime("flows/b.yaml", ns=(1, 1))

    assert {path.name for path in changed(before, state(PAIRS))} == {"a.yaml", "b.yaml"}
    assert changed(before, before) == set()
