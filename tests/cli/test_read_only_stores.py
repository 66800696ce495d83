"""octo_cli/agents/desk.py, octo_cli/commands/memory.py: what commands do with a store that they cannot write."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from permissions import obeying, read_only

CONFIG = """
connectors:
  - name: llm
    type: llm-scripted
    settings:
      rules:
        - {when: 'system.endsWith("deployed")', text: works with what was deployed}
        - {when: 'system.endsWith("changed") && last.text == "works with what was deployed"', text: works as declared}
        - {when: 'system.endsWith("three") && last.text == "works as declared"', text: all is well}
        - {when: 'true', text: not yet}
agents:
  - {name: first, connector: llm, prompt: one}
  - {name: second, connector: llm, prompt: two, memory: {kind: window, contextLength: 4}}
flows:
  - name: talk
    process:
      - {type: ai-agent, name: a, agent: first, input: body}
      - {type: ai-agent, name: b, agent: second, input: body, memoryId: '"m"'}
      - {type: ai-agent, name: c, agent: stored, input: body}
"""
REFUSED = "`.octo/octo.db` cannot be written: the file or its directory is read-only"
REMEDY = "make the file and its directory writable, or name another directory with `--store DIR`"

Octo = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def octo(tmp_path: Path) -> Octo:
    def run(line: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "octo_cli", *line.split()]
        start = partial(subprocess.run, command, cwd=tmp_path, capture_output=True, encoding="utf-8", check=False)
        return obeying(start)

    return run


@pytest.fixture
def project(tmp_path: Path, octo: Octo) -> Iterator[Path]:
    """A config that has run on a store, and an agent that is in the store alone. Nobody may write there any more."""
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "stored.yaml").write_text("connector: llm\nprompt: three\n", encoding="utf-8")
    (tmp_path / "changed.yaml").write_text("connector: llm\nprompt: deployed\n", encoding="utf-8")
    for line in (
        "agents deploy stored --file stored.yaml --config app.yaml",
        'invoke --config app.yaml --flow talk --data "hello"',
        "agents deploy first --file changed.yaml",
    ):
        assert octo(line).returncode == 0
    before = (tmp_path / ".octo" / "octo.db").read_bytes()
    with read_only(tmp_path / ".octo"):
        yield tmp_path
    assert (tmp_path / ".octo" / "octo.db").read_bytes() == before
    assert sorted(path.name for path in (tmp_path / ".octo").iterdir()) == [".gitignore", "octo.db"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("agents list --config app.yaml", '"name":"first","version":2,'),
        ("agents show first@1", '"value":{"connector":"llm","prompt":"one"}'),
        ("agents history first", '{"name":"first","current":2,'),
        ("agents diff first", '-prompt: one\\n+prompt: deployed"'),
        ("agents check --config app.yaml", '{"ok":true,'),
        ("agents export stored", "prompt: three\n"),
        ("agents pin --config app.yaml --no-write", '"agent":"stored","block":"talk.c","version":1'),
        ("validate --config app.yaml", '{"ok":true,'),
        ("graph --config app.yaml", "agent first"),
        ("memory list", '{"memories":[{"kind":"managed",'),
        ("memory search ye", '{"found":[{"kind":"managed",'),
        ("memory export", '"text":"not yet"'),
        ("runs list", '{"runs":[{"id":'),
        ("runs show latest", '"outcome":"completed"'),
        ("store info", '"exists":true'),
        ("store backup copy.db", '"backup":"copy.db"'),
    ],
    ids=lambda text: text.partition(" --")[0] if isinstance(text, str) and text[0].islower() else "",
)
def test_commands_that_read_read(project: Path, octo: Octo, line: str, expected: str) -> None:
    outcome = octo(line)

    assert expected in outcome.stdout
    assert (outcome.stderr, outcome.returncode) == ("", 0)


@pytest.mark.parametrize(
    "line",
    [
        "agents deploy first --file stored.yaml",
        "agents draft first --set prompt=x",
        "agents restore first 1 --yes",
        "agents rename first other",
        "agents delete first --yes",
        "agents clear-history first --yes",
        "runs prune --keep 0 --yes",
        "store prune",
    ],
    ids=lambda line: line.partition(" --")[0],
)
def test_commands_that_write_say_why_they_cannot(project: Path, octo: Octo, line: str) -> None:
    outcome = octo(line)

    assert f'error="{REFUSED}" hint="{REMEDY}"' in outcome.stderr
    assert (outcome.stdout, outcome.returncode) == ("", 2)


def test_a_run_works_with_what_is_in_force_and_says_what_is_not_kept(project: Path, octo: Octo) -> None:
    (project / "app.yaml").write_text(CONFIG.replace("prompt: two", "prompt: changed"), encoding="utf-8")
    outcome = octo('invoke --config app.yaml --flow talk --data "hello"')

    assert '"body":"all is well"' in outcome.stdout
    assert outcome.returncode == 0
    assert sorted(re.sub(r"(?m)^time=\S+Z ", "", outcome.stderr).splitlines()) == [
        f'level=WARN msg="agent \\"second\\" runs as declared, and no version is kept: {REFUSED}"',
        f'level=WARN msg="memory: could not store memory: {REFUSED}" block=talk.b',
        f'level=WARN msg="runs are no longer recorded: {REFUSED}"',
    ]
