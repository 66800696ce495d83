"""octo_cli/logs.py: records in a pipe, lines on a terminal."""

from __future__ import annotations

import io

import pytest

from octo.values import render
from octo_cli import logs
from octo_cli.session import Session


def written(level: str, text: str, fields: dict[str, object] | None = None, **environ: str) -> str:
    stream = io.StringIO()
    logs.write(Session(environ, err=stream), level, text, fields)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"a": "plain", "b": 3.0, "c": True}, "a=plain b=3 c=true"),
        ({"a": "two words"}, 'a="two words"'),
        ({"a": 'say "x"\n'}, 'a="say \\"x\\"\\n"'),
        ({"a": ""}, 'a=""'),
        ({"a": None, "b": {"k": [1.0]}}, 'b="{\\"k\\":[1]}"'),
        ({"a": "\x1b[31m\x9b\u2028"}, 'a="\\u001b[31m\\u009b\\u2028"'),
        ({"a": "x=y"}, 'a="x=y"'),
        ({"a": "é日本"}, "a=é日本"),
        ({"error": "plain"}, 'error="plain"'),
    ],
    ids=["bare", "spaces", "quotes", "empty", "json", "control characters", "equals", "unicode", "texts are quoted"],
)
def test_fields_are_quoted_where_they_need_it(fields: dict[str, object], shown: str) -> None:
    assert logs.record("INFO", "m", fields={k: render(v) for k, v in fields.items() if v is not None}).endswith(
        f' level=INFO msg="m" {shown}'
    )


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("debug", ["debug", "info", "warn", "error"]),
        ("", ["info", "warn", "error"]),
        ("nonsense", ["info", "warn", "error"]),
        ("WARNING", ["warn", "error"]),
        ("Error", ["error"]),
    ],
)
def test_the_level_hides_what_is_below_it(setting: str, shown: list[str]) -> None:
    levels = ["debug", "info", "warn", "error"]

    assert [level for level in levels if written(level, "x", LOG_LEVEL=setting)] == shown


def test_a_record_is_one_line_that_begins_with_its_time() -> None:
    time, rest = written("warning", "two\nlines").split(" ", 1)

    assert len(time) == len("time=2026-01-01T00:00:00.000Z")
    assert rest == 'level=WARN msg="two\\nlines"\n'
