"""octo_cli/output.py: one JSON document, for a pipe or for a person."""

from __future__ import annotations

import errno
import io
from typing import Any

import pytest

from octo_cli import output
from octo_cli.session import Session
from octo_cli.startup import NotWritten, ReaderGone


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Full(io.StringIO):
    """A stream that takes nothing."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    def write(self, text: str) -> int:
        raise self._error


def printed(stream: io.StringIO, parts: dict[str, Any], *, json: bool = False, **environ: str) -> str:
    output.document(Session(environ, out=stream), parts, json=json)
    return stream.getvalue()


def test_the_top_level_keeps_its_order_and_all_below_is_sorted() -> None:
    parts = {"z": {"b": 1.0, "a": [True, None, "é<"]}, "a": 2.5}

    assert printed(io.StringIO(), parts) == '{"z":{"a":[true,null,"é\\u003c"],"b":1},"a":2.5}\n'
    assert printed(Terminal(), parts, json=True) == printed(io.StringIO(), parts)


def test_a_person_sees_it_laid_out() -> None:
    assert printed(Terminal(), {"z": {"b": 1.0, "a": []}, "e": {}, "l": [1.0, [2.0]]}, NO_COLOR="1") == (
        '{\n  "z": {\n    "a": [],\n    "b": 1\n  },\n  "e": {},\n  "l": [\n    1,\n    [\n      2\n    ]\n  ]\n}\n'
    )


def test_a_person_sees_it_in_colour() -> None:
    assert printed(Terminal(), {"n": 1.0}, TERM="xterm") == (
        '\x1b[1m{\x1b[0m\n  \x1b[1;34m"n"\x1b[0m: \x1b[1;36m1\x1b[0m\n\x1b[1m}\x1b[0m\n'
    )


def test_control_characters_do_not_reach_a_terminal() -> None:
    shown = printed(Terminal(), {"t": "\x1b[2J\x07\x9b\x7f"}, NO_COLOR="1")

    assert shown == '{\n  "t": "\\u001b[2J\\u0007\\u009b\\u007f"\n}\n'


def test_secrets_are_hidden_in_texts_keys_and_numbers() -> None:
    stream = io.StringIO()
    session = Session({}, out=stream, mask=lambda text: text.replace("123456", "***"))

    output.document(session, {"body": {"123456": ["a 123456", 123456.0, 7.0, True]}})

    assert stream.getvalue() == '{"body":{"***":["a ***","***",7,true]}}\n'


def test_a_reader_that_went_away_is_told_apart_from_a_full_disk() -> None:
    with pytest.raises(ReaderGone):
        printed(Full(BrokenPipeError()), {})
    with pytest.raises(NotWritten, match=r"^cannot write standard output: no space left on device$"):
        printed(Full(OSError(errno.ENOSPC, "No space left on device")), {})
