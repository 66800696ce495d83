"""octo/debug.py and octo/config/sheet.py: files beside a config, each read into one model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from octo.debug import DebugConfig, read_debug_config
from octo.errors import ConfigError

FULL = """\
x-note: for the shop
input:
  data: { qty: 2 }
  vars: { region: eu }
breakAt: shop.total
spies: [ shop.price, "shop.each[body].line" ]
mocks:
  shop.price:
    default: { body: { price: 3 }, x-why: offline }
"""


def problems_of(text: str | bytes, folder: Path) -> list[str]:
    file = folder / "d.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        read_debug_config(file)
    lead = f'parse debug config "{file}": '
    assert all(problem.message.startswith(lead) for problem in caught.value.problems)
    return [
        f"{problem.location and problem.location[1:]} {problem.message.removeprefix(lead)}"
        + (f" | {problem.hint}".replace(str(file), file.name) if problem.hint else "")
        for problem in caught.value.problems
    ]


def test_a_debug_config_holds_input_breakpoint_spies_and_mocks(tmp_path: Path) -> None:
    (tmp_path / "d.yaml").write_text(FULL, encoding="utf-8")

    sheet = read_debug_config(tmp_path / "d.yaml")

    asked = sheet.value
    assert (asked.input.data, asked.input.vars) == ({"qty": 2}, {"region": "eu"})
    assert (asked.break_at, asked.spies) == ("shop.total", ("shop.price", "shop.each[body].line"))
    default = asked.mocks["shop.price"].default
    assert default is not None and default.body == {"price": 3}
    assert str(sheet.problem(("spies", 1), "no").location) == f"{tmp_path / 'd.yaml'}:6:22"


def test_a_second_document_is_refused_for_nothing_of_it_would_count(tmp_path: Path) -> None:
    assert problems_of("spies: [shop.price]\n---\nmocks: {}\n", tmp_path) == [
        "(2, 1) only the first document of a file is read, and another one starts here | put it into a file of its own"
    ]


@pytest.mark.parametrize("text", ["", "# nothing\n", "input:\nspies:\n", '{"mocks": {}}'])
def test_every_section_may_be_left_out(text: str, tmp_path: Path) -> None:
    (tmp_path / "d.yaml").write_text(text, encoding="utf-8")

    assert read_debug_config(tmp_path / "d.yaml").value == DebugConfig.model_validate({})


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (
            "mocs: {}\ninput: { dat: 1 }\n",
            [
                "(1, 1) field mocs not found in the debug config | did you mean `mocks`?",
                "(2, 10) field dat not found in `input` | did you mean `data`?",
            ],
        ),
        ("breakAt: 4\n", ['(1, 10) `breakAt`: expected text, found the number 4 | put it in quotes: "4"']),
        ("spies: a.b\n", ["(1, 8) `spies`: expected a list, found text | in a list, each entry stands after `- `"]),
        (
            "- 1\n",
            [
                "(1, 1) expected a mapping with keys such as `input`, `breakAt`, `spies`, `mocks`, `models`, "
                "found a list"
            ],
        ),
        (
            "spies: [a\n",
            [
                "(2, 1) expected `,` or `]` in the list that starts at line 1"
                " | close the list, or quote a text that starts with `[`"
            ],
        ),
        ("input: 1\ninput: 2\n", ["(2, 1) duplicate key `input` | the first one is at d.yaml:1:1; keep one of them"]),
        (b"input: \xff\n", ["(1, 8) byte 0xff is not UTF-8 | save the file as UTF-8"]),
    ],
    ids=["unknown keys", "a number", "no list", "no mapping", "no YAML", "a key twice", "no UTF-8"],
)
def test_every_problem_is_reported_at_its_place(text: Any, problems: list[str], tmp_path: Path) -> None:
    assert problems_of(text, tmp_path) == problems


@pytest.mark.parametrize(
    ("mock", "problem"),
    [
        ("{}", "(1, 15) a mock needs `cases` or a `default`"),
        ("", "(1, 16) `a.b`: expected a mapping, found null | a mapping has a `key: value` on each line"),
        (
            "{ default: {} }",
            "(1, 26) a mock needs exactly one of `body`, `error` and `drop`, found none",
        ),
        (
            "{ default: { body: null, error: '' , drop: true, vars: { a: 1 } } }",
            "(1, 64) `vars` stands only beside `body`, not beside `drop`",
        ),
        (
            "{ default: { body: 1, drop: true } }",
            "(1, 26) a mock needs exactly one of `body`, `error` and `drop`, found `body` and `drop`",
        ),
        (
            "{ default: { error: no, vars: { a: 1 } } }",
            "(1, 39) `vars` stands only beside `body`, not beside `error`",
        ),
        (
            "{ default: { when: 'true', body: 1 } }",
            "(1, 28) the `default` of a mock takes no `when` | remove it, or make this one of the `cases`",
        ),
        (
            "{ cases: [ { body: 1 } ] }",
            "(1, 26) a case of a mock needs `when` | add `when:`, or make it the `default`",
        ),
        (
            "{ cases: [ { when: 'bdy == 1', body: 1 } ] }",
            "(1, 35) compile expression \"bdy == 1\": undeclared reference to 'bdy' | did you mean `body`?",
        ),
    ],
    ids=[
        "nothing",
        "null",
        "a case of nothing",
        "null beside another thing",
        "two things",
        "variables alone",
        "a conditional default",
        "an unconditional case",
        "no expression",
    ],
)
def test_a_mock_does_one_thing(mock: str, problem: str, tmp_path: Path) -> None:
    assert problems_of(f"mocks: {{ a.b: {mock} }}", tmp_path) == [problem]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_debug_config(tmp_path / "d.yaml")

    assert str(caught.value) == (
        f'parse debug config "{tmp_path / "d.yaml"}": it cannot be read: no such file or directory'
    )
