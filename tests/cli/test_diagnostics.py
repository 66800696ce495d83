"""octo_cli/diagnostics.py, octo_cli/session.py: errors as people and as machines read them."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from octo.errors import ConfigError, Excerpt, Location, OctoError, Problem
from octo_cli import diagnostics
from octo_cli.session import Session


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def for_people(error: OctoError, **environ: str) -> str:
    stream = Terminal()
    diagnostics.show(Session({"NO_COLOR": "1", **environ}, err=stream), error)
    return stream.getvalue()


def at(file: Path, line: str, column: int, length: int) -> str:
    """The excerpt that is shown for a place in a file of one line."""
    file.write_text(line, encoding="utf-8")
    shown = for_people(ConfigError([Problem("wrong", Location(str(file), 1, column), length=length)]))
    return shown.partition("\n")[2]


@pytest.mark.parametrize(
    ("line", "column", "length", "excerpt"),
    [
        ("a: bcd", 4, 3, "    1 | a: bcd\n      |    ^^^\n"),
        ("\ta: b", 5, 1, "    1 | \ta: b\n      | \t   ^\n"),
        ("日本: x", 5, 1, "    1 | 日本: x\n      |       ^\n"),
        ("e\u0301: x", 5, 1, "    1 | e\u0301: x\n      |    ^\n"),
        ("a", 2, 1, "    1 | a\n      |  ^\n"),
        ("a: \x1b[2J", 4, 1, "    1 | a: \\u001b[2J\n      |    ^\n"),
        ("", 1, 1, ""),
    ],
    ids=["plain", "tab", "wide", "combining", "past the end", "control characters", "empty line"],
)
def test_the_caret_stands_below_what_it_marks(
    tmp_path: Path, line: str, column: int, length: int, excerpt: str
) -> None:
    assert at(tmp_path / "f.yaml", line, column, length) == excerpt


def test_of_a_long_line_the_part_around_the_caret_is_shown(tmp_path: Path) -> None:
    row, caret = at(tmp_path / "f.yaml", "x" * 500 + "HERE" + "y" * 500, 501, 4).splitlines()

    assert len(row) < 120
    assert row[caret.index("^") : caret.rindex("^") + 1] == "HERE"


def test_an_excerpt_of_its_own_replaces_the_line_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text("value: >\n  1 +\n  bdy\n", encoding="utf-8")
    problem = Problem("unknown", Location(str(file), 1, 8), hint="do", excerpt=Excerpt("1 + bdy", 5, 3))

    assert (
        for_people(ConfigError([problem]))
        == f"error: {file}:1:8: unknown\n      | 1 + bdy\n      |     ^^^\nhint: do\n"
    )


def test_a_file_that_is_gone_is_no_second_error() -> None:
    assert for_people(ConfigError([Problem("wrong", Location("gone.yaml", 3, 1))])) == "error: gone.yaml:3:1: wrong\n"


def test_colour_marks_the_labels_unless_it_is_switched_off() -> None:
    error = OctoError("wrong", hint="do")

    assert for_people(error) == "error: wrong\nhint: do\n"
    assert for_people(error, NO_COLOR="", TERM="dumb") == "error: wrong\nhint: do\n"
    assert for_people(error, NO_COLOR="", TERM="xterm") == (
        "\x1b[31m\x1b[1merror:\x1b[0m wrong\n\x1b[36m\x1b[1mhint:\x1b[0m do\n"
    )


def test_the_traceback_is_shown_under_debug_only() -> None:
    stream = io.StringIO()
    try:
        raise OctoError("wrong secret")
    except OctoError as error:
        diagnostics.show(Session({}, err=stream, debug=True, mask=lambda text: text.replace("secret", "***")), error)

    trace, record = stream.getvalue().rsplit("time=", 1)
    assert trace.startswith("Traceback (most recent call last):\n")
    assert trace.endswith("octo.errors.OctoError: wrong ***\n")
    assert record.endswith(' level=ERROR msg="cli stopped with error" error="wrong ***"\n')


def records(error: OctoError, **environ: str) -> str:
    stream = io.StringIO()
    diagnostics.show(Session(environ, err=stream), error)
    return re.sub(r"time=\S+ ", "", stream.getvalue())


ODD = Problem("odd", Location("f.yaml", 1, 2), hint="look", severity="warning")
WRONG = Problem("wrong", Location("f.yaml", 3, 4), hint="do")
WORSE = Problem("worse", Location("f.yaml", 5, 6))


def test_records_have_the_level_of_their_problem_and_the_last_one_is_about_the_first_error() -> None:
    warning = 'level=WARN msg="odd" file=f.yaml line=1 column=2 hint="look"\n'

    assert records(ConfigError([ODD, WRONG])) == (
        f'{warning}level=ERROR msg="cli stopped with error" error="f.yaml:3:4: wrong" '
        'file=f.yaml line=3 column=4 hint="do"\n'
    )
    assert records(ConfigError([ODD, WRONG, WORSE])) == (
        f"{warning}"
        'level=ERROR msg="config problem" error="wrong" file=f.yaml line=3 column=4 hint="do"\n'
        'level=ERROR msg="config problem" error="worse" file=f.yaml line=5 column=6\n'
        'level=ERROR msg="cli stopped with error" error="f.yaml:3:4: wrong\\nf.yaml:5:6: worse" '
        'file=f.yaml line=3 column=4 hint="do"\n'
    )


def test_the_log_level_hides_the_warnings_beside_an_error() -> None:
    assert for_people(ConfigError([ODD, WRONG])) == (
        "warning: f.yaml:1:2: odd\nhint: look\n\nerror: f.yaml:3:4: wrong\nhint: do\n"
    )
    assert for_people(ConfigError([ODD, WRONG]), LOG_LEVEL="error") == "error: f.yaml:3:4: wrong\nhint: do\n"
    assert records(ConfigError([ODD, WORSE]), LOG_LEVEL="error") == (
        'level=ERROR msg="cli stopped with error" error="f.yaml:5:6: worse" file=f.yaml line=5 column=6\n'
    )


def test_a_warning_is_a_record_that_the_log_level_can_hide() -> None:
    shown = {}
    for level in ("warn", "error"):
        stream = io.StringIO()
        diagnostics.warn(Session({"LOG_LEVEL": level}, err=stream), ODD)
        shown[level] = re.sub(r"time=\S+ ", "", stream.getvalue())

    assert shown == {"warn": 'level=WARN msg="odd" file=f.yaml line=1 column=2 hint="look"\n', "error": ""}
