"""samples/: what reads and writes databases and files."""

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path

import octo
from octo.runtime import Runtime

SAMPLES = Path(__file__).parents[2] / "samples"


async def run(name, data=None, **environ):
    """Run a sample as its head comment says, or with other data."""
    config = SAMPLES / name
    head = "".join(re.findall(r"^#(.*\n)", config.read_text(encoding="utf-8"), re.MULTILINE))
    words = shlex.split(head[head.index("octo invoke") :].replace("\\\n", " ").split("\n\n")[0])
    said = {option: value for option, value in pairwise(words) if option.startswith("--")}
    assert said["--config"] == f"samples/{name}"
    async with Runtime(octo.load(config, environ=environ, cwd=SAMPLES)) as runtime:
        return (await runtime.invoke(said["--flow"], data or json.loads(said["--data"]))).body


async def test_a_transfer_is_booked_or_refused_as_a_whole(tmp_path):
    ledger = str(tmp_path / "ledger.db")

    assert await run("sql.yaml", LEDGER=ledger) == {"account": "cash", "balance": 749.5}
    assert await run("sql.yaml", {"from": "cash", "to": "rent", "amount": 1e6}, LEDGER=ledger) == {
        "refused": 'block "book": sql exec: CHECK constraint failed: balance >= 0'
    }
    assert await run("sql.yaml", {"from": "rent", "to": "cash", "amount": 0.5}, LEDGER=ledger) == {
        "account": "rent",
        "balance": 250.0,
    }


async def test_a_report_is_written_and_read_back(tmp_path):
    text = "city,sold\nBern,3\nKöln,5\n"

    assert await run("files.yaml", FOLDER=str(tmp_path)) == {
        "file": "report/2024-05.csv",
        "bytes": float(len(text.encode())),
        "type": "text/csv; charset=utf-8",
        "text": text,
    }
    assert (tmp_path / "report" / "2024-05.csv").read_text(encoding="utf-8") == text
