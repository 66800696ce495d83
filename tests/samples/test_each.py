"""samples/each.yaml: one flow for the rows of a CSV file."""

from __future__ import annotations

import io
import json
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from octo_cli.main import main

ROOT = Path(__file__).parents[2]


def test_every_order_is_billed_but_the_one_without_a_quantity(monkeypatch):
    monkeypatch.chdir(ROOT)
    head = re.findall(r"^#(.*)$", Path("samples/each.yaml").read_text(encoding="utf-8"), re.MULTILINE)
    command = next(line for line in head if line.strip().startswith("octo invoke"))

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(shlex.split(command)[1:], environ={"OCTO_STORE": ""})

    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line.get("body") or line for line in lines] == [
        {"order": "A-1", "amount": 21, "currency": "EUR"},
        {"order": "A-2", "amount": 99, "currency": "EUR"},
        {"error": 'block "amount": set-payload value: evaluate expression: no double: `two`'},
        {"order": "A-4", "amount": 3, "currency": "EUR"},
    ]
    assert "row=3 line=4" in err.getvalue()
    assert status == 1
