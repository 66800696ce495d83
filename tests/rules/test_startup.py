"""What a command imports: sets of modules, because a set does not flicker as milliseconds do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = """\
flows:
  - name: order
    process:
      - type: set-payload
        settings: { value: '{"n": body.n}' }
"""
AGENT = """\
connectors: [{ name: model, type: llm-scripted, settings: { turns: [{ text: done }] } }]
flows:
  - name: ask
    process:
      - type: ai-agent
        connector: model
        prompt: Answer.
        tools: [{ name: look, description: Looks., process: [{ type: set-payload, settings: { value: '1' } }] }]
"""

TYPER = {"typer", "annotated_doc", "shellingham"}
PYDANTIC = {"pydantic", "pydantic_core", "annotated_types", "typing_inspection", "typing_extensions"}
YAML = {"yaml", "_yaml"}


def modules(folder: Path, *args: str) -> set[str]:
    """The modules that a command line imports in a fresh interpreter, beyond those of any program."""
    (folder / "app.yaml").write_text(CONFIG, encoding="utf-8")
    return _imported(folder, "-m", "octo_cli", *args) - _imported(folder, "-c", "pass")


def _imported(folder: Path, *args: str) -> set[str]:
    process = subprocess.run(
        [sys.executable, "-v", *args],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return set(re.findall(r"^import '([^']+)' #", process.stderr, re.MULTILINE))


def packages(names: set[str]) -> set[str]:
    """The packages among modules that belong neither to octo nor to the standard library."""
    tops = {name.partition(".")[0] for name in names if not name.startswith("_sysconfigdata")}
    return tops - set(sys.stdlib_module_names) - {"octo", "octo_cli"}


def parts(names: set[str]) -> set[str]:
    """The subpackages and modules of octo itself that were imported."""
    return {name.split(".")[1] for name in names if name.startswith("octo.")}


INVOKE = ("invoke", "--config", "app.yaml", "--flow", "order", "--data", '{"n": 1}')


@pytest.mark.parametrize(
    ("args", "allowed"),
    [
        (("--version",), set()),
        (("version",), set()),
        (("--help",), TYPER),
        (("invoke", "--help"), TYPER),
        (("expr", "body.n + 1", "--data", '{"n": 1}'), TYPER),
        (("validate", "--config", "app.yaml"), TYPER | PYDANTIC | YAML),
        (INVOKE, TYPER | PYDANTIC | YAML),
        ((*INVOKE, "--log", "run.jsonl"), TYPER | PYDANTIC | YAML),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else "",
)
def test_a_command_imports_no_package_that_it_does_not_use(
    tmp_path: Path, args: tuple[str, ...], allowed: set[str]
) -> None:
    assert packages(modules(tmp_path, *args)) <= allowed


def test_the_version_is_answered_before_anything_is_imported(tmp_path: Path) -> None:
    assert {name for name in modules(tmp_path, "--version") if "octo" in name} == {
        "octo",
        "octo_cli",
        "octo_cli.startup",
    }


def test_an_expression_needs_the_expression_language_only(tmp_path: Path) -> None:
    assert parts(modules(tmp_path, "expr", "1 + 1")) == {"cel", "encoding", "errors", "logline", "values"}


def test_the_help_needs_no_event_loop(tmp_path: Path) -> None:
    assert not {"asyncio", "logging", "octo.fields", "octo.cel.compiler"} & modules(tmp_path, "--help")


def test_only_the_blocks_that_the_config_names_are_imported(tmp_path: Path) -> None:
    names = modules(tmp_path, *INVOKE)

    assert {name for name in names if name.startswith(("octo.blocks.", "octo.connectors."))} == {
        "octo.blocks.set_payload"
    }
    assert not {"sqlite3", "octo.llm", "octo.agent"} & names


def test_an_agent_whose_replies_are_written_down_needs_no_wire_and_no_network(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text(AGENT, encoding="utf-8")
    names = modules(tmp_path, "invoke", "--config", "agent.yaml", "--flow", "ask", "--data", "1")

    assert {name for name in names if name.startswith("octo.llm.")} == {
        "octo.llm.chat",
        "octo.llm.conversation",
        "octo.llm.embedding",
        "octo.llm.facts",
        "octo.llm.wires",
        "octo.llm.wires.scripted",
    }
    assert not {"httpx", "octo.http", "octo.graph", "octo.store.agents", "octo.agent.linked", "jinja2"} & names
