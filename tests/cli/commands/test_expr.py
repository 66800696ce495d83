"""octo_cli/commands/expr.py: one expression, one JSON document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("args", "stdin", "stdout"),
    [
        (["body.a.map(x, x * 2)", "--data", '{"a":[1,2.5]}'], "", '{"ok":true,"result":[2,5]}'),
        (["body.n + 1"], '{"n": 2}', '{"ok":true,"result":3}'),
        (["body"], "", '{"ok":true,"result":null}'),
        (["vars.x + env.Y", "--vars", '{"x":"a"}', "--env", '{"Y":"b"}'], "", '{"ok":true,"result":"ab"}'),
        (["size(eventID)"], "", '{"ok":true,"result":32}'),
        (["correlationID"], "", '{"ok":true,"result":""}'),
        (["now > timestamp('2020-01-01T00:00:00Z')"], "", '{"ok":true,"result":true}'),
        (["size(uuid())"], "", '{"ok":true,"result":36}'),
        (["--expr", "1 + 1"], "", '{"ok":true,"result":2}'),
        (["-1"], "", '{"ok":true,"result":-1}'),
        (["-0.5", "--json", "--data", "-1"], "", '{"ok":true,"result":-0.5}'),
        (["-.5 + body"], "1", '{"ok":true,"result":0.5}'),
        (["-9007199254740991"], "", '{"ok":true,"result":-9007199254740991}'),
        (["vars.x + env.x", "--vars", "@d.json", "--env", "@d.json"], "", '{"ok":true,"result":"yy"}'),
    ],
    ids=[
        "data",
        "pipe",
        "nothing",
        "vars and env",
        "event id",
        "correlation id",
        "now",
        "random",
        "option",
        "negative number",
        "negative number and options",
        "a sum that begins with one",
        "great negative number",
        "vars and env from a file",
    ],
)
def test_the_answer_is_one_document(octo: Any, tmp_path: Path, args: list[str], stdin: str, stdout: str) -> None:
    (tmp_path / "d.json").write_text('{"x": "y"}', encoding="utf-8")

    assert octo("expr", *args, stdin=stdin) == (f"{stdout}\n", "", 0)
    assert octo("eval", *args, stdin=stdin) == (f"{stdout}\n", "", 0)


@pytest.mark.parametrize(
    ("source", "error", "record"),
    [
        (
            "1 + body.a",
            "evaluate expression: no such key: a",
            'error="no such key: a" column=10 hint="`has(body.a)` tells whether it is there, '
            '`body.?a.orValue(…)` reads it if it is there, or something else"',
        ),
        (
            "[1,\n bdy]",
            r"""compile expression \"[1,\n bdy]\": undeclared reference to 'bdy'""",
            """error="undeclared reference to 'bdy'" line=2 column=2 hint="did you mean `body`?\"""",
        ),
        (
            'templateResource("x")',
            r"evaluate expression: load template \"x\": resource: not found",
            r'error="load template \"x\": resource: not found" column=1',
        ),
    ],
    ids=["a key that is not there", "a name on the second line", "a template"],
)
def test_in_a_pipe_a_record_says_where_the_fault_lies(octo: Any, source: str, error: str, record: str) -> None:
    assert octo("expr", source, "--data", "{}") == (
        f'{{"ok":false,"result":null,"error":"{error}"}}\n',
        f'level=ERROR msg="expression failed" {record}\n',
        0,
    )


@pytest.mark.parametrize("args", [[], ["1", "--expr", "2"]], ids=["none", "two"])
def test_one_expression_must_be_given(octo: Any, args: list[str]) -> None:
    outcome = octo("expr", *args, terminal="err")

    assert outcome == (
        "",
        "error: `octo expr` takes one expression\nhint: for example `octo expr 'body.n + 1' --data '{\"n\": 2}'`\n",
        2,
    )


def test_env_must_be_an_object(octo: Any) -> None:
    outcome = octo("expr", "1", "--env", "7", terminal="err")

    assert outcome == (
        "",
        "error: parse --env JSON: expected an object, found a number\nhint: for example '{\"a\": 1}'\n",
        2,
    )


def test_a_person_sees_where_the_fault_lies(octo: Any) -> None:
    outcome = octo("expr", "[1, bdy.x]", terminal="out err")

    assert outcome.stderr == (
        "error: undeclared reference to 'bdy'\n      | [1, bdy.x]\n      |     ^^^\nhint: did you mean `body`?\n"
    )
    assert outcome.stdout == (
        '{\n  "ok": false,\n  "result": null,\n'
        '  "error": "compile expression \\"[1, bdy.x]\\": undeclared reference to \'bdy\'"\n}\n'
    )


def test_of_several_lines_a_person_sees_the_one_with_the_fault(octo: Any) -> None:
    outcome = octo("expr", "[1,\n bdy.x]", terminal="err")

    assert outcome.stderr == (
        "error: undeclared reference to 'bdy'\n      |  bdy.x]\n      |  ^^^\nhint: did you mean `body`?\n"
    )
