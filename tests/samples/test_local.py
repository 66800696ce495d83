"""samples/{python-tool,template,cli-run}.yaml: Python functions, templates and programs of the local machine."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import octo
from octo.runtime import Runtime

SAMPLES = Path(__file__).parents[2] / "samples"


async def run(name, **outputs):
    """Run a sample as its head comment says."""
    head = "".join(re.findall(r"^#(.*\n)", (SAMPLES / name).read_text(encoding="utf-8"), re.MULTILINE))
    words = shlex.split(head[head.index("octo invoke") :].replace("\\\n", " ").split("\n\n")[0])
    assert words[words.index("--config") + 1] == f"samples/{name}"
    loaded = octo.load(SAMPLES / name, environ={"PATH": os.environ["PATH"]}, cwd=SAMPLES)
    async with Runtime(loaded, outputs=outputs) as runtime:
        return await runtime.invoke(words[words.index("--flow") + 1], json.loads(words[words.index("--data") + 1]))


async def test_a_python_function_is_a_tool_of_an_agent():
    message = await run("python-tool.yaml")

    assert message.body == {"due": "2026-03-06"}


async def test_texts_are_made_from_files():
    message = await run("template.yaml")

    assert message.body == {
        "subject": "2 open invoices for Ada",
        "text": "Dear Ada,\n\n- invoice 7: 1299.00 EUR\n- invoice 9: 4.50 EUR (small)\n\nThank you.\n",
    }


async def test_a_program_is_run_and_watched():
    lines = []

    message = await run("cli-run.yaml", stderr=lines.append)

    assert message.body == {"distinct": ["a", "b"], "exitCode": 0.0}
    assert [json.loads(line)["msg"] for line in lines] == ["line 0: a", "line 1: b"]
