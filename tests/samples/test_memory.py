"""samples/ai-agent-memory.yaml: what is said in one process is known in the next, by the commands it shows."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

SAMPLE = Path(__file__).parents[2] / "samples" / "ai-agent-memory.yaml"


def run(words, store):
    """The body that a command prints, run in a process of its own."""
    command = [sys.executable, "-m", "octo_cli", *words[1:], "--store", str(store)]
    done = subprocess.run(command, cwd=SAMPLE.parents[1], capture_output=True, text=True, check=True, encoding="utf-8")
    return json.loads(done.stdout)["body"]


def test_two_plain_calls_know_of_each_other(tmp_path):
    commands = re.findall(r"^#   (octo invoke .*)$", SAMPLE.read_text(encoding="utf-8"), re.MULTILINE)

    assert [run(shlex.split(command), tmp_path) for command in commands] == ["Nice to meet you.", "You are Ada."]
