"""octo/config/environment.py: declared variables, env files, `${NAME}`."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from octo.config.document import Document, parse
from octo.config.environment import Environment, EnvText, natural, resolve, substitute
from octo.errors import Excerpt, Location, Problem

HOW_TO_SET = "run `export {0}=…`, or put `{0}=…` into `.env` in the directory where you run octo"


def resolved(
    text: str, environ: dict[str, str] | None = None, root: Path = Path("/nowhere"), cwd: Path = Path("/nowhere")
) -> tuple[Environment, list[Problem]]:
    return resolve([parse(text, "c.yaml")], root=root, environ=environ or {}, cwd=cwd)


def substituted(text: str, environ: dict[str, str] | None = None) -> tuple[Document, list[Problem]]:
    document = parse(text, "c.yaml")
    environment, problems = resolve([document], root=Path("/nowhere"), environ=environ or {}, cwd=Path("/nowhere"))
    document, found = substitute(document, environment)
    return document, problems + found


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("8080", "8080"),
        ("0123", "0123"),
        ("1e3", "1e3"),
        ("1.0", "1.0"),
        ("true", "true"),
        ("&a 0x1F", "0x1F"),
        ("'quoted'", "quoted"),
        ("''", ""),
        ("no", "no"),
    ],
)
def test_a_default_is_the_text_as_written(written: str, expected: str) -> None:
    environment, problems = resolved(f"env: [{{name: A, default: {written}}}]")

    assert (environment.values, problems) == ({"A": expected}, [])


@pytest.mark.parametrize("written", ["", "null", "~"])
def test_a_null_default_is_none(written: str) -> None:
    assert resolved(f"env:\n  - name: A\n    default: {written}")[0].values == {}


def test_only_declared_variables_are_visible() -> None:
    environment, _ = resolved("env: [{name: A}, {name: B}]", {"A": "1", "C": "2"})

    assert (environment.values, environment.declared) == ({"A": "1"}, {"A", "B"})


def test_an_empty_variable_counts_as_supplied() -> None:
    environment, problems = resolved("env: [{name: A, required: true, default: x}]", {"A": ""})

    assert (environment.values, problems) == ({"A": ""}, [])


def test_the_first_declaration_of_a_name_wins() -> None:
    documents = [
        parse("env: [{name: A, default: one}]", "a.yaml"),
        parse("env: [{name: A, default: two}, {name: B, default: three}]", "b.yaml"),
    ]
    environment, problems = resolve(documents, root=Path("/nowhere"), environ={}, cwd=Path("/nowhere"))

    assert (environment.values, problems) == ({"A": "one", "B": "three"}, [])


def test_a_missing_required_variable_is_reported_once_and_where_it_is_declared() -> None:
    text = "env:\n  - name: API_KEY\n    required: true\n    default: unused\nx: ${API_KEY}\ny: ${API_KEY}\n"

    assert substituted(text)[1] == [
        Problem(
            'required environment variable "API_KEY" is not set',
            Location("c.yaml", 2, 11),
            HOW_TO_SET.format("API_KEY"),
            length=7,
        )
    ]


def test_a_value_that_is_no_text_is_made_one() -> None:
    assert resolved("env: [{name: A}]", {"A": "x\udcff"})[0].values == {"A": "x�"}


@pytest.mark.parametrize(
    "written",
    ["env: 3", "env: {name: A}", "env: [3, null, [], {}, {name: 3}, {name: [A]}, {nam: A}]", "[1]", "env:"],
)
def test_malformed_declarations_are_left_to_the_model(written: str) -> None:
    environment, problems = resolved(written, {"A": "1"})

    assert (environment.values, problems) == ({}, [])


def test_a_bare_name_declares_for_the_references() -> None:
    assert substituted("env: [A]\nx: ${A}", {"A": "1"})[1] == []


def test_an_empty_name_is_refused() -> None:
    assert resolved("env: [{name: ''}]")[1] == [
        Problem(
            "an `env` entry requires a `name`, found empty text",
            Location("c.yaml", 1, 14),
            "`name` is the name of the environment variable",
            length=2,
        )
    ]


# env files


def test_env_files_overlay_each_other_and_the_environment_overlays_them(tmp_path: Path) -> None:
    root, cwd = tmp_path / "config", tmp_path / "cwd"
    root.mkdir()
    cwd.mkdir()
    (cwd / ".env").write_text("A=dotenv\nB=dotenv\nC=dotenv\nD=dotenv\nE=dotenv\n", encoding="utf-8")
    (cwd / "extra").write_text("B=extra\nC=extra\nD=extra\n", encoding="utf-8")
    (root / "one.env").write_bytes("\ufeffC=one — é\r\nD=one\r\n".encode())
    (root / "two.env").write_text("D=two\nE=two\n", encoding="utf-8")
    text = (
        "env: [{name: A}, {name: B}, {name: C}, {name: D}, {name: E}]\n"
        "resources: {env: [one.env, two.env, missing.env]}\n"
    )
    environment, problems = resolved(text, {"OCTO_ENV_FILE": "extra", "E": "environ"}, root, cwd)

    assert problems == []
    assert environment.values == {"A": "dotenv", "B": "extra", "C": "one — é", "D": "two", "E": "environ"}


def test_env_files_that_do_not_exist_are_skipped(tmp_path: Path) -> None:
    text = "env: [{name: A}]\nresources: {env: [gone.env]}"

    assert resolved(text, {"OCTO_ENV_FILE": "gone"}, tmp_path, tmp_path)[1] == []


ASSIGNMENT = "write `KEY=VALUE`, or `#` before a comment"


@pytest.mark.parametrize(
    ("content", "line", "what", "hint"),
    [
        (b"A=1\n\nhunter2-secret\n", 3, "has no `=`", ASSIGNMENT),
        (b"=hunter2-secret\n", 1, "has no name before `=`", ASSIGNMENT),
        (b"A=1\nB=\xff\n", 2, "is not UTF-8", "save the file as UTF-8"),
    ],
    ids=["no equals sign", "no name", "not UTF-8"],
)
def test_a_wrong_line_of_an_env_file_is_named_and_not_shown(
    tmp_path: Path, content: bytes, line: int, what: str, hint: str
) -> None:
    for name in (".env", "extra", "own.env"):
        (tmp_path / name).write_bytes(content)
    _, problems = resolved("resources:\n  env: [own.env]", {"OCTO_ENV_FILE": "extra"}, tmp_path, tmp_path)

    skipped = f"env file `own.env` is skipped: line {line} {what}"
    assert problems == [
        Problem(f"the line {what}", Location(".env", line, 1), hint, excerpt=Excerpt("", 1)),
        Problem(f"the line {what}", Location("extra", line, 1), hint, excerpt=Excerpt("", 1)),
        Problem(skipped, Location("c.yaml", 2, 9), hint, severity="warning"),
    ]


@pytest.mark.parametrize(
    ("make", "reason", "hint"),
    [
        (Path.mkdir, "is a directory", None),
        (os.mkfifo, "it is no regular file", None),
        (lambda path: path.write_bytes("A=1".encode("utf-16")), "it is UTF-16", "save the file as UTF-8"),
    ],
    ids=["directory", "pipe", "UTF-16"],
)
def test_an_env_file_that_cannot_be_read_is_an_error(
    tmp_path: Path, make: Callable[[Path], object], reason: str, hint: str | None
) -> None:
    for name in (".env", "extra", "own.env"):
        make(tmp_path / name)
    text = "resources:\n  env: [own.env, ../out.env]"
    _, problems = resolved(text, {"OCTO_ENV_FILE": "extra"}, tmp_path, tmp_path)

    own = f"env file `own.env` is skipped: cannot be read: {reason}"
    assert problems == [
        Problem(f"env file `.env`: cannot be read: {reason}", hint=hint),
        Problem(f"env file `extra`: cannot be read: {reason}", hint=hint),
        Problem(own, Location("c.yaml", 2, 9), hint, severity="warning"),
        Problem(
            'env file `../out.env` is skipped: resource id "../out.env" escapes the resource root',
            Location("c.yaml", 2, 18),
            severity="warning",
        ),
    ]


def test_a_variable_that_a_wrong_env_file_may_hold_is_not_said_to_be_missing(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("oops\nA=1\n", encoding="utf-8")
    text = "env: [{name: A, required: true}, {name: B}, {name: C, default: c}]\nv: ${A} ${B} ${C}"
    document = parse(text, "c.yaml")
    environment, problems = resolve([document], root=tmp_path, environ={}, cwd=tmp_path)
    _, more = substitute(document, environment)

    assert [str(problem) for problem in (*problems, *more)] == [".env:1:1: the line has no `=`"]


# references


@pytest.mark.parametrize(
    "text",
    [
        "0123", "1e10", "0x1F", "1_000", "12:30", "true", "no", "null", "~", "2024-01-01", "1.0", "", "a: b", "# x",
        ">", '"', "'", "\\C", "{x}", "[1]", "&a", "*a", "!t", "%", "x\nflows: []", "${B}", "file::memory:",
    ],
)  # fmt: skip
@pytest.mark.parametrize("reference", ["${A}", "'${A}'", '"${A}"'])
def test_a_sole_reference_takes_the_text_unchanged(text: str, reference: str) -> None:
    document, problems = substituted(f"env: [{{name: A}}, {{name: B}}]\nv: {reference}", {"A": text, "B": "b"})

    assert problems == []
    assert document.data["v"] == text
    assert isinstance(document.data["v"], EnvText) and document.data["v"].name == "A"


def test_references_inside_longer_text_are_replaced() -> None:
    document, _ = substituted(
        "env: [{name: A}, {name: B}]\nv: ['<${A}${B}>', $A, '${}', '${a-b}', '${A:-d}', '$${A}', ' ${A}']",
        {"A": "${B}", "B": "2"},
    )

    assert document.data["v"] == ["<${B}2>", "$A", "${}", "${a-b}", "${A:-d}", "$${B}", " ${B}"]
    assert not any(isinstance(item, EnvText) for item in document.data["v"])


def test_what_is_not_substituted_stays_as_written() -> None:
    text = (
        "env: [{name: A, default: '${A}'}]\nresources: {env: ['${A}']}\nagents: [{prompt: '${B}'}]\n"
        "x-notes: ${B}\nflows: [{'${A}': ['${A}'], x-header: '${A}'}]\n"
    )
    document, problems = substituted(text, {"A": "1"})

    assert problems == []
    assert document.data == {
        "env": [{"name": "A", "default": "${A}"}],
        "resources": {"env": ["${A}"]},
        "agents": [{"prompt": "${B}"}],
        "x-notes": "${B}",
        "flows": [{"${A}": ["1"], "x-header": "1"}],
    }


def test_unknown_and_unset_names_are_reported_where_they_stand() -> None:
    text = (
        "env: [{name: ANTHROPIC_API_KEY, default: a-long-key}, {name: UNSET}]\n"
        "a: ${ANTROPIC_API_KEY}\n"
        "b: 'see ${UNSET} and ${ZZZ} and ${UNSET}'\n"
        "c:\n  - >-\n    ${ZZZ}\n    there\n"
    )
    _, problems = substituted(text, {"ZZZ": "set but not declared"})

    declare = "declare it under `env:` as `- name: ZZZ`"
    assert problems == [
        Problem(
            'config references undeclared environment variable "ANTROPIC_API_KEY"',
            Location("c.yaml", 2, 4),
            "did you mean `ANTHROPIC_API_KEY`?",
            length=19,
        ),
        Problem(
            'environment variable "UNSET" is referenced but not set and has no default',
            Location("c.yaml", 3, 9),
            HOW_TO_SET.format("UNSET"),
            length=8,
        ),
        Problem(
            'config references undeclared environment variable "ZZZ"', Location("c.yaml", 3, 22), declare, length=6
        ),
        Problem('config references undeclared environment variable "ZZZ"', Location("c.yaml", 5, 5), declare, length=2),
    ]


def test_scalars_without_a_value_are_known() -> None:
    document, _ = substituted(
        "env: [{name: KEY, required: true}, {name: A}]\na: [x, '${KEY}']\nb: <${NO}${A}>", {"A": "1"}
    )

    assert document.unresolved == {("a", 1), ("b",)}
    assert document.data == {**document.data, "a": ["x", "${KEY}"], "b": "<${NO}1>"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", 12),
        ("0123", 123),
        ("1.5", 1.5),
        ("true", True),
        ("no", "no"),
        ("", ""),
        ("null", "null"),
        ("~", "~"),
        ("2024-01-01", "2024-01-01"),
        ("[1]", "[1]"),
        ("file::memory:", "file::memory:"),
        ("1e400", "1e400"),
    ],
)
def test_the_natural_kind_of_a_text(text: str, expected: object) -> None:
    found = natural(EnvText(text, "A"))

    assert found == expected and type(found) is type(expected)


# masking


@pytest.mark.parametrize(
    ("declaration", "masked"),
    [
        ("{name: A, secret: true}", True),
        ("{name: A}", False),
        ("{name: MY_API_KEY}", True),
        ("{name: bot_token}", True),
        ("{name: client-Secret}", True),
        ("{name: DB_PASSWORD}", True),
        ("{name: passwd}", True),
        ("{name: AWS_CREDENTIALS}", True),
    ],
)
def test_secrets_are_known_by_mark_or_name(declaration: str, masked: bool) -> None:
    name = parse(declaration, "c.yaml").data["name"]
    environment, _ = resolved(f"env: [{declaration}]", {name: "hunter22"})

    assert environment.mask("is hunter22!") == ("is ***!" if masked else "is hunter22!")


@pytest.mark.parametrize(
    ("secret", "text", "expected"),
    [
        ("short", "short", "short"),
        ("sixsix", "a sixsix b sixsix", "a *** b ***"),
        ('say "hi"\n', '{"k": "say \\"hi\\"\\n"}', '{"k": "***"}'),
        ("geheim—ß", '"geheim\\u2014\\u00df" geheim—ß', '"***" ***'),
        ("a<b>c&d", "a\\u003cb\\u003ec\\u0026d", "***"),
        ("  padded  ", "padded", "***"),
    ],
    ids=["short", "plain", "JSON", "escaped JSON", "JSON for HTML", "trimmed"],
)
def test_a_secret_is_masked_in_every_form(secret: str, text: str, expected: str) -> None:
    environment, _ = resolved("env: [{name: A, secret: true}]", {"A": secret})

    assert environment.mask(text) == expected


def test_the_longest_secret_is_masked_first() -> None:
    environment, _ = resolved("env: [{name: KEY1}, {name: KEY2}]", {"KEY1": "secret", "KEY2": "secret-longer"})

    assert environment.mask("secret-longer, secret") == "***, ***"


def test_an_environment_does_not_show_its_values() -> None:
    environment, _ = resolved("env: [{name: KEY}]", {"KEY": "hunter22"})

    assert "hunter22" not in repr(environment)
