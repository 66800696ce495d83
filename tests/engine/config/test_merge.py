"""octo/config/merge.py: one config from one file or from a directory."""

from pathlib import Path

import pytest

from octo.config.document import parse
from octo.config.merge import Merged, merge, read
from octo.errors import ConfigError, Location, Problem


def written(directory: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        (directory / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return directory


def names(directory: Path) -> list[str]:
    return [Path(document.file).name for document in read(directory)]


def merged(*texts: str) -> tuple[Merged, list[Problem]]:
    return merge([parse(text, f"{'abc'[index]}.yaml") for index, text in enumerate(texts)])


def refused(path: Path) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        read(path)
    return list(caught.value.problems)


def test_a_directory_gives_its_yaml_files_in_order_of_name(tmp_path: Path) -> None:
    files = {
        "b.yml": "",
        "a.yaml": "",
        "C.YAML": "",
        "jobs_test.yaml": "",
        "jobs_test.yml": "",
        "n.txt": "",
        "test.yaml": "",
    }
    written(tmp_path, files)
    (tmp_path / "sub.yaml").mkdir()
    (tmp_path / "sub.yaml" / "z.yaml").write_text("", encoding="utf-8")

    assert names(tmp_path) == ["C.YAML", "a.yaml", "b.yml", "test.yaml"]


def test_a_single_file_is_read_whatever_its_name(tmp_path: Path) -> None:
    written(tmp_path, {"jobs_test.yaml": "flows: []", "config": ""})

    assert read(tmp_path / "jobs_test.yaml")[0].data == {"flows": []}
    assert read(tmp_path / "config")[0].data == {}


def test_a_file_that_holds_null_is_an_empty_config(tmp_path: Path) -> None:
    assert read(written(tmp_path, {"a.yaml": "null"}))[0].data == {}


@pytest.mark.parametrize(
    ("folders", "expected"),
    [("[.]", ["a.yaml"]), ("[agents]", ["a.yaml", "x.agent.yaml"]), ("5", ["a.yaml", "x.agent.yaml"])],
)
def test_agent_files_of_a_listed_directory_are_no_config(tmp_path: Path, folders: str, expected: list[str]) -> None:
    written(tmp_path, {"a.yaml": f"agentDirs: {folders}", "x.agent.yaml": ""})

    assert names(tmp_path) == expected


def test_a_path_that_does_not_exist_is_refused_with_the_near_miss(tmp_path: Path) -> None:
    written(tmp_path, {"lead.yaml": ""})

    assert refused(tmp_path / "laed.yaml") == [
        Problem(f"config `{tmp_path / 'laed.yaml'}` does not exist", hint=f"did you mean `{tmp_path / 'lead.yaml'}`?")
    ]
    assert refused(tmp_path / "no" / "lead.yaml") == [
        Problem(f"config `{tmp_path / 'no' / 'lead.yaml'}` does not exist")
    ]


@pytest.mark.parametrize(
    ("files", "hint"),
    [
        ({"n.txt": ""}, "name a file, or a directory with `.yaml` files"),
        ({"a_test.yaml": ""}, "its only YAML files are test suites"),
    ],
    ids=["nothing", "suites only"],
)
def test_a_directory_without_config_is_refused(tmp_path: Path, files: dict[str, str | bytes], hint: str) -> None:
    assert refused(written(tmp_path, files)) == [Problem(f"directory `{tmp_path}` holds no config file", hint=hint)]


def test_the_problems_of_all_files_are_reported_together(tmp_path: Path) -> None:
    written(tmp_path, {"a.yaml": "a: 1\na: 2", "b.yaml": "- 1", "c.yaml": b"\xff", "d.yaml": "flows: []"})

    assert refused(tmp_path) == [
        Problem(
            "parse config: duplicate key `a`",
            Location(str(tmp_path / "a.yaml"), 2, 1),
            f"the first one is at {tmp_path / 'a.yaml'}:1:1; keep one of them",
        ),
        Problem(
            "parse config: expected a mapping with keys such as `flows`, found a list",
            Location(str(tmp_path / "b.yaml"), 1, 1),
        ),
        Problem(
            "parse config: byte 0xff is not UTF-8",
            Location(str(tmp_path / "c.yaml"), 1, 1),
            "save the file as UTF-8",
        ),
    ]


def test_lists_are_joined_in_file_order() -> None:
    result, problems = merged(
        "flows: [{name: a}, {}]\nconnectors: [{name: a}]\nagentDirs: [x]",
        "flows: [{}, {name: b}]\nprocessors: [{name: a}]\nagentDirs: [y]\nflow: 1",
    )

    assert problems == []
    assert result.data == {
        "flows": [{"name": "a"}, {}, {}, {"name": "b"}],
        "connectors": [{"name": "a"}],
        "agentDirs": ["x", "y"],
        "processors": [{"name": "a"}],
        "flow": 1,
    }


@pytest.mark.parametrize("kind", ["connector", "processor", "flow", "agent"])
def test_a_name_that_is_given_twice_is_refused_with_both_places(kind: str) -> None:
    _, problems = merged(f"{kind}s: [{{name: main}}]", f"{kind}s:\n  - name: other\n  - name: main\n  - name: main")

    assert problems == [
        Problem(
            f'{kind} "main" is defined more than once',
            Location("b.yaml", line, 11),
            f"the first one is at a.yaml:1:{len(kind) + 12}; rename one of them",
            length=4,
        )
        for line in (3, 4)
    ]


def test_agents_may_be_a_list_or_a_mapping() -> None:
    result, problems = merged(
        "agents: [{name: a, prompt: p}]", "agents:\n  b: {prompt: q}\n  a: {}\n  c: {name: d}\n  e: 3"
    )

    assert result.data["agents"] == [
        {"name": "a", "prompt": "p"},
        {"prompt": "q", "name": "b"},
        {"name": "a"},
        {"name": "c"},
        3,
    ]
    assert problems == [
        Problem(
            'agent "a" is defined more than once',
            Location("b.yaml", 3, 3),
            "the first one is at a.yaml:1:17; rename one of them",
        ),
        Problem(
            'agent "c" is given another name',
            Location("b.yaml", 4, 13),
            "leave `name` out; the key is the name",
        ),
    ]
    document, path = result.origin(("agents", 1, "prompt"))
    assert document.location(path) == Location("b.yaml", 2, 15)


@pytest.mark.parametrize("section", ["service", "aiPricing", "store"])
def test_a_section_of_which_there_is_one_is_refused_in_a_second_file(section: str) -> None:
    result, problems = merged(f"{section}: {{}}", f"{section}: {{name: b}}", f"\n{section}: {{name: c}}")

    assert result.data == {section: {"name": "b"}}
    assert problems == [
        Problem(
            f"`{section}` is defined more than once",
            Location("c.yaml", 2, 1),
            "the first one is at b.yaml:1:1; keep one of them",
            length=len(section),
        )
    ]


def test_repeated_declarations_and_resources_are_left_out() -> None:
    result, problems = merged(
        "env: [{name: A, default: 1}]\nresources: {env: [x.env], templates: [{resource: t, as: u}, {resource: v}]}",
        "env: [{name: B}, {name: A}, 3]\n"
        "resources: {env: [y.env, x.env], templates: [{resource: u}, {resource: t}], no: 1}",
    )

    assert problems == []
    assert result.data == {
        "env": [{"name": "A", "default": 1}, {"name": "B"}, 3],
        "resources": {
            "env": ["x.env", "y.env"],
            "templates": [{"resource": "t", "as": "u"}, {"resource": "v"}, {"resource": "t"}],
            "no": 1,
        },
    }
    document, path = result.origin(("resources", "templates", 2, "resource"))
    assert (document.file, path) == ("b.yaml", ("resources", "templates", 1, "resource"))


@pytest.mark.parametrize(
    ("path", "file", "there"),
    [
        ((), "a.yaml", ()),
        (("flows",), "a.yaml", ("flows",)),
        (("flows", 0, "name"), "a.yaml", ("flows", 0, "name")),
        (("flows", 2, "process", 1), "b.yaml", ("flows", 1, "process", 1)),
        (("service", "name"), "b.yaml", ("service", "name")),
        (("env", 1), "b.yaml", ("env", 0)),
        (("nowhere",), "a.yaml", ("nowhere",)),
    ],
)
def test_the_origin_of_a_path_is_known(path: tuple[str | int, ...], file: str, there: tuple[str | int, ...]) -> None:
    result, _ = merged(
        "flows: [{name: a}]\nenv: [{name: A}]",
        "flows: [{name: b}, {name: c}]\nservice: {name: s}\nenv: [{name: B}]",
    )
    document, found = result.origin(path)

    assert (document.file, found) == (file, there)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("flows: 3", {"flows": 3}),
        ("flows: {a: 1}", {"flows": {"a": 1}}),
        ("env: x", {"env": "x"}),
        ("resources: []", {"resources": []}),
        ("resources: {env: 3, templates: {a: 1}}", {"resources": {"env": 3, "templates": {"a": 1}}}),
        ("agents: 1", {"agents": 1}),
        ("service: 1", {"service": 1}),
        ("flows:\nenv:\nresources:\nservice:", {"flows": None, "env": None, "resources": None, "service": None}),
        ("flows: [1, {name: 2}]", {"flows": [1, {"name": 2}]}),
        ("resources: {env: [3, {}], templates: [t, {as: 3}]}",
         {"resources": {"env": [3, {}], "templates": ["t", {"as": 3}]}}),
    ],
)  # fmt: skip
def test_values_of_the_wrong_kind_are_passed_on(text: str, data: dict[str, object]) -> None:
    result, problems = merged(text)

    assert (result.data, problems) == (data, [])


@pytest.mark.parametrize("order", [("flows: 3", "flows: [{name: a}]"), ("flows: [{name: a}]", "flows: 3")])
def test_a_value_of_the_wrong_kind_is_passed_on_beside_a_right_one(order: tuple[str, str]) -> None:
    result, _ = merged(*order)
    document, _ = result.origin(("flows",))

    assert (result.data, document.data) == ({"flows": 3}, {"flows": 3})


def test_a_name_that_no_file_can_have_is_an_error() -> None:
    name = "a" * 300 + ".yaml"

    with pytest.raises(ConfigError) as caught:
        read(Path(name))

    assert str(caught.value) == f"config `{name}` cannot be read: file name too long"


def test_a_link_to_nothing_in_a_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("flows: []", encoding="utf-8")
    (tmp_path / "b.yaml").symlink_to(tmp_path / "gone.yaml")

    with pytest.raises(ConfigError) as caught:
        read(tmp_path)

    assert str(caught.value) == f"config `{tmp_path / 'b.yaml'}` cannot be read: no such file or directory"
