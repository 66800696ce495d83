"""octo_cli/inputs.py: where a body comes from."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from octo.errors import UsageError
from octo_cli.inputs import attachments, decode, mapping, with_attachments, with_settings
from octo_cli.session import Session

CONFIG = "flows: [{name: same}]"


@pytest.fixture
def body_of(octo: Any, tmp_path: Path) -> Any:
    """The body that a flow gets, as the output shows it."""
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")

    def call(*args: str, stdin: str | bytes = "") -> str:
        outcome = octo("invoke", "--config", "app.yaml", "--flow", "same", *args, stdin=stdin)
        assert outcome.stderr == ""
        return str(outcome.stdout).partition(",")[2].removesuffix("}\n")

    return call


@pytest.mark.parametrize(
    ("args", "stdin", "body"),
    [
        (["--data", '{"n": 1}'], '{"n": 2}', '"body":{"n":1}'),
        ([], '{"n": 2}', '"body":{"n":2}'),
        ([], ' \n"text"\n', '"body":"text"'),
        ([], "\ufeff[1]", '"body":[1]'),
        ([], " \n", ""),
        (["--data", ""], "[7]", '"body":[7]'),
        (["--data", "null"], "[7]", ""),
        (["--data", "-"], "[7]", '"body":[7]'),
        (["--data", "false"], "", '"body":false'),
        (["--data", '{"a": 1, "a": 2.50}'], "", '"body":{"a":2.5}'),
        (["--data", '{"q": "\\ud83d"}'], "", '"body":{"q":"\ufffd"}'),
        (["--data", "@body.json"], "", '"body":{"from":"file"}'),
    ],
    ids=[
        "the option wins over the pipe",
        "the pipe",
        "white space around it",
        "a byte order mark",
        "an empty pipe is no body",
        "an empty option counts as not given",
        "null is given",
        "a dash is the pipe",
        "false is a body",
        "a repeated key keeps its last value",
        "half an emoji",
        "a file",
    ],
)
def test_the_body_comes_from_the_option_or_the_pipe(
    body_of: Any, tmp_path: Path, args: list[str], stdin: str, body: str
) -> None:
    (tmp_path / "body.json").write_text('{"from": "file"}', encoding="utf-8")

    assert body_of(*args, stdin=stdin) == body


@pytest.mark.parametrize(
    ("args", "stdin", "error"),
    [
        (["--data", "{a"], "", "decode body: expecting property name enclosed in double quotes at line 1, column 2"),
        (["--data", "NaN"], "", "decode body: `NaN` is not JSON"),
        (["--data", "[" * 100_000], "", "decode body: nested more than 200 levels deep"),
        (["--data", "@none.json"], "", "`--data`: cannot read `none.json`: no such file or directory"),
        ([], "{", "stdin is not valid JSON: expecting property name enclosed in double quotes at line 1, column 2"),
        (["--vars", "[]"], "", "parse --vars JSON: expected an object, found a list"),
        (["--vars", "@none.json"], "", "`--vars`: cannot read `none.json`: no such file or directory"),
        (["--vars", "@list.json"], "", "parse --vars JSON: `list.json`: expected an object, found a list"),
        (
            ["--vars", "{"],
            "",
            "parse --vars JSON: expecting property name enclosed in double quotes at line 1, column 2",
        ),
    ],
    ids=[
        "no JSON",
        "not a number",
        "too deep",
        "no such file",
        "no JSON in the pipe",
        "vars of another kind",
        "no vars file",
        "vars file of another kind",
        "vars",
    ],
)
def test_bad_input_ends_with_2_before_anything_runs(
    octo: Any, tmp_path: Path, args: list[str], stdin: str, error: str
) -> None:
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")

    outcome = octo("invoke", "--config", "none.yaml", "--flow", "same", *args, stdin=stdin, terminal="err")

    assert outcome.stderr.splitlines()[0] == f"error: {error}"
    assert (outcome.stdout, outcome.status) == ("", 2)


def test_bare_words_get_a_hint_about_quotes() -> None:
    with pytest.raises(UsageError) as caught:
        decode("hello there", "decode body")

    assert caught.value.hint == "text is written with quotes: '\"hello there\"'"


def test_raw_content_is_taken_as_it_is(body_of: Any) -> None:
    assert body_of("--content-type", "text/csv", stdin="a,b\r\n1,2\n") == (
        '"body":{"contentType":"text/csv","rawData":"a,b\\r\\n1,2\\n"},"raw_content":true'
    )


@pytest.mark.parametrize(
    ("body", "assignments", "result"),
    [
        (None, ["a=1"], {"a": 1.0}),
        ({"a": {"b": 1.0}, "c": 2.0}, ["a.b=true", "a.d=text"], {"a": {"b": True, "d": "text"}, "c": 2.0}),
        ({}, ["a.b.c=[1]"], {"a": {"b": {"c": [1.0]}}}),
        ({"l": [1.0, 2.0]}, ["l.1=9", "l.2=10"], {"l": [1.0, 9.0, 10.0]}),
        ({}, ["a="], {"a": ""}),
        ({}, ["a=b=c"], {"a": "b=c"}),
        ({"a": None}, ["a.b=1"], {"a": {"b": 1.0}}),
    ],
    ids=["no body", "deeper", "new levels", "in a list", "empty text", "an equals sign", "below null"],
)
def test_set_puts_values_below_the_body(body: Any, assignments: list[str], result: Any) -> None:
    assert with_settings(body, assignments) == result


@pytest.mark.parametrize(
    ("body", "assignment", "error"),
    [
        ({}, "a", "`--set a`: expected `PATH=VALUE`"),
        ({}, "a..b=1", "`--set a..b=1`: expected `PATH=VALUE`"),
        ({"a": "x"}, "a.b=1", "`--set a.b=1`: `body.a` is text, not a mapping"),
        ([1.0], "a=1", "`--set a=1`: `body` is a list of 1, `a` is no place in it"),
        ([1.0], "2=1", "`--set 2=1`: `body` is a list of 1, `2` is no place in it"),
    ],
    ids=["no value", "an empty step", "below text", "a name in a list", "past the end of a list"],
)
def test_set_refuses_what_has_no_place(body: Any, assignment: str, error: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_settings(body, [assignment])

    assert caught.value.message == error


def test_attachments_are_appended_with_the_type_of_their_bytes(tmp_path: Path) -> None:
    png, note = b"\x89PNG\r\n\x1a\n" + bytes(8), b"hello"
    (tmp_path / "picture.jpg").write_bytes(png)
    (tmp_path / "note.txt").write_bytes(note)

    attached = attachments([str(tmp_path / "picture.jpg"), str(tmp_path / "note.txt")])
    body = with_attachments({"q": "?", "files": ["before"]}, attached)

    assert body == {
        "q": "?",
        "files": [
            "before",
            {"mimeType": "image/png", "data": base64.b64encode(png).decode(), "name": "picture.jpg"},
            {"mimeType": "text/plain", "data": base64.b64encode(note).decode(), "name": "note.txt"},
        ],
    }


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("x", "`--attach` puts files into `body.files`, but the body is text, not a mapping"),
        ({"files": 1.0}, "`--attach` appends to `body.files`, but that is a number, not a list"),
    ],
    ids=["a body of text", "files of another kind"],
)
def test_attachments_need_a_place(body: Any, error: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_attachments(body, ["x.png"])

    assert caught.value.message == error


@pytest.mark.parametrize(
    "args", [["--set", "a=1", "--data", "a"], ["--attach", "none.txt"], ["--set", "a=1"]], ids=" ".join
)
def test_a_json_body_and_raw_content_do_not_mix(octo: Any, args: list[str]) -> None:
    outcome = octo("invoke", "--config", "x", "--flow", "y", "--content-type", "text/csv", *args)

    assert outcome == (
        "",
        'level=ERROR msg="cli stopped with error" error="`--set` and `--attach` change a JSON body, '
        '`--content-type` takes the body as it is"\n',
        2,
    )


def test_an_option_that_is_not_given_is_an_empty_mapping() -> None:
    assert mapping(Session({}), "--vars", None) == {}
