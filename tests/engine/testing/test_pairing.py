"""octo/testing/pairing.py: which suites a path names, and which config each of them tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from octo.errors import UsageError
from octo.testing.pairing import pairs

FLOW = "flows: [ { name: NAME, process: [] } ]"
SUITE = "flow: a\ncases: [ { name: one } ]"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(*names: str) -> None:
    for name in names:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        stem = path.stem
        path.write_text(SUITE if stem.endswith("_test") else FLOW.replace("NAME", stem), encoding="utf-8")


def named(*paths: str, config: str | None = None) -> list[tuple[str, str]]:
    return [(str(pair.suite), str(pair.config)) for pair in pairs(map(Path, paths), Path(config) if config else None)]


def test_a_directory_is_the_config_of_the_suites_in_it(folder):
    write("app/a.yaml", "app/b.yaml", "app/b_test.yml", "app/a_test.yaml", "app/inner/c_test.yaml", "app/notes.txt")

    assert named("app") == [("app/a_test.yaml", "app"), ("app/b_test.yml", "app")]


def test_a_flow_file_has_its_suite_beside_it(folder):
    write("app/a.yaml", "app/a_test.yaml", "app/a_test.yml", "app/b.yml", "app/b_test.yml")

    assert named("app/a.yaml", "app/b.yml") == [("app/a_test.yaml", "app/a.yaml"), ("app/b_test.yml", "app/b.yml")]


def test_a_suite_tests_the_file_beside_it_or_else_its_directory(folder):
    write("app/a.yaml", "app/a_test.yaml", "app/other_test.yaml")

    assert named("app/a_test.yaml", "app/other_test.yaml") == [
        ("app/a_test.yaml", "app/a.yaml"),
        ("app/other_test.yaml", "app"),
    ]


def test_in_a_directory_whose_files_are_configs_of_their_own_each_suite_tests_its_file(folder):
    write("app/a.yaml", "app/b.yaml", "app/a_test.yaml", "app/b_test.yaml", "app/c_test.yaml")
    Path("app/b.yaml").write_text(FLOW.replace("NAME", "a"), encoding="utf-8")

    assert named("app") == [
        ("app/a_test.yaml", "app/a.yaml"),
        ("app/b_test.yaml", "app/b.yaml"),
        ("app/c_test.yaml", "app"),
    ]


def test_a_config_that_is_given_is_tested_by_all(folder):
    write("app/a.yaml", "app/a_test.yaml", "b_test.yaml", "other.yaml")

    assert named("app", "b_test.yaml", config="other.yaml") == [
        ("app/a_test.yaml", "other.yaml"),
        ("b_test.yaml", "other.yaml"),
    ]


def test_a_pair_that_is_named_twice_is_one_and_two_configs_of_one_suite_are_two(folder):
    write("a.yaml", "a_test.yaml")

    assert named("a.yaml", "./a_test.yaml", str(folder / "a.yaml")) == [("a_test.yaml", "a.yaml")]
    assert named(".", "a.yaml") == [("a_test.yaml", "."), ("a_test.yaml", "a.yaml")]


@pytest.mark.parametrize(
    ("path", "text", "hint"),
    [
        (
            "empty",
            "directory `empty` holds no suite",
            "the name of a suite ends in `_test.yaml`; directories below are not looked into",
        ),
        ("lonely.yaml", "`lonely.yaml` has no suite `lonely_test.yaml` beside it", "write one: `lonely_test.yaml`"),
        ("lonley.yaml", "`lonley.yaml` does not exist", "did you mean `lonely.yaml`?"),
        ("none/x.yaml", "`none/x.yaml` does not exist", None),
        ("notes.txt", "`notes.txt` is no YAML file", "name a suite, a flow file or a directory"),
    ],
)
def test_a_path_that_names_no_suite_is_refused(folder, path, text, hint):
    Path("empty").mkdir()
    write("lonely.yaml", "notes.txt")

    with pytest.raises(UsageError) as caught:
        named(path)

    assert (caught.value.message, caught.value.hint) == (text, hint)


def test_a_config_that_does_not_exist_is_refused(folder):
    write("a.yaml", "a_test.yaml")

    with pytest.raises(UsageError, match=r"`--config`: `b\.yaml` does not exist"):
        named("a.yaml", config="b.yaml")
