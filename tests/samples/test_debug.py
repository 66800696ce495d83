"""samples/debug/: each debug config does what its first lines say."""

from __future__ import annotations

import io
import json
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from octo_cli.main import main

ROOT = Path(__file__).parents[2]


def shown_by(sample: str, number: int) -> Any:
    """What a command of the head comment prints."""
    head = "".join(re.findall(r"(?m)^#(.*\n)", (ROOT / "samples" / "debug" / sample).read_text(encoding="utf-8")))
    commands = re.findall(r"(?m)^ +octo (.*)$", head.replace("\\\n", " "))
    out = io.StringIO()
    with redirect_stdout(out):
        assert main(shlex.split(commands[number]), environ={"OCTO_STORE": ":memory:"}) == 0
    return json.loads(out.getvalue())


def test_the_api_is_not_asked_and_the_spy_shows_what_it_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    printed = shown_by("rest.yaml", 0)

    assert printed["result"]["body"] == {"slot": 12}
    (record,) = printed["spies"][0]["records"]
    assert (record["input"]["body"], record["output"]["variables"]) == (
        {"depot": 7, "day": "monday"},
        {"statusCode": 201},
    )


def test_an_option_replaces_the_input_and_the_flow_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    printed = shown_by("rest.yaml", 1)

    assert printed["spies"][0]["records"][0]["error"] == "the depot is closed"
    assert printed["result"]["body"] == {
        "booked": False,
        "status": 0,
        "reason": 'block "book-slot": the depot is closed',
    }
