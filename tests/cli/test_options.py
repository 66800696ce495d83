"""octo_cli/options.py: the grammar that all commands share."""

from __future__ import annotations

from typing import Any

import pytest

ON, OFF = '{\n  "ok": true,\n  "result": 3\n}\n', '{"ok":true,"result":3}\n'


@pytest.mark.parametrize(
    ("args", "stdout"),
    [
        (["1 + 2"], ON),
        (["1 + 2", "--json"], OFF),
        (["--json", "1 + 2"], OFF),
        (["--json=true", "1 + 2"], OFF),
        (["--json=1", "1 + 2"], OFF),
        (["1 + 2", "--json=false"], ON),
        (["1 + 2", "--json", "--no-json"], ON),
        (["--json", "--", "1 + 2"], OFF),
        (["--data=--json", "1 + 2", "--data", "null"], ON),
    ],
    ids=" ".join,
)
def test_options_stand_anywhere_and_booleans_are_switched_off_in_two_ways(
    octo: Any, args: list[str], stdout: str
) -> None:
    assert octo("expr", *args, terminal="out").stdout == stdout


def test_the_value_of_an_option_may_look_like_a_switch(octo: Any) -> None:
    assert octo("expr", "body", "--data", "--json=false", "--data", '"x"').stdout == '{"ok":true,"result":"x"}\n'


def test_after_two_dashes_nothing_is_an_option(octo: Any) -> None:
    assert octo("expr", "--", "-1 + 2") == ('{"ok":true,"result":1}\n', "", 0)


LONG = "a" * 300
"""Longer than the name of a file can be, so that one cannot even ask whether there is one."""


@pytest.mark.parametrize(
    "args",
    [
        ("runs", "show", LONG),
        ("memory", "list", "--config", LONG),
        ("test", LONG),
        ("fmt", LONG),
        ("schema", "--out", LONG),
        ("memory", "export", "--out", LONG),
    ],
    ids=lambda args: " ".join(args[:-1]),
)
def test_a_path_that_cannot_be_reached_is_told_of(octo: Any, args: tuple[str, ...]) -> None:
    assert octo(*args) == (
        "",
        f'level=ERROR msg="cli stopped with error" error="cannot reach `{LONG}`: file name too long"\n',
        2,
    )
