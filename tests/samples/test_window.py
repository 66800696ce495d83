"""samples/ai-agent-window.yaml: what is said in one process is known in the next, by the commands it shows."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

SAMPLE = Path(__file__).parents[2] / "samples" / "ai-agent-window.yaml"


def run(command, store):
    """The document that a command prints, run in a process of its own."""
    words = [sys.executable, "-m", "octo_cli", *shlex.split(command)[1:], "--store", str(store)]
    done = subprocess.run(words, cwd=SAMPLE.parents[1], capture_output=True, text=True, check=True, encoding="utf-8")
    return json.loads(done.stdout)


def test_two_calls_with_one_memory_id_know_of_each_other(tmp_path):
    first, second, listing = re.findall(r"^#   (octo .*)$", SAMPLE.read_text(encoding="utf-8"), re.MULTILINE)

    assert run(first, tmp_path)["body"] == "I see."
    assert run(second, tmp_path)["body"] == "You are Ada."
    (memory,) = run(listing, tmp_path)["memories"]
    assert (memory["kind"], memory["block"], memory["count"]) == ("managed", "ask.desk", 4)
